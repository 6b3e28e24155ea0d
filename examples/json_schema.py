"""JSON by a schema: whatever the model would like to say, what comes out is valid, and only its gaps are asked for."""

import json

import tiny

import logitree as lt

SCHEMA = {
    "type": "object",
    "properties": {
        "thoughts": {"type": "string", "maxLength": 30},  # written first, because it is declared first
        "animal": {"enum": ["fox", "boy", "boat"]},
        "legs": {"enum": [0, 2, 4]},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]{3,6}$"}, "minItems": 1, "maxItems": 2},
    },
    "required": ["thoughts", "animal", "legs", "tags"],
    "additionalProperties": False,
}

engine = tiny.engine(tiny.STORY + '{"animal": "fox", "legs": 4, "tags": ["old", "red"]}\n')
grammar = lt.Grammar.json_schema(SCHEMA, whitespace="compact", separators=(", ", ": "))
for seed in range(3):
    finish = list(lt.generate(engine, "An animal: ", constraint=grammar, seed=seed, temperature=0.8))[-1]
    assert isinstance(finish, lt.Finish)
    value = json.loads(finish.text)
    assert list(value) == SCHEMA["required"]
    assert value["animal"] in SCHEMA["properties"]["animal"]["enum"]
    assert len(value["thoughts"]) <= 30
    assert finish.stats.forced_tokens > 0
    print(finish.text)
    print(f"    {finish.stats.forced_tokens} of {finish.stats.output_tokens} tokens were forced")

# What cannot be honoured is an error that names it, or dropped if you say so.
try:
    lt.Grammar.json_schema({"type": "object", "properties": {"a": {"$ref": "#/missing"}}})
except lt.ConstraintError as error:
    print(error)
