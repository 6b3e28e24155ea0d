"""What is said where a model is not where it was looked for: a path that is wrong, or the id of a model elsewhere."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from pathlib import Path

from .._errors import EngineError, MissingModelError

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_URL = re.compile(r"(?:https?://)?(?:huggingface\.co|hf\.co)/([^/?#]+/[^/?#]+)")
_FILES = (".gguf", ".bin", ".safetensors", ".json", ".pt", ".pth")
"""Endings of files: what ends so is no id."""


def missing_model(model: str | os.PathLike[str]) -> EngineError:
    """The error for a path where nothing is."""
    text = os.fspath(model)
    text = text if isinstance(text, str) else os.fsdecode(text)
    if not text:
        return EngineError("the path of the model is empty", help="give a GGUF file or a folder of transformers")
    found = _URL.match(text)
    name = found[1] if found else text
    if found or _is_id(name):
        folder = name.rpartition("/")[2]
        return MissingModelError(
            f"nothing is downloaded, and {name!r}, which looks like the id of a model of Hugging Face, is no path here",
            help=f"give a folder or a GGUF file; `hf download {name} --local-dir {folder}` of huggingface_hub makes a "
            f'folder, then give "{folder}"',
        )
    return MissingModelError("no such file or folder", place=text, help=_near(Path(text)))


def _is_id(text: str) -> bool:
    """Whether a text is an id rather than a path: owner/name, where no folder has the owner's name."""
    if text.lower().endswith(_FILES) or not _ID.fullmatch(text):
        return False
    return not os.path.isdir(text.partition("/")[0])


def _near(path: Path) -> str:
    """The way out for a path: what is there instead."""
    usual = "nothing is downloaded: give the path of a GGUF file, or of a folder that transformers saved"
    parent = path.parent
    if str(path).startswith("~"):
        return f"{usual}; ~ is not read: write {path.expanduser()}"
    if not parent.is_dir():
        return f"{usual}; there is no folder {parent} either"
    try:
        there = [entry.name for entry in os.scandir(parent) if entry.is_dir() or entry.name.endswith(".gguf")]
    except OSError:
        return usual
    near = get_close_matches(path.name, there, 1, 0.5)
    return f"{usual}; did you mean {parent / near[0]}?" if near else usual


def folder_without_model(folder: Path) -> EngineError:
    """The error for a folder that transformers did not save."""
    files = sorted(file.name for file in folder.glob("*.gguf"))
    if files:
        names = ", ".join(files[:4])
        return EngineError(
            "the folder has no config.json",
            place=str(folder),
            help=f"it has GGUF files: give {folder / files[0]}"
            if len(files) == 1
            else f"it has GGUF files, give one of them: {names}",
        )
    return EngineError(
        "no config.json in this folder",
        place=str(folder),
        help="give a folder that save_pretrained wrote, or a GGUF file",
    )
