"""JSON Schemas of the kinds that people write, with documents; their masks, token by token."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import _texts
import numpy as np

import logitree as lt

SCHEMAS = 500
DOCUMENTS = 3
# fmt: off
WORDS = (
    "name", "id", "type", "title", "value", "count", "items", "tags", "status", "email", "address",
    "city", "street", "country", "price", "amount", "unit", "kind", "description", "created", "updated", "owner",
    "group", "version", "url", "path", "options", "settings", "enabled", "color", "size", "width", "height",
    "start", "end", "currency", "language", "region", "score", "level", "message", "code", "error", "result",
    "data", "user", "order", "product", "image", "label", "parent",
)
# fmt: on
FORMATS = {
    "date": "2024-02-29",
    "date-time": "2026-03-04T05:06:07Z",
    "email": "ada@example.com",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "192.0.2.1",
    "uri": "https://example.com/a?b=c",
    "hostname": "www.example.com",
    "time": "23:20:50Z",
}
PATTERNS = {
    "^[A-Z]{2}[0-9]{4}$": "AB1234",
    "^[a-z][a-z0-9-]*$": "some-name-7",
    "^\\+?[0-9 ]{6,14}$": "+49 170 12345",
    "^#[0-9a-f]{6}$": "#00ff7f",
    "^v[0-9]+\\.[0-9]+(\\.[0-9]+)?$": "v1.20.3",
    "^(GET|PUT|POST|DELETE) /": "GET /items",
    "[^ ]": "x",
}


Schema = dict[str, Any]
Written = tuple[Schema, Callable[[], Any]]
"""A schema, and what makes values that it allows."""


def written(seed: int) -> tuple[Schema, list[Any]]:
    """An object's schema, and documents."""
    writer = Writer(random.Random(seed))
    schema, make = writer.record(3)
    root = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    documents = [make() for _ in range(DOCUMENTS)]
    return root | ({"$defs": writer.definitions} if writer.definitions else {}), documents


@dataclass
class Writer:
    """Writes subschemas, with a depth that they may have below them."""

    random: random.Random
    definitions: Schema = field(default_factory=dict)

    def subschema(self, depth: int) -> Written:
        """A subschema of any kind."""
        kinds = [self.text, self.text, self.number, self.literal, self.plain]
        if depth > 0:
            kinds += [self.record, self.record, self.array, self.union, self.reference, self.mapping]
        return self.random.choice(kinds)(depth)

    def record(self, depth: int) -> Written:
        """Named fields, some of them required."""
        r = self.random
        names = r.sample(WORDS, r.randint(1, 9))
        fields = {name: self.subschema(depth - 1) for name in names}
        required = [name for name in names if r.random() < 0.6]
        schema = {"type": "object", "properties": {name: part[0] for name, part in fields.items()}}
        if r.random() < 0.4:
            schema["description"] = "Some words that say what it is."
        if required:
            schema["required"] = r.sample(required, len(required))
        extra = r.random()
        others = {}
        if extra < 0.5:
            schema["additionalProperties"] = False
        elif extra < 0.7:
            schema["additionalProperties"], make = self.subschema(0)
            others = {"x-" + name: make for name in r.sample(WORDS, 2)}
        elif extra < 0.75:
            schema["patternProperties"] = {"^x-": {}}
            others = {"x-note": lambda: "any"}
        if r.random() < 0.1:
            schema["minProperties"] = 1
            required = required or names[:1]
        if r.random() < 0.06 and len(names) > 1 and names[0] in required:
            schema["dependentRequired"] = {names[1]: [names[0]]}
        if r.random() < 0.06 and required:
            schema["anyOf"] = [{"required": [required[0]]}, {"required": ["absent"]}]
        if r.random() < 0.05:
            schema["not"] = {"required": ["forbidden"]}

        def make() -> Schema:
            kept = [name for name in names if name in required or r.random() < 0.6]
            return {name: fields[name][1]() for name in kept} | {name: other() for name, other in others.items()}

        return schema, make

    def array(self, depth: int) -> Written:
        """A list of one kind of item."""
        r = self.random
        items, make = self.subschema(depth - 1)
        schema = {"type": "array", "items": items}
        least, most = r.choice(((0, 4), (1, 4), (2, 3)))
        if least:
            schema["minItems"] = least
        if r.random() < 0.4:
            schema["maxItems"] = most + r.choice((0, 6, 96))
        if r.random() < 0.15:
            first, make_first = self.subschema(0)
            schema["prefixItems"] = [first]
            return schema, lambda: [make_first(), *(make() for _ in range(most - 1))]
        if r.random() < 0.15 and "enum" in items:
            schema["uniqueItems"] = True
            schema.pop("minItems", None)
            return schema, lambda: items["enum"][: r.randint(0, 2)]
        return schema, lambda: [make() for _ in range(r.randint(least, most))]

    def union(self, depth: int) -> Written:
        """One of several."""
        r = self.random
        if r.random() < 0.3:
            parts = [self.variant(kind, depth) for kind in r.sample(WORDS, 3)]
            return {"oneOf": [schema for schema, _ in parts]}, lambda: r.choice(parts)[1]()
        parts = [self.subschema(depth - 1) for _ in range(r.randint(2, 3))]
        return {"anyOf": [schema for schema, _ in parts]}, lambda: r.choice(parts)[1]()

    def variant(self, kind: str, depth: int) -> Written:
        """An object that its field "kind" tells from others."""
        schema, make = self.record(depth - 1)
        properties = {"kind": {"const": kind}} | {k: v for k, v in schema["properties"].items() if k != "kind"}

        def value() -> Schema:
            return {"kind": kind} | {k: v for k, v in make().items() if k in properties and k != "kind"}

        return {"type": "object", "properties": properties, "required": ["kind"]}, value

    def reference(self, depth: int) -> Written:
        """A reference to a definition, which may contain itself."""
        r = self.random
        name = r.choice(WORDS) + str(len(self.definitions))
        self.definitions[name] = {}
        schema, make = self.subschema(depth - 1)
        self.definitions[name] = schema
        reference = {"$ref": f"#/$defs/{name}"}
        if r.random() < 0.25:
            node = f"node{len(self.definitions)}"
            self.definitions[node] = {
                "type": "object",
                "properties": {"value": reference, "children": {"type": "array", "items": {"$ref": f"#/$defs/{node}"}}},
                "required": ["value"],
                "additionalProperties": False,
            }
            return {"$ref": f"#/$defs/{node}"}, lambda: {"value": make(), "children": [{"value": make()}]}
        if r.random() < 0.2:
            return {"allOf": [reference, {"description": "the same"}]}, make
        return reference, make

    def mapping(self, depth: int) -> Written:
        """Any names, with values of one kind."""
        values, make = self.subschema(depth - 1)
        return {"type": "object", "additionalProperties": values}, lambda: {
            name: make() for name in self.random.sample(WORDS, 2)
        }

    def text(self, depth: int) -> Written:
        """A string: free, or of a format, a pattern or a list."""
        r = self.random
        kind = r.random()
        if kind < 0.25:
            values = r.sample(WORDS, r.choice((2, 3, 5, 12)))
            return {"type": "string", "enum": values}, lambda: r.choice(values)
        if kind < 0.4:
            name = r.choice(list(FORMATS))
            return {"type": "string", "format": name}, lambda: FORMATS[name]
        if kind < 0.5:
            pattern = r.choice(list(PATTERNS))
            return {"type": "string", "pattern": pattern}, lambda: PATTERNS[pattern]
        if kind < 0.65:
            longest = r.choice((20, 50, 255, 2000))
            return {"type": "string", "minLength": 1, "maxLength": longest}, lambda: self.sentence()[:longest]
        return {"type": "string"}, self.sentence

    def sentence(self) -> str:
        """Words, some with characters that JSON escapes or UTF-8 spells in several bytes."""
        r = self.random
        return " ".join(
            r.choice((*WORDS, "Größe", "naïve", 'a "quoted" one', "line\nbreak", "東京"))
            for _ in range(r.randint(1, 8))
        )

    def number(self, depth: int) -> Written:
        """An integer or a number, within bounds or not."""
        r = self.random
        kind = r.random()
        if kind < 0.3:
            return {"type": "integer"}, lambda: r.randint(-1000, 100_000)
        if kind < 0.5:
            least, most = r.choice(((0, 10), (1, 100), (0, 65535), (-90, 90), (1900, 2100)))
            return {"type": "integer", "minimum": least, "maximum": most}, lambda: r.randint(least, most)
        if kind < 0.6:
            return {"type": "number", "minimum": 0}, lambda: round(r.uniform(0, 1000), 2)
        if kind < 0.65:
            return {"type": "number", "exclusiveMinimum": 0, "maximum": 1}, lambda: r.choice((0.5, 0.25, 1))
        if kind < 0.7:
            return {"type": "integer", "multipleOf": 5}, lambda: 5 * r.randint(0, 40)
        return {"type": "number"}, lambda: r.choice((0, 1.5, -2.75, 1e21, 12345.678))

    def literal(self, depth: int) -> Written:
        """One value, or a boolean."""
        r = self.random
        value = r.choice((True, None, "fixed", 3, {"a": 1}))
        if r.random() < 0.3:
            return {"const": value}, lambda: value
        return {"type": "boolean"}, lambda: r.random() < 0.5

    def plain(self, depth: int) -> Written:
        """What says little: several types, or anything."""
        r = self.random
        if r.random() < 0.5:
            return {"type": ["string", "null"]}, lambda: r.choice((None, "text"))
        return {}, lambda: r.choice(({"a": [1, {"b": None}]}, [True, "x"], "text", 2.5))


def run(model: _texts.Model, *, quick: bool) -> str:
    """Compile each schema in both orders, and find the masks of its documents."""
    words = np.zeros(lt.masks.words(len(model.vocabulary)), np.int32)
    tokens, schemas = 0, 20 if quick else SCHEMAS
    for seed in range(schemas):
        schema, documents = written(seed)
        texts = [model.tokenizer.encode(json.dumps(document, ensure_ascii=False)) for document in documents]
        for order in ("schema", "any"):
            matcher = lt.Grammar.json_schema(schema, order=order).matcher(model.vocabulary)
            for text in texts:
                tokens += _walk(matcher.fork(), text, words)
    return f"{schemas} schemas, {tokens:,} masks"


def _walk(matcher: lt.Matcher, tokens: list[int], words: np.ndarray) -> int:
    """Follow a text as far as it is allowed: documents have another order than some schemas."""
    for n, token in enumerate(tokens):
        lt.masks.fill_batch(matcher, words)
        if not words[token >> 5] >> (token & 31) & 1:
            return n + 1
        matcher.accept(token)
    lt.masks.fill_batch(matcher, words)
    return len(tokens) + 1
