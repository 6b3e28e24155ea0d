"""The OpenAPI document and the server agree: every path is described, every field that is described is taken, and drawn
requests get the statuses and the forms that it lists."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from logitree.engines import Engine
from logitree.server import Limits, application
from logitree.server._openapi import document
from table_engine import TableEngine

SMALL = {"max_tokens": 1, "messages": [{"role": "user", "content": "x"}], "prompt": "x"}


@pytest.fixture(scope="module")
def described(client: httpx.Client) -> dict[str, Any]:
    answer = client.get("/openapi.json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def test_every_route_is_described(described: dict[str, Any], engine: Engine) -> None:
    routes = {
        (method.lower(), route.path)
        for route in application(engine, places=1).routes
        for method in getattr(route, "methods", ())
        if method in ("GET", "POST")
    }
    pages = {("get", path) for path in ("/", "/playground/{name}", "/openapi.json")}
    assert routes - pages == {(method, path) for path, item in described["paths"].items() for method in item}


def test_the_document_is_one(described: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    assert described["openapi"] == "3.1.0"
    schemas = set()
    for item in described["paths"].values():
        for operation in item.values():
            assert {"summary", "responses"} <= operation.keys()
            for part in (operation.get("requestBody"), *operation["responses"].values()):
                schemas |= {json.dumps(content["schema"]) for content in (part or {}).get("content", {}).values()}
    assert len(schemas) > 10
    for schema in schemas:
        jsonschema.Draft202012Validator.check_schema(json.loads(schema))
    assert document(Limits(answers=3)) != document(Limits())


def test_every_described_field_is_taken(described: dict[str, Any], serve: Any) -> None:
    class Quick(TableEngine):
        """One prompt for all."""

        def encode(self, prompt: Any, *, chat: bool | None = None) -> list[int]:
            return [65]

    client, tried = serve(Quick(), places=1), 0
    for path, item in described["paths"].items():
        if item.get("post", {}).get("summary") == "The same":
            continue
        schema = (
            item.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        )
        for name, field in (schema or {}).get("properties", {}).items():
            base = {known: value for known, value in SMALL.items() if known in schema["properties"] and known != name}
            if path in ("/v1/trace", "/v1/allowed", "/v1/lens"):
                base.pop("messages" if name != "messages" else "prompt", None)
            answer = client.post(path, json={**base, name: _value(field)})
            assert answer.status_code < 500, (path, name, answer.text)
            assert "is no field of this request" not in answer.text, (path, name)
            tried += 1
    assert tried > 250


def _value(field: Any) -> Any:
    """A value of a field's kind."""
    kinds: dict[Any, Any] = {"integer": 1, "number": 0.5, "string": "x", "boolean": False, "array": [], "object": {}}
    if "enum" in field:
        return field["enum"][0]
    if "anyOf" in field:
        return _value(field["anyOf"][0])
    return kinds.get(field.get("type"), "x")


class Drawn:
    """Values for a schema, right and wrong ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, schema: Any, depth: int = 0) -> Any:
        """A value that the schema allows, mostly."""
        draw = self.random
        if draw.random() < 0.06:
            return self.any(depth)
        if "enum" in schema:
            return draw.choice(schema["enum"])
        if "anyOf" in schema:
            return self.value(draw.choice(schema["anyOf"]), depth)
        kind = schema.get("type")
        if kind == "object":
            fields = schema.get("properties", {})
            some = [*schema.get("required", ()), *draw.sample(sorted(fields), min(len(fields), draw.randrange(4)))]
            return {name: self.value(fields[name], depth + 1) for name in some}
        if kind == "array":
            return [self.value(schema["items"], depth + 1) for _ in range(draw.randrange(3))]
        if kind == "integer":
            low, high = schema.get("minimum", -3), schema.get("maximum", 9)
            return draw.choice([low, low + 1, min(low + 3, high), high, 1, 2])
        if kind == "number":
            return draw.choice([0, 1, 0.3, -1.5, 1e30, 5])
        if kind == "string":
            return draw.choice(["", "x", "é 漢", "root ::= [a-c]", "none"])
        if kind == "boolean":
            return draw.random() < 0.5
        return self.any(depth)

    def any(self, depth: int = 0) -> Any:
        """Any JSON."""
        draw = self.random
        plain = [None, True, 0, -1, 2**70, 0.5, "", "x", '{"type": "integer"}', {"type": "regex", "pattern": "[a-c]"}]
        plain += [{"type": "json_schema", "json_schema": {"schema": {"enum": [1, 2]}}}, [[]], [1, 2]]
        if depth < 3 and draw.random() < 0.3:
            return {draw.choice(["type", "content", "x"]): self.any(depth + 1)}
        return draw.choice(plain)


def test_schemathesis_finds_nothing(client: httpx.Client) -> None:
    pytest.importorskip("schemathesis", reason="make test-server has it")
    checks = "not_a_server_error,response_schema_conformance,content_type_conformance,status_code_conformance"
    program = str(Path(sys.executable).with_name("schemathesis"))
    command = [program, "run", f"{client.base_url}/openapi.json", "--checks", checks, "-n", "20", "--seed", "7"]
    command += ["--phases", "examples,coverage,fuzzing", "--mode", "all"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-6000:]


def test_drawn_requests_get_what_is_described(described: dict[str, Any], client: httpx.Client) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    draw = Drawn(11)
    statuses: dict[int, int] = {}
    posts = {path: item["post"] for path, item in described["paths"].items() if "post" in item}
    for _ in range(10):
        for path, operation in posts.items():
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            body = draw.value(schema)
            if isinstance(body, dict):
                if body.get("max_tokens") not in (None, 1, 2):
                    body["max_tokens"] = 3
                elif "max_tokens" in schema["properties"]:
                    body["max_tokens"] = 2
                if body.get("n") not in (None, 0):
                    body["n"] = 2
            answer = client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
            shown = (path, json.dumps(body)[:400], answer.status_code, answer.text[:400])
            assert str(answer.status_code) in operation["responses"], shown
            kind = answer.headers["content-type"].split(";")[0]
            content = operation["responses"][str(answer.status_code)]["content"]
            assert kind in content, shown
            if kind == "application/json":
                jsonschema.validate(answer.json(), content[kind]["schema"])
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
    assert statuses.get(200, 0) > 8, statuses
    assert statuses.get(400, 0) > 20, statuses
