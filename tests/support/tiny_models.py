"""Random transformers models of two layers and a small byte-level tokenizer, made here: nothing is downloaded."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}"
    "<|{{ m.role }}|>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<|model|>{% endif %}"
)


@functools.cache
def tiny(kind: str, vocabulary: int = 40, context: int = 48, hidden: int = 32) -> Any:
    """A random model: "gpt2" and "llama" with plain attention, "sliding" with a window of 6, "mamba" without."""
    torch.manual_seed(1)
    sizes = {"hidden_size": hidden, "num_hidden_layers": 2, "vocab_size": vocabulary}
    heads = {"intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2}
    heads["max_position_embeddings"] = context
    ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    if kind == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=vocabulary, n_positions=context, n_embd=32, n_layer=2, n_head=2, **ids
        )
        model = transformers.GPT2LMHeadModel(config)
    elif kind == "llama":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads, **ids))
    elif kind == "sliding":
        model = transformers.MistralForCausalLM(transformers.MistralConfig(sliding_window=6, **sizes, **heads, **ids))
    else:
        model = transformers.MambaForCausalLM(transformers.MambaConfig(state_size=4, **sizes, **ids))
    with torch.no_grad():
        for parameter in model.parameters():
            # As they are made, tiny models find everything equally likely.
            parameter.mul_(4.0 if parameter.dim() > 1 else 1.0)
    return model.eval()


def tokenizer(*, template: bool = False) -> Any:
    """A byte-level tokenizer of about 300 tokens: <s>, </s> (the end), <pad>, two roles, bytes, words."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=312,
        special_tokens=["<s>", "</s>", "<pad>", "<|user|>", "<|model|>"],
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(
        ["the cat sat on the mat and it said yes or no to that question", '{"name": "value"}'] * 9, trainer
    )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>", padding_side="left"
    )
    if template:
        fast.chat_template = TEMPLATE
    return fast


def alone(model: Any, rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Logits after each row, without a cache, one row a pass: the slow obvious version."""
    with torch.inference_mode():
        return np.stack([model(torch.tensor([row]), use_cache=False).logits[0, -1].float().numpy() for row in rows])


def near(got: np.ndarray, expected: np.ndarray) -> None:
    """Whether logits are equal within rounding, and not all alike."""
    assert got.dtype == np.float32
    assert np.ptp(expected) > 1.0
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@contextmanager
def counted(model: Any) -> Iterator[list[tuple[int, int]]]:
    """The shapes [rows, tokens] of the forward passes within."""
    shapes: list[tuple[int, int]] = []

    def note(_: Any, __: Any, given: dict[str, Any]) -> None:
        shapes.append(tuple(given["input_ids"].shape))

    handle = model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield shapes
    finally:
        handle.remove()
