"""`Generation` over a table of logits: events, threads, asyncio, several prompts, limits."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree.engines import ContextFull, Engine, Session
from logitree.engines import open as open_engine
from logitree.engines._session import InTurns
from logitree.speculation import ModelDrafter, NGramDrafter
from table_engine import DraftingEngine, TableEngine, TableSession

ENGINE = TableEngine()
JSON = {"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 2, "maxItems": 9}


def test_twenty_lines_are_an_engine() -> None:
    assert isinstance(ENGINE, Engine)
    assert isinstance(ENGINE.session(), Session)
    assert open_engine(ENGINE) is ENGINE
    assert lt.generate(ENGINE, "Which?", JSON, seed=1, max_tokens=400).value[0] in ("red", "green")
    with pytest.raises(TypeError, match=r"3 \(int\) is no model"):
        open_engine(3)
    with pytest.raises(lt.EngineError, match="no such file or folder"):
        open_engine("nowhere.gguf")


def test_an_engine_of_0_1_warns_and_works() -> None:
    known = DraftingEngine(3)

    class OldSession:
        """Has the methods of a session, and no base."""

        def __init__(self) -> None:
            self.inner = known.session()
            self.evaluate, self.evaluate_all, self.rollback = (
                self.inner.evaluate,
                self.inner.evaluate_all,
                self.inner.rollback,
            )

        def begin(self, tokens: Sequence[int]) -> int:
            """Nothing is held."""
            return 0

    class OldEngine:
        """Has the methods of an engine, and no base."""

        vocabulary, encode, tokenize, session = known.vocabulary, known.encode, known.tokenize, OldSession

    def old(prompt: Any, **options: Any) -> Any:
        with pytest.warns(DeprecationWarning, match=r"OldEngine is an engine of 0\.1: derive it from"):
            return lt.generate(OldEngine(), prompt, seed=1, max_tokens=20, **options)  # type: ignore[arg-type]

    drafter = NGramDrafter(1)
    made, expected = old("abab", drafter=drafter), lt.generate(known, "abab", seed=1, max_tokens=20, drafter=drafter)
    assert (made.tokens, made.stats.forward_passes) == (expected.tokens, expected.stats.forward_passes)
    assert [one.tokens for one in old(["ab", "b"])] == [
        one.tokens for one in lt.generate(known, ["ab", "b"], seed=1, max_tokens=20)
    ]
    with pytest.warns(DeprecationWarning, match="OldEngine"), pytest.raises(TypeError, match="searches no beams"):
        lt.beam_search(OldEngine(), "a", ["x", "y"])  # type: ignore[arg-type]


def test_an_engine_of_now_may_have_sessions_of_0_1() -> None:
    known = DraftingEngine(3)

    class Bare:
        """Has the methods of a session, and no base."""

        def __init__(self) -> None:
            inner = known.session()
            self.evaluate, self.evaluate_all, self.rollback = inner.evaluate, inner.evaluate_all, inner.rollback

    class Derived(DraftingEngine):
        """Its sessions are not."""

        def session(self) -> Any:
            """A session of 0.1."""
            return Bare()

    def both(act: Any) -> None:
        with pytest.warns(DeprecationWarning, match=r"Bare is a session of 0\.1: derive it from"):
            made = act(Derived(3))
        assert made == act(known)

    both(lambda engine: lt.generate(engine, "abab", seed=1, max_tokens=20).tokens)
    both(lambda engine: [one.tokens for one in lt.generate(engine, ["ab", "b"], seed=1, max_tokens=20)])
    both(lambda engine: lt.choose(engine, "ab", ["red", "ab", "abc"]).value)
    both(lambda engine: lt.generate(known, "abab", seed=1, max_tokens=20, drafter=ModelDrafter(engine)).tokens)


def test_defaults_of_the_base_class_are_no_abilities_of_a_session_of_0_1() -> None:
    known = DraftingEngine(3)

    class OldEngine:
        """Has the methods of an engine, and no base."""

        vocabulary, encode = known.vocabulary, known.encode

        def __init__(self, session: Any) -> None:
            self.session = session

    for make, room in ((lambda: TableSession(known.table), 0), (known.session, 1 << 62)):
        with pytest.warns(DeprecationWarning, match="OldEngine"):
            session = open_engine(OldEngine(make)).session()
        assert (session.can_rollback, session.draft_room()) == (room > 0, room)
        assert session.begin([1]) == 0
        assert np.array_equal(session.evaluate([1]), make().evaluate([1]))


def test_what_a_session_is_not_able_to_do_is_an_error() -> None:
    session = ENGINE.session()
    for ask in (
        lambda: session.evaluate_all([1], 1),
        lambda: session.rollback(1),
        lambda: session.reorder([0]),
        lambda: ENGINE.batch_session(2, forks=True),
    ):
        with pytest.raises(lt.EngineError, match="a Table"):
            ask()
    assert (session.begin([1]), session.draft_room(), session.can_rollback) == (0, 0, False)
    with pytest.raises(TypeError, match="defines neither"):
        Session().evaluate([1])


def test_rows_in_turns_reuse_what_was_made_for_the_same_tokens_only() -> None:
    engine = DraftingEngine(n_ctx=3)
    rows = engine.batch_session(2)
    with pytest.raises(lt.EngineError, match="1 lists of tokens for 2 rows"):
        rows.evaluate_rows([[1]])
    for again, passes in ([1, 2], 1), ([1, 3], 2):
        rows = engine.batch_session(2)
        with pytest.raises(ContextFull) as full:
            rows.evaluate_rows([[1, 2], [4] * 4])
        assert full.value.rows == (1,)
        logits, _ = rows.evaluate_rows([again, []])
        assert np.array_equal(logits, engine.session().evaluate(again))
        assert (engine.sessions[-3].evaluated, engine.sessions[-3].passes) == (again, passes)


def test_a_failure_of_rows_in_turns_leaves_no_logits_behind() -> None:
    class Failing(TableSession):
        """Takes no zeros."""

        def evaluate(self, tokens: Sequence[int]) -> np.ndarray:
            """The row of the last token."""
            if 0 in tokens:
                raise lt.EngineError("a zero")
            return super().evaluate(tokens)

    rows = InTurns(lambda: Failing(ENGINE.table), 2)
    with pytest.raises(lt.EngineError, match="a zero"):
        rows.evaluate_rows([[1], [0]])
    assert np.array_equal(rows.evaluate_rows([[2], [3]])[0], ENGINE.table[2])


def test_nothing_runs_before_it_is_used() -> None:
    class Counting(TableEngine):
        """Counts sessions."""

        sessions = 0

        def session(self) -> TableSession:
            """One more."""
            self.sessions += 1
            return super().session()

    engine = Counting()
    generation = lt.generate(engine, "x", int, max_tokens=4)
    assert (engine.sessions, repr(generation)) == (0, "<Generation: not run>")
    generation.cancel()
    assert generation.finish_reason == "cancelled"
    assert "cancelled" in repr(generation)


def test_events_are_the_same_again_and_agree_with_the_properties() -> None:
    generation = lt.generate(ENGINE, "x", ["red", "green"], seed=2)
    events = list(generation)
    assert events == list(generation)
    finish = events[-1]
    assert isinstance(finish, lt.Finish)
    assert (generation.text, generation.tokens, generation.stats) == (finish.text, finish.tokens, finish.stats)
    assert (str(generation), "".join(generation.pieces())) == (finish.text, finish.text)
    assert generation.value in ("red", "green")
    assert "tokens/s" in str(generation.stats)
    with pytest.raises(lt.StateError, match="no trace was recorded"):
        generation.trace  # noqa: B018
    traced = lt.generate(ENGINE, "x", ["red", "green"], seed=2, trace=True)
    assert [step.token for step in traced.trace] == list(traced.tokens) == list(generation.tokens)
    assert 0 < traced.probability <= 1


def test_several_threads_read_one_generation() -> None:
    generation = lt.generate(ENGINE, "x", max_tokens=200, seed=4)
    start = threading.Barrier(4)

    def read(_: int) -> list[lt.Event]:
        start.wait()
        return list(generation)

    with ThreadPoolExecutor(4) as threads:
        seen = list(threads.map(read, range(4)))
    assert all(events == seen[0] for events in seen)


PROMPTS = ["a", "bb", "ccc", "dddd"]
CONSTRAINTS: list[Any] = [["red", "green"], int, JSON, None]


def test_several_prompts_give_what_each_gives_alone() -> None:
    options: dict[str, Any] = {"max_tokens": 30, "temperature": 1.3}
    together = lt.generate(ENGINE, PROMPTS, CONSTRAINTS, seed=[5, 6, 7, 8], **options)
    assert isinstance(together, lt.Generations)
    alone = [
        lt.generate(ENGINE, prompt, constraint, seed=seed, **options)
        for prompt, constraint, seed in zip(PROMPTS, CONSTRAINTS, [5, 6, 7, 8], strict=True)
    ]
    assert together.texts == [one.text for one in alone]
    assert [one.tokens for one in together] == [one.tokens for one in alone]
    by_row: dict[int, list[lt.Event]] = {}
    for row, event in together.events():
        by_row.setdefault(row, []).append(event)
    assert [by_row[i] for i in range(4)] == [list(one) for one in together]
    same = lt.generate(ENGINE, ["a", "a"], ["red", "green"], seed=3)
    assert same.values[0] == same.values[1] == lt.generate(ENGINE, "a", ["red", "green"], seed=3).value
    assert len(same[:1]) == 1


def test_chains_are_one_for_each_prompt_or_sequences_of_one() -> None:
    def chain(seed: int) -> lt.Chain:
        return lt.Chain([lt.samplers.temp(3.0), lt.samplers.dist(seed)])

    pattern = lt.Grammar.regex("[a-z]{12}")
    each = lt.generate(ENGINE, ["a", "a", "b"], pattern, chain=[chain(1), chain(2), chain(1)])
    alone = [lt.generate(ENGINE, p, pattern, chain=chain(s)).text for p, s in (("a", 1), ("a", 2), ("b", 1))]
    assert each.texts == alone
    assert alone[0] != alone[1]
    answers = lt.generate(ENGINE, "a", pattern, n=3, chain=chain(1))
    assert answers.texts == [lt.generate(ENGINE, "a", pattern, chain=one).text for one in chain(1).sequences(3)]
    assert answers[0].text == alone[0]
    used = chain(1)
    used.accept(5)
    assert lt.generate(ENGINE, "a", pattern, n=3, chain=used).texts == answers.texts
    third = lt.Chain([lt.samplers.temp(3.0), lt.samplers.dist(1, "philox", sequence=2)])
    assert len(set(lt.generate(ENGINE, "a", pattern, n=4, chain=third).texts)) == 4
    assert len(set(answers.texts)) == 3
    assert [one.stats.seed for one in answers] == [1, 2, 3]
    with pytest.raises(lt.SamplingError, match="2 chains for 3 prompts; give one for each, or one for all"):
        lt.generate(ENGINE, ["a", "b", "c"], chain=[chain(1)] * 2)


def test_several_prompts_are_checked_at_the_call() -> None:
    with pytest.raises(lt.ConstraintError, match="3 constraints for 2 prompts"):
        lt.generate(ENGINE, ["a", "b"], [int, int, int])
    with pytest.raises(lt.SamplingError, match="1 seeds for 2 prompts"):
        lt.generate(ENGINE, ["a", "b"], seed=[1])
    with pytest.raises(lt.EngineError, match="the prompt is empty"):
        lt.generate(ENGINE, ["a", ""])
    with pytest.raises(TypeError, match="a prompt is a text, messages or token ids, not float"):
        lt.generate(ENGINE, 3.5)  # type: ignore[call-overload]
    with pytest.raises(lt.TokenError, match="token 999 of the prompt"):
        lt.generate(ENGINE, [1, 999])
    assert (
        lt.generate(ENGINE, list(b"ab"), seed=1, max_tokens=5).text
        == lt.generate(ENGINE, "ab", seed=1, max_tokens=5).text
    )


def test_an_error_of_one_prompt_leaves_the_others_alone() -> None:
    calls: list[int] = []

    def fails(decoder: lt.Decoder, logits: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise LookupError("mine")

    together = lt.generate(ENGINE, ["a", "b", "c"], int, seed=1, max_tokens=6, on_step=fails)
    together[0].text  # noqa: B018
    with pytest.raises(LookupError, match="mine"):
        together[1].text  # noqa: B018
    assert together[2].text == lt.generate(ENGINE, "c", int, seed=1, max_tokens=6).text


def test_a_full_context_ends_the_rows_that_do_not_fit() -> None:
    class Small(TableEngine):
        """Twelve tokens fit."""

        n_ctx = 12

        def session(self) -> TableSession:
            """A small session."""

            class SmallSession(TableSession):
                """Refuses more."""

                def evaluate(self, tokens: Sequence[int]) -> np.ndarray:
                    """At most twelve tokens."""
                    if len(self.evaluated) + len(tokens) > 12:
                        raise ContextFull
                    return super().evaluate(tokens)

            return SmallSession(self.table)

    text = lt.Grammar.regex("[a-z]+")
    long, short = lt.generate(Small(), ["0123456789", "0"], text, seed=1, max_tokens=6)
    assert (long.finish_reason, len(long.tokens)) == ("context_full", 3)
    assert short.finish_reason in ("max_tokens", "end_of_generation", "constraint")
    engine = DraftingEngine(3, n_ctx=12)
    short, long = lt.generate(engine, ["0", "0123456789"], text, seed=1, max_tokens=9, temperature=1.0)
    assert long.finish_reason == "context_full"
    alone = lt.generate(engine, "0", text, seed=1, max_tokens=9, temperature=1.0)
    assert short.tokens == alone.tokens, "a row before a full one is evaluated once"
    with pytest.raises(lt.EngineError, match="13 tokens long, the context holds 12"):
        lt.generate(Small(), "0123456789abc")


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("n", range(0, 24, 3))
def test_what_max_tokens_cuts_is_kept_raised_or_closed(n: int, force: bool) -> None:
    def made(on_limit: Any) -> lt.Generation[Any]:
        return lt.generate(ENGINE, "x", JSON, seed=9, max_tokens=n, on_limit=on_limit, force=force)

    kept = made("keep")
    assert (kept.finish_reason, kept.complete, len(kept.tokens)) == ("max_tokens", False, n)
    with pytest.raises(lt.IncompleteError, match="not complete: max_tokens"):
        kept.value  # noqa: B018
    for use in (list, lambda one: one.text, lambda one: one.value):
        with pytest.raises(lt.IncompleteError, match=f"max_tokens is {n}"):
            use(made("raise"))
    closed = made("close")
    assert (closed.finish_reason, closed.complete, closed.tokens[:n]) == ("closed", True, kept.tokens)
    assert len(closed.value) >= 2
    complete = lt.generate(ENGINE, "x", lt.Grammar.regex("[0-9]+"), seed=9, max_tokens=n + 1, on_limit="raise")
    assert complete.text.isdigit(), "what may end here is complete"


def test_repeat_penalty_and_temperature_are_taken() -> None:
    assert lt.generate(ENGINE, "x", repeat_penalty=1.2, temperature=0.3, seed=1, max_tokens=3).stats.seed == 1


def test_the_prompt_counts_in_the_penalties() -> None:
    engine = TableEngine(scale=0.0)
    engine.table[:, [ord("a"), ord("b")]] = 2.0, 1.0
    for penalty, text in ((1.0, "a"), (5.0, "b")):
        options: dict[str, Any] = {"temperature": 0.0, "penalty_repeat": penalty, "max_tokens": 1}
        assert lt.generate(engine, "xa", **options).text == text
        assert lt.generate(engine, ["xa", "y"], **options).texts == [text, "a"]


def test_chosen_values_keep_their_type() -> None:
    chosen = lt.choose(ENGINE, "x", [10, 20])
    assert chosen.value in (10, 20)
    assert chosen.text == str(chosen.value)
    assert [10, 20][chosen.index] == chosen.value
    assert 0 < (chosen.probability or 0) <= 1
    with pytest.raises(lt.ConstraintError, match="no values follow the reasoning"):
        lt.choose(ENGINE, "x", lt.ReasoningBudget([[1]], [[2]], then=int))
