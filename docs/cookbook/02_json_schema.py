"""JSON of a schema: the value is the parsed JSON."""

import logitree
from logitree.engines.llama_cpp import bundled_model

schema = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "founded": {"type": "integer", "maximum": 2026}},
    "required": ["city", "founded"],
    "additionalProperties": False,
}
print(logitree.generate(bundled_model(), "Describe New York as JSON.", schema, temperature=0).value)
