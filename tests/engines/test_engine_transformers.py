"""Beams on transformers with tiny random models, and trees in its `generate`: the right items, nothing else."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree.engines import ContextFull
from logitree.engines.transformers import Transformers, TreeLogitsProcessor, prefix_allowed_tokens_fn
from slow_beams import step, walk_of
from tiny_models import alone, near, tiny

pytestmark = pytest.mark.peers

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

V, END = 40, 2
ITEMS = [(5, 6), (5, 6, 7), (5, 8, 9), (10,), (11, 12, 13, 14), (11, 12, 15), (16, 17)]


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request: pytest.FixtureRequest) -> Any:
    return tiny(request.param)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "sliding"])
def test_every_row_is_as_if_it_were_alone(kind: str) -> None:
    model = tiny(kind)
    session = Transformers(model).batch_session(6, forks=True)
    rows = [[4, 5, 6, 7, 8], [9], [10, 11, 12]]
    near(session.evaluate_rows(rows), alone(model, rows))
    generator = np.random.default_rng(1)
    for parents in ([0, 0, 2, 1, 1, 2], [5, 3, 3, 0], [2], [0, 0, 0], [2, 0, 1]):
        tokens = generator.integers(0, V, len(parents))
        rows = [[*rows[parent], int(token)] for parent, token in zip(parents, tokens, strict=True)]
        near(step(session, np.array(parents), tokens), alone(model, rows))
    session.close()


def test_rows_that_were_idle_fork_too(model: Any) -> None:
    session = Transformers(model).batch_session(4, forks=True)
    rows = [[4, 5, 6], [9], [10, 11], [7, 7]]
    session.evaluate_rows(rows)
    session.evaluate_rows([[1], [], [], []])
    near(step(session, [3, 0, 3], [2, 3, 4]), alone(model, [[7, 7, 2], [4, 5, 6, 1, 3], [7, 7, 4]]))
    session.evaluate_rows([[8], [], []])
    near(session.evaluate_rows([[], [5, 6], []])[1], alone(model, [[4, 5, 6, 1, 3, 5, 6]])[0])


def test_misuse_is_an_error_that_changes_nothing(model: Any) -> None:
    session = Transformers(model).batch_session(None, forks=True)
    with pytest.raises(lt.EngineError, match="no rows"):
        session.reorder([0])
    for prompts, kind in (
        ([[]], lt.EngineError),
        ([], lt.EngineError),
        ([[V]], lt.TokenError),
        ([[-1]], lt.TokenError),
        ([[1] * 49], ContextFull),
    ):
        with pytest.raises(kind):
            session.evaluate_rows(prompts)
    session.evaluate_rows([[1] * 46])
    for parents, kind in (([1], lt.StateError), ([], lt.EngineError)):
        with pytest.raises(kind):
            session.reorder(parents)
    session.reorder([0, 0])
    for tokens, kind in (([[5], [V]], lt.TokenError), ([[1]], lt.EngineError)):
        with pytest.raises(kind):
            session.evaluate_rows(tokens)
    near(session.evaluate_rows([[5], [6]]), alone(model, [[1] * 46 + [5], [1] * 46 + [6]]))
    session.evaluate_rows([[5], [5]])
    with pytest.raises(ContextFull):
        session.evaluate_rows([[5], []])
    session.close()
    with pytest.raises(lt.EngineError, match="no rows"):
        session.reorder([0])


def test_rows_that_cannot_fork_or_be_padded() -> None:
    plain = Transformers(tiny("gpt2")).batch_session(2)
    plain.evaluate_rows([[1], [2]])
    near(step(plain, [1], [3]), alone(tiny("gpt2"), [[2, 3]]))
    alone_each = Transformers(tiny("sliding")).batch_session(2)
    alone_each.evaluate_rows([[1], [2]])
    with pytest.raises(lt.EngineError, match="cannot fork"):
        alone_each.reorder([0])
    sliding = Transformers(tiny("sliding")).batch_session(2, forks=True)
    sliding.evaluate_rows([[1], [2]])
    with pytest.raises(lt.EngineError, match="cannot be padded"):
        sliding.evaluate_rows([[1, 2], [2]])
    mamba = Transformers(tiny("mamba")).batch_session(2, forks=True)
    mamba.evaluate_rows([[1] * 30, [2] * 30])
    near(step(mamba, [1, 1], [3, 4]), alone(tiny("mamba"), [[2] * 30 + [3], [2] * 30 + [4]]))


def test_models_that_cannot_be_searched() -> None:
    with pytest.raises(lt.EngineError, match="cannot run a int"):
        Transformers(3)
    trained = tiny("gpt2").train()
    with pytest.raises(lt.EngineError, match="training mode"):
        Transformers(trained)
    trained.eval()
    both = transformers.T5Config(vocab_size=V, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    with pytest.raises(lt.EngineError, match="encoder"):
        Transformers(transformers.T5ForConditionalGeneration(both).eval())
    with pytest.raises(lt.EngineError, match="a LlamaModel has no logits"):
        Transformers(tiny("llama").model)
    with pytest.raises(lt.EngineError, match="no tokenizer"):
        Transformers(tiny("gpt2")).encode("Hello")


def test_prompts_of_text_and_messages() -> None:
    class Tokenizer:
        chat_template: str | None = None

        def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
            return {"input_ids": ([1] if add_special_tokens else []) + [ord(c) % V for c in text]}

        def apply_chat_template(self, messages: Any, add_generation_prompt: bool, tokenize: bool) -> str:
            assert add_generation_prompt and not tokenize
            return "".join(f"<{m['role']}>{m['content']}" for m in messages)

    tokenizer = Tokenizer()
    engine = Transformers(tiny("gpt2"), tokenizer)
    plain = [ord(c) % V for c in "ab"]
    assert engine.encode("ab") == [1, *plain]
    with pytest.raises(lt.EngineError, match="no chat template"):
        engine.encode("ab", chat=True)
    with pytest.raises(lt.EngineError, match="no chat template"):
        engine.encode([{"role": "user", "content": "ab"}])
    tokenizer.chat_template = "there is one"
    assert engine.encode("ab", chat=False) == [1, *plain]
    assert engine.encode("ab") == engine.encode([{"role": "user", "content": "ab"}])
    assert engine.encode("ab") == [ord(c) % V for c in "<user>ab"]


# -- the search


def brute(model: Any, prompt: list[int], end: bool) -> dict[tuple[int, ...], float]:
    """Each item's log-probability among all tokens."""
    found = {}
    for item in ITEMS:
        tokens = (*item, END) if end else item
        with torch.inference_mode():
            logits = model(torch.tensor([[*prompt, *tokens]]), use_cache=False).logits[0].double()
        log_p = torch.log_softmax(logits, -1)
        found[tokens] = float(sum(log_p[len(prompt) - 1 + i, token] for i, token in enumerate(tokens)))
    return found


@pytest.mark.parametrize("end", [None, END])
def test_all_items_by_brute_force(model: Any, end: int | None) -> None:
    paths = walk_of(ITEMS, V, end)
    prompts = [[4, 5, 6, 7], [9], [20, 21]]
    for prompt, got in zip(prompts, lt.beam_search(Transformers(model), prompts, paths, width=7), strict=True):
        expected = brute(model, prompt, end is not None)
        assert [h.tokens for h in got] == sorted(expected, key=lambda tokens: -expected[tokens])
        for h in got:
            assert h.log_probability == pytest.approx(expected[h.tokens], abs=1e-4)


# -- drop-ins


def generated(out: Any, prompt_length: int) -> list[tuple[int, ...]]:
    """What follows the prompt in each row, up to the end token; it must be there."""
    rows = [tuple(row[prompt_length:]) for row in out.tolist()]
    return [row[: row.index(END)] for row in rows]


def drop_in(kind: str, paths: lt.catalogue.ItemWalk, prompt_length: int) -> dict[str, Any]:
    if kind == "fn":
        return {"prefix_allowed_tokens_fn": prefix_allowed_tokens_fn(paths, prompt_length, end=END)}
    processors = transformers.LogitsProcessorList([TreeLogitsProcessor(paths, prompt_length, end=END)])
    return {"logits_processor": processors}


COMMON = {"eos_token_id": END, "pad_token_id": 0, "max_new_tokens": 8}
IDS = [[4, 5, 6], [7, 8, 9]]


def prompts_of(rows: int = 2) -> dict[str, Any]:
    ids = torch.tensor(IDS[:rows])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


@pytest.mark.parametrize("kind", ["fn", "processor"])
@pytest.mark.parametrize("end", [None, END])
def test_greedy_generation_is_the_best_way_at_each_step(model: Any, kind: str, end: int | None) -> None:
    paths = walk_of(ITEMS, V, end)
    out = model.generate(**prompts_of(), **drop_in(kind, paths, 3), **COMMON, do_sample=False)
    slow = []
    for prompt in IDS:
        path: tuple[int, ...] = ()
        while END not in path:
            allowed = {item[len(path)] for item in ITEMS if item[: len(path)] == path and len(item) > len(path)}
            allowed |= {END} if path in ITEMS else set()
            logits = alone(model, [[*prompt, *path]])[0]
            path = (*path, max(sorted(allowed), key=lambda token: logits[token]))
        slow.append(path[:-1])
    assert generated(out, 3) == slow


@pytest.mark.parametrize("kind", ["fn", "processor"])
def test_samples_are_items_as_likely_as_they_should_be(model: Any, kind: str) -> None:
    paths = walk_of(ITEMS, V, END)
    torch.manual_seed(3)
    options = {"do_sample": True, "top_k": 0, "temperature": 2.0, "num_return_sequences": 1000}
    out = model.generate(**prompts_of(1), **drop_in(kind, paths, 3), **COMMON, **options)
    counts = Counter(generated(out, 3))
    assert set(counts) <= set(ITEMS)
    assert len(counts) > 3
    chi, total = 0.0, 0.0
    (every,) = lt.beam_search(Transformers(model), [IDS[0]], paths, width=7, normalize="allowed", temperature=2.0)
    for h in every:
        p = math.exp(h.log_probability)
        total += p
        if 1000 * p > 5.0:
            chi += (counts[h.tokens[:-1]] - 1000 * p) ** 2 / (1000 * p)
    assert total == pytest.approx(1.0, abs=1e-4)
    # The chi-squared distribution with 6 degrees of freedom passes 22.5 once in a thousand.
    assert chi < 22.5


@pytest.mark.parametrize("kind", ["fn", "processor"])
@pytest.mark.parametrize("end", [None, END])
def test_beams_of_transformers_find_the_best_items(model: Any, kind: str, end: int | None) -> None:
    paths = walk_of(ITEMS, V, end)
    options = {"num_beams": 7, "num_return_sequences": 2, "length_penalty": 0.0, "do_sample": False}
    out = model.generate(**prompts_of(), **drop_in(kind, paths, 3), **COMMON, **options)
    ours = lt.beam_search(Transformers(model), IDS, walk_of(ITEMS, V, END), width=7, returned=2)
    assert generated(out, 3) == [h.tokens[:-1] for hypotheses in ours for h in hypotheses]


def test_the_processor_adds_weights_and_leaves_the_scores_alone() -> None:
    weights = {(5,): 0.5, (5, 8): -1.0, (10,): 2.0}
    paths = walk_of(ITEMS, V, END, weights=weights)
    processor = TreeLogitsProcessor(paths, 1)
    scores = torch.arange(2.0 * V).reshape(2, V)
    before = scores.clone()
    out = processor(torch.tensor([[4], [4]]), scores)
    assert torch.equal(scores, before)
    assert {int(t): float(out[1, t] - scores[1, t]) for t in torch.isfinite(out[1]).nonzero()} == {
        5: 0.5,
        10: 2.0,
        11: 0.0,
        16: 0.0,
    }
    out = processor(torch.tensor([[4, 5], [4, 39]]), scores.to(torch.bfloat16))
    assert out.dtype == torch.bfloat16
    assert torch.isfinite(out[0]).nonzero().flatten().tolist() == [6, 8]
    assert float(out[0, 8]) == 7.0
    # What left the tree may only end; so may what is over.
    assert torch.isfinite(out[1]).nonzero().flatten().tolist() == [END]
    out = processor(torch.tensor([[4, 5, 6, END, 0]]), scores[:1])
    assert torch.isfinite(out[0]).nonzero().flatten().tolist() == [END]


def test_rows_may_come_in_any_order_and_from_anywhere() -> None:
    paths = walk_of(ITEMS, V, END)
    processor, ask = TreeLogitsProcessor(paths, 2), prefix_allowed_tokens_fn(paths, 2)
    read = [(), (5,), (5, 6), (5, 6, 7), (11,), (11, 12), (11, 12, 13), (16,), (16, 17), (10,)]
    generator = np.random.default_rng(5)
    for _ in range(60):
        length = int(generator.integers(0, 4))
        same = [path for path in read if len(path) == length]
        some = [same[i] for i in generator.integers(0, len(same), 3)]
        ids = torch.tensor([[3, 3, *path] for path in some])
        out = processor(ids, torch.zeros(3, V))
        for row, path in enumerate(some):
            allowed = {item[length] for item in ITEMS if item[:length] == path and len(item) > length}
            allowed |= {END} if path in ITEMS else set()
            assert torch.isfinite(out[row]).nonzero().flatten().tolist() == sorted(allowed)
            assert ask(0, ids[row]) == sorted(allowed)


def test_drop_ins_that_cannot_be() -> None:
    open_end, ended = walk_of(ITEMS, V), walk_of(ITEMS, V, END)
    for make in (prefix_allowed_tokens_fn, TreeLogitsProcessor):
        with pytest.raises(lt.ConstraintError, match="neither the tree nor the call"):
            make(open_end, 1)
        with pytest.raises(lt.ConstraintError, match="ends with token 2, not 3"):
            make(ended, 1, end=3)
        with pytest.raises(lt.TokenError, match="outside"):
            make(open_end, 1, end=V)
    processor = TreeLogitsProcessor(ended, 3)
    with pytest.raises(lt.StateError, match="2 tokens, the prompt has 3"):
        processor(torch.tensor([[1, 2]]), torch.zeros(1, V))
    with pytest.raises(lt.LogitsError):
        processor(torch.tensor([[1, 2, 3]]), torch.zeros(1, V - 1))
    with pytest.raises(lt.LogitsError):
        processor(torch.tensor([[1, 2, 3]]), torch.full((1, V), math.nan))
    wide = processor(torch.tensor([[1, 2, 3]]), torch.zeros(1, V + 8))
    assert torch.isfinite(wide[0]).nonzero().flatten().tolist() == sorted({item[0] for item in ITEMS})
    assert list(itertools.chain(*wide[:, V:].isinf().tolist())) == [True] * 8
