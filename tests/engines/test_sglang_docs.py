"""The page about SGLang: its program with everything of SGLang's that runs on a CPU, the version, the differences.

To run it: `make test-sglang`. The model is evaluated by transformers, where SGLang's engine would need a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import data_files
import sglang_model

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
sglang_model.require()
pytest.importorskip("accelerate", reason="accelerate, which reads the model, is not installed")

import sglang  # noqa: E402
import test_sglang_peers  # noqa: E402

from logitree.engines.sglang import _plugin  # noqa: E402

PAGE = data_files.REPOSITORY.joinpath("docs", "engines", "sglang.md").read_text("utf-8")


class EngineOnCpu:
    """`sglang.Engine` with SGLang's manager of grammars, requests and sampling, and transformers for the logits."""

    def __init__(self, *, model_path: str, grammar_backend: str) -> None:
        import torch
        import transformers

        assert model_path == "model"
        source = data_files.smollm2()
        self.manager = sglang_model.manager(grammar_backend)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            source.parent, gguf_file=source.name, dtype=torch.float32
        )

    def generate(self, prompts: Sequence[str], sampling_params: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        import torch

        tokenizer = self.manager.scheduler.tokenizer
        requests = [
            sglang_model.request(prompt, self.manager, prompt=tokenizer.encode(prompt), **params)
            for prompt, params in zip(prompts, sampling_params, strict=True)
        ]
        sglang_model.start(self.manager, *requests)
        while running := [request for request in requests if not request.finished()]:
            with torch.no_grad():
                rows = [
                    self.model(torch.tensor([[*request.origin_input_ids, *request.output_ids]])).logits[0, -1]
                    for request in running
                ]
            masked = sglang_model.masked(self.manager, running, torch.stack(rows))
            for request, token in zip(running, np.argmax(masked, axis=1).tolist(), strict=True):
                sglang_model.take(request, token)
        return [
            {
                "text": tokenizer.decode(list(request.output_ids), skip_special_tokens=True),
                "meta_info": {"finish_reason": request.finished_reason.to_json()},
            }
            for request in requests
        ]

    def shutdown(self) -> None:
        pass


def test_the_program_of_the_page_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"^```py\n(.*?)^```\n\nPrints.*?^```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    monkeypatch.setattr(sglang, "Engine", EngineOnCpu, raising=False)
    exec(compile(found[1], "sglang.md", "exec"), {"__name__": "__main__"})
    patterns = [
        r"> Is the sky blue\? '(yes|no)' \(stop\)",
        r"> A date: '20[0-9]{2}-0[1-9]-1[0-9]' \(stop\)",
        r"""> A point: '{[\\n ]*"x": ?3[\\n ]*}' \(stop\)""",
    ]
    # Other processors may round to other tokens, so it is the form of the lines that counts.
    for lines in (capsys.readouterr().out, found[2]):
        said = [line for line in lines.splitlines() if line.startswith("> ")]
        assert len(said) == len(patterns)
        assert all(map(re.fullmatch, patterns, said)), said


def test_the_page_names_the_version_that_was_tried() -> None:
    assert sglang.__version__ == _plugin.TRIED
    assert f"Written for SGLang {_plugin.TRIED}" in PAGE


def test_the_page_lists_every_difference_from_the_other_backends() -> None:
    listed = PAGE.partition("## Beside SGLang's other backends")[2].lower()
    assert [reason for reason in test_sglang_peers.DIFFERENCES if reason.lower() not in listed] == []
