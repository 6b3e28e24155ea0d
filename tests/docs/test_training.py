"""What trains a profile-guided build: `scripts/training` works with the package as it is."""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import logitree as lt

TRAINING = Path(__file__).resolve().parents[2] / "scripts" / "training"


def test_every_part_runs() -> None:
    done = subprocess.run([sys.executable, TRAINING, "--quick"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    parts = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert [part.split()[-1] for part in parts] == ["tokens", "masks", "tokens", "draws", "steps"], done.stdout


def test_documents_are_allowed_by_their_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document that is refused early would train little."""
    monkeypatch.syspath_prepend(str(TRAINING))
    schemas = importlib.import_module("_schemas")
    for seed in random.Random(5).sample(range(schemas.SCHEMAS), 60):
        schema, documents = schemas.written(seed)
        grammar = lt.Grammar.json_schema(schema, order="any")
        for document in documents:
            assert grammar.matches(json.dumps(document, ensure_ascii=False)), (seed, document)
