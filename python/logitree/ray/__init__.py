"""Fleets on Ray: a batch operator for Ray Data, and an application for Ray Serve.

```python
import ray
import logitree.ray

rows = ray.data.read_json("questions.json")  # columns id and question
answers = logitree.ray.generate(rows, "model.gguf", int, prompt="question", key="id", checkpoint="answers.parts")
answers.write_parquet("answers")

ray.serve.run(logitree.ray.application("model.gguf"))  # POST /generate
```

Ray is imported when one of them is called.
"""

from ._data import generate
from ._serve import application

__all__ = ["application", "generate"]
