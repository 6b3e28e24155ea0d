"""The lens: each layer's state through the last normalisation and the output matrix, against the modules by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from logitree import EngineError, TokenError
from logitree.engines import ContextFull
from logitree.engines.transformers import Transformers
from table_engine import TableEngine
from tiny_models import alone, tiny

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

TOKENS = [7, 3, 11, 5, 2]


def by_name(model: Any, tokens: list[int]) -> np.ndarray:
    """Log-probabilities [layers, V] as the definition has them."""
    base = model.base_model
    norm = base.ln_f if hasattr(base, "ln_f") else base.norm_f if hasattr(base, "norm_f") else base.norm
    with torch.inference_mode():
        states = model(torch.tensor([tokens]), output_hidden_states=True).hidden_states
        rows = [model.lm_head(norm(state[0, -1])) for state in states[:-1]] + [model.lm_head(states[-1][0, -1])]
        found: np.ndarray = torch.stack(rows).log_softmax(-1).numpy()
    return found


@pytest.mark.parametrize("kind", ["llama", "gpt2", "sliding", "mamba"])
@pytest.mark.parametrize("length", [1, 5])
def test_each_layer_is_what_the_definition_says(kind: str, length: int) -> None:
    model, tokens = tiny(kind), TOKENS[:length]
    engine = Transformers(model)
    assert engine.has_lens
    found, expected = engine.lens(tokens, 4), by_name(model, tokens)
    assert len(found) == len(expected) == model.config.num_hidden_layers + 1
    for layer, row in zip(found, expected, strict=True):
        assert [value for _, value in layer] == pytest.approx(sorted(row, reverse=True)[:4], abs=1e-4)
        for token, value in layer:
            assert value == pytest.approx(row[token], abs=1e-4)
    (own,) = alone(model, [tokens])
    assert found[-1][0][0] == int(own.argmax())
    session = engine.session()
    assert np.argmax(session.evaluate(tokens)) == own.argmax()  # sessions are as before


def test_logits_that_are_scaled_or_capped() -> None:
    sizes = {"vocab_size": 40, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    torch.manual_seed(4)
    capped = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**sizes, **heads, final_logit_softcapping=0.5))
    scaled = transformers.CohereForCausalLM(transformers.CohereConfig(**sizes, **heads, logit_scale=0.25))
    for model in (capped.eval(), scaled.eval()):
        found = Transformers(model).lens(TOKENS, 40)
        with torch.inference_mode():
            own = model(torch.tensor([TOKENS])).logits[0, -1].log_softmax(-1)
        assert dict(found[-1]) == pytest.approx(dict(enumerate(own.tolist())), abs=1e-4)


def test_what_has_no_lens_is_an_error() -> None:
    engine = Transformers(tiny("llama"), n_ctx=4)
    with pytest.raises(ContextFull):
        engine.lens(TOKENS)
    with pytest.raises(TokenError, match="token 99"):
        engine.lens([99])
    with pytest.raises(EngineError, match="TableEngine does not see"):
        TableEngine().lens(TOKENS)
    model = tiny("llama")
    head = model.lm_head
    try:
        model.lm_head = torch.nn.Sequential(head, torch.nn.Softplus())
        model.set_output_embeddings = None
        model.get_output_embeddings = lambda: head
        with pytest.raises(EngineError, match="has no lens: its logits are more"):
            Transformers(model).lens(TOKENS)
    finally:
        model.lm_head = head
        del model.get_output_embeddings, model.set_output_embeddings
