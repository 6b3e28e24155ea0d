"""The TypeScript package: it compiles, passes its own tests, and its payloads are those of Python, byte for byte."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree import elizaos

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "bindings" / "typescript"
OFFLINE = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target")
LIBRARY = [TARGET / "debug" / f"liblogitree_c.{suffix}" for suffix in ("so", "dylib")]


def run(*command: str, text: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=FOLDER,
        input=text,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        timeout=900,
        check=False,
    )


@pytest.fixture(scope="module")
def compiled() -> Path:
    """The compiled package."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: the TypeScript package is not tested")
    if not (FOLDER / "node_modules" / "koffi").exists():
        installed = run("npm", "ci", "--no-audit", "--no-fund")
        if installed.returncode and OFFLINE.search(installed.stderr):
            pytest.skip("npm ci cannot reach a registry: the TypeScript package is not tested")
        assert installed.returncode == 0, installed.stderr
    built = run("npm", "run", "build")
    assert built.returncode == 0, built.stdout + built.stderr
    return FOLDER / "dist"


@pytest.fixture(scope="module")
def places(smollm2_gguf: Path) -> dict[str, str]:
    """The variables that say where libraries and model are; what is not there is left out."""
    found = {"LOGITREE_MODEL": str(smollm2_gguf)}
    spec = importlib.util.find_spec("llama_cpp")
    if spec is not None and spec.origin is not None:
        found["LLAMA_LIBRARY"] = str(next((Path(spec.origin).parent / "lib").glob("libllama.*")))
    library = os.environ.get("LOGITREE_LIBRARY") or next((str(path) for path in LIBRARY if path.exists()), "")
    if library:
        found["LOGITREE_LIBRARY"] = library
    return found


def test_the_package_passes_its_own_tests(compiled: Path, places: dict[str, str]) -> None:
    tests = [str(path) for path in sorted((compiled / "test").glob("*.test.js"))]
    ran = run("node", "--test", "--test-reporter=tap", *tests, **places)
    assert ran.returncode == 0, ran.stdout
    counts = {name: int(n) for name, n in re.findall(r"^# (pass|fail|skipped) (\d+)$", ran.stdout, re.MULTILINE)}
    assert counts["fail"] == 0
    assert counts["pass"] >= 14
    if len(places) < 3:
        pytest.skip("the C library or llama-cpp-python is not there: only what needs neither was tested")
    assert counts["skipped"] == 0


def test_the_example_chooses_an_action(compiled: Path, places: dict[str, str]) -> None:
    if len(places) < 3:
        pytest.skip("the C library or llama-cpp-python is not there")
    arguments = [places[name] for name in ("LOGITREE_LIBRARY", "LLAMA_LIBRARY", "LOGITREE_MODEL")]
    ran = run("node", str(compiled / "examples" / "elizaos.js"), *arguments)
    assert ran.returncode == 0, ran.stderr
    names, size, chosen = ran.stdout.splitlines()
    assert names == "IGNORE REPLY REPLY_THREAD SEND_FILE"
    assert re.fullmatch(r"\d+ bytes in binary form", size)
    assert chosen in names.split()


def test_the_package_passes_its_own_tests_on_bun(compiled: Path, places: dict[str, str]) -> None:
    bun = shutil.which("bun")
    if bun is None:
        pytest.skip("bun is not installed")
    ran = run(bun, "test", *(str(path) for path in sorted((compiled / "test").glob("*.test.js"))), **places)
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"^ 0 fail$", ran.stderr, re.MULTILINE), ran.stderr


WRITE = """
import { descriptor, encode, payload } from "./dist/src/index.js";
let text = "";
for await (const part of process.stdin) text += part;
const ids = (name) => [...Buffer.from(name)];
for (const { path, names } of JSON.parse(text)) {
  const made = descriptor(path, names, ids);
  const binary = made === null ? null : Buffer.from(encode(made)).toString("hex");
  console.log(JSON.stringify([payload("m", [made]), binary]));
}
"""


def test_payloads_and_binary_forms_are_the_same_as_in_python(compiled: Path) -> None:
    rng = random.Random(5)
    characters = ["a", "B", "_", "é", "\ud7ff", "\uff21", "\U0001f600", '"', "\\", "\n"]
    cases: list[dict[str, Any]] = [{"path": "", "names": [None, ""]}]
    for _ in range(300):
        names = ["".join(rng.choices(characters, k=rng.randrange(5))) or None for _ in range(rng.randrange(1, 12))]
        cases.append({"path": rng.choice(["action", "contexts[]", "é/~"]), "names": names})
    ran = run("node", "--input-type=module", "-e", WRITE, text=json.dumps(cases))
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert len(lines) == len(cases)
    for case, line in zip(cases, lines, strict=True):
        theirs, binary = json.loads(line)
        made = elizaos.descriptor(case["path"], case["names"], lambda name: list(name.encode()))
        ours = elizaos.payload("m", [made])
        assert json.dumps(theirs) == json.dumps(ours)
        if ours is None:
            assert binary is None
        else:
            assert bytes.fromhex(binary) == elizaos.token_tree(ours).to_binary()


DRAW = """
import * as l from "./dist/src/index.js";
let text = "";
for await (const part of process.stdin) text += part;
const { rows, chains, strategies, seed, draws } = JSON.parse(text);
const logits = rows.map((row) => Float32Array.from(row));
const made = (one) => Array.isArray(one) ? new l.Chain(one) : l.Chain[one.preset](one.params);
const out = { drawn: [], left: [], metrics: [], strategies: [], random: [] };
for (const one of chains) {
  const chain = made(one);
  out.drawn.push(Array.from({ length: draws }, (_, i) => chain.sample(logits[i % logits.length])));
  const { indices, probs } = made(one).apply(logits[0]);
  out.left.push([[...indices], [...probs]]);
}
for (const row of logits) {
  const best = l.getTopCandidates(row, 5);
  out.metrics.push([l.computeModelEntropy(row), l.computeModelSurprisal(row, 3, "bits"), best.map((b) => b.tokenId)]);
}
for (const params of strategies) {
  const [tokenHistory, prng] = [new l.TokenHistoryTracker(64), new l.Xoroshiro128Plus(seed)];
  out.strategies.push(Array.from({ length: draws }, (_, i) => {
    const token = l.sampleWithStrategy(logits[i % logits.length], { tokenHistory, prng, params });
    tokenHistory.accept(token);
    return token;
  }));
}
const prng = new l.Xoroshiro128Plus(seed);
out.random = Array.from({ length: 100 }, () => prng.next());
console.log(JSON.stringify(out));
"""


def test_draws_candidates_and_metrics_are_those_of_python(compiled: Path, places: dict[str, str]) -> None:
    if "LOGITREE_LIBRARY" not in places:
        pytest.skip("the C library is not there")
    rng = np.random.default_rng(3)
    rows = [rng.normal(0, 4, 600).astype(np.float32) for _ in range(7)]
    seed, draws = 1_790_000_000_123, 400
    own: dict[str, Any] = {"seed": seed, "rng": "xoroshiro128plus"}
    listed: list[list[dict[str, Any]]] = [
        [{"name": "top_k", "k": 50}, {"name": "temp", "t": 1.5}, {"name": "dist", **own}],
        [{"name": "xtc", "p": 0.5, "t": 0.05, "seed": 7}, {"name": "dist", "seed": 7}],
        [
            {"name": "penalties", "repeat": 1.3, "present": 0.5},
            {"name": "top_p", "p": 0.8},
            {"name": "dist", "seed": 9},
        ],
    ]
    presets: list[tuple[str, Any, dict[str, Any]]] = [
        ("tsampler", lt.Chain.tsampler, {"seed": seed, "temp": 1.4}),
        ("llamaCpp", lt.Chain.llama_cpp, {"seed": 5, "temp": 1.2, "dry_multiplier": 0.8}),
        ("transformers", lt.Chain.transformers, {"seed": 5}),
    ]
    strategies: list[dict[str, float]] = [
        {},
        {"topK": 0, "typicalP": 0.9, "temperature": 1.5},
        {"topK": 600, "topP": 1, "minP": 0},
    ]
    chains = [*listed, *({"preset": name, "params": params} for name, _, params in presets)]
    given = {
        "rows": [row.tolist() for row in rows],
        "chains": chains,
        "strategies": strategies,
        "seed": seed,
        "draws": draws,
    }
    ran = run("node", "--input-type=module", "-e", DRAW, text=json.dumps(given), **places)
    assert ran.returncode == 0, ran.stderr
    theirs = json.loads(ran.stdout)

    def made(samplers: list[dict[str, Any]]) -> lt.Chain:
        return lt.Chain(
            [getattr(lt.samplers, one["name"])(**{k: v for k, v in one.items() if k != "name"}) for one in samplers]
        )

    def sampled(chain: lt.Chain) -> list[int]:
        return [chain.sample(rows[i % len(rows)]) for i in range(draws)]

    makers = [lambda samplers=samplers: made(samplers) for samplers in listed]
    makers += [lambda make=make, params=params: make(**params) for _, make, params in presets]
    for make, drawn, (ids, shares) in zip(makers, theirs["drawn"], theirs["left"], strict=True):
        assert sampled(make()) == drawn
        assert len(set(drawn)) > 10
        left = make().apply(rows[0])
        assert (left[0].tolist(), left[2].tolist()) == (ids, shares)
    for row, (entropy, surprisal, best) in zip(rows, theirs["metrics"], strict=True):
        assert (entropy, surprisal) == (lt.metrics.entropy(row), lt.metrics.surprisal(row, 3, "bits"))
        assert best == [id for id, *_ in lt.samplers.top_candidates(row, 5)]
    names = {"topK": "top_k", "typicalP": "typ_p", "temperature": "temp", "topP": "top_p", "minP": "min_p"}
    for params, tokens in zip(strategies, theirs["strategies"], strict=True):
        assert sampled(lt.Chain.tsampler(seed=seed, **{names[key]: value for key, value in params.items()})) == tokens
    numbers = lt.samplers.Random(seed, "xoroshiro128plus")
    assert theirs["random"] == [numbers.uniform() for _ in range(100)]


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))
    assert len(lock["packages"]) > 3
    for name, package in lock["packages"].items():
        assert "resolved" not in package, name
        assert not name or "integrity" in package, name
