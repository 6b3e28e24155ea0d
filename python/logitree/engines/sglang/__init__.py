"""SGLang: a backend of its grammars, by the name "logitree".

```text
sglang serve --model-path MODEL --grammar-backend logitree     response_format, json_schema, regex, ebnf, structural_tag
```

SGLang finds it by an entry point of the installed package. Nothing of SGLang is imported before it loads that.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._plugin import register

if TYPE_CHECKING:
    from ._backend import LogitreeBackend, LogitreeGrammar

__all__ = ["LogitreeBackend", "LogitreeGrammar", "register"]

_MODULES = {"LogitreeBackend": "_backend", "LogitreeGrammar": "_backend"}


def __getattr__(name: str) -> Any:
    """The classes that derive from SGLang's own: they are made when they are asked for."""
    if name in _MODULES:
        return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
