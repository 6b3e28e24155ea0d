"""logitree as a sampler of llama.cpp's own chains, with the real libllama and the real model."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree.engines.llama_cpp import LlamaCpp
from logitree.engines.llama_sampler import LlamaSampler

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

ACTIONS = ["REPLY", "REPLY_THREAD", "SEND_MESSAGE", "SEND_FILE", "IGNORE"]
PROMPT = "Request: Send Anna the picture of the cat.\nAction:\n"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
WORDS = [b"A", b"B", b"AB", b"C", b"D", b"E", b"F", b"</s>"]
EOG = 7


@pytest.fixture(scope="module")
def llm(smollm2_gguf: Path) -> Any:
    return llama_cpp.Llama(str(smollm2_gguf), n_ctx=256, n_batch=64, n_threads=1, seed=0, verbose=False)


@pytest.fixture(scope="module")
def small() -> lt.Vocabulary:
    return lt.Vocabulary.from_tokens(WORDS, end_tokens=[EOG])


class Native:
    """A chain of libllama and an array of candidates, without a model."""

    def __init__(self, *parts: Any) -> None:
        self.chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        for part in parts:
            if isinstance(part, LlamaSampler):
                part.add_to(self.chain)
            else:
                llama_cpp.llama_sampler_chain_add(self.chain, part)

    def apply(self, logits: Sequence[float], ids: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """The candidates that are left; `selected` is the selected id, or None."""
        ids = range(len(logits)) if ids is None else ids
        data = (llama_cpp.llama_token_data * len(ids))(*[(i, float(x), 0.0) for i, x in zip(ids, logits, strict=True)])
        array = llama_cpp.llama_token_data_array(data, len(ids), -1, False)
        llama_cpp.llama_sampler_apply(self.chain, ctypes.byref(array))
        left = [(array.data[i].id, array.data[i].logit) for i in range(array.size)]
        self.selected = left[array.selected][0] if array.selected >= 0 else None
        return left

    def accept(self, token: int) -> None:
        llama_cpp.llama_sampler_accept(self.chain, token)

    def step(self, logits: Sequence[float]) -> int:
        self.apply(logits)
        assert self.selected is not None
        self.accept(self.selected)
        return self.selected

    def clone(self) -> Native:
        other = object.__new__(Native)
        other.chain = llama_cpp.llama_sampler_clone(self.chain)
        return other

    def __del__(self) -> None:
        llama_cpp.llama_sampler_free(self.chain)


def test_forbidden_candidates_are_removed_and_the_others_unchanged(small: lt.Vocabulary) -> None:
    tree = lt.elizaos.token_tree(
        {"descriptors": [{"path": "action", "leaves": [{"name": "A", "tokens": [0, 1]}, {"name": "B", "tokens": [2]}]}]}
    )
    native = Native(LlamaSampler(small, tree.at(), mode="sample"))
    assert native.apply([5, 9, 4, 6, 1, 1, 1, 1]) == [(0, 5.0), (2, 4.0)]
    assert native.selected is None
    native.accept(0)
    assert native.apply([5, 9, 4, 6, 1, 1, 1, 1]) == [(1, 9.0)]
    native.accept(1)
    assert native.apply([5, 9, 4, 6, 1, 1, 1, 1]) == [(EOG, 1.0)]


def test_greedy_leaves_the_likeliest_whatever_the_order(small: lt.Vocabulary) -> None:
    native = Native(LlamaSampler(small, ["A", "B"]), llama_cpp.llama_sampler_init_dist(7))
    assert native.apply([2, 3, 9, 9, 9, 9, 9, 9]) == [(1, 3.0)]
    assert native.selected == 1
    native = Native(LlamaSampler(small, ["A", "B"]))
    assert native.apply([9, 8, 3, 2], ids=[5, 2, 1, 0]) == [(1, 3.0)]


def test_a_constraint_that_is_over_allows_the_end_or_anything(small: lt.Vocabulary) -> None:
    logits = [1.0, 2, 3, 4, 5, 6, 7, 0]
    stop, free = Native(LlamaSampler(small, ["A"])), Native(LlamaSampler(small, ["A"], then="continue"))
    assert (stop.step(logits), free.step(logits)) == (0, 0)
    assert [stop.step(logits), stop.step(logits)] == [EOG, EOG]
    assert len(free.apply(logits)) == len(logits)


def test_samplers_before_and_after_work_as_ever(small: lt.Vocabulary) -> None:
    constraint = lt.Grammar.regex("[A-F]{3}")
    native = Native(
        llama_cpp.llama_sampler_init_temp(0.5),
        LlamaSampler(small, constraint, mode="sample"),
        llama_cpp.llama_sampler_init_top_k(2),
        llama_cpp.llama_sampler_init_greedy(),
    )
    assert native.apply([1, 2, 0, 3, 0, 0, 0, 99]) == [(3, 6.0), (1, 4.0)]
    assert native.selected == 3


def test_clone_and_reset_in_mid_sequence(small: lt.Vocabulary) -> None:
    logits = [3.0, 1, 0, 0, 0, 0, 0, 0]
    native = Native(LlamaSampler(small, ["AC", "BD"]))
    assert native.step(logits) == 0
    copy = native.clone()
    llama_cpp.llama_sampler_reset(native.chain)
    assert (native.step([0.0, 1.0, *logits[2:]]), copy.step(logits)) == (1, 3)
    assert (native.step(logits), copy.step(logits)) == (4, EOG)


@pytest.mark.parametrize("draws", [False, True])
def test_a_chain_draws_what_it_draws_in_a_decoder(small: lt.Vocabulary, draws: bool) -> None:
    chain = lt.Chain.llama_cpp(temp=1.5, seed=3, penalty_repeat=1.3) if draws else lt.Chain.greedy()
    constraint = lt.Grammar.regex("[A-F]{20}")
    rng = np.random.default_rng(1)
    rows = rng.normal(0, 2, (20, len(WORDS))).astype(np.float32)
    sampler = LlamaSampler(small, constraint, chain=chain)
    native, decoder = Native(sampler), lt.Decoder(small, chain, constraint)
    for row in rows:
        if decoder.is_finished:
            break
        native.apply(row)
        first = native.selected
        native.apply(row)
        assert native.selected == first == decoder.step(row)
        native.accept(first)
    sampler.check()


def test_a_prompt_is_for_the_penalties_alone(small: lt.Vocabulary) -> None:
    logits = [3.0, 2.9, 0, 0, 0, 0, 0, 0]
    chain = lt.Chain.parse("penalties;greedy", penalty_repeat=2.0)
    native = Native(LlamaSampler(small, ["A", "B"], chain=chain))
    native.accept(0)
    assert native.step(logits) == 1
    plain = Native(sampler := LlamaSampler(small, ["A", "B"]))
    plain.accept(5)
    assert plain.step(logits) == 0
    sampler.check()
    taken = Native(LlamaSampler(small, ["AC"], prompt="accept"))
    taken.accept(0)
    assert taken.step(logits) == 3


def test_it_fails_closed_until_it_is_reset(small: lt.Vocabulary) -> None:
    logits = [3.0, 2.9, 0, 0, 0, 0, 0, 0]
    native = Native(sampler := LlamaSampler(small, ["AC"]))
    native.step(logits)
    native.accept(5)
    assert [native.step(logits), native.step(logits)] == [EOG, EOG]
    with pytest.raises(lt.TokenError, match="not allowed"):
        sampler.check()
    sampler.check()
    llama_cpp.llama_sampler_reset(native.chain)
    assert native.step(logits) == 0


def test_candidates_that_were_cut_before_it_are_an_error(small: lt.Vocabulary) -> None:
    native = Native(llama_cpp.llama_sampler_init_top_k(1), sampler := LlamaSampler(small, ["A"], mode="sample"))
    assert [token for token, _ in native.apply([1, 9, 0, 0, 0, 0, 0, 0])] == [EOG]
    assert native.selected == EOG
    with pytest.raises(lt.LogitsError, match="removed every allowed token"):
        sampler.check()


def test_what_cannot_be_honoured_is_an_error(small: lt.Vocabulary) -> None:
    with pytest.raises(lt.ConstraintError, match="without constraint and chain"):
        LlamaSampler(small)
    with pytest.raises(lt.VocabularyError, match="end-of-generation"):
        LlamaSampler(lt.Vocabulary.from_tokens([b"A"]), ["A"])
    with pytest.raises(lt.SamplingError, match="selects"):
        LlamaSampler(small, ["A"], chain=lt.Chain([lt.samplers.top_k(3)]))
    with pytest.raises(lt.EngineError, match="mode is 'best'"):
        LlamaSampler(small, ["A"], mode="best")  # type: ignore[arg-type]
    with pytest.raises(lt.EngineError, match="cannot attach"):
        LlamaSampler(small, ["A"]).attach(object())
    with pytest.raises(lt.EngineError, match="not a sampler chain"):
        LlamaSampler(small, ["A"]).add_to(None)


def test_a_library_that_does_not_fit_is_an_error(small: lt.Vocabulary) -> None:
    names = lt._core.LlamaSamplerMaker.functions_needed()
    real = [ctypes.cast(getattr(llama_cpp, name), ctypes.c_void_p).value or 0 for name in names]
    sizes = (ctypes.sizeof(llama_cpp.llama_token_data), ctypes.sizeof(llama_cpp.llama_token_data_array))

    def make(functions: list[int], sizes: tuple[int, int]) -> object:
        matcher = lt.OneOf(["A"]).matcher(small)
        return lt._core.LlamaSamplerMaker(
            small, matcher, None, greedy=True, stop=True, counts_first=False, functions=functions, sizes=sizes
        )

    assert make(real, sizes)
    with pytest.raises(lt.ConstraintError, match="has no function llama_sampler_clone"):
        make([0 if name.endswith("clone") else at for name, at in zip(names, real, strict=True)], sizes)
    with pytest.raises(lt.ConstraintError, match="16 bytes there and 12 here"):
        make(real, (16, sizes[1]))


def test_the_table_of_functions_ends_in_null(small: lt.Vocabulary) -> None:
    made = LlamaSampler(small, ["A"]).make()
    table = ctypes.cast(ctypes.cast(made, ctypes.POINTER(ctypes.c_void_p))[0] or 0, ctypes.POINTER(ctypes.c_void_p))
    assert [bool(table[i]) for i in range(32)] == [True] * 6 + [False] * 26
    assert llama_cpp.llama_sampler_name(made) == b"logitree"
    llama_cpp.llama_sampler_free(made)


def resident() -> int:
    """Kilobytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def test_100000_steps_take_no_memory(small: lt.Vocabulary) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("this system does not tell a process's memory")
    sampler = LlamaSampler(small, lt.Grammar.regex("([A-F]{40}B)*"))
    logits = [1.0, 2, 0, 3, 2, 1, 0, 0]

    def run(steps: int) -> None:
        for _ in range(steps // 100):
            native = Native(sampler)
            for _ in range(50):
                native.step(logits)
            other = native.clone()
            llama_cpp.llama_sampler_reset(native.chain)
            for _ in range(25):
                native.step(logits)
                other.step(logits)

    run(10_000)
    before = resident()
    run(100_000)
    assert resident() - before < 2_000
    assert sampler.counts.steps == 110_000
    sampler.check()


# -- with the model


def own_tokens(llm: Any, constraint: Any, **sampling: Any) -> list[int]:
    """What logitree's own loop generates in any spelling, which is that of a sampler's constraint."""
    options = {"chat": False, "max_tokens": 24, "tokenization": "any", **sampling}
    answer = lt.generate(LlamaCpp(llm), PROMPT, constraint, **options)
    return list(answer.tokens)


def completion(llm: Any, **named: Any) -> Any:
    return llm.create_completion(PROMPT, max_tokens=24, **named)["choices"][0]


CONSTRAINTS = {
    "actions": ACTIONS,
    "schema": lt.Grammar.json_schema(SCHEMA),
    "gbnf": lt.Grammar.gbnf('root ::= "I will " [a-z ]+ "."'),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_llama_generates_what_our_own_loop_does(llm: Any, name: str) -> None:
    constraint = CONSTRAINTS[name]
    expected = own_tokens(llm, constraint, temperature=0.0)
    sampler = LlamaSampler(llm, constraint)
    with sampler.attach(llm):
        for temperature in (0.0, 0.8):
            got = []
            llm.reset()
            for token in llm.generate(llm.tokenize(PROMPT.encode(), special=True), temp=temperature):
                if llama_cpp.llama_vocab_is_eog(llm._model.vocab, token) or len(got) == 24:
                    break
                got.append(token)
            assert got == [token for token in expected if token not in sampler.vocabulary.end_tokens]
    assert sampler.counts.steps > 0
    assert 0.2 < sampler.counts.skip_ratio_mean < 1.0


def test_a_chain_generates_what_our_own_loop_does(llm: Any) -> None:
    constraint = CONSTRAINTS["gbnf"]
    expected = own_tokens(llm, constraint, temperature=1.2, seed=11)
    chain = lt.Chain.llama_cpp(temp=1.2, seed=11)
    with LlamaSampler(llm, constraint, chain=chain).attach(llm):
        text = completion(llm, temperature=0.0)["text"]
        again = completion(llm, temperature=0.7, seed=5)["text"]
    ends = set(lt.Vocabulary.from_llama(llm).end_tokens)
    assert text == again == llm.detokenize([token for token in expected if token not in ends]).decode()


def test_completions_chats_and_streams(llm: Any) -> None:
    with LlamaSampler(llm, ACTIONS, mode="sample").attach(llm) as sampler:
        chosen = completion(llm, temperature=1.5, seed=4)
        assert (chosen["text"] in ACTIONS, chosen["finish_reason"]) == (True, "stop")
        # Biases and a processor drop each other in llama-cpp-python; the constraint holds all the same.
        keep = llama_cpp.LogitsProcessorList([lambda _, scores: scores])
        assert completion(llm, logit_bias={5: 100.0}, logits_processor=keep, seed=1)["text"] in ACTIONS
        streamed = llm.create_completion(PROMPT, max_tokens=24, stream=True, temperature=0.9)
        assert "".join(part["choices"][0]["text"] for part in streamed) in ACTIONS
        message = [{"role": "user", "content": "Which action?"}]
        chat = llm.create_chat_completion(message, max_tokens=24)
        assert chat["choices"][0]["message"]["content"] in ACTIONS
        parts = [
            part["choices"][0]["delta"] for part in llm.create_chat_completion(message, stream=True, max_tokens=24)
        ]
        assert "".join(part.get("content") or "" for part in parts) in ACTIONS
    assert sampler.counts.steps >= 5
    assert completion(llm, temperature=0.0)["text"] not in ACTIONS


def test_a_grammar_of_llama_cpp_may_follow(llm: Any) -> None:
    grammar = llama_cpp.LlamaGrammar.from_string('root ::= "SEND" [A-Z_]*', verbose=False)
    with LlamaSampler(llm, ACTIONS, mode="sample").attach(llm):
        assert completion(llm, grammar=grammar, temperature=0.0)["text"].startswith("SEND_")


def test_json_of_a_schema_is_complete(llm: Any) -> None:
    with LlamaSampler(llm, CONSTRAINTS["schema"], mode="sample").attach(llm):
        made = completion(llm, temperature=0.3, seed=2)
    assert made["finish_reason"] in ("stop", "length")
    if made["finish_reason"] == "stop":
        assert isinstance(json.loads(made["text"])["n"], int)


@pytest.fixture
def plain(llm: Any) -> Iterator[Any]:
    yield llm
    assert "_init_sampler" not in vars(llm)


def test_attachments_end_in_reverse_order(plain: Any) -> None:
    first = LlamaSampler(plain, ACTIONS, mode="sample").attach(plain)
    second = LlamaSampler(plain, ["REPLY", "IGNORE", "WAIT"]).attach(plain)
    assert completion(plain)["text"] in ("REPLY", "IGNORE")
    with pytest.raises(lt.EngineError, match="attached later"):
        first.detach()
    second.detach()
    first.detach()
    first.detach()
