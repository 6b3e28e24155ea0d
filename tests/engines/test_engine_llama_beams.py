"""Beams on llama.cpp with the real model: each row's logits are those of its tokens evaluated alone, to the bit."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

import logitree as lt
from logitree.engines import ContextFull, Engine, Session
from logitree.engines._llama_cpp_rows import Row, places
from logitree.engines.llama_cpp import LlamaCpp
from slow_beams import step, walk_of

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

TITLES = (
    " Paris",
    " Paris, Texas",
    " London Calling",
    " London",
    " a city",
    " a city of lights",
    " the city of Paris",
    " Zyzzyva",
)


@pytest.fixture(scope="module")
def engine(smollm2_gguf: Path) -> LlamaCpp:
    return LlamaCpp(smollm2_gguf, n_ctx=512, n_batch=64, n_threads=1)


@pytest.fixture(scope="module")
def france(engine: LlamaCpp) -> list[int]:
    return engine.tokenize("The capital of France is")


def alone(engine: LlamaCpp, rows: list[list[int]]) -> np.ndarray:
    """Logits after each row, in the engine's ordinary session: the slow obvious version."""
    return np.stack([engine.session().evaluate(row).copy() for row in rows])


def test_it_is_an_engine_of_beams(engine: LlamaCpp) -> None:
    assert isinstance(engine, Engine)
    session = engine.batch_session(2, forks=True)
    assert isinstance(session, Session)
    session.close()
    assert engine.beam_rows == 255


def test_every_row_is_as_if_it_were_alone(engine: LlamaCpp, france: list[int]) -> None:
    prompts = [france, engine.tokenize("Once upon a time there was a")]
    session = engine.batch_session(6, 8, forks=True)
    logits = session.evaluate_rows(prompts)
    assert logits.shape == (2, len(engine.vocabulary))
    assert logits.dtype == np.float32
    assert np.array_equal(logits, alone(engine, prompts))
    rows = prompts
    generator = np.random.default_rng(1)
    # One row becomes many, rows cross, some are dropped, the others take their places, the number changes.
    for parents in ([0, 0, 0, 1, 1], [4, 2, 2, 0, 1, 4], [0, 5], [1, 1, 1, 0, 1], [0, 1, 2, 3, 4]):
        tokens = generator.integers(100, 20000, len(parents))
        rows = [[*rows[parent], int(token)] for parent, token in zip(parents, tokens, strict=True)]
        logits = step(session, np.array(parents), tokens)
        with pytest.raises(ValueError, match="read-only"):
            logits[0, 0] = 0.0
        assert np.array_equal(logits, alone(engine, rows))
    session.close()


def test_many_rows_change_no_bit(engine: LlamaCpp, france: list[int]) -> None:
    session = engine.batch_session(80, forks=True)
    session.evaluate_rows([france])
    tokens = np.arange(1000, 1080)
    logits = step(session, [0] * 80, tokens)
    some = [0, 1, 62, 63, 64, 79]
    assert np.array_equal(logits[some], alone(engine, [[*france, int(tokens[i])] for i in some]))
    session.close()


def test_more_rows_than_a_batch_of_the_engine_takes(smollm2_gguf: Path) -> None:
    engine = LlamaCpp(smollm2_gguf, n_ctx=64, n_batch=4, n_threads=1)
    rows = [[100 + row, 200 + row] for row in range(8)]
    session = engine.batch_session(8)
    for n in (1, 2):
        made = np.asarray(session.evaluate_rows([row[n - 1 : n] for row in rows]))
        assert np.array_equal(made, alone(engine, [row[:n] for row in rows]))
    session.close()
    engine.close()


def test_long_prompts_take_several_batches(engine: LlamaCpp) -> None:
    prompts = [engine.tokenize("one two three " * 40), engine.tokenize("Hello"), engine.tokenize("a b " * 30)]
    assert len(prompts[0]) > 64
    session = engine.batch_session(3, forks=True)
    assert np.array_equal(session.evaluate_rows(prompts), alone(engine, prompts))
    session.close()


def test_full_cells_are_made_more(smollm2_gguf: Path, france: list[int]) -> None:
    engine = LlamaCpp(smollm2_gguf, n_ctx=64, n_threads=1)
    session = engine.batch_session(32, 2, forks=True)
    prompts = [france, france[:3]]
    session.evaluate_rows(prompts)
    assert session._cells is not None
    before = session._cells.sizes.cells
    rows = prompts
    generator = np.random.default_rng(2)
    for _ in range(10):
        parents = generator.integers(0, len(rows), 32)
        tokens = generator.integers(100, 20000, 32)
        rows = [[*rows[parent], int(token)] for parent, token in zip(parents, tokens, strict=True)]
        logits = step(session, parents, tokens)
    assert session._cells.sizes.cells > before == 256
    some = [0, 7, 31]
    assert np.array_equal(logits[some], alone(engine, [rows[i] for i in some]))
    session.close()
    engine.close()


def test_places_keep_first_children_and_free_what_has_none() -> None:
    rows = [Row(at, [], []) for at in (4, 1, 0)]
    assert places(rows, [2, 0, 2, 2], 6) == ([0, 4, 1, 2], [1], [(0, 1), (0, 2)])
    assert places(rows, [0, 1, 2], 6) == ([4, 1, 0], [], [])
    assert places(rows, [1], 6) == ([1], [4, 0], [])


def test_misuse_is_an_error_that_changes_nothing(engine: LlamaCpp, france: list[int]) -> None:
    session = engine.batch_session(3, forks=True)
    for prompts, kind, says in (
        ([[], []], lt.EngineError, "no row has tokens"),
        ([], lt.EngineError, "no row has tokens"),
        ([france] * 4, lt.EngineError, "4 rows in a session made for 3"),
        ([[len(engine.vocabulary)]], lt.TokenError, "outside"),
    ):
        with pytest.raises(lt.EngineError, match="the session has no rows"):
            session.reorder([0])
        with pytest.raises(kind, match=says):
            session.evaluate_rows(prompts)
    with pytest.raises(ContextFull) as full:
        session.evaluate_rows([[1] * 600])
    assert full.value.rows == (0,)
    session.evaluate_rows([france])
    for parents, kind, says in (
        ([1], lt.StateError, "the parent of row 0 is 1"),
        ([-1], lt.StateError, "the parent of row 0 is -1"),
        ([], lt.EngineError, "0 rows"),
        ([0] * 4, lt.EngineError, "4 rows in a session made for 3"),
    ):
        with pytest.raises(kind, match=says):
            session.reorder(parents)
    session.reorder([0, 0])
    for tokens, kind, says in (
        ([[5], [-5]], lt.TokenError, "outside"),
        ([[5]], lt.EngineError, "1 lists of tokens for 2 rows"),
    ):
        with pytest.raises(kind, match=says):
            session.evaluate_rows(tokens)
    assert np.array_equal(session.evaluate_rows([[5], [6]]), alone(engine, [[*france, 5], [*france, 6]]))
    session.close()
    session.close()
    for act in (lambda: session.reorder([0]), lambda: session.evaluate_rows([[5]])):
        with pytest.raises(lt.EngineError, match="no rows"):
            act()
    for rows, forks in ((0, True), (256, True), (33, False)):
        with pytest.raises(lt.EngineError, match=f"{rows} rows in one session"):
            engine.batch_session(rows, forks=forks)
    with pytest.raises(lt.EngineError, match="no room for the beams"):
        lt.beam_search(engine, [[1] * 512], walk_of([(1, 2)], len(engine.vocabulary)), width=1)


def test_rows_take_different_numbers_of_tokens(engine: LlamaCpp, france: list[int]) -> None:
    session = engine.batch_session(4, forks=True)
    rows: list[list[int]] = [[], [], [], []]
    generator = np.random.default_rng(3)
    for sizes in ((5, 0, 20, 1), (1, 1, 1, 1), (0, 0, 2, 0), (0, 3, 0, 40), (9, 30, 0, 1)):
        new = [generator.integers(100, 20000, n).tolist() for n in sizes]
        logits = session.evaluate_rows(new)
        for row, more, given in zip(rows, new, logits, strict=True):
            row += more
            assert not more or np.array_equal(given, alone(engine, [row])[0])
    session.reorder([2, 2, 0])
    logits = session.evaluate_rows([[7], [8, 9], []])
    assert np.array_equal(logits[:2], alone(engine, [[*rows[2], 7], [*rows[2], 8, 9]]))
    session.close()


def test_beam_sessions_of_0_1_warn_and_work(engine: LlamaCpp, france: list[int]) -> None:
    with pytest.warns(DeprecationWarning, match=r"use batch_session\(rows, forks=True\)"):
        session = engine.beam_session(rows=2)
    assert np.array_equal(session.begin([france]), alone(engine, [france]))
    assert np.array_equal(session.step([0, 0], [5, 6]), alone(engine, [[*france, 5], [*france, 6]]))
    session.close()


def test_the_context_is_used_again(engine: LlamaCpp, france: list[int]) -> None:
    first = engine.batch_session(4, forks=True)
    first.evaluate_rows([france])
    step(first, [0, 0], [5, 6])
    cells = first._cells
    first.close()
    second, third = engine.batch_session(2, forks=True), engine.batch_session(2, forks=True)
    logits = second.evaluate_rows([france[:4]])
    assert second._cells is cells
    third.evaluate_rows([france])
    assert third._cells is not cells
    assert np.array_equal(logits, alone(engine, [france[:4]]))
    assert np.array_equal(step(third, [0], [7]), alone(engine, [[*france, 7]]))
    second.close()
    third.close()


def test_a_closed_model_is_an_error_and_no_crash(smollm2_gguf: Path, france: list[int]) -> None:
    engine = LlamaCpp(smollm2_gguf, n_ctx=64, n_threads=1)
    begun, fresh, spare = (engine.batch_session(2, forks=True) for _ in range(3))
    begun.evaluate_rows([france])
    spare.evaluate_rows([france])
    spare.close()
    engine.close()
    with pytest.raises(lt.EngineError, match="the model is closed"):
        step(begun, [0], [5])
    with pytest.raises(lt.EngineError, match="the model is closed"):
        fresh.evaluate_rows([france])
    begun.close()


def test_a_forgotten_model_frees_its_contexts_first(smollm2_gguf: Path, france: list[int]) -> None:
    engine = LlamaCpp(smollm2_gguf, n_ctx=64, n_threads=1)
    session = engine.batch_session(2, forks=True)
    session.evaluate_rows([france])
    cells = session._cells
    assert cells is not None
    gone = weakref.ref(engine)
    del engine, session
    gc.collect()
    assert gone() is None
    assert not cells.free.alive


def test_after_an_interrupt_the_rows_are_not_trusted(
    engine: LlamaCpp, france: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = engine.batch_session(2, forks=True)
    session.evaluate_rows([france])
    cells = session._cells
    assert cells is not None

    def interrupted(entries: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cells, "decode", interrupted)
        with pytest.raises(KeyboardInterrupt):
            step(session, [0], [5])
    with pytest.raises(lt.EngineError, match="no rows"):
        step(session, [0], [5])
    session.close()
    again = engine.batch_session(2, forks=True)
    assert np.array_equal(again.evaluate_rows([france]), alone(engine, [france]))
    again.close()


def test_a_llama_can_be_adopted(smollm2_gguf: Path, france: list[int], engine: LlamaCpp) -> None:
    import llama_cpp

    llama = llama_cpp.Llama(str(smollm2_gguf), n_ctx=256, n_batch=64, n_threads=1, flash_attn=True, verbose=False)
    adopted = LlamaCpp(llama)
    session = adopted.batch_session(2, forks=True)
    assert np.array_equal(session.evaluate_rows([france]), alone(engine, [france]))
    session.close()
    del adopted, session
    gc.collect()
    assert llama.tokenize(b"still here")


# -- the search


@pytest.fixture(scope="module")
def titles(engine: LlamaCpp) -> lt.catalogue.ItemWalk:
    return walk_of([engine.tokenize(t) for t in TITLES], len(engine.vocabulary), ending(engine))


def ending(engine: LlamaCpp) -> int:
    """The token that ends a title."""
    return engine.vocabulary.end_tokens[0]


def brute(engine: LlamaCpp, prompt: list[int]) -> dict[str, float]:
    """Each title's log-probability, its end included, one token after another."""
    found = {}
    for title in TITLES:
        tokens, total = [*engine.tokenize(title), ending(engine)], 0.0
        for i, token in enumerate(tokens):
            total += lt.metrics.log_softmax(engine.session().evaluate([*prompt, *tokens[:i]]), [token])[0]
        found[title] = float(total)
    return found


def test_all_titles_by_brute_force(engine: LlamaCpp, titles: lt.catalogue.ItemWalk, france: list[int]) -> None:
    other = engine.tokenize("The best film that I have seen is")
    results = lt.beam_search(engine, [france, other], titles, width=len(TITLES))
    for prompt, got in zip((france, other), results, strict=True):
        expected = brute(engine, prompt)
        assert [TITLES[h.items[0]] for h in got] == sorted(expected, key=lambda t: -expected[t])
        for h in got:
            assert h.log_probability == pytest.approx(expected[TITLES[h.items[0]]], abs=1e-6)
    assert TITLES[results[0][0].items[0]].startswith(" Paris")


def test_text_and_chat_prompts(engine: LlamaCpp, titles: lt.catalogue.ItemWalk) -> None:
    text = "The capital of France is"
    plain = lt.beam_search(engine, text, titles, width=2, chat=False)
    (answers,) = lt.beam_search(engine, [{"role": "user", "content": "The capital of France?"}], titles, width=2)
    assert plain == lt.beam_search(engine, [engine.encode(text, chat=False)], titles, width=2)
    assert len(answers) == 2


def test_prompts_past_the_rows_of_a_session(
    engine: LlamaCpp, titles: lt.catalogue.ItemWalk, france: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [france, france[:3], france[:4]]
    together = lt.beam_search(engine, prompts, titles, width=3)
    monkeypatch.setattr(engine, "beam_rows", 7)
    assert lt.beam_search(engine, prompts, titles, width=3) == together
    with pytest.raises(lt.EngineError, match="8 rows in one session"):
        lt.beam_search(engine, prompts, titles, width=8)
