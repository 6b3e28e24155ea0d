"""The benchmark mode of the token tree's source design, for one's own model, prompt and descriptors.

``python -m logitree_bench token-tree --mode strict-trie-ffi --model MODEL.gguf --prompt PROMPT.txt
--token-tree-descriptor PAYLOAD.json --output OUT.json`` prints one JSON object with the design's fields, and writes it.
It is no suite: nothing of it is in the tables.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import logitree as lt
from logitree_bench._harness import Skip, optional

MODES = ("strict-guided", "strict-trie-ffi", "strict-trie")
"""llama.cpp's grammar; the tree as a link of llama.cpp's chain; the tree in logitree's loop, which forces tokens."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``parser`` the design's options."""
    group = parser.add_argument_group(
        "token-tree", "the source design's benchmark of a token tree, for one's own model"
    )
    group.add_argument("--mode", choices=MODES, default="strict-trie-ffi", help="%(default)s if left out")
    group.add_argument("--model", type=Path, metavar="GGUF", help="the model")
    group.add_argument("--prompt", type=Path, metavar="FILE", help="a text file: the whole prompt")
    group.add_argument(
        "--token-tree-descriptor",
        "--descriptor",
        dest="descriptor",
        type=Path,
        metavar="FILE",
        help="a token-tree payload in JSON; the grammar is one of the texts that its tokens spell",
    )
    group.add_argument("--path", metavar="PATH", help="which descriptor, where the payload has several")
    group.add_argument("--output", type=Path, metavar="FILE", help="also write the figures there")
    group.add_argument("--rounds", type=int, default=7, metavar="N", help="%(default)s if left out")


def run_command(arguments: argparse.Namespace) -> int:
    """Run the mode; 0 when it ran, 2 for missing options and files that cannot be used."""
    missing = [f"--{name}" for name in ("model", "prompt", "descriptor") if getattr(arguments, name) is None]
    if missing:
        return _refuse(f"token-tree needs {', '.join(missing)}")
    try:
        figures = measured(arguments)
    except (lt.LogitreeError, OSError, UnicodeDecodeError) as error:
        return _refuse(str(error))
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    print(text)
    if arguments.output is not None:
        arguments.output.write_text(text + "\n", encoding="utf-8")
    return 0


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """The figures of the mode, beside the grammar, which every mode is compared with."""
    from logitree_bench.suites.choices import Stage, measure, row  # imports this package's names

    llama = optional("llama_cpp")
    if isinstance(llama, Skip):
        raise lt.EngineError(llama.reason)
    prompt = arguments.prompt.read_text(encoding="utf-8")
    vocabulary = lt.Vocabulary.from_gguf(str(arguments.model))
    tree = lt.elizaos.token_tree(arguments.descriptor.read_bytes(), vocabulary)
    span = tree.at(arguments.path) if arguments.path else tree.at(tree.paths[0]) if len(tree.paths) == 1 else None
    if span is None:
        raise lt.PayloadError(f"the payload has the paths {', '.join(tree.paths)}: say which with --path")
    leaves = [tokens for _, tokens in tree.leaves(arguments.path or tree.paths[0])]
    names = [b"".join(vocabulary[token] for token in tokens).decode() for tokens in leaves]
    stage = Stage(llama, str(arguments.model), names, max_tokens=max(map(len, leaves)) + 1)
    baseline = stage.baseline()
    modes = [baseline]
    if arguments.mode != "strict-guided":
        modes.append(stage.linked(span) if arguments.mode == "strict-trie-ffi" else stage.forced(span))
    mode = modes[-1]
    measure(stage, modes, rounds=2 if arguments.quick else arguments.rounds, texts=[prompt])
    return {
        **row(stage, mode, baseline),
        "mode": arguments.mode,
        "output": "".join(stage.pieces(mode.first()[0].tokens)),
    }


def _refuse(message: str) -> int:
    print(f"logitree_bench: error: {message}", file=sys.stderr)
    return 2
