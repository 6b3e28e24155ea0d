"""`generate` and `choose` with the real model: forcing changes the cost only, and every way to end has
its finish reason."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree._text import TextStream
from logitree.engines.llama_cpp import LlamaCpp

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

ACTIONS = ["REPLY", "REPLY_THREAD", "SEND_MESSAGE", "SEND_FILE", "IGNORE", "TRANSLATE", "PLAY_MUSIC"]
PROMPT = 'Message: Play me some jazz.\n{"action":"PLAY_MUSIC"}\n\nMessage: Translate this.\n{"action":"'


@pytest.fixture(scope="module")
def engine(smollm2_gguf: Path) -> LlamaCpp:
    return LlamaCpp(smollm2_gguf, n_ctx=256, n_batch=32, n_threads=1)


@pytest.fixture(scope="module")
def payload(engine: LlamaCpp) -> dict[str, Any]:
    leaves = [{"name": name, "tokens": engine.tokenize(name)} for name in ACTIONS]
    return {"descriptors": [{"path": "action", "leaves": leaves}]}


@pytest.fixture(scope="module")
def tree(payload: dict[str, Any]) -> lt.elizaos.TokenTreePath:
    return lt.elizaos.token_tree(payload).at("action")


def run(
    engine: LlamaCpp, prompt: Any = PROMPT, constraint: Any = None, **options: Any
) -> tuple[list[lt.Token], lt.Finish]:
    """All tokens and the end, with what holds for every generation checked."""
    options.setdefault("chat", False)
    generation = lt.generate(engine, prompt, constraint, **options)
    events = list(generation)
    tokens = [event for event in events if isinstance(event, lt.Token)]
    finish = events[-1]
    assert isinstance(finish, lt.Finish)
    assert not any(isinstance(event, lt.Finish) for event in events[:-1])
    stats = finish.stats
    assert tuple(token.token for token in tokens) == finish.tokens
    assert "".join(token.text for token in tokens) + finish.tail == finish.text
    assert stats.output_tokens == len(tokens) == stats.sampled_tokens + stats.forced_tokens
    assert stats.forced_tokens == sum(token.forced for token in tokens)
    assert stats.forward_passes + sum(stats.passes_saved.values()) == stats.output_tokens
    assert list(generation) == events
    assert (generation.text, generation.tokens, generation.stats) == (finish.text, finish.tokens, finish.stats)
    assert (generation.finish_reason, generation.complete) == (finish.reason, finish.complete)
    assert "".join(generation.pieces()) == finish.text
    return tokens, finish


def value(engine: LlamaCpp, constraint: Any, **options: Any) -> Any:
    return lt.generate(engine, PROMPT, constraint, **{"chat": False, "temperature": 0.0, **options}).value


SAMPLING = [
    {"temperature": 0.0},
    *({"temperature": 2.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": seed} for seed in range(3)),
    {"temperature": 1.5, "penalty_repeat": 1.3, "penalty_present": 0.4, "seed": 0},
]


@pytest.mark.parametrize("kind", ["tree", "choices", "any", "following"])
@pytest.mark.parametrize("sampling", SAMPLING, ids=str)
def test_forcing_changes_no_byte(engine: LlamaCpp, tree: Any, kind: str, sampling: Any) -> None:
    constraint = {
        "tree": tree,
        "choices": ACTIONS,
        "any": ACTIONS,
        "following": lt.OneOf(ACTIONS, following='"}'),
    }[kind]
    if kind == "any":
        sampling = {**sampling, "tokenization": "any"}
    _, with_forcing = run(engine, PROMPT, constraint, **sampling)
    tokens, without = run(engine, PROMPT, constraint, force=False, **sampling)
    assert not any(token.forced for token in tokens)
    assert (with_forcing.tokens, with_forcing.text, with_forcing.reason) == (
        without.tokens,
        without.text,
        without.reason,
    )
    assert without.stats.forward_passes == without.stats.output_tokens >= with_forcing.stats.forward_passes


def test_forced_tokens_need_no_forward_pass(engine: LlamaCpp, tree: Any) -> None:
    before = engine.counters.forward_passes
    generation = lt.generate(engine, PROMPT, tree, chat=False, temperature=0.0)
    assert generation.value == "TRANSLATE"
    finish = list(generation)[-1]
    assert isinstance(finish, lt.Finish)
    spelled = engine.tokenize("TRANSLATE")
    assert list(finish.tokens) == spelled
    assert finish.stats.forward_passes == 1
    assert finish.stats.forced_tokens == len(spelled) - 1
    # 44 tokens of prompt are two batches of 32; nothing is evaluated after the choice.
    prefill = -(-(finish.stats.prompt_tokens - finish.stats.reused_tokens) // engine.n_batch)
    assert engine.counters.forward_passes - before == prefill


def test_forced_tokens_in_the_middle_ride_along(engine: LlamaCpp) -> None:
    texts = ["ABCDEFGHIJ one", "ABCDEFGHIJ two", "X"]
    prompt = "The alphabet: ABCDEFGHIJ two\nThe alphabet: "
    before_passes, before_tokens = engine.counters.forward_passes, engine.counters.tokens_decoded
    _, finish = run(engine, prompt, texts, temperature=0.0)
    forced = engine.tokenize(texts[0])
    assert finish.text == "ABCDEFGHIJ two"
    assert finish.stats.forward_passes == 2
    assert engine.counters.forward_passes - before_passes == 2
    evaluated = engine.counters.tokens_decoded - before_tokens
    assert evaluated == finish.stats.prompt_tokens - finish.stats.reused_tokens + len(forced) - 1


def test_one_choice_needs_no_model(engine: LlamaCpp) -> None:
    before = engine.counters.forward_passes
    chosen = lt.choose(engine, PROMPT, ["ONLY"])
    assert (chosen.text, chosen.index, chosen.probability) == ("ONLY", 0, 1.0)
    assert chosen.stats.forward_passes == 0
    assert chosen.stats.forced_tokens == len(engine.tokenize("ONLY"))
    assert engine.counters.forward_passes == before


def test_choices_of_one_token(engine: LlamaCpp) -> None:
    chosen = lt.choose(engine, "Is fire hot? Answer:", [" yes", " no"], chat=False)
    assert chosen.stats.output_tokens == chosen.stats.forward_passes == 1
    assert chosen.stats.forced_tokens == 0
    logits = engine.session().evaluate(engine.encode("Is fire hot? Answer:", chat=False)).astype(np.float64)
    yes, no = (np.exp(logits[engine.tokenize(text)[0]] - logits.max()) for text in (" yes", " no"))
    assert chosen.probability == pytest.approx(max(yes, no) / (yes + no), rel=1e-5)
    assert chosen.index == int(no > yes)


def test_a_choice_inside_another_ends_by_what_follows(engine: LlamaCpp) -> None:
    both = ["REPLY", "REPLY_THREAD"]
    for bias, text in ((1e6, "REPLY"), (-1e6, "REPLY_THREAD")):
        tokens, finish = run(engine, PROMPT, both, temperature=0.0, logit_bias={2: bias})
        assert (finish.text, finish.reason) == (text, "constraint")
        assert value(engine, both, logit_bias={2: bias}) == text
        assert [token.text for token in tokens if token.token == 2] == ([""] if text == "REPLY" else [])
    closed = lt.OneOf(both, following='"}')
    _, finish = run(engine, PROMPT, closed, temperature=0.0)
    assert finish.text in ('REPLY"}', 'REPLY_THREAD"}')
    assert value(engine, closed) == finish.text.removesuffix('"}')


def test_seed_0_is_0_and_none_draws_one_that_is_told(engine: LlamaCpp) -> None:
    options: dict[str, Any] = {"temperature": 1.5, "max_tokens": 12}
    zero, one = (run(engine, "Once upon", seed=s, **options)[1] for s in (0, 1))
    assert zero.tokens != one.tokens
    drawn = run(engine, "Once upon", **options)[1]
    assert drawn.stats.seed is not None
    assert run(engine, "Once upon", seed=drawn.stats.seed, **options)[1].tokens == drawn.tokens
    chain = lt.Chain.llama_cpp(seed=0, temp=1.5)
    assert run(engine, "Once upon", chain=chain, max_tokens=12)[1].tokens == zero.tokens
    assert run(engine, "Once upon", chain=chain, max_tokens=12)[1].tokens == zero.tokens, "the chain was used up"


def test_end_of_generation(engine: LlamaCpp) -> None:
    _, finish = run(engine, "Say hi.", chat=True, temperature=0.0, logit_bias={2: 1e6})
    assert (finish.reason, finish.text, finish.tokens) == ("end_of_generation", "", (2,))
    assert finish.stats.forced_tokens == 0


def test_cancel_or_leave(engine: LlamaCpp) -> None:
    generation = lt.generate(engine, "Once upon a time", chat=False, temperature=0.0)
    events = iter(generation)
    next(event for event in events if isinstance(event, lt.Token))
    threading.Thread(target=generation.cancel).start()
    rest = list(events)
    assert [event.reason for event in rest if isinstance(event, lt.Finish)] == ["cancelled"]
    never = lt.generate(engine, "word " * 100)
    never.cancel()
    assert (never.finish_reason, never.stats.forward_passes) == ("cancelled", 0)
    expected = run(engine, "Once upon a time", temperature=0.0, max_tokens=8)[1]
    left = iter(lt.generate(engine, "Once upon a time", chat=False, temperature=0.0))
    next(event for event in left if isinstance(event, lt.Token))
    del left
    assert run(engine, "Once upon a time", temperature=0.0, max_tokens=8)[1].tokens == expected.tokens


def test_cancel_in_the_middle_of_a_long_prompt(engine: LlamaCpp) -> None:
    engine._truncate(0)
    generation = lt.generate(engine, "word " * 200, chat=False)
    seen: list[lt.Progress] = []
    for event in generation:
        if isinstance(event, lt.Progress):
            seen.append(event)
            if len(seen) == 2:
                generation.cancel()
    assert [type(event) for event in generation] == [lt.Progress, lt.Progress, lt.Finish]
    assert [progress.stage for progress in seen] == ["prefill"] * 2
    assert 0 < seen[0].fraction < seen[1].fraction < 1


def test_stop_strings(engine: LlamaCpp) -> None:
    whole = run(engine, "1 2 3 4 5 6 7", temperature=0.0, max_tokens=12)[1].text
    assert " 9 " in whole
    for stop in (" 9 ", [" 9 1", "zzz"], " 9", "9"):
        tokens, finish = run(engine, "1 2 3 4 5 6 7", temperature=0.0, max_tokens=12, stop=stop)
        first = stop if isinstance(stop, str) else stop[0]
        assert (finish.reason, finish.text) == ("stop", whole[: whole.index(first)])
        assert b"".join(token.bytes for token in tokens).decode().startswith(finish.text + first[:1])
    with pytest.raises(lt.ConstraintError, match="stop string is empty"):
        lt.generate(engine, "x", stop="")


def test_a_stop_string_inside_forced_tokens_changes_nothing(engine: LlamaCpp, tree: Any) -> None:
    ends = [run(engine, PROMPT, tree, temperature=0.0, stop="SL", force=force)[1] for force in (True, False)]
    assert ends[0].reason == ends[1].reason == "stop"
    assert ends[0].text == ends[1].text == "TRAN"
    assert ends[0].tokens == ends[1].tokens


def test_characters_of_several_tokens_come_whole(engine: LlamaCpp) -> None:
    text = "né 日本語 👩‍🚀 𝄞"
    pieces = [bytes([byte]) for byte in text.encode()]
    only = lt.OneOf([text], tokenize=lambda _: _bytewise(engine, pieces)).matcher(engine.vocabulary)
    tokens, finish = run(engine, PROMPT, only)
    assert finish.text == text
    assert len(tokens) == len(pieces)
    assert all("\ufffd" not in token.text for token in tokens)
    _, cut = run(engine, PROMPT, only, max_tokens=5)
    assert (cut.text, cut.tail) == ("né \ufffd", "\ufffd")


def _bytewise(engine: LlamaCpp, pieces: list[bytes]) -> list[int]:
    one = {engine.vocabulary[i]: i for i in reversed(range(len(engine.vocabulary))) if len(engine.vocabulary[i]) == 1}
    return [one[piece] for piece in pieces]


def test_trace(engine: LlamaCpp, tree: Any) -> None:
    tokens, _ = run(engine, PROMPT, tree, temperature=0.0, trace=True)
    steps = [token.step for token in tokens]
    assert all(step is not None and step.token == token.token for step, token in zip(steps, tokens, strict=True))
    assert [step.forced for step in steps if step] == [token.forced for token in tokens]
    assert steps[0] is not None
    assert steps[0].allowed == len({engine.tokenize(name)[0] for name in ACTIONS})
    assert all(token.step is None for token in run(engine, PROMPT, tree)[0])


def test_a_token_tree_with_several_paths(engine: LlamaCpp, payload: Any) -> None:
    leaf = {"name": "yes", "tokens": engine.tokenize("yes")}
    both = {"descriptors": [*payload["descriptors"], {"path": "parameters.sure", "leaves": [leaf]}]}
    several = lt.elizaos.token_tree(json.dumps(both))
    assert value(engine, several.at("parameters.sure")) == "yes"
    with pytest.raises(lt.ConstraintError, match="2 paths"):
        lt.generate(engine, PROMPT, several)
    with pytest.raises(lt.ConstraintError, match="no path"):
        several.at("nowhere")


def test_choose_takes_any_iterable_of_texts(engine: LlamaCpp) -> None:
    assert lt.choose(engine, PROMPT, (text for text in ["ONLY"])).index == 0
    with pytest.raises(TypeError, match="'YES' is one text"):
        lt.choose(engine, PROMPT, "YES")


def test_choose_raises_where_nothing_was_chosen(engine: LlamaCpp) -> None:
    with pytest.raises(lt.IncompleteError, match="not complete: max_tokens"):
        lt.choose(engine, PROMPT, ACTIONS, max_tokens=0)


def pushes(data: bytes, stop: list[str], size: int) -> Iterator[str]:
    """What a TextStream gives out, fed this many bytes at a time."""
    stream = TextStream(stop)
    for at in range(0, len(data), size):
        yield stream.push(data[at : at + size])
    yield stream.end()


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("data", "stop", "text"),
    [
        ("né 日本 👩‍🚀".encode(), [], "né 日本 👩‍🚀"),
        (b"a\xffb\xe6\x97", [], "a\ufffdb\ufffd"),
        (b"\xf0\x9f\x91", [], "\ufffd"),
        (b"hello world", ["o w"], "hell"),
        (b"aab", ["ab"], "a"),
        (b"abcabd", ["abd", "xyz"], "abc"),
        (b"xabz", ["xabz", "ab"], "x"),
        ("日本".encode(), ["本"], "日"),
        (b"almost sto", ["stop"], "almost sto"),
    ],
)
def test_text_comes_whole_and_stops_where_told(data: bytes, stop: list[str], text: str, size: int) -> None:
    assert "".join(pushes(data, stop, size)) == text
