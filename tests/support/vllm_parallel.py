"""A model in two vLLM workers, each with half of every matrix: `python -m vllm_parallel FOLDER` prints its outputs.

SmolLM2's three heads of keys cannot be halved, so the model is a tiny one with random weights and SmolLM2's tokenizer.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import vllm_model

POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
DICE = {"constraint": {"type": "regex", "pattern": "[1-6]{3}"}, "chain": "dist", "params": {"seed": 4}}


def make(folder: Path) -> None:
    """Write the model to a folder."""
    import torch
    import transformers

    source = vllm_model.folder()
    config = transformers.AutoConfig.from_pretrained(source)
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "head_dim": 32}
    for name, value in {**sizes, "num_attention_heads": 4, "num_key_value_heads": 2}.items():
        setattr(config, name, value)
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(source).save_pretrained(folder)


def main(folder: Path) -> None:
    """Generate with the backend and with the processor, every request twice at once."""
    make(folder)
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    import logitree
    from logitree.engines.vllm import register

    register()
    llm = LLM(
        str(folder), tensor_parallel_size=2, structured_outputs_config={"backend": "logitree"}, **vllm_model.OPTIONS
    )
    answer = logitree.OneOf(["yes", "no"]) + logitree.Grammar.regex("!{2}")
    requests = [
        {"structured_outputs": StructuredOutputsParams(regex="20[0-9]{2}-0[1-9]-1[0-9]")},
        {"structured_outputs": StructuredOutputsParams(json=POINT, disable_any_whitespace=True)},
        {"extra_args": {"logitree": answer.form()}},
        {"extra_args": {"logitree": DICE}},
    ]
    given = [SamplingParams(max_tokens=60, temperature=1, seed=7, **request) for request in requests * 2]
    results = llm.generate(["Say it: "] * len(given), given, use_tqdm=False)
    print(json.dumps([[result.outputs[0].text, result.outputs[0].finish_reason] for result in results]))


if __name__ == "__main__":
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    main(Path(sys.argv[1]))
