"""The transformers engine: sessions and batches against the model without a cache, prompts, loading, and `generate`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree import engines
from logitree.engines import ContextFull
from logitree.engines._session import InTurns
from logitree.engines.transformers import Transformers
from tiny_models import alone, counted, near, tiny, tokenizer, torch

pytestmark = pytest.mark.peers

V = 40
KINDS = ["gpt2", "llama", "sliding", "mamba"]


# -- one sequence


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_equals_the_model_without_a_cache(kind: str) -> None:
    model, generator = tiny(kind), np.random.default_rng(1)
    session = Transformers(model, n_batch=None if kind == "mamba" else 7).session()
    tokens: list[int] = []
    for n in (3, 1, 18, 1, 5):
        new = generator.integers(0, V, n).tolist()
        tokens += new
        near(session.evaluate(new), alone(model, [tokens])[0])
    near(session.evaluate([]), alone(model, [tokens])[0])
    session.rollback(9)
    near(session.evaluate([3, 4]), alone(model, [[*tokens[:-9], 3, 4]])[0])
    assert session.tokens == (*tokens[:-9], 3, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_sessions_in_turns(kind: str) -> None:
    engine = Transformers(tiny(kind))
    sessions = [engine.session(), engine.session()]
    rows = [[5, 6, 7], [5, 6, 8, 9]]
    for session, row in zip(sessions, rows, strict=True):
        near(session.evaluate(row), alone(engine.model, [row])[0])
    for step in range(6):
        at = step % 2
        rows[at].append(step)
        near(sessions[at].evaluate([step]), alone(engine.model, [rows[at]])[0])


def test_the_cache_is_kept_between_calls_and_sessions() -> None:
    engine = Transformers(tiny("llama"))
    prompt = list(range(3, 23))
    with counted(engine.model) as shapes:
        first = engine.session()
        assert first.begin(prompt) == 0
        first.evaluate(prompt)
        first.evaluate([5])
        first.evaluate([6, 7])
        assert shapes == [(1, 20), (1, 1), (1, 2)]
        second = engine.session()
        other = [*prompt[:15], 1, 2]
        assert second.begin(other) == 15
        logits = second.evaluate(other[15:])
        assert shapes[3:] == [(1, 2)]
        assert engine.session().begin(other) == 16
    near(logits, alone(engine.model, [other])[0])
    with pytest.raises(lt.EngineError, match="begun already"):
        second.begin(prompt)


def test_a_cache_that_cannot_be_cut_starts_over() -> None:
    engine = Transformers(tiny("sliding"))
    prompt = list(range(3, 13))
    engine.session().evaluate(prompt)
    session = engine.session()
    assert session.begin([*prompt[:8], 30]) == 0
    near(session.evaluate([*prompt[:8], 30]), alone(engine.model, [[*prompt[:8], 30]])[0])
    # What was evaluated last can be continued.
    longer = engine.session()
    assert longer.begin([*prompt[:8], 30, 31]) == 9


def test_long_prompts_go_through_in_passes() -> None:
    engine = Transformers(tiny("gpt2"), n_batch=8)
    tokens = [4] * 20
    with counted(engine.model) as shapes:
        logits = engine.session().evaluate(tokens)
    assert shapes == [(1, 8), (1, 8), (1, 4)]
    near(logits, alone(engine.model, [tokens])[0])


def test_what_does_not_fit_changes_nothing() -> None:
    engine = Transformers(tiny("llama"), n_ctx=10)
    session = engine.session()
    session.evaluate([1] * 8)
    with pytest.raises(ContextFull):
        session.evaluate([1] * 3)
    with pytest.raises(lt.TokenError, match="token 40 is outside"):
        session.evaluate([1, V])
    with pytest.raises(lt.TokenError):
        session.evaluate([-1])
    with pytest.raises(lt.EngineError, match="cannot roll back"):
        session.rollback(9)
    near(session.evaluate([2, 3]), alone(engine.model, [[1] * 8 + [2, 3]])[0])
    with pytest.raises(lt.EngineError, match="nothing to evaluate"):
        engine.session().evaluate([])
    for wrong in ({"n_ctx": 0}, {"n_batch": 0}, {"n_ctx": 49}):
        with pytest.raises(lt.EngineError, match="n_"):
            Transformers(engine.model, **wrong)


def test_a_pass_that_failed_leaves_nothing_wrong() -> None:
    engine = Transformers(tiny("llama"))
    session, batch = engine.session(), engine.batch_session(2)
    session.evaluate([4, 5, 6])
    batch.evaluate_rows([[4, 5, 6], [7]])

    def fail(*_: Any) -> None:
        raise MemoryError("no more")

    handle = engine.model.model.layers[1].register_forward_pre_hook(fail)
    for evaluate in (lambda: session.evaluate([7, 8]), lambda: batch.evaluate_rows([[7], [8]])):
        with pytest.raises(MemoryError):
            evaluate()
    handle.remove()
    near(session.evaluate([9]), alone(engine.model, [[4, 5, 6, 9]])[0])
    with pytest.raises(lt.EngineError, match="earlier pass failed"):
        batch.evaluate_rows([[7], [8]])


# -- several sequences


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_its_rows_alone(kind: str) -> None:
    model, generator = tiny(kind, context=200), np.random.default_rng(2)
    batch = Transformers(model, n_batch=None if kind == "mamba" else 16).batch_session(5)
    rows: list[list[int]] = [[] for _ in range(5)]
    for step in range(30):
        new = [generator.integers(0, V, generator.choice([0, 1, 1, 1, 3, 9])).tolist() for _ in rows]
        if step == 0:
            new[0], new[3] = [], [4] * 40
        if 8 <= step < 22:
            # Most rows are idle for long, so that they leave the batch and come back.
            new[1:4] = [[], [], []]
        if not any(new):
            continue
        for row, tokens, logits in zip(rows, new, batch.evaluate_rows(new), strict=True):
            row += tokens
            if tokens:
                near(logits, alone(model, [row])[0])
    held = [one.tokens for one in batch._sessions if one is not None] if isinstance(batch, InTurns) else batch.tokens
    assert list(held) == list(map(tuple, rows))


def test_rows_go_through_the_model_together() -> None:
    engine = Transformers(tiny("llama"))
    batch = engine.batch_session(4)
    with counted(engine.model) as shapes:
        batch.evaluate_rows([[1, 2, 3], [4], [5, 6], [7]])
        batch.evaluate_rows([[1], [4, 5], [5], [7]])
        batch.evaluate_rows([[1], [4], [5], []])
        batch.evaluate_rows([[1], [], [], []])
        batch.evaluate_rows([[1], [2], [], []])
    # Rows leave the batch where at least half of them are idle.
    assert shapes == [(4, 3), (4, 2), (4, 1), (1, 1), (2, 1)]


def test_padding_does_not_pile_up() -> None:
    engine = Transformers(tiny("llama", context=400))
    batch = engine.batch_session(3)
    rows: list[list[int]] = [[], [], []]
    for step in range(60):
        new = [[3, 4, 5, 6, 7, 8][: 6 if step % 3 == at else 1] for at in range(3)]
        out = batch.evaluate_rows(new)
        for row, tokens in zip(rows, new, strict=True):
            row += tokens
    for logits, row in zip(out, rows, strict=True):
        near(logits, alone(engine.model, [row])[0])
    assert batch._cache is not None
    assert batch._cache._mask.shape[1] < 1.5 * max(map(len, rows)) + 64


def test_rows_without_tokens_are_parents_too() -> None:
    engine = Transformers(tiny("llama"))
    batch = engine.batch_session(3, forks=True)
    batch.evaluate_rows([[1, 2], [], [3]])
    batch.reorder([1, 0, 2])
    for logits, row in zip(batch.evaluate_rows([[5], [6], [7]]), [[5], [1, 2, 6], [3, 7]], strict=True):
        near(logits, alone(engine.model, [row])[0])


def test_a_reorder_that_failed_leaves_no_rows() -> None:
    batch = Transformers(tiny("llama")).batch_session(2, forks=True)
    batch.evaluate_rows([[1, 2], [3, 4]])

    def fail(_: Any) -> None:
        raise RuntimeError("no memory")

    batch._cache._cache.layers[-1].reorder_cache = fail
    with pytest.raises(RuntimeError, match="no memory"):
        batch.reorder([1, 0])
    with pytest.raises(lt.EngineError, match="earlier pass failed"):
        batch.evaluate_rows([[5], [6]])


def test_rows_that_do_not_fit_are_named() -> None:
    engine = Transformers(tiny("gpt2"), n_ctx=10)
    batch = engine.batch_session(3)
    with pytest.raises(ContextFull) as full:
        batch.evaluate_rows([[1] * 11, [1], [1] * 12])
    assert full.value.rows == (0, 2)
    assert batch.tokens == ()
    batch.evaluate_rows([[], [1] * 10, [2]])
    with pytest.raises(ContextFull) as full:
        batch.evaluate_rows([[1], [1], [1]])
    assert full.value.rows == (1,)
    near(batch.evaluate_rows([[1], [], [3]])[2], alone(engine.model, [[2, 3]])[0])
    for tokens, kind, match in (
        ([[1]], lt.EngineError, "1 lists of tokens for 3 rows"),
        ([[], [], []], lt.EngineError, "nothing to evaluate"),
        ([[V], [], []], lt.TokenError, "outside"),
    ):
        with pytest.raises(kind, match=match):
            batch.evaluate_rows(tokens)
    batch.close()
    with pytest.raises(lt.EngineError, match="the session is closed"):
        batch.evaluate_rows([[1], [1], [1]])
    with pytest.raises(lt.EngineError, match="a session of 0 rows"):
        engine.batch_session(0)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mamba"])
def test_rows_begin_again_while_others_continue(kind: str) -> None:
    model = tiny(kind)
    batch = Transformers(model).batch_session(2)
    assert batch.can_restart
    batch.evaluate_rows([[1, 2, 3], [4, 5]])
    batch.end(0)
    near(batch.evaluate_rows([[], [6]])[1], alone(model, [[4, 5, 6]])[0])
    assert batch.begin([7, 8], 0) == 0
    made = [one.copy() for one in batch.evaluate_rows([[7, 8], [9]])]
    near(made[0], alone(model, [[7, 8]])[0])
    near(made[1], alone(model, [[4, 5, 6, 9]])[0])
    batch.end(0)
    batch.end(1)
    near(batch.evaluate_rows([[], [3]])[1], alone(model, [[3]])[0])


# -- text


def test_prompts_through_a_real_tokenizer() -> None:
    plain, chat = (
        Transformers(tiny("llama", 312), tokenizer()),
        Transformers(tiny("llama", 312), tokenizer(template=True)),
    )
    text = plain.tokenizer.decode
    assert text(plain.encode("the cat")) == "the cat"
    assert plain.encode([5, 6, 7]) == [5, 6, 7] == plain.encode(np.array([5, 6, 7]))
    assert text(chat.encode("the cat")) == "<|user|>the cat<|model|>"
    assert text(chat.encode("the cat", chat=False)) == "the cat"
    messages = [{"role": "user", "content": "the cat"}, {"role": "model", "content": "sat"}]
    assert text(chat.encode(messages)) == "<|user|>the cat<|model|>sat<|model|>"
    with pytest.raises(lt.EngineError, match="refuses these messages.*no tools"):
        chat.encode([{"role": "tool", "content": "1"}])
    with pytest.raises(lt.EngineError, match="messages need a chat template"):
        plain.encode(messages, chat=False)
    assert chat.encode("</s>the", chat=False) == [1, *chat.tokenize("the")]
    assert 1 not in chat.tokenize("</s>the") and text(chat.tokenize("</s>the")) == "</s>the"


@pytest.mark.parametrize("more", [-9, 0, 8])
def test_the_vocabulary_reaches_as_far_as_logits_and_tokenizer(more: int) -> None:
    size = len(tokenizer())
    width = size + more
    engine = Transformers(tiny("llama", width), tokenizer())
    assert len(engine.vocabulary) == min(width, size)
    assert engine.vocabulary.end_tokens == [1] and engine.vocabulary.bos_id == 0
    assert engine.vocabulary[engine.tokenize("t")[0]] == b"t"
    out = lt.generate(engine, "the", max_tokens=20, temperature=3.0, seed=1)
    assert max(out.tokens) < min(width, size)
    assert isinstance(engine, engines.Engine)
    with pytest.raises(lt.EngineError, match="no tokenizer"):
        _ = Transformers(tiny("llama")).vocabulary


def test_a_folder_is_loaded(tmp_path: Path) -> None:
    model = tiny("llama", 320)
    model.save_pretrained(tmp_path)
    tokenizer(template=True).save_pretrained(tmp_path)
    engine = Transformers.load(tmp_path, "cpu", n_batch=3)
    assert engine.name == tmp_path.name and (engine.n_ctx, engine.n_batch) == (48, 3)
    near(engine.session().evaluate([5, 6, 7, 8]), alone(model, [[5, 6, 7, 8]])[0])
    assert Transformers.load(str(tmp_path), dtype="bfloat16").model.dtype == torch.bfloat16
    options: dict[str, Any] = {"temperature": 0, "max_tokens": 12}
    texts = [
        lt.generate(m, "the cat", ["yes", "no"], **options).text for m in (tmp_path, engine, (model, engine.tokenizer))
    ]
    assert texts[0] in ("yes", "no") and len(set(texts)) == 1


def test_folders_that_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(lt.EngineError, match="no such file or folder"):
        Transformers.load(tmp_path / "missing")
    with pytest.raises(lt.EngineError, match=r"no config\.json"):
        Transformers.load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(lt.EngineError, match="cannot load the model"):
        Transformers.load(tmp_path)


# -- generate


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"enum": ["x", "y"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def engine() -> Transformers:
    return Transformers(tiny("llama", 320, 400), tokenizer())


def test_generate_takes_the_likeliest_allowed_tokens(engine: Transformers) -> None:
    prompt = engine.encode("the cat")
    got = lt.generate(engine, "the cat", re.compile("(yes|no|maybe)( [a-c]{2})?"), temperature=0, force=False)
    matcher, slow = lt.Grammar.regex("(yes|no|maybe)( [a-c]{2})?").matcher(engine.vocabulary), []
    while not matcher.is_finished:
        logits = alone(engine.model, [[*prompt, *slow]])[0]
        allowed = [token for token in range(len(engine.vocabulary)) if matcher.is_allowed(token)]
        slow.append(max(allowed, key=lambda token: logits[token]))
        matcher.accept(slow[-1])
    assert list(got.tokens) == slow


@pytest.mark.parametrize("seed", range(4))
def test_generate_obeys_constraints(engine: Transformers, seed: int) -> None:
    assert lt.generate(engine, "is it", ["yes", "no", "yes sir"], seed=seed).value in ("yes", "no", "yes sir")
    value = lt.generate(engine, "say", SCHEMA, seed=seed).value
    assert isinstance(value["a"], bool) and value["b"] in ("x", "y")
    assert lt.generate(engine, "say", max_tokens=5, seed=seed).finish_reason in ("max_tokens", "end_of_generation")


def test_forced_tokens_cost_no_pass_of_their_own(engine: Transformers) -> None:
    with counted(engine.model) as shapes:
        out = lt.generate(engine, "say", ["the question", "no"], temperature=0)
        assert out.text in ("the question", "no")
    assert len(shapes) == out.stats.forward_passes <= 3


def test_prompts_together_give_what_they_give_alone(engine: Transformers) -> None:
    prompts = ["the cat sat", "it", "that question and no mat", "yes"]
    constraints = [SCHEMA, ["yes", "no"], re.compile("[a-d]{3,9}"), SCHEMA]
    with counted(engine.model) as shapes:
        got = lt.generate(engine, prompts, constraints, seed=[1, 2, 3, 4], temperature=0.7)
        texts = [one.text for one in got]
    assert shapes[0][0] == 4
    for seed, (prompt, constraint, text) in enumerate(zip(prompts, constraints, texts, strict=True), 1):
        assert lt.generate(engine, prompt, constraint, seed=seed, temperature=0.7).text == text
    assert json.loads(texts[0]).keys() == {"a", "b"} and texts[1] in ("yes", "no")


def test_a_prompt_that_fills_the_context_ends_its_row_only() -> None:
    engine = Transformers(tiny("llama", 320), tokenizer(), n_ctx=16)
    long, short = lt.generate(engine, [[5] * 15, [5] * 3], re.compile("[a-z]{8}"), seed=1)
    assert long.finish_reason == "context_full"
    assert re.fullmatch("[a-z]{8}", short.text)


def test_the_examples_of_the_documents_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
    tiny("llama", 320, 400).save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in re.findall(r"^```py\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if "llama_cpp" not in code:  # a path of a model that the reader has
            exec(code, names)
    assert re.fullmatch(r"((yes|no)\n){3}", capsys.readouterr().out)


# -- CUDA


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_gives_the_same_logits() -> None:
    import copy

    model = tiny("llama")
    engine = Transformers(copy.deepcopy(model).to("cuda"))
    assert engine.n_batch == 2048
    session, batch = engine.session(), engine.batch_session(3)
    rows: list[list[int]] = [[4, 5, 6], [7], [8, 9]]
    for new in (rows, [[1], [2, 3, 4], [5]], [[6], [], []], [[7], [8], [9]]):
        held = [[*before, *more] for before, more in zip(batch.tokens, new, strict=True)]
        for logits, row, more in zip(batch.evaluate_rows(new), held, new, strict=True):
            if more:
                np.testing.assert_allclose(logits, alone(model, [row])[0], rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(session.evaluate(new[0]), alone(model, [held[0]])[0], rtol=1e-3, atol=1e-3)


# -- trees of continuations


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [1 << 26, 5 * V])
def test_a_tree_equals_the_model_without_a_cache(kind: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from logitree.engines.transformers import _continuations

    monkeypatch.setattr(_continuations, "_MOST_LOGITS", most)
    model, generator = tiny(kind), np.random.default_rng(3)
    engine = Transformers(model)
    prompt = generator.integers(3, V, 6).tolist()
    parents = [int(generator.integers(-1, node)) for node in range(20)]
    tokens = generator.integers(3, V, 20).tolist()
    rows: dict[int, Any] = {}
    with counted(model) as shapes:
        took = engine.tree_logits(prompt, parents, tokens, lambda node, row: rows.update({node: row.copy()}))
    assert sorted(rows) == list(range(-1, 20))
    assert took.passes == len(shapes) or kind in ("sliding", "mamba")
    if kind == "gpt2" and most > 5 * V:
        assert took.passes == 2, "the prompt, and all nodes together"
    for node, row in rows.items():
        path, at = [], node
        while at >= 0:
            path.append(tokens[at])
            at = parents[at]
        near(row, alone(model, [[*prompt, *path[::-1]]])[0])
    again = engine.tree_logits(prompt, parents, tokens, lambda node, row: None)
    assert again.reused == len(prompt) - 1 or kind in ("sliding", "mamba")
    if kind == "gpt2":
        line = list(range(-1, 48 - len(prompt)))
        with pytest.raises(ContextFull):
            engine.tree_logits(prompt, line, [5] * len(line), lambda node, row: None)
        with pytest.raises(lt.TokenError):
            engine.tree_logits(prompt, [-1], [V], lambda node, row: None)
