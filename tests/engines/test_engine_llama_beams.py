"""Beams on llama.cpp with the real model: each row's logits are those of its tokens evaluated alone, to the bit."""

from __future__ import annotations

import gc
import importlib.util
import weakref
from pathlib import Path

import numpy as np
import pytest

import logitree as lt
from logitree.engines import BeamEngine, BeamSession
from logitree.engines._llama_cpp_beams import Row, places
from logitree.engines.llama_cpp import LlamaCpp
from slow_walk import SlowWalk

if importlib.util.find_spec("llama_cpp") is None:
    pytest.skip("llama-cpp-python is not installed", allow_module_level=True)

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
    assert isinstance(engine, BeamEngine)
    session = engine.beam_session(2)
    assert isinstance(session, BeamSession)
    session.close()
    assert engine.beam_rows == 255


def test_every_row_is_as_if_it_were_alone(engine: LlamaCpp, france: list[int]) -> None:
    prompts = [france, engine.tokenize("Once upon a time there was a")]
    session = engine.beam_session(6, 8)
    logits = session.begin(prompts)
    assert logits.shape == (2, len(engine.vocabulary))
    assert logits.dtype == np.float32
    assert np.array_equal(logits, alone(engine, prompts))
    rows = prompts
    generator = np.random.default_rng(1)
    # One row becomes many, rows cross, some are dropped, the others take their places, the number changes.
    for parents in ([0, 0, 0, 1, 1], [4, 2, 2, 0, 1, 4], [0, 5], [1, 1, 1, 0, 1], [0, 1, 2, 3, 4]):
        tokens = generator.integers(100, 20000, len(parents))
        rows = [[*rows[parent], int(token)] for parent, token in zip(parents, tokens, strict=True)]
        logits = session.step(np.array(parents), tokens)
        with pytest.raises(ValueError, match="read-only"):
            logits[0, 0] = 0.0
        assert np.array_equal(logits, alone(engine, rows))
    session.close()


def test_many_rows_change_no_bit(engine: LlamaCpp, france: list[int]) -> None:
    session = engine.beam_session(80)
    session.begin([france])
    tokens = np.arange(1000, 1080)
    logits = session.step([0] * 80, tokens)
    assert not logits.flags.writeable
    some = [0, 1, 62, 63, 64, 79]
    assert np.array_equal(logits[some], alone(engine, [[*france, int(tokens[i])] for i in some]))
    session.close()


def test_long_prompts_take_several_batches(engine: LlamaCpp) -> None:
    prompts = [engine.tokenize("one two three " * 40), engine.tokenize("Hello"), engine.tokenize("a b " * 30)]
    assert len(prompts[0]) > 64
    session = engine.beam_session(3)
    assert np.array_equal(session.begin(prompts), alone(engine, prompts))
    session.close()


def test_full_cells_are_made_more(smollm2_gguf: Path, france: list[int]) -> None:
    engine = LlamaCpp(smollm2_gguf, n_ctx=64, n_threads=1)
    session = engine.beam_session(32, 2)
    prompts = [france, france[:3]]
    session.begin(prompts)
    assert session._cells is not None
    before = session._cells.sizes.cells
    rows = prompts
    generator = np.random.default_rng(2)
    for _ in range(10):
        parents = generator.integers(0, len(rows), 32)
        tokens = generator.integers(100, 20000, 32)
        rows = [[*rows[parent], int(token)] for parent, token in zip(parents, tokens, strict=True)]
        logits = session.step(parents, tokens)
    assert session._cells.sizes.cells > before == 256
    some = [0, 7, 31]
    assert np.array_equal(logits[some], alone(engine, [rows[i] for i in some]))
    session.close()
    engine.close()


def test_places_keep_first_children_and_free_what_has_none() -> None:
    rows = [Row(4, 0, ()), Row(1, 0, ()), Row(0, 0, ())]
    assert places(rows, [2, 0, 2, 2], 6) == ([0, 4, 1, 2], [1], [(0, 1), (0, 2)])
    assert places(rows, [0, 1, 2], 6) == ([4, 1, 0], [], [])
    assert places(rows, [1], 6) == ([1], [4, 0], [])


def test_misuse_is_an_error_that_changes_nothing(engine: LlamaCpp, france: list[int]) -> None:
    session = engine.beam_session(3)
    with pytest.raises(lt.EngineError, match="the session has no rows"):
        session.step([0], [1])
    with pytest.raises(lt.EngineError, match="a prompt is empty"):
        session.begin([france, []])
    with pytest.raises(lt.EngineError, match="there is no prompt"):
        session.begin([])
    with pytest.raises(lt.EngineError, match="4 beams in a session made for 3"):
        session.begin([france] * 4)
    with pytest.raises(lt.EngineError, match="600 tokens long, the context holds 512"):
        session.begin([[1] * 600])
    with pytest.raises(lt.TokenError, match="outside"):
        session.begin([[len(engine.vocabulary)]])
    session.begin([france])
    with pytest.raises(lt.EngineError, match="begun already"):
        session.begin([france])
    for parents, tokens, kind, says in (
        ([1], [5], lt.StateError, "the parent of row 0 is 1"),
        ([-1], [5], lt.StateError, "the parent of row 0 is -1"),
        ([0], [-5], lt.TokenError, "outside"),
        ([0, 0], [5], lt.EngineError, "2 parents and 1 tokens"),
        ([], [], lt.EngineError, "0 parents"),
        ([0] * 4, [5] * 4, lt.EngineError, "4 beams in a session made for 3"),
    ):
        with pytest.raises(kind, match=says):
            session.step(parents, tokens)
    assert np.array_equal(session.step([0, 0], [5, 6]), alone(engine, [[*france, 5], [*france, 6]]))
    session.close()
    session.close()
    with pytest.raises(lt.EngineError, match="no rows"):
        session.step([0], [5])
    for rows in (0, 256):
        with pytest.raises(lt.EngineError, match=f"{rows} beams in one session"):
            engine.beam_session(rows)


def test_the_context_is_used_again(engine: LlamaCpp, france: list[int]) -> None:
    first = engine.beam_session(4)
    first.begin([france])
    first.step([0, 0], [5, 6])
    cells = first._cells
    first.close()
    second, third = engine.beam_session(2), engine.beam_session(2)
    logits = second.begin([france[:4]])
    assert second._cells is cells
    third.begin([france])
    assert third._cells is not cells
    assert np.array_equal(logits, alone(engine, [france[:4]]))
    assert np.array_equal(third.step([0], [7]), alone(engine, [[*france, 7]]))
    second.close()
    third.close()


def test_a_closed_model_is_an_error_and_no_crash(smollm2_gguf: Path, france: list[int]) -> None:
    engine = LlamaCpp(smollm2_gguf, n_ctx=64, n_threads=1)
    begun, fresh, spare = (engine.beam_session(2) for _ in range(3))
    begun.begin([france])
    spare.begin([france])
    spare.close()
    engine.close()
    with pytest.raises(lt.EngineError, match="the model is closed"):
        begun.step([0], [5])
    with pytest.raises(lt.EngineError, match="the model is closed"):
        fresh.begin([france])
    begun.close()


def test_a_forgotten_model_frees_its_contexts_first(smollm2_gguf: Path, france: list[int]) -> None:
    engine = LlamaCpp(smollm2_gguf, n_ctx=64, n_threads=1)
    session = engine.beam_session(2)
    session.begin([france])
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
    session = engine.beam_session(2)
    session.begin([france])
    cells = session._cells
    assert cells is not None

    def interrupted(entries: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cells, "decode", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.step([0], [5])
    with pytest.raises(lt.EngineError, match="no rows"):
        session.step([0], [5])
    session.close()
    again = engine.beam_session(2)
    assert np.array_equal(again.begin([france]), alone(engine, [france]))
    again.close()


def test_a_llama_can_be_adopted(smollm2_gguf: Path, france: list[int], engine: LlamaCpp) -> None:
    import llama_cpp

    llama = llama_cpp.Llama(str(smollm2_gguf), n_ctx=256, n_batch=64, n_threads=1, flash_attn=True, verbose=False)
    adopted = LlamaCpp(llama)
    session = adopted.beam_session(2)
    assert np.array_equal(session.begin([france]), alone(engine, [france]))
    session.close()
    del adopted, session
    gc.collect()
    assert llama.tokenize(b"still here")


# -- the search


@pytest.fixture(scope="module")
def titles(engine: LlamaCpp) -> SlowWalk:
    return SlowWalk.of_items([engine.tokenize(t) for t in TITLES], len(engine.vocabulary), ending(engine))


def ending(engine: LlamaCpp) -> int:
    """The token that ends a title."""
    return engine.vocabulary.eog_ids[0]


def brute(engine: LlamaCpp, prompt: list[int]) -> dict[str, float]:
    """Each title's log-probability, its end included, one token after another."""
    found = {}
    for title in TITLES:
        tokens, total = [*engine.tokenize(title), ending(engine)], 0.0
        for i, token in enumerate(tokens):
            total += lt.metrics.log_softmax(engine.session().evaluate([*prompt, *tokens[:i]]), [token])[0]
        found[title] = float(total)
    return found


def test_all_titles_by_brute_force(engine: LlamaCpp, titles: SlowWalk, france: list[int]) -> None:
    other = engine.tokenize("The best film that I have seen is")
    results = lt.beam_search(engine, [france, other], titles, width=len(TITLES))
    for prompt, got in zip((france, other), results, strict=True):
        expected = brute(engine, prompt)
        assert [TITLES[h.items[0]] for h in got] == sorted(expected, key=lambda t: -expected[t])
        for h in got:
            assert h.log_probability == pytest.approx(expected[TITLES[h.items[0]]], abs=1e-6)
    assert TITLES[results[0][0].items[0]].startswith(" Paris")


def test_text_and_chat_prompts(engine: LlamaCpp, titles: SlowWalk) -> None:
    text = "The capital of France is"
    plain = lt.beam_search(engine, text, titles, width=2, chat=False)
    (told,) = lt.beam_search(engine, [{"role": "user", "content": "The capital of France?"}], titles, width=2)
    assert plain == lt.beam_search(engine, [engine.encode(text, chat=False)], titles, width=2)
    assert len(told) == 2


def test_prompts_past_the_rows_of_a_session(
    engine: LlamaCpp, titles: SlowWalk, france: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [france, france[:3], france[:4]]
    together = lt.beam_search(engine, prompts, titles, width=3)
    monkeypatch.setattr(engine, "beam_rows", 7)
    assert lt.beam_search(engine, prompts, titles, width=3) == together
    with pytest.raises(lt.EngineError, match="8 beams in one session"):
        lt.beam_search(engine, prompts, titles, width=8)
