"""A program for mypy --strict, which `test_typing.py` runs: what a user's editor infers, and mistakes that it marks.

It holds what no single signature says: overloads, protocols, operators, keywords of a TypedDict. It is never run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import logitree as lt
from logitree.engines import Engine
from logitree.engines.llama_cpp import LlamaCpp


def constraints(vocabulary: lt.Vocabulary, tree: lt.elizaos.TokenTree, items: lt.Catalogue) -> list[lt.Constraint]:
    choices = lt.OneOf(["a", b"b"])
    schema = lt.Grammar.json_schema({"type": "string"}, order="any", whitespace="compact", draft="7")
    assert_type("x" + schema | "y" + lt.Grammar.json(ascii=True), lt.Grammar)
    assert_type(lt.Grammar.recursive(lambda me: "(" + me + ")" | lt.Grammar.regex("[0-9]")), lt.Grammar)
    assert_type(lt.Grammar.tags([("<a>", schema, ["</a>", lt.Grammar.token(3)])], excludes=["!"]), lt.Grammar)
    assert_type(lt.ReasoningBudget("a", "b", budget=8) + choices, lt.ReasoningBudget)
    lt.Grammar.json_schema(True, order="Any")  # type: ignore[arg-type]
    walk = items.walk(end_token=0, allowed=[1], intersect=[choices.matcher(vocabulary)])
    paths: lt.beams.TokenWalk = walk
    plan = lt.Skeleton.object({"a": lt.skeleton.enum(["x"]), "b": lt.skeleton.array(int)})
    assert_type(plan.attach(tree).prefill().sampled({"a": {"temperature": 0.5}}), lt.Skeleton)
    return [
        choices,
        schema,
        tree.at("a", following="!"),
        items.constraint(end_token=paths.end),
        plan,
        lt.Recogniser(object),
    ]


def masks(matcher: lt.Matcher, vocabulary: lt.Vocabulary) -> None:
    rows = lt.masks.new(len(vocabulary), 3)
    lt.masks.fill_batch([matcher, matcher.fork()], rows[:2], threads=2)
    assert_type(matcher.draft_masks(([-1, 0], [3, 4]), rows), npt.NDArray[np.bool_])
    assert_type(matcher.draft_masks([3, 4], rows), npt.NDArray[np.bool_])


def chains(vocabulary: lt.Vocabulary) -> lt.Chain:
    params: lt.samplers.ChainParams = {"seed": 0, "mirostat": 2, "logit_bias": {1: 0.5}}
    assert_type(lt.Chain.llama_cpp(**params), lt.Chain)
    lt.Chain.llama_cpp(temprature=0.2)  # type: ignore[call-arg]
    lt.Chain.parse("top_k", top_k=0.5)  # type: ignore[arg-type]
    lt.samplers.top_k(q=2)  # type: ignore[call-arg]
    chain = lt.Chain(
        [
            lt.samplers.dry(0.8, vocabulary=vocabulary, breakers=["\n", b"::"], tokenize=lambda text: [0]),
            lt.samplers.custom(lambda ids, logits: None, name="mine"),
            lt.samplers.dist(seed=0),
        ]
    )
    chain.adapt(lt.steering.EntropyRule([(2.0, {"temp": 1.5}), (None, {})]))
    chain.adapt(lambda entropy, top_p: {"temp": 0.5} if entropy > 5.0 and top_p < 0.5 else None)
    rows = np.zeros((2, 2), np.float32)
    assert_type(chain.sample_batch(rows, threads=1, accept=False), npt.NDArray[np.uint32])
    _, before, _ = chain.sample_batch(rows, states=chain.sequences(2), log_probabilities=True, accept=False)
    assert_type(before, npt.NDArray[np.float64])
    return chain


def generations(engine: LlamaCpp) -> str | None:
    as_engine: Engine = engine
    generation = lt.generate(as_engine, "Hello", ["a", "b"], temperature=0.0, trace=True)
    assert_type(generation, lt.Generation[str])
    assert_type(generation.value, str)
    assert_type(generation.trace[0], lt.Step)
    assert_type(lt.generate(engine, "Hello", int).value, int)
    assert_type(lt.generate(engine, "Hello").value, str)
    options: lt.GenerateOptions = {"max_tokens": None, "stop": "x", "top_k": 5, "seed": -1}
    assert_type(lt.generate(engine, "Hello", n=2, **options), lt.Generations[Any])
    sampling: lt.samplers.SamplingParams = {"temperature": 0.5}
    lt.generate(engine, "Hello", **sampling)
    assert_type(lt.generate(engine, ["Hello", "Hi"], [int, lt.Grammar.regex("a")]), lt.Generations[Any])
    lt.generate(engine, "Hello", temprature=0.2)  # type: ignore[call-overload]
    lt.generate(engine, "Hello", ["a"], max_tokens=3.5)  # type: ignore[call-overload]
    lt.choose(engine, "Hello", ["a"], temprature=0.2)  # type: ignore[call-overload]
    assert_type(lt.choose(engine, [{"role": "user", "content": "Hello"}], ["a", "b"], seed=0), lt.Choice)
    assert_type(lt.choose(engine, ["Hello", "Bye"], ["a", "b"], method="exact"), list[lt.Choice])
    event: lt.Event
    for event in generation:
        if isinstance(event, lt.Progress):
            assert_type(event.fraction, float)
        elif isinstance(event, lt.Token):
            assert_type(event.step, lt.Step | None)
        elif isinstance(event, lt.Finish):
            return event.text
    return None


async def events(engine: LlamaCpp) -> str:
    generation = lt.generate(engine, "Hello")
    async for event in generation:
        assert_type(event, lt.Event)
    return (await generation).text


def beams(engine: LlamaCpp, paths: lt.beams.TokenWalk) -> None:
    as_engine: Engine = engine
    found = lt.beam_search(as_engine, [[1, 2], [3]], paths, width=[3, 5, 2], on_step=lambda step: None)
    assert_type(found, list[list[lt.beams.Hypothesis]])


def errors() -> str:
    try:
        return lt.__version__
    except (lt.VocabularyError, lt.PayloadError, lt.ConstraintError, lt.MaskError, lt.LogitsError) as error:
        return error.place + error.help
    except lt.LogitreeError as error:
        return error.help
