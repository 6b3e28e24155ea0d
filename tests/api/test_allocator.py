"""The extension's allocator keeps freed pages between the grammars of a server."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource, threading, time
import logitree as lt

vocabulary = lt.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b"</s>"], end_tokens=[256])

def grammars():
    made = []
    for n in range(12):
        patterns = {f"name{i}_{n}": {"type": "string", "pattern": f"^[a-z]{{1,{i + 9}}}$"} for i in range(40)}
        made.append(lt.Grammar.json_schema({"type": "object", "properties": patterns}).matcher(vocabulary))
        for byte in b'{"name1':
            made[-1].allowed().mask()
            made[-1].accept(byte)
    vocabulary.clear_bindings()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def run():
    for _ in range(4):
        grammars()
    before = faults()
    for _ in range(8):
        time.sleep(0.03)
        grammars()
    print(faults() - before)

# Unoptimised, the core asks for 16 MiB of stack, and maps a stack for each grammar where it has less.
threading.stack_size(64 << 20)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def page_faults(**environment: str) -> int:
    known = {name: value for name, value in os.environ.items() if not name.startswith("MIMALLOC")}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=known | environment, check=True, capture_output=True, text=True
    )
    return int(run.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted as Linux counts them")
def test_grammars_after_a_pause_use_the_pages_of_those_before() -> None:
    kept = page_faults()
    returned = page_faults(MIMALLOC_PURGE_DELAY="10")
    assert kept * 4 < returned, (kept, returned)
