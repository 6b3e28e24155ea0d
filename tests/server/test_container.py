"""The container's files agree with the server: options, paths, metrics. Nothing is built here."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import pytest

from logitree.cli import serve

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT.joinpath("Dockerfile").read_text("utf-8")
DEPLOY = ROOT / "deploy"


def test_the_command_is_one_that_there_is() -> None:
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    entry = re.search(r"^ENTRYPOINT (\[.*\])$", DOCKERFILE, re.MULTILINE)
    assert entry is not None
    program, command, *options = json.loads(entry[1])
    assert (program, command) == ("logitree", "serve")
    parser = argparse.ArgumentParser()
    serve.arguments(parser)
    args = parser.parse_args([*options, *compose["services"]["logitree"]["command"]])
    assert (args.host, args.port) == ("0.0.0.0", 8080)
    assert args.api_key_file == f"/run/secrets/{compose['services']['logitree']['secrets'][0]}"


def test_it_runs_as_a_user_of_its_own_and_writes_nowhere() -> None:
    yaml = pytest.importorskip("yaml")
    server = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["logitree"]
    assert server["read_only"] is True
    assert server["cap_drop"] == ["ALL"]
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER [1-9]\d*$", last, re.MULTILINE)
    assert last.index("\nUSER ") < last.index("\nENTRYPOINT ")
    # Only what the web can reach on this machine is published.
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    ignored = ROOT.joinpath(".dockerignore").read_text("utf-8").splitlines()
    for line in re.findall(r"^COPY (?!--)(.*)$", DOCKERFILE, re.MULTILINE):
        *sources, _ = line.split()
        for source in sources:
            assert ROOT.joinpath(source).exists(), source
            assert f"!{source}" in ignored, source
    pinned = re.search(r"llama-cpp-python==[\d.]+", DOCKERFILE)
    assert pinned is not None
    assert pinned[0] in ROOT.joinpath("pyproject.toml").read_text("utf-8")


def test_health_and_metrics_are_the_servers(client: Any) -> None:
    asked = re.search(r"http://127\.0\.0\.1:8080(/\w+)", DOCKERFILE)
    assert asked is not None
    assert client.get(asked[1]).status_code == 200
    client.post("/v1/completions", json={"prompt": "x", "max_tokens": 1, "response_format": {"type": "json"}})
    shown = client.get("/metrics").text
    dashboard = json.loads((DEPLOY / "grafana" / "dashboards" / "logitree.json").read_text("utf-8"))
    asked_for = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"logitree_\w+", target["expr"])
    }
    known = set(re.findall(r"^(?:# TYPE )?(logitree_\w+)", shown, re.MULTILINE))
    assert asked_for
    assert asked_for - known == set()
    panels = [panel["title"] for panel in dashboard["panels"]]
    assert len(set(panels)) == len(panels)
