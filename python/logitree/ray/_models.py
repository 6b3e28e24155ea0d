"""The model of a worker: loaded in its own process, with the cores that Ray gives it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from .._arguments import GenerateOptions, check_keywords
from ..engines import Engine
from ..engines import open as open_engine

Model = str | os.PathLike[str] | Callable[[], Any]
"""A path that every node has, or a function without arguments that makes an engine in the worker."""


def check_model(model: Any) -> None:
    """TypeError: for a model that cannot travel to a worker."""
    if isinstance(model, Engine) or not (isinstance(model, str | os.PathLike) or callable(model)):
        raise TypeError(
            f"a worker loads its own model, and {type(model).__name__} is loaded here: give a path that every node "
            "has, or a function that makes the engine, such as lambda: LlamaCpp(path, n_ctx=2048)"
        )


def check_options(options: Mapping[str, Any], refused: Collection[str], where: str) -> None:
    """TypeError: for options that `generate` lacks, or that are not for workers."""
    for name in refused:
        if name in options:
            raise TypeError(f"{name}= is not for {where}")
    check_keywords({name: value for name, value in options.items() if name not in GenerateOptions.__annotations__})


def load(model: Model, cores: float) -> Engine:
    """The engine of a worker that has so many cores.

    Raises:
        EngineError: it cannot be loaded.
    """
    if callable(model):
        return open_engine(model())
    if os.path.isfile(model):
        from ..engines.llama_cpp import LlamaCpp

        return LlamaCpp(model, n_threads=max(1, round(cores)))
    return open_engine(model)
