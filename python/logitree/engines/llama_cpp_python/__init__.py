"""llama-cpp-python: its own calls and its server, with their grammars, response formats and tools under logitree.

```text
hook(llm)                                                one loaded Llama
hook_all()                                               llama_cpp.Llama itself: each one made after this
python -m logitree.engines.llama_cpp_python --model M    llama-cpp-python's server, with its own arguments
```

Nothing of llama-cpp-python is imported before one of them is called.
"""

from ._hook import Hook, hook, hook_all

__all__ = ["Hook", "hook", "hook_all"]
