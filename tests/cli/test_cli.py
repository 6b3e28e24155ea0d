"""The command line with the real model: what goes where, in which form, and with which exit code."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
from logitree.cli import main, parser
from logitree.cli._terminal import Terminal, cells, fit, safe, visible
from logitree.cli._trace import TraceTable
from logitree.cli.docs import markdown
from logitree.engines.llama_cpp import bundled_model

REPOSITORY = Path(__file__).resolve().parents[2]
FAST = ["--threads", "1", "--ctx", "256"]
TOKEN_KEYS = {"id", "text", "bytes", "forced", "source", "allowed", "p", "p_model", "entropy", "micros"}
STATS_KEYS = set(lt.Stats.__dataclass_fields__)


@pytest.fixture(autouse=True)
def _model(smollm2_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    for name in ("NO_COLOR", "LOGITREE_MODEL"):
        monkeypatch.delenv(name, raising=False)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    try:
        code = main(argv)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    said = capsys.readouterr()
    return code, said.out, said.err


def test_choose_prints_the_choice_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "choose", "Is fire hot?", "--choices", "YES, NO", *FAST)
    assert (code, err) == (0, "")
    assert out in ("YES\n", "NO\n")


def test_choose_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "choices.json"
    file.write_text(json.dumps(["REPLY", "REPLY_THREAD", "IGNORE"]))
    code, out, err = run(capsys, "choose", "Hello!", "--choices-file", str(file), "--json", "--method", "greedy", *FAST)
    report = json.loads(out)
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert set(report) == {"choice", "index", "probability", "probabilities", "tokens", "stats"}
    assert report["probabilities"] is None
    assert report["choice"] == ["REPLY", "REPLY_THREAD", "IGNORE"][report["index"]]
    assert 0 < report["probability"] <= 1
    assert set(report["stats"]) == STATS_KEYS
    assert report["stats"]["output_tokens"] == len(report["tokens"])
    assert all(set(token) == TOKEN_KEYS for token in report["tokens"])
    text = b"".join(bytes.fromhex(token["bytes"]) for token in report["tokens"]).decode()
    assert text == report["choice"]
    code, out, err = run(capsys, "choose", "Hello!", "--choices-file", str(file), "--json", *FAST)
    report = json.loads(out)
    assert (code, err, report["tokens"]) == (0, "", [])
    assert list(report["probabilities"]) == ["REPLY", "REPLY_THREAD", "IGNORE"]
    assert sum(report["probabilities"].values()) == pytest.approx(1.0)
    assert report["probability"] == max(report["probabilities"].values()) == report["probabilities"][report["choice"]]
    for option in ("--calibrate", "--tokenization=any"):
        other = json.loads(run(capsys, "choose", "Hello!", "--choices", "YES,NO", "--json", option, *FAST)[1])
        assert sum(other["probabilities"].values()) == pytest.approx(1.0)


def test_the_trace_goes_to_standard_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "choices.txt"
    file.write_text("TRANSLATE\nIGNORE\n\nIGNORE\n")
    argv = ("choose", "Translate!", "--choices-file", str(file), "--method", "greedy", "--trace", *FAST)
    code, out, err = run(capsys, *argv)
    assert code == 0
    lines = err.splitlines()
    assert lines[0].split() == ["#", "token", "p", "model", "p", "entropy", "allowed", "us"]
    assert "forced: the only canonical token" in err
    assert "saved" in lines[-1]
    assert "sure" in lines[-1]
    assert max(map(cells, lines)) <= 80
    assert out.strip() in ("TRANSLATE", "IGNORE")


def test_the_probabilities_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    words = ",".join(f"W{n}" for n in range(12))
    code, out, err = run(capsys, "choose", "Pick one", "--choices", words, "--trace", *FAST)
    lines = [line.split() for line in err.splitlines()]
    assert (code, lines[0][1], lines[10][1:]) == (0, out.strip(), ["2", "others"])
    assert sum(float(line[0].rstrip("%")) for line in lines[:11]) == pytest.approx(100.0, abs=0.2)


def test_colour_is_asked_for(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    argv = ("choose", "Hi", "--choices", "A,B", "--trace", *FAST)
    assert "\x1b[" not in "".join(run(capsys, *argv)[1:])
    assert "\x1b[1mA\x1b[0m" in run(capsys, *argv, "--color", "always")[1].replace("B", "A")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in "".join(run(capsys, *argv)[1:])


def test_generate_streams_text(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("generate", "1 2 3 4 5 6 7", "--raw", "--temp", "0", "--max-tokens", "6", *FAST)
    code, out, err = run(capsys, *argv)
    assert (code, out, err) == (0, " 8 9 1\n", "")
    assert run(capsys, *argv, "--stop", " 9")[1] == " 8\n"


def test_generate_writes_its_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page, lines = tmp_path / "out.html", tmp_path / "out.jsonl"
    argv = ("generate", "1 2 3 4 5 6 7", "--raw", "--temp", "0", "--max-tokens", "6", *FAST)
    assert run(capsys, *argv, "--trace", str(page)) == (0, " 8 9 1\n", "")
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert run(capsys, *argv, f"--trace={lines}")[0] == 0
    head, *tokens = map(json.loads, lines.read_text("ascii").splitlines())
    assert (head["text"], len(tokens)) == (" 8 9 1", 6)
    # A prompt may follow the option that takes no file.
    assert "entropy" in run(capsys, "generate", "--trace", "1 2 3", "--raw", "--max-tokens", "1", *FAST)[2]
    code, _, err = run(capsys, *argv, "--trace-to", str(tmp_path / "out.txt"))
    assert (code, "ends in .html or .jsonl" in err) == (2, True)
    code, _, err = run(capsys, *argv, "--trace", str(tmp_path / "no" / "out.html"))
    assert (code, "there is no such folder" in err) == (2, True)


def test_generate_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("generate", "Once upon a time", "--seed", "0", "--max-tokens", "5", "--json", *FAST)
    code, out, err = run(capsys, *argv)
    events = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [event["event"] for event in events] == ["token"] * (len(events) - 1) + ["finish"]
    assert all(set(event) == TOKEN_KEYS | {"event"} for event in events[:-1])
    finish = events[-1]
    assert set(finish) == {"event", "reason", "text", "complete", "value", "tokens", "stats"}
    assert set(finish["stats"]) == STATS_KEYS
    assert (finish["reason"], finish["stats"]["seed"]) == ("max_tokens", 0)
    assert [event["id"] for event in events[:-1]] == finish["tokens"]
    again = [json.loads(line) for line in run(capsys, *argv)[1].splitlines()]
    assert again[-1]["tokens"] == finish["tokens"]


def test_generate_after_a_thought(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("generate", "Is fire hot? <think>", "--raw", "--choices", "YES,NO", "--json", "--temp", "1.5", *FAST)
    code, out, _ = run(capsys, *argv, "--think-budget", "4")
    report = json.loads(out.splitlines()[-1])
    thought, answer = report["text"].split("</think>")
    assert (code, answer) == (0, report["value"])
    assert thought
    assert 4 < report["stats"]["reasoning_tokens"] < len(report["tokens"])
    code, _, err = run(
        capsys, *argv, "--think-budget", "4", "--think-begin", "<|im_start|>", "--think-end", "<|im_start|>"
    )
    assert (code, "same tokens" in err) == (1, True)
    for wrong in (["--think-budget", "-1"], ["--think-end", "x"]):
        assert run(capsys, *argv, *wrong)[0] == 2


def test_generate_from_a_token_tree(capsys: pytest.CaptureFixture[str], tmp_path: Path, smollm2_gguf: Path) -> None:
    vocabulary = lt.Vocabulary.from_gguf(str(smollm2_gguf))
    leaves = [{"name": text, "tokens": vocabulary.find(text.encode())} for text in ("yes", "no")]
    file = tmp_path / "tree.json"
    file.write_text(json.dumps({"descriptors": [{"path": "action", "leaves": leaves}]}))
    code, out, err = run(
        capsys, "generate", "Is fire hot?", "--token-tree", str(file), "--path", "action", "--trace", *FAST
    )
    assert code == 0
    assert out in ("yes\n", "no\n")
    assert "1 token (1 sampled, 0 forced)" in err


def test_the_prompt_may_come_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("1 2 3 4 5 6 7"))
    argv = ("generate", "-", "--raw", "--temp", "0", "--max-tokens", "2", *FAST)
    assert run(capsys, *argv)[1] == " 8\n"


BAD: list[tuple[list[str], int, str]] = [
    (["choose", "x", "--choices", "A", "--model", "nowhere.gguf"], 1, "no such file or folder (at nowhere.gguf)"),
    (["choose", "x", "--choices", "A", "--model", __file__], 1, "not a GGUF file"),
    (["choose", "x", "--choices", ","], 2, "no texts to choose from"),
    (["choose", "x", "--choices-file", "nowhere.txt"], 1, "nowhere.txt: No such file"),
    (["choose", "x"], 2, "--choices"),
    (["choose", "", "--choices", "A"], 2, "the prompt is empty"),
    (["choose", "x", "--choices", "A", "--raw", "--system", "s"], 2, "--system needs the chat template"),
    (["choose", "x", "--choices", "A,B", "--seed", "-2", *FAST], 2, "seed is -2"),
    (["choose", "x", "--choices", "A,B", "--method", "exact", "--temp", "1", *FAST], 2, "--method exact computes"),
    (["choose", "x", "--choices", "A,B", "--method", "greedy", "--calibrate", *FAST], 2, "needs --method exact"),
    (["choose", "x", "--choices", "A,B", "--temp", "nan", *FAST], 2, "temp is NaN"),
    (["choose", "x", "--choices", "\udcff,B"], 2, "--choices: not UTF-8"),
    (["choose", "x", "--choices", "A", "--threads", "100000"], 1, "n_threads is 100000"),
    (["choose", "x", "--choices", "A", "--ctx", "999999999"], 1, "the model was trained for 8192"),
    (["choose", "x", "--choices", "A", "--ctx", "0"], 2, "--ctx is 0"),
    (["choose", "x " * 300, "--choices", "A", *FAST], 1, "the context holds 256"),
    (["generate", "x", "--token-tree", "nowhere.json"], 1, "nowhere.json: No such file"),
    (["generate", "x", "--token-tree", __file__], 1, "test_cli.py: the payload cannot be read"),
    (["generate", "x", "--path", "action"], 2, "--path without --token-tree"),
    (["generate", "x", "--stop", ""], 2, "--stop is empty"),
    (["generate", "x", "--max-tokens", "-1"], 2, "--max-tokens is -1"),
    (["generate", "x", "--temp", "hot"], 2, "--temp"),
    (["vocab", "nowhere.gguf"], 1, "nowhere.gguf: No such file"),
    (["vocab", "--search", "a", "--limit", "-1"], 2, "--limit is -1"),
    (["vocab", "--search", "\udcff"], 2, "--search: not UTF-8"),
    (["vocab", __file__], 1, "neither GGUF nor"),
    (["vocab", "--id", "99999999"], 1, "99999999"),
    (["trie", "--depth", "-1"], 2, "--depth is -1"),
    (["nonsense"], 2, "nonsense"),
    ([], 2, "COMMAND"),
]


@pytest.mark.parametrize(
    ("argv", "code", "message"), BAD, ids=lambda v: " ".join(v)[:60] if isinstance(v, list) else ""
)
def test_bad_input_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], argv: list[str], code: int, message: str
) -> None:
    got, out, err = run(capsys, *argv)
    assert (got, out) == (code, "")
    assert message in err.splitlines()[-1]
    assert "Traceback" not in err
    if code == 1:
        assert err.startswith("logitree: error: ")
        assert err.count("\n") == 1


def test_a_json_array_that_is_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for text, message in (("[1, 2]", "array of strings"), ("[", "begins like a JSON array")):
        (tmp_path / "c").write_text(text)
        code, _, err = run(capsys, "choose", "x", "--choices-file", str(tmp_path / "c"))
        assert code == 2
        assert message in err


def test_input_that_is_no_utf_8(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "c"
    file.write_bytes(b"ab\xff\n")
    code, _, err = run(capsys, "choose", "x", "--choices-file", str(file))
    assert (code, err) == (2, f"logitree: error: {file} is not UTF-8 (at byte 2)\n")
    for handler in ("strict", "surrogateescape"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), "utf-8", handler))
        code, _, err = run(capsys, "choose", "-", "--choices", "A,B")
        assert (code, err) == (2, "logitree: error: standard input is not UTF-8\n")


def test_vocab(capsys: pytest.CaptureFixture[str], smollm2_gguf: Path) -> None:
    summary = run(capsys, "vocab")[1]
    assert "49,152" in summary
    facts = json.loads(run(capsys, "vocab", str(smollm2_gguf), "--json")[1])
    assert facts["tokens"] == 49152 == sum(facts["kinds"].values())
    assert facts["end_tokens"] == [0, 2, 4]
    found = json.loads(run(capsys, "vocab", "--text", "Hello", "--search", "ello", "--limit", "3", "--json")[1])
    by_text, by_search = found.values()
    assert [token["text"] for token in by_text] == ["H", "He", "Hel", "Hello"]
    assert len(by_search) == 3
    assert all("ello" in token["text"] for token in by_search)
    shown = run(capsys, "vocab", "--id", "2")[1]
    assert "<|im_end|>" in shown
    assert "ends a generation" in shown


def test_vocab_of_a_tekken_file(capsys: pytest.CaptureFixture[str], mistral_data: Path) -> None:
    file = next(iter(sorted(mistral_data.glob("tekken*.json"))))
    assert json.loads(run(capsys, "vocab", str(file), "--json")[1])["tokens"] > 100_000


def test_trie(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "trie", "--prefix", "Hell", "--depth", "1")
    assert code == 0
    assert out.splitlines()[0].startswith("Hell")
    assert any(line.startswith(("├─ o ", "└─ o ")) for line in out.splitlines())
    assert run(capsys, "trie", "--prefix", "Hell", "--depth", "1", "--dot")[1].startswith("digraph")


def test_demo(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "demo", "--threads", "1")
    assert (code, err) == (0, "")
    assert max(map(cells, out.splitlines())) <= 80
    assert "WEATHER_REPORT" in out
    assert "forced: the only allowed token" in out
    assert "forward passes saved" in out
    tried = [line.strip() for line in out.splitlines() if line.startswith("    logitree ")]
    assert len(tried) >= 3
    for command in tried:
        parser().parse_args(shlex.split(command)[1:])


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"logitree {lt.__version__}\n", "")


def test_the_documentation_is_up_to_date() -> None:
    written = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == markdown(), "run: python -m logitree.cli.docs > docs/cli.md"


def spawn(*argv: str, **options: Any) -> subprocess.Popen[bytes]:
    """The command as a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "logitree", *argv], **options)


def test_ctrl_c_leaves_the_terminal_sane() -> None:
    leader, follower = pty.openpty()
    process = spawn(
        *("generate", "1, 2, 3, 4, 5, 6, 7, 8, 9,", "--raw", "--temp", "0", "--max-tokens", "2000", "--ctx", "4096"),
        *("--threads", "1"),
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        # A shell's background jobs ignore the signal, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(follower)
    said, deadline, sent = b"", time.monotonic() + 120, False
    while time.monotonic() < deadline:
        try:
            part = os.read(leader, 4096)
        except OSError:
            break
        if not part:
            break
        said += part
        # The text begins after the last progress line was cleared.
        if not sent and b"\x1b[?25h" in said and len(said.rsplit(b"\x1b[?25h", 1)[-1]) > 20:
            process.send_signal(signal.SIGINT)
            sent = True
    assert process.wait(timeout=60) == 130
    os.close(leader)
    assert sent
    assert b"Traceback" not in said
    assert b"interrupted after" in said
    assert said.count(b"\x1b[?25l") == said.count(b"\x1b[?25h") >= 1
    assert said.endswith(b"\x1b[0m")


def test_a_reader_that_leaves_is_no_error() -> None:
    process = spawn("vocab", "--search", "a", "--limit", "20000", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 1


class Screen(io.StringIO):
    """A stream that says it is a terminal, of an encoding."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_that_goes_away() -> None:
    screen = Screen()
    terminal = Terminal(screen, "never")
    terminal.progress("loading", 0.0)
    terminal.progress("loading", 0.51)
    terminal.line("done")
    said = screen.getvalue()
    assert said.count("\x1b[?25l") == said.count("\x1b[?25h") == 1
    assert said.endswith("\r\x1b[K\x1b[?25hdone\n")
    assert "\n" not in said[: said.index("done")]


@pytest.mark.parametrize("columns", [30, 40, 80, 200])
def test_progress_does_not_wrap(columns: int) -> None:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(leader, "rb"), os.fdopen(follower, "w", encoding="utf-8") as screen:
        Terminal(screen, "never").progress("loading the model", 1.0)
        said = os.read(leader, 4096).decode()
    assert cells(re.sub(r"\x1b\[\??\d*[a-zA-Z]|\r", "", said)) < columns


def test_a_terminal_without_unicode_gets_none() -> None:
    screen = Screen("ascii")
    terminal = Terminal(screen, "never")
    TraceTable(terminal).token(lt.Token(5, "é".encode(), "é", None, "forced"))
    terminal.line(terminal.bar(0.5, 4))
    assert screen.getvalue().isascii()
    assert "##.." in screen.getvalue()


def test_text_cannot_steer_the_terminal() -> None:
    assert safe("a\x1b[2Jb\n\tc\x07") == "a\\x1b[2Jb\n\tc\\x07"
    assert visible(b"  \n\xff\x1b") == "··\\n\\xff\\x1b"
    assert (cells("日本"), fit("ab", 4), cells(fit("日本語", 4))) == (4, "ab  ", 4)


def test_generate_with_drafts_writes_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("generate", "one two one two one", "--raw", "--temp", "0", "--max-tokens", "12", "--json", *FAST)
    texts = []
    for more in ((), ("--drafter", "ngram"), ("--drafter", str(bundled_model()))):
        code, out, _ = run(capsys, *argv, *more)
        texts.append(json.loads(out.splitlines()[-1])["text"])
        assert code == 0
    assert texts[0] == texts[1] == texts[2]
    code, out, _ = run(capsys, *argv, "--regex", "(one|two) (three|four)", "--tokenization", "fast_forward")
    assert code == 0
    assert json.loads(out.splitlines()[-1])["complete"]
