"""The vocabulary object: questions, equality, pickling, errors."""

from __future__ import annotations

import copy
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import logitree as lt

TOKENS = [b"<unk>", b"a", b"ab", b"b", b"b", b"\xff", b"", b"</s>"]
KINDS = ["unknown", "normal", "user_defined", "normal", "byte", "byte", "unused", "control"]


@pytest.fixture
def tiny() -> lt.Vocabulary:
    return lt.Vocabulary.from_tokens(TOKENS, end_tokens=[7, 7], bos_id=0, name="tiny", kinds=KINDS)


def test_answers(tiny: lt.Vocabulary) -> None:
    assert len(tiny) == 8 and list(tiny) == TOKENS
    assert [tiny[i] for i in range(8)] == [tiny.token_bytes(i) for i in range(8)] == TOKENS
    assert [tiny.kind(i) for i in range(8)] == KINDS
    assert tiny.special_ids == [0, 6, 7] and tiny.end_tokens == [7] and tiny.bos_id == 0
    assert (tiny.name, tiny.source, tiny.adds_prefix_space) == ("tiny", "tokens", False)
    assert tiny.find(b"b") == [3, 4] and tiny.find(b"zz") == []
    assert tiny.search("b") == [2, 3, 4] and tiny.search(b"b", limit=1) == [2]
    assert b"ab" in tiny and b"ba" not in tiny
    assert tiny.decode([1, 7, 5]) == b"a\xff" and tiny.decode([1, 7, 5], skip_special=False) == b"a</s>\xff"
    assert 'Vocabulary("tiny", 8 tokens' in repr(tiny)


def test_equality_is_the_fingerprint(tiny: lt.Vocabulary) -> None:
    same = lt.Vocabulary.from_tokens(TOKENS, end_tokens=[7], kinds=KINDS)
    assert same == tiny and hash(same) == hash(tiny) and same.fingerprint == tiny.fingerprint
    assert len(tiny.fingerprint) == 32 and int(tiny.fingerprint, 16) >= 0
    moved = lt.Vocabulary.from_tokens([b"<unk>", b"aa", b"b", *TOKENS[3:]], end_tokens=[7], kinds=KINDS)
    assert b"".join(moved) == b"".join(tiny) and moved != tiny
    assert tiny.replace(end_tokens=[0, 7]) != tiny and tiny != "tiny"
    for other in (pickle.loads(pickle.dumps(tiny)), copy.copy(tiny), copy.deepcopy(tiny)):
        assert other == tiny and other.name == "tiny" and other.bos_id == 0 and other.end_tokens == [7]


def test_special_and_end_ids_are_control() -> None:
    v = lt.Vocabulary.from_tokens([b"a", b"<s>", b"</s>"], special_ids=[1], end_tokens=[2])
    assert [v.kind(i) for i in range(3)] == ["normal", "control", "control"]
    other = v.replace(end_tokens=[1], bos_id=1, name="x")
    assert (other.end_tokens, other.bos_id, other.name) == ([1], 1, "x")


@pytest.mark.parametrize("id", [8, -1, 2**32, -(2**40)])
def test_unknown_ids(tiny: lt.Vocabulary, id: int) -> None:
    for ask in (tiny.__getitem__, tiny.kind, tiny.token_bytes, lambda i: tiny.decode([1, i])):
        with pytest.raises(lt.TokenError, match="not in the vocabulary"):
            ask(id)


def test_what_cannot_be_a_vocabulary() -> None:
    cases: tuple[dict[str, Any], ...] = (
        {"tokens": []},
        {"tokens": [b"a"], "end_tokens": [1]},
        {"tokens": [b"a"], "special_ids": [-1]},
        {"tokens": [b"a"], "bos_id": 5},
        {"tokens": [b"a"], "kinds": []},
        {"tokens": [b"a"], "kinds": ["nice"]},
    )
    for arguments in cases:
        with pytest.raises(lt.VocabularyError):
            lt.Vocabulary.from_tokens(**arguments)
    with pytest.raises(TypeError):
        lt.Vocabulary.from_tokens(["a"])  # type: ignore[list-item]


def test_files_that_are_not_there_or_not_gguf(tmp_path: Path) -> None:
    for kind in (lt.FileError, FileNotFoundError):
        with pytest.raises(kind, match="absent.gguf"):
            lt.Vocabulary.from_gguf(tmp_path / "absent.gguf")
    with pytest.raises(lt.FileError) as raised:
        lt.Vocabulary.from_gguf(tmp_path)
    assert not isinstance(raised.value, FileNotFoundError)
    for name, content in (("empty", b""), ("text", b"hello"), ("cut", b"GGUF\x03\0\0\0")):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(lt.VocabularyError, match=name) as raised:
            lt.Vocabulary.from_gguf(str(path))
        assert raised.value.place.startswith("offset ")


def _gguf(*pairs: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)


def _string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


HUNGRY = {
    "many empty tokens": (
        "from_gguf",
        _gguf(
            _string(b"tokenizer.ggml.model") + struct.pack("<I", 8) + _string(b"gpt2"),
            _string(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 500_000) + bytes(8 * 500_000),
        ),
    ),
    "many pairs": (
        "from_gguf",
        _gguf(*[_string(b"tokenizer.ggml.") + struct.pack("<IB", 0, 0)] * 150_000),
    ),
    "many pieces": (
        "from_tokenizer_json",
        b'{"decoder":{"type":"ByteLevel"},"model":{"vocab":{%s}}}' % b",".join(b'"":%d' % id for id in range(400_000)),
    ),
    "a long list in the decoder": (
        "from_tokenizer_json",
        b'{"decoder":{"x":[%s0]},"model":{"vocab":{"a":0}}}' % (b"0," * 2_000_000),
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("case", HUNGRY)
def test_memory_is_a_small_multiple_of_the_file(case: str, tmp_path: Path) -> None:
    constructor, content = HUNGRY[case]
    path = tmp_path / "file"
    path.write_bytes(content)
    script = """if True:
        import sys
        import logitree as lt

        def peak():
            lines = open("/proc/self/status").read().splitlines()
            return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024

        open("/proc/self/clear_refs", "w").write("5")
        before = peak()
        try:
            vocabulary = getattr(lt.Vocabulary, sys.argv[1])(sys.argv[2])
        except lt.VocabularyError:
            pass
        print(peak() - before)
    """
    run = subprocess.run(
        [sys.executable, "-c", script, constructor, str(path)], check=True, capture_output=True, text=True
    )
    assert int(run.stdout) < 10 * len(content) + (4 << 20)


@pytest.mark.parametrize(
    "read", [lt.Vocabulary.from_tiktoken, lt.Vocabulary.from_llama, lt.Vocabulary.from_sentencepiece]
)
def test_an_object_of_another_library_is_a_type_error(read: Any) -> None:
    with pytest.raises(TypeError, match="expected"):
        read(3)
