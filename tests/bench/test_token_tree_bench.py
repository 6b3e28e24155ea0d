"""The bench command `token-tree`: the source design's options and output, for one's own model."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

import logitree as lt
import logitree_bench as bench
from logitree_bench import _cli

FIELDS = {
    "mode",
    "model",
    "skip_ratio_mean",
    "skip_ratio_std",
    "tokens_per_second",
    "tokens_per_second_vs_grammar",
    "token_accuracy",
    "forward_passes_saved",
    "forward_passes_total",
}


def run(*words: object) -> int:
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    return bench.run_command(parser.parse_args([_cli.TOKEN_TREE, *map(str, words)]))


def test_it_measures_a_tree_beside_the_grammar(
    smollm2_gguf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("llama_cpp")
    vocabulary = lt.Vocabulary.from_gguf(str(smollm2_gguf))
    ids = {vocabulary[token]: token for token in range(len(vocabulary))}
    leaves = [{"name": name, "tokens": [ids[bytes([b])] for b in name.encode()]} for name in ("REPLY", "IGNORE")]
    payload, prompt, output = (tmp_path / name for name in ("payload.json", "prompt.txt", "out.json"))
    payload.write_text(json.dumps({"descriptors": [{"path": "action", "leaves": leaves}]}), encoding="utf-8")
    prompt.write_text("Action: ", encoding="utf-8")
    given = ("--model", smollm2_gguf, "--prompt", prompt, "--token-tree-descriptor", payload, "--quick")
    assert run("--mode", "strict-trie", "--output", output, *given) == 0
    figures = json.loads(output.read_text(encoding="utf-8"))
    assert json.loads(capsys.readouterr().out) == figures
    assert figures.keys() >= FIELDS
    assert (figures["mode"], figures["output"] in ("REPLY", "IGNORE")) == ("strict-trie", True)
    # The first letter decides: the others need no pass.
    assert figures["forward_passes_saved"] == figures["forward_passes_total"] - 1 == len(figures["output"]) - 1
    assert figures["skip_ratio_mean"] > 0.99
    # What cannot be used is named.
    assert run("--model", smollm2_gguf) == 2
    assert "--prompt, --descriptor" in capsys.readouterr().err
    payload.write_text('{"descriptors": []}', encoding="utf-8")
    assert run(*given) == 2
    assert "no descriptors" in capsys.readouterr().err
