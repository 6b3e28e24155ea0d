"""transformers' continuous batching under a constraint: its own `generate_batch` on a random model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

import logitree as lt
from logitree.engines.transformers import Transformers, continuous_batching
from logitree.engines.transformers._states import State, States
from tiny_models import tiny, tokenizer, transformers

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

END, WIDTH = 1, 320
TOKENIZER = tokenizer()
VOCABULARY = Transformers(tiny("llama", WIDTH, 128), TOKENIZER).vocabulary
PROMPTS = [TOKENIZER(text)["input_ids"] for text in ("the cat", "it said that the mat was yes", "no")]
PATTERN = re.compile("(yes|no|maybe)( [a-c]{2})?")
if not hasattr(transformers, "ContinuousBatchingConfig"):
    pytest.skip("this transformers has no continuous batching of its own config", allow_module_level=True)


def blocks(**sizes: Any) -> Any:
    small = {"num_blocks": 64, "max_batch_tokens": 64, "use_async_batching": False, "use_cuda_graph": False}
    return transformers.ContinuousBatchingConfig(**small | sizes)


def batch(
    model: Any, sizes: dict[str, Any] | None = None, inputs: list[list[int]] = PROMPTS, **options: Any
) -> dict[str, Any]:
    config = transformers.GenerationConfig(
        **{"max_new_tokens": 30, "eos_token_id": END, "pad_token_id": 2, "do_sample": True} | options
    )
    found: dict[str, Any] = model.generate_batch(
        inputs, generation_config=config, continuous_batching_config=blocks(**sizes or {}), warmup=False
    )
    return found


def text_of(result: Any) -> str:
    (*tokens, last) = result.generated_tokens
    assert last == END
    return str(VOCABULARY.decode(tokens).decode())


@pytest.mark.parametrize("options", [{"temperature": 1.5}, {"do_sample": False}, {"num_return_sequences": 3}])
def test_every_request_obeys(options: dict[str, Any]) -> None:
    model = tiny("llama", WIDTH, 128)
    with continuous_batching(model, PATTERN, TOKENIZER):
        made = batch(model, **options)
    assert len(made) == 3 * options.get("num_return_sequences", 1)
    for result in made.values():
        assert result.error is None
        assert PATTERN.fullmatch(text_of(result))
    assert "init_continuous_batching" not in vars(model)
    free = batch(model, **options)
    assert not any(PATTERN.fullmatch(TOKENIZER.decode(one.generated_tokens[:-1])) for one in free.values())


def test_a_list_has_a_constraint_for_each_input() -> None:
    """Also where inputs are equal, come in another order to the manager, or fork."""
    model, same = tiny("llama", WIDTH, 128), PROMPTS[0]
    with continuous_batching(model, [["a"], ["b"], None, ["c"]], TOKENIZER):
        made = batch(model, inputs=[same, same, PROMPTS[1], same], num_return_sequences=2)
    constrained = [result for at, result in enumerate(made.values()) if at not in (4, 5)]
    assert list(map(text_of, constrained)) == ["a", "a", "b", "b", "c", "c"]
    assert all(result.error is None for result in made.values())
    assert vars(model).keys().isdisjoint({"init_continuous_batching", "generate_batch"})


def test_a_request_brings_its_own_constraint() -> None:
    model = tiny("llama", WIDTH, 128)
    config = transformers.GenerationConfig(max_new_tokens=30, eos_token_id=END, pad_token_id=2, do_sample=True)
    with (
        continuous_batching(model, ["yes", "no"], TOKENIZER),
        model.continuous_batching_context_manager(
            generation_config=config, continuous_batching_config=blocks(), warmup=False
        ) as manager,
    ):
        with pytest.raises(lt.ConstraintError, match="nothing"):
            manager.add_request(PROMPTS[0], constraint={"type": "nothing"})
        asked = {
            manager.add_request(PROMPTS[0]): re.compile("yes|no"),
            manager.add_request(PROMPTS[0], constraint=re.compile("[0-9]{3}")): re.compile("[0-9]{3}"),
            manager.add_request(PROMPTS[2], constraint={"type": "boolean"}): re.compile("true|false"),
            manager.add_request(PROMPTS[1], constraint=None): re.compile(r"(?s).*"),
            **dict.fromkeys(manager.add_requests(PROMPTS[:2], constraint=["a"]), re.compile("a")),
        }
        results = {}
        while len(results) < len(asked):
            if (found := manager.get_result(timeout=30)) is not None:
                results[found.request_id] = found
    for name, pattern in asked.items():
        assert results[name].error is None
        # Without a constraint the model's padded ids come too.
        generated = [token for token in results[name].generated_tokens if token != END and token < len(VOCABULARY)]
        assert pattern.fullmatch(VOCABULARY.decode(generated).decode(errors="replace"))


def test_a_prompt_has_no_padding() -> None:
    """Its first tokens may be those that pad elsewhere: the constraint is bound after all of them."""
    seen: list[Sequence[int]] = []

    class Seen(lt.Constraint):
        def bind(self, context: Any) -> lt.Matcher:
            seen.append(context.prompt)
            return self.matcher(context.vocabulary)

        def matcher(self, vocabulary: lt.Vocabulary, /) -> lt.Matcher:
            return lt.Grammar.literal("yes").matcher(vocabulary)

    prompt, model = [TOKENIZER.pad_token_id, *PROMPTS[0]], tiny("llama", WIDTH, 128)
    with continuous_batching(model, Seen(), TOKENIZER):
        (made,) = batch(model, inputs=[prompt]).values()
    assert text_of(made) == "yes"
    assert list(map(list, seen)) == [prompt]


def test_samplers_that_cut_come_after_the_constraint() -> None:
    model = tiny("llama", WIDTH, 128)
    with continuous_batching(model, ["yes", "no"], TOKENIZER):
        made = batch(model, top_k=1)
    assert {text_of(result) for result in made.values()} <= {"yes", "no"}


def test_a_request_without_an_allowed_token_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one of NaN does: its mask is made empty here, because a row of the model's own logits cannot be changed."""
    begin, masks, failing = States.begin, States.masks, []

    def first(self: States, constraint: Any, prompt: Any) -> State:
        state = begin(self, constraint, prompt)
        if prompt == PROMPTS[1]:
            failing.append(state)
        return state

    def none_for_it(self: States, rows: Any) -> Any:
        found = masks(self, rows)
        found[[at for at, state in enumerate(rows) if state in failing]] = 0
        return found

    monkeypatch.setattr(States, "begin", first)
    monkeypatch.setattr(States, "masks", none_for_it)
    model = tiny("llama", WIDTH, 128)
    with continuous_batching(model, PATTERN, TOKENIZER):
        made = list(batch(model).values())
    assert failing
    assert [result.error is None for result in made] == [True, False, True]
    assert "no score above -inf among the allowed tokens" in made[1].error
    assert all(PATTERN.fullmatch(text_of(result)) for result in (made[0], made[2]))


def test_what_cannot_be_constrained_is_an_error() -> None:
    model = tiny("llama", WIDTH, 128)
    with (
        continuous_batching(model, [PATTERN, None], TOKENIZER),
        pytest.raises(lt.ConstraintError, match="2 constraints for 3 inputs"),
    ):
        batch(model)
    with (
        pytest.raises(lt.EngineError, match="no continuous batching"),
        continuous_batching(object(), PATTERN, TOKENIZER),
    ):
        pass
    with (
        continuous_batching(model, PATTERN, TOKENIZER),
        pytest.raises(lt.EngineError, match="use_async_batching=False"),
    ):
        batch(model, {"use_async_batching": True})
    assert "init_continuous_batching" not in vars(model)
    other = lt.Vocabulary.from_tokens([b"a", b"</s>"], end_tokens=[1])
    with continuous_batching(model, ["b"], other):
        errors = [result.error for result in batch(model).values()]
    assert ["no tokens of the vocabulary spell" in said for said in errors] == [True] * 3
