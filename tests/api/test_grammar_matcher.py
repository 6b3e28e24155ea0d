"""What a grammar's matcher does for batches, drafts and people: each call equals the loop that it stands for."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import logitree as lt
from grammars import END, small, tokens_of, walk

G = lt.Grammar
RECORD = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["ab", "abc"]}}},
    "required": ["name"],
}
GRAMMARS = [
    G.json_schema(RECORD),
    G.regex("(ab|12)*<b"),
    G.gbnf('root ::= "(" root ")" | [a-z]*'),
    G.literal("ab") + G.token("<think>") + G.text(),
    G.choice(["ab", "abc", "12"]),
]


@pytest.fixture(scope="module")
def vocabulary() -> lt.Vocabulary:
    return small()


@pytest.fixture(scope="module", params=range(len(GRAMMARS)), ids=lambda at: repr(GRAMMARS[at])[:30])
def matcher(request: pytest.FixtureRequest, vocabulary: lt.Vocabulary) -> lt.Matcher:
    return GRAMMARS[request.param].matcher(vocabulary)


def rows(count: int, vocabulary: lt.Vocabulary) -> np.ndarray:
    return np.full((count, lt.masks.words(len(vocabulary))), 7, np.int32)


def test_a_mask_is_written_where_it_shall_be(vocabulary: lt.Vocabulary) -> None:
    matcher = G.choice(["a", "b"]).matcher(vocabulary)
    block = rows(3, vocabulary)
    lt.masks.fill_batch(matcher, block[1])
    assert lt.masks.to_ids(block[1]).tolist() == [97, 98]
    assert matcher.allowed().mask().tolist() == block[1].tolist()
    unsigned = np.zeros(block.shape[1], np.uint32)
    lt.masks.fill_batch(matcher, unsigned)
    assert unsigned.tolist() == block[1].tolist()
    assert (block[[0, 2]] == 7).all()
    matcher.accept(97)
    wide = np.zeros(block.shape[1] + 2, np.int32)
    lt.masks.fill_batch(matcher, wide)
    assert lt.masks.to_ids(wide).tolist() == list(
        vocabulary.end_tokens
    )  # over: what ends the text, and nothing past it
    frozen = np.zeros(block.shape[1], np.int32)
    frozen.flags.writeable = False
    for wrong in (block, block[0][:-1], block[0].astype(np.int64), block[0][::2], frozen, b"mask"):
        with pytest.raises(lt.MaskError):
            lt.masks.fill_batch(matcher, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [None, 1, 2, 5])
def test_a_batch_is_its_rows(threads: int | None, vocabulary: lt.Vocabulary) -> None:
    matchers = []
    for at in range(60):
        matcher = GRAMMARS[at % len(GRAMMARS)].matcher(vocabulary)
        for _ in walk(matcher, at, at % 7):
            pass
        matchers.append(matcher)
    out = rows(len(matchers) + 4, vocabulary)[2:-2]
    expected = [matcher.fork().allowed().mask() for matcher in matchers]
    lt.masks.fill_batch(matchers, out, threads=threads)
    for row, alone in zip(out, expected, strict=True):
        assert (row == alone).all()
    order = list(range(len(matchers)))
    random.Random(0).shuffle(order)
    lt.masks.fill_batch([matchers[i] for i in order], out)
    assert (out == np.array([expected[i] for i in order])).all()


def test_a_batch_refuses_what_does_not_fit(vocabulary: lt.Vocabulary) -> None:
    one, two = (G.choice(["a", "b"]).matcher(vocabulary) for _ in range(2))
    lt.masks.fill_batch([], rows(0, vocabulary))
    with pytest.raises(lt.MaskError, match="3 rows of masks for 2 matchers"):
        lt.masks.fill_batch([one, two], rows(3, vocabulary))
    with pytest.raises(lt.StateError, match="that of row 0"):
        lt.masks.fill_batch([one, one], rows(2, vocabulary))
    with pytest.raises(lt.MaskError, match="0 threads"):
        lt.masks.fill_batch([one], rows(1, vocabulary), threads=0)
    with pytest.raises(lt.MaskError):
        lt.masks.fill_batch([one], rows(1, vocabulary)[:, :-1])
    with pytest.raises(TypeError):
        lt.masks.fill_batch([one, "two"], rows(2, vocabulary))  # type: ignore[list-item]


def test_a_bad_row_leaves_the_others_right(smollm2_gguf: Path) -> None:
    vocabulary = lt.Vocabulary.from_gguf(smollm2_gguf)
    good = G.json_schema(RECORD).matcher(vocabulary)
    starved, fuel = None, 20
    while starved is None:
        fuel += fuel // 20
        assert fuel < 10**6, "no fuel is enough to begin and too little for the second mask"
        with contextlib.suppress(lt.LimitError):
            matcher = G.regex(f"k([a-w]{{2,9}}x)+[^q{fuel}]*z").matcher(vocabulary, fuel=fuel)
            try:
                matcher.accept(vocabulary.find(b"k")[0])
                matcher.allowed().mask()
            except lt.LimitError:
                starved = matcher
    out = rows(3, vocabulary)
    with pytest.raises(lt.LimitError) as refused:
        lt.masks.fill_batch([good, starved, good.fork()], out)
    assert "row 1" in refused.value.place
    assert (out[0] == good.allowed().mask()).all()
    assert (out[2] == good.allowed().mask()).all()


def rollback_loop(matcher: lt.Matcher, parents: list[int], tokens: list[int], out: np.ndarray) -> list[bool]:
    """The slow version of ``draft_masks``: each node's path from the start."""
    lt.masks.fill_batch(matcher, out[0])
    allowed = []
    for node in range(len(tokens)):
        path = []
        at = node
        while at >= 0:
            path.append(tokens[at])
            at = parents[at]
        path.reverse()
        fits = matcher.validate(path) == len(path)
        allowed.append(fits)
        out[node + 1] = 0
        if fits:
            for token in path:
                matcher.accept(token)
            lt.masks.fill_batch(matcher, out[node + 1])
            matcher.rollback(len(path))
    return allowed


def test_draft_masks_are_those_of_a_rollback_loop(matcher: lt.Matcher, vocabulary: lt.Vocabulary) -> None:
    draw = random.Random(3)
    for seed in range(8):
        walker = matcher.fork()
        for _ in walk(walker, seed, seed):
            pass
        tokens: list[int] = []
        parents: list[int] = []
        states: list[lt.Matcher] = [walker.fork()]
        for node in range(draw.randrange(25)):
            above = draw.randrange(-1, node) if draw.random() < 0.5 else node - 1
            state = states[above + 1].fork()
            token = draw.randrange(len(vocabulary))
            if draw.random() < 0.8 and (allowed := list(state.allowed())):
                token = draw.choice(allowed)
            with contextlib.suppress(lt.TokenError):
                state.accept(token)
            parents.append(above)
            tokens.append(token)
            states.append(state)
        got, want = rows(len(tokens) + 1, vocabulary), rows(len(tokens) + 1, vocabulary)
        before = walker.accepted
        said = walker.draft_masks((parents, tokens), got)
        assert said.dtype == np.bool_
        assert said.tolist() == rollback_loop(walker, parents, tokens, want)
        assert (got == want).all()
        assert walker.accepted == before
        chain = rows(len(tokens) + 1, vocabulary)
        said = walker.draft_masks(tokens, chain)
        assert said.tolist() == rollback_loop(walker, list(range(-1, len(tokens) - 1)), tokens, want)
        assert (chain == want).all()
        assert said.sum() == walker.validate(tokens)


def test_drafts_that_are_none_are_refused(vocabulary: lt.Vocabulary) -> None:
    matcher = G.regex("[ab]*").matcher(vocabulary)
    for parents in ([0], [1], [-1, 2], []):
        with pytest.raises(lt.TokenError):
            matcher.draft_masks((parents, [97] * max(len(parents), 1)), rows(max(len(parents), 1) + 1, vocabulary))
    with pytest.raises(lt.MaskError):
        matcher.draft_masks([97, 97], rows(2, vocabulary))
    with pytest.raises(lt.TokenError):
        matcher.draft_masks([-5], rows(2, vocabulary))
    out = rows(1, vocabulary)
    assert matcher.draft_masks([], out).tolist() == []
    assert (out[0] == matcher.allowed().mask()).all()
    assert matcher.draft_masks((97, 98), rows(3, vocabulary)).tolist() == [True, True]
    # Every node of a wide tree below one root.
    tree = ([-1] + [0] * 30, [97] + [98] * 30)
    assert matcher.draft_masks(tree, rows(32, vocabulary)).all()


def test_many_tokens_are_taken_or_none(vocabulary: lt.Vocabulary) -> None:
    matcher = G.literal("abc12").matcher(vocabulary)
    good = tokens_of(vocabulary, "abc12")
    assert matcher.validate([*good[:1], ord("x"), *good]) == 1
    with pytest.raises(lt.TokenError) as refused:
        matcher.accept_many([good[0], ord("x")])
    assert refused.value.place.startswith("tokens[1]")
    assert matcher.accepted == 0
    matcher.accept_many(iter(good))
    assert matcher.is_finished
    end = vocabulary.end_tokens[0]
    assert matcher.validate([1, 2, 3]) == 0 and matcher.validate([end, end, 1]) == 2
    assert matcher.accepted == len(good)


def test_explain_says_what_is_expected_and_why_not(vocabulary: lt.Vocabulary) -> None:
    matcher = G.json_schema(RECORD).matcher(vocabulary)
    report = matcher.explain()
    assert isinstance(report, lt.Explanation)
    assert report.expected
    assert report.allowed == len(matcher.allowed())
    assert report.first[0] == (matcher.allowed().ids[0], b"{")
    assert (report.token, report.bytes, report.is_allowed, report.taken) == (None, None, None, None)
    matcher.accept_many(tokens_of(vocabulary, '{"na'))
    text = matcher.explain(text='me": 3')
    assert (text.is_allowed, text.taken, text.bytes) == (False, 5, b'me": 3')
    assert text.expected_there
    assert "refused at byte 6 of 6" in str(text)
    right = matcher.explain(text=b'me": "')
    assert (right.is_allowed, right.taken) == (True, 6)
    token = vocabulary.find(b'": "')[0]
    refused = matcher.explain(token)
    assert (refused.token, refused.bytes, refused.is_allowed, refused.taken) == (token, b'": "', False, 0)
    assert repr(refused).startswith("<Explanation: token ")
    ends = matcher.explain(END)
    assert "not complete" in str(ends)
    control = matcher.explain(vocabulary.find(b"<think>")[0])
    assert "special token" in str(control)
    assert matcher.explain(ord("m")).is_allowed
    for wrong in (len(vocabulary), -1):
        with pytest.raises(lt.TokenError):
            matcher.explain(wrong)
    with pytest.raises(lt.ConstraintError, match="one of them"):
        matcher.explain(1, text="x")


def test_explain_of_other_constraints(vocabulary: lt.Vocabulary) -> None:
    matcher = lt.OneOf(["ab", "abc"]).matcher(vocabulary)
    assert matcher.explain(ord("x")).is_allowed is False
    assert matcher.fork().explain().allowed == len(matcher.allowed())
    payload = {"descriptors": [{"path": "p", "leaves": [{"name": "a", "tokens": [97]}]}]}
    unbound = lt.elizaos.token_tree(payload).at("p").matcher()
    with pytest.raises(lt.ConstraintError, match="vocabulary"):
        unbound.explain()
    with pytest.deprecated_call(match="vocabulary= is not needed"):
        assert unbound.explain(97, vocabulary=vocabulary).is_allowed


def test_decoders_take_grammars(vocabulary: lt.Vocabulary) -> None:
    logits = np.linspace(1, 0, len(vocabulary), dtype=np.float32)
    digits = G.regex("1[0-9]{2}")
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy(), digits)
    while not decoder.is_finished:
        decoder.step(logits)
    assert vocabulary.decode(decoder.tokens) == b"100"
    decoder = lt.Decoder(vocabulary, lt.Chain.greedy(), digits.matcher(vocabulary))
    decoder.activate(G.literal("zz"), then="stop")
    assert decoder.take_forced() == tokens_of(vocabulary, "zz")
    for wrong in ("x", 3):
        with pytest.raises(TypeError, match="may mean several constraints|means no constraint"):
            lt.Decoder(vocabulary, lt.Chain.greedy(), wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="may mean several constraints|means no constraint"):
            decoder.activate(wrong)  # type: ignore[arg-type]


def test_a_search_lets_other_threads_run(smollm2_gguf: Path) -> None:
    """While a mask is computed, Python runs in other threads."""
    vocabulary = lt.Vocabulary.from_gguf(smollm2_gguf)
    spans: list[tuple[float, float]] = []
    ticks: list[float] = []

    def search() -> None:
        for n in range(20):
            grammar = G.regex(f"(.{{0,{n + 5}}}(a|b)){{3}}(a|b){{8}}[x{chr(97 + n)}]")
            began = time.perf_counter()
            grammar.matcher(vocabulary).allowed().mask()
            spans.append((began, time.perf_counter()))

    thread = threading.Thread(target=search)
    thread.start()
    while thread.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0)
    thread.join()
    during = [any(began < tick < ended for tick in ticks) for began, ended in spans]
    assert len(spans) == 20
    assert sum(during) >= 5
