"""The documents: their Python runs, their commands and links exist, and what they list is what there is."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import re
from pathlib import Path

import pytest

import logitree

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "examples" / "README.md"]
)
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\nPrints:\n\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def name(path: Path) -> str:
    """The path as a message shows it."""
    return path.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if BLOCK.search(d.read_text("utf-8"))], ids=name)
def test_examples_run_and_print_what_they_say(
    document: Path, smollm2_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = document.read_text(encoding="utf-8")
    if "llama_cpp" in text and importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama_cpp is not installed")
    (tmp_path / "model.gguf").symlink_to(smollm2_gguf)  # what the documents call a model of the reader's
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code, promised in BLOCK.findall(text):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, name(document), "exec", dont_inherit=True), names)
        if promised:
            assert said.getvalue() == promised


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", text):
        assert (document.parent / target).exists(), f"{name(document)} links to {target}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_verbs_exist(document: Path) -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for verb in re.findall(r"`make ([a-z-]+)", document.read_text(encoding="utf-8")):
        assert re.search(rf"^{verb}:", makefile, re.MULTILINE), f"{name(document)} names make {verb}"


def test_the_surface_is_what_docs_list() -> None:
    spec = importlib.util.spec_from_file_location("api_docs", REPOSITORY / "scripts" / "api_docs.py")
    assert spec is not None
    assert spec.loader is not None
    api_docs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(api_docs)
    text = (REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8")
    assert text == api_docs.markdown(), "run: python scripts/api_docs.py > docs/api.md"
    listed = re.findall(r"^\| `(\w+)`", text, re.MULTILINE)
    assert sorted(listed) == sorted(n for n in logitree.__all__ if not n.startswith("__"))


TSAMPLER = [
    "TokenHistoryTracker",
    "accept",
    "getCount",
    "hasToken",
    "reset",
    "size",
    "getUniqueTokens",
    "computeAdjustment",
    "hasPenalties",
    "sampleWithStrategy",
    "SampleOptions",
    "tokenHistory",
    "params",
    "workspace",
    "SamplerMode",
    "mode",
    "prng",
    "SamplingParams",
    "topK",
    "topP",
    "minP",
    "typicalP",
    "topNSigma",
    "temperature",
    "penaltyRepeat",
    "penaltyFreq",
    "penaltyPresent",
    "seed",
    "greedy",
    "getTopCandidates",
    "applyPenalties",
    "applyRepetitionPenalty",
    "applyFrequencyPenalty",
    "applyPresencePenalty",
    "penaltyAccessor",
    "Xoroshiro128Plus",
    "next",
    "initializePRNG",
    "random",
    "resetPRNG",
    "applyTopK",
    "applyTypicalP",
    "applyTopP",
    "applyMinP",
    "applyTopNSigma",
    "applyTemperature",
    "sampleFromSet",
    "CandidateSet",
    "indices",
    "logits",
    "probs",
    "count",
    "candidateSetFromFullLogits",
    "SamplerWorkspace",
    "ensureCapacity",
    "requiredKcap",
    "DEFAULT_KCAP",
    "TYPICAL_P_KCAP",
    "computeModelEntropy",
    "computeModelSurprisal",
    "computeSamplingEntropy",
    "computeSamplingSurprisal",
    "RollingPerplexity",
    "addSurprisal",
    "ppl",
    "initGrammar",
    "applyGrammar",
    "acceptToken",
    "resetGrammar",
    "freeGrammar",
]
"""Every name that tsampler's README exports or uses."""


def test_every_name_of_tsampler_has_its_row() -> None:
    text = (REPOSITORY / "docs" / "tsampler.md").read_text(encoding="utf-8")
    left = " ".join(re.findall(r"^\|(.*?)\|", text, re.MULTILINE))
    assert [word for word in TSAMPLER if not re.search(rf"\b{word}\b", left)] == []
    ours = set(re.findall(r"`lt\.(\w+)", text))
    assert ours <= {*logitree.__all__, "samplers", "metrics", "steering", "masks"}


def test_the_package_shows_nothing_else() -> None:
    public = {n for n in logitree.__all__ if not n.startswith("_")}
    shown = {n for n, v in vars(logitree).items() if not n.startswith("_")}
    others = {n for n in shown - public if not inspect.ismodule(getattr(logitree, n))}
    assert others <= {"annotations"}
    assert public <= shown


@pytest.mark.parametrize("public", [n for n in logitree.__all__ if not n.startswith("_")])
def test_every_public_name_is_described(public: str) -> None:
    thing = getattr(logitree, public)
    assert inspect.getdoc(thing) or not callable(thing), f"{public} has no docstring"
