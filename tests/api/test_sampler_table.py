"""What comes from the core's table of samplers: constructors, keywords, aliases, stubs and documentation."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import logitree as lt
import sampler_docs
from logitree import _core, samplers


def test_generated_files_are_what_the_table_gives() -> None:
    for path, text in sampler_docs.files().items():
        assert path.read_text(encoding="utf-8") == text, f"run python scripts/sampler_docs.py: {path.name} differs"


def test_each_row_is_a_constructor_with_signature_and_documentation() -> None:
    for row in _core.sampler_table():
        build = getattr(samplers, row["name"])
        assert build.__name__ == row["name"] and row["name"] in samplers.__all__
        said = " ".join(build.__doc__.split())
        assert said.startswith(row["doc"])
        bare = [p.replace(annotation=p.empty) for p in inspect.signature(build).parameters.values()]
        assert str(inspect.Signature(bare)).replace("'", '"') == row["signature"]
        for parameter in row["parameters"]:
            assert parameter["doc"] in said


def test_arguments_bind_as_those_of_a_function() -> None:
    assert repr(samplers.top_p(0.9, min_keep=2)) == "top_p(0.9, min_keep=2)"
    assert repr(samplers.top_p(p=0.9)) == repr(samplers.top_p(0.9, None))
    for call in (
        lambda: samplers.top_k(1, 2),  # type: ignore[call-arg]
        lambda: samplers.top_k(q=2),  # type: ignore[call-arg]
        lambda: samplers.top_k(1, k=2),  # type: ignore[misc]
        lambda: samplers.top_n_sigma(),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError, match=r"^top_"):
            call()


@pytest.mark.parametrize(
    ("alias", "keyword"),
    [
        ("temperature", "temp"),
        ("repeat_penalty", "penalty_repeat"),
        ("repetition_penalty", "penalty_repeat"),
        ("frequency_penalty", "penalty_freq"),
        ("presence_penalty", "penalty_present"),
    ],
)
def test_aliases_are_accepted_wherever_a_keyword_is(alias: str, keyword: str) -> None:
    chains = [
        lt.Chain.llama_cpp(seed=1, **{alias: 1.25}),  # type: ignore[arg-type]
        lt.Chain.tsampler(seed=1, **{alias: 1.25}),  # type: ignore[arg-type]
        lt.Chain.transformers(seed=1, **{alias: 1.25}),  # type: ignore[arg-type]
        lt.Chain.parse("penalties;temp", seed=1, **{alias: 1.25}),  # type: ignore[arg-type]
    ]
    for chain in chains:
        assert chain.get(alias) == chain.get(keyword) == 1.25
        chain.set(**{alias: 1.5})  # type: ignore[arg-type]
        assert chain.get(keyword) == 1.5
        chain.adapt(lt.steering.EntropyRule([(None, {alias: 0.5})]))
        chain.adapt(lambda entropy, top_p: {alias: 0.5})
        chain.apply(np.array([0.0, 1.0], np.float32))
        with pytest.raises(lt.SamplingError):
            chain.set(**{alias: 1.0, keyword: 1.0})  # type: ignore[arg-type]
    both = {alias: 1.0, keyword: 1.0}
    with pytest.raises(lt.SamplingError, match="the same parameter"):
        lt.Chain.llama_cpp(**both)  # type: ignore[arg-type]
    with pytest.raises(lt.SamplingError, match="twice"):
        lt.steering.EntropyRule([(None, both)])
    with pytest.raises(lt.SamplingError, match="twice"):
        lt.steering.Burst(both, entropy_above=1.0)
