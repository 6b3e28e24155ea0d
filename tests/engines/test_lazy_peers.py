"""Lazy grammars beside llama.cpp's own: token by token, both allow the same."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
from gguf_files import gguf

pytestmark = pytest.mark.peers

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

LETTERS = "<call>()ab01 \n[x]"
CALL = 'root ::= "<call>" [ab]+ "(" [01]* ")"'
TRIGGERS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "word": (CALL, {"words": ["<call>"]}, ["<call>"]),
    "words": ('root ::= "<call>" [ab] | "[x" [01] "]"', {"words": ["<call>", "[x"]}, ["<call>", r"\[x"]),
    "pattern": ('root ::= [ab]+ "(" [01] ")"', {"patterns": [r"x([ab]\()"]}, [r"x([ab]\()"]),
    "pattern at the start": (CALL, {"patterns": [r"^\s*(<call>)"]}, [r"^\s*(<call>)"]),
    "whole pattern": (CALL, {"patterns": [r"^ *(<call>)$"]}, [r"^ *(<call>)$"]),
}


@pytest.fixture(scope="module")
def vocabulary_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lazy") / "letters.gguf"
    # The letters of ASCII as GPT-2 writes their bytes.
    shown = {" ": "\u0120", "\n": "\u010a"}
    tokens = [shown.get(c, c) for c in dict.fromkeys(LETTERS)] + ["ab", "<tool>", "<end>"]
    path.write_bytes(
        gguf(
            {
                "general.architecture": "llama",
                "tokenizer.ggml.model": "gpt2",
                "tokenizer.ggml.pre": "gpt-2",
                "tokenizer.ggml.tokens": tokens,
                "tokenizer.ggml.token_type": [1] * (len(tokens) - 2) + [3, 3],
                "tokenizer.ggml.merges": ["a b"],
                "tokenizer.ggml.bos_token_id": len(tokens) - 1,
                "tokenizer.ggml.eos_token_id": len(tokens) - 1,
            }
        )
    )
    return path


class Theirs:
    """llama.cpp's sampler of a lazy grammar."""

    def __init__(self, llama: Any, size: int, grammar: str, patterns: list[str], tokens: list[int]) -> None:
        self.size = size
        vocabulary = llama_cpp.llama_model_get_vocab(llama._model.model)
        given = (ctypes.c_char_p * len(patterns))(*[pattern.encode() for pattern in patterns])
        ids = (llama_cpp.llama_token * len(tokens))(*tokens)
        self.sampler = llama_cpp.llama_sampler_init_grammar_lazy_patterns(
            vocabulary, grammar.encode(), b"root", given, len(patterns), ids, len(tokens)
        )
        assert self.sampler

    def allowed(self) -> list[int]:
        data = (llama_cpp.llama_token_data * self.size)(*[(token, 0.0, 0.0) for token in range(self.size)])
        array = llama_cpp.llama_token_data_array(data, self.size, -1, False)
        llama_cpp.llama_sampler_apply(self.sampler, ctypes.byref(array))
        return sorted(one.id for one in array.data[: array.size] if one.logit > float("-inf"))

    def accept(self, token: int) -> None:
        llama_cpp.llama_sampler_accept(self.sampler, token)


@pytest.mark.parametrize("name", TRIGGERS)
def test_lazy_grammars_are_llama_cpps(name: str, vocabulary_file: Path) -> None:
    text, triggers, patterns = TRIGGERS[name]
    vocabulary = lt.Vocabulary.from_gguf(vocabulary_file)
    llama = llama_cpp.Llama(str(vocabulary_file), vocab_only=True, verbose=False)
    grammar = lt.Grammar.lazy(lt.Grammar.gbnf(text), **triggers)
    rnd, triggered = random.Random(name), 0
    for _ in range(40):
        ours, theirs = grammar.matcher(vocabulary), Theirs(llama, len(vocabulary), text, patterns, [])
        for letter in rnd.choice(["", "x", " ", "a<"]) + rnd.choice(["<call>", "[x", "xa(", "<cal"]):
            (token,) = vocabulary.find(letter.encode())
            ours.accept(token)
            theirs.accept(token)
        for _ in range(12):
            # Free text is characters here; llama.cpp's has control tokens too.
            allowed = [token for token in theirs.allowed() if token not in vocabulary.find(b"<tool>")]
            assert [int(token) for token in ours.allowed().ids] == allowed
            triggered += len(allowed) < len(vocabulary)
            if ours.is_finished:
                break
            token = rnd.choice(allowed)
            if vocabulary.kind(token) == "control":
                break
            ours.accept(token)
            theirs.accept(token)
    assert triggered > 20


def test_a_token_triggers_as_in_llama_cpp(vocabulary_file: Path) -> None:
    vocabulary = lt.Vocabulary.from_gguf(vocabulary_file)
    llama = llama_cpp.Llama(str(vocabulary_file), vocab_only=True, verbose=False)
    (token,) = vocabulary.find(b"<tool>")
    text = 'root ::= "<tool>" [01]+'
    ours = lt.Grammar.lazy(lt.Grammar.gbnf(text), tokens=["<tool>"]).matcher(vocabulary)
    theirs = Theirs(llama, len(vocabulary), text, [], [token])
    for letter in [b"x", b"<", b"b", b"<tool>", b"0"]:
        (one,) = vocabulary.find(letter)
        assert [int(other) for other in ours.allowed().ids] == theirs.allowed()
        ours.accept(one)
        theirs.accept(one)
    assert [int(other) for other in ours.allowed().ids] == theirs.allowed()
