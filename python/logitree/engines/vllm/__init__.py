"""vLLM: a backend of its structured outputs, and a logits processor for all other constraints.

```text
vllm serve MODEL --structured-outputs-config.backend logitree      response_format, structured_outputs, strict tools
SamplingParams(extra_args={"logitree": form})                      any constraint that has a JSON form
```

vLLM finds both by entry points of the installed package. Nothing of vLLM is imported before it loads them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._plugin import register

if TYPE_CHECKING:
    from ._backend import LogitreeBackend, LogitreeGrammar
    from ._processor import LogitsProcessor

__all__ = ["LogitreeBackend", "LogitreeGrammar", "LogitsProcessor", "register"]

_MODULES = {"LogitreeBackend": "_backend", "LogitreeGrammar": "_backend", "LogitsProcessor": "_processor"}


def __getattr__(name: str) -> Any:
    """The classes that derive from vLLM's own: they are made when they are asked for."""
    if name in _MODULES:
        return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
