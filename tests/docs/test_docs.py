"""The documents: their Python runs, their commands and links exist, and their lists are complete."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import inspect
import io
import re
from pathlib import Path

import pytest

import api_docs
import logitree
from logitree import _renamed

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


OLD = re.compile(r"^\| (?!-)[^|]*\|", re.MULTILINE)
"""The first cell of a row: in migration.md, names that existed before."""

HOLDERS = ("", "crates/logitree", "python/logitree", "fuzz")
HOLDERS += tuple(f"crates/{crate.name}/src" for crate in sorted((REPOSITORY / "crates").iterdir()))
"""Folders that documents give paths from, beside the document's own."""

BUILT = {"bench/charts", "target/site"}
"""Folders that a verb makes."""


def said_of_now(document: Path) -> str:
    """The document, without what it says of earlier versions."""
    text = document.read_text(encoding="utf-8")
    return OLD.sub("|", text) if document.name == "migration.md" else text.partition("\n## [0.1.0]")[0]


NAMED = re.compile(r"(?<![\w./@:-])((?:logitree|[A-Z]\w+)(?:\.[A-Za-z_]\w*)+)(\([^`()]*\))?")
"""A dotted name of the package, or of a public class, and the arguments that it is called with."""

MODULES = (
    "protocols",
    "beams",
    "catalogue",
    "compose",
    "elizaos",
    "engines",
    "metrics",
    "repair",
    "rtp",
    "samplers",
    "speculation",
    "steering",
)
"""Modules whose classes documents name without their module."""


def resolved(dotted: str) -> object:
    """What a dotted name of the package is; a field of a class is its class.

    Raises:
        AttributeError: there is no such name.
    """
    first, *rest = dotted.split(".")
    found: object = logitree
    if first != "logitree":
        modules = (logitree, *(importlib.import_module(f"logitree.{module}") for module in MODULES))
        found = next(vars(module)[first] for module in modules if first in vars(module))
    for part in rest:
        if inspect.ismodule(found) and not hasattr(found, part):
            module = f"{found.__name__}.{part}"
            if not hasattr(found, "__path__") or importlib.util.find_spec(module) is None:
                raise AttributeError(module)
            pytest.importorskip(module, reason="the library that it adapts is not installed", exc_type=ImportError)
        if inspect.isclass(found) and part in inspect.get_annotations(found):
            return found
        found = getattr(found, part)
    return found


FILES = {"logitree.h", "logitree.hpp", "logitree.md"}
"""Files that look like names of the package."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_names_of_the_package_exist(document: Path) -> None:
    text = re.sub(r"\blt\.", "logitree.", said_of_now(document))
    classes = {n for n in logitree.__all__ if n[0].isupper()}
    classes |= {n for module in MODULES for n in vars(importlib.import_module(f"logitree.{module}")) if n[0].isupper()}
    # Names that may need a library that is not installed are looked up last.
    for found, arguments in sorted(set(NAMED.findall(text)), key=lambda n: ("transformers" in n[0], n)):
        if found.split(".")[0] not in {"logitree", *classes} or found in FILES:
            continue
        try:
            thing = resolved(found)
        except AttributeError as problem:
            pytest.fail(f"{name(document)} names {found}: {problem}")
        keywords = re.findall(r"[(,] ?(\w+)=", arguments)
        if keywords:
            taken = inspect.signature(thing).parameters.values()  # type: ignore[arg-type]
            open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken)
            missing = set(keywords) - {parameter.name for parameter in taken}
            assert open_ended or not missing, f"{name(document)} calls {found} with {missing}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_names_of_the_crates_exist(document: Path) -> None:
    text = said_of_now(document)
    crates = REPOSITORY / "crates"
    for crate, modules, last in re.findall(r"\b(logitree\w*)::((?:\w+::)*)(\w+|\{[^}]*\})", text):
        library = (crates / crate.replace("_", "-") / "src/lib.rs").read_text("utf-8")
        shown = {crate, *re.findall(r"\bpub use (logitree_\w+)", library)}
        files = [path for one in shown for path in (crates / one.replace("_", "-")).rglob("src/**/*.rs")]
        sources = [path.read_text("utf-8") for path in files]
        for word in re.findall(r"\w+", modules + last):
            defined = re.compile(rf"\bpub (?:mod|struct|enum|trait|type|fn|use [\w:{{, ]*?) ?{word}\b")
            assert any(map(defined.search, sources)), f"{name(document)} names {word} in {crate}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_paths_exist(document: Path) -> None:
    text = said_of_now(document)
    roots = "|".join(path.name for path in REPOSITORY.iterdir() if path.is_dir() and path.name[0] != ".")
    named = {
        *re.findall(rf"(?<![\w./*-])(?:{roots})/[\w./{{,}}-]*\w", text),
        *re.findall(r"`([\w./-]+/|[\w./-]+\.rs)`", text),
    }
    folders = [document.parent, *(REPOSITORY / holder for holder in HOLDERS)]
    for found in named - BUILT:
        head, _, rest = found.partition("{")
        choices, _, tail = rest.partition("}")
        for path in [head + choice + tail for choice in choices.split(",")]:
            there = any((folder / path).exists() for folder in folders)
            assert there or Path(path).stem.isupper(), f"{name(document)} names {path}"


def test_the_surface_is_what_docs_list() -> None:
    folder, made = REPOSITORY / "docs", api_docs.pages()
    there = {path.relative_to(folder).as_posix() for path in [folder / "api.md", *(folder / "api").glob("*.md")]}
    text = {path: (folder / path).read_text(encoding="utf-8") for path in sorted(there)}
    assert text == made, "run: python scripts/api_docs.py"
    index = re.findall(r"^\| \[`(\w+)`\]\(api/logitree.md#", text["api.md"], re.MULTILINE)
    assert sorted(index) == sorted(n for n in logitree.__all__ if not n.startswith("__"))
    _, *split = re.split(r"^# (logitree[\w.]*)\n", "".join(text.values()), flags=re.MULTILINE)
    sections = dict(zip(split[::2], split[1::2], strict=True))
    expected = {"logitree.engines.llama_cpp", "logitree.engines.transformers", *(f"logitree.{m}" for m in MODULES)}
    assert expected <= set(sections)
    for module, section in sections.items():
        names = set(re.findall(r"^\| \[`(\w+)`\]", section, re.MULTILINE))
        thing = importlib.import_module(module)
        own = {n for n, v in vars(thing).items() if getattr(v, "__module__", "") == thing.__name__ and n[0] != "_"}
        offered = {n for n in getattr(thing, "__all__", own) if not n.startswith("__")}
        assert names == offered if hasattr(thing, "__all__") else names >= own, module
        here = names - set(getattr(thing, "_MODULES", ()))  # the others derive from a package that may be absent
        members_are_listed(section, {n: getattr(thing, n) for n in here}, in_package=thing is logitree)
    whole = "\n".join(text.values())
    bare = re.findall(r"^\| \S+ \|\s*(?:`[^`]*`\s*)?\|$", whole, re.MULTILINE)
    assert not bare, "names without a text"


def test_the_reference_has_signatures_parameters_and_errors() -> None:
    text = api_docs.pages()["api/logitree.md"]
    _, _, generate = text.partition("\n## generate\n")
    generate = generate.partition("\n## ")[0]
    assert "    constraint: type[T],\n    *,\n    n: None = None,\n" in generate
    assert re.search(r"^\| `max_tokens` \| .+ \|$", generate, re.MULTILINE)
    assert re.search(r"^- `EngineError`: .+$", generate, re.MULTILINE)
    assert "json_schema(\n    schema: Mapping[str, Any] | bool | str | bytes,\n    *,\n    order: " in text
    assert "class Decoder\n\nDecoder(\n    vocabulary: Vocabulary,\n" in text  # native: the stub has `__new__`
    masks = api_docs.pages()["api/masks.md"]
    assert "## apply\n\n```py\napply(logits: Any, mask: _Mask) -> None\n```\n" in masks  # of the core, by another name
    (batch,) = re.findall(r"^Returns: .*exceptions by row.*$", text, re.MULTILINE)
    assert batch.endswith("are raised, as by `step`.")  # lines of one result belong together


def members_are_listed(section: str, things: dict[str, object], *, in_package: bool) -> None:
    """Every method, property and field that a class has itself has its row, but for names that warn."""
    old = {*_renamed.ATTRIBUTES, *_renamed.METHODS}
    for named, thing in things.items():
        if not inspect.isclass(thing) or (not in_package and vars(logitree).get(named) is thing):
            continue
        own = {*vars(thing), *vars(thing).get("__annotations__", {})}
        own |= {field.name for field in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else set()
        own = {n for n in own if not n.startswith("_") and f"{named}.{n}" not in old}
        _, _, table = section.partition(f"\n## {named}\n")
        rows = set(re.findall(r"^\| \.(\w+) ", table.partition("\n## ")[0], re.MULTILINE))
        assert own <= rows, f"{named}: {sorted(own - rows)}"


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
