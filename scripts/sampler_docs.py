"""Writes what the table of samplers says: docs/samplers.md, python/logitree/_params.py and samplers.py.

`python scripts/sampler_docs.py` writes them; a test compares them with what this makes.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from logitree import _core

ROOT = Path(__file__).parents[1]
TYPES = {
    "Int": "int",
    "OptionalInt": "int | None",
    "Count": "int",
    "Float": "float",
    "Truth": "bool",
    "Biases": "Mapping[int, float] | Sequence[tuple[int, float]]",
    "Breakers": "Sequence[Sequence[int]] | None",
    "Pieces": "Vocabulary | None",
}
DRAWING = ["seed: int | None = None", 'rng: str = "mt19937"', "sequence: int = 0"]
CHAIN = [
    (
        "seed",
        "int | None",
        "Seed of all that draws; every value from 0 is a literal seed. None or -1: a fresh one, see ``Chain.seed``.",
    ),
    ("rng", "str", '"mt19937" (llama.cpp\'s, the default), "xoroshiro128plus" (tsampler\'s default) or "philox".'),
    ("sequence", "int", "Which of many sequences of one seed, from 0; only philox tells them apart."),
    ("mirostat", "int", "1 or 2: biases, temperature and that mirostat are the whole chain; 0, the default: neither."),
]


def arguments(row: dict[str, Any]) -> list[str]:
    """The constructor's parameters with their types."""
    out = []
    for p in row["parameters"]:
        match p["kind"]:
            case "Seed":
                out += DRAWING
            case "Breakers":
                out += [
                    "breakers: Sequence[str | bytes | Sequence[int]] | None = None",
                    "vocabulary: Vocabulary | None = None",
                    "tokenize: Callable[[str], Iterable[int]] | None = None",
                ]
            case "Pieces":
                out += ["vocabulary: Vocabulary", "eot: int | None = None"]
            case kind:
                optional = " | None" if kind == "Count" else ""
                default = "" if p["required"] else f" = {p['default']}"
                out.append(f"{p['name']}: {TYPES[kind]}{optional}{default}")
    return out


def constructors() -> str:
    """samplers.py."""
    rows = _core.sampler_table()
    names = ["ChainParams", "Random", "Sampler", "SamplingParams", "custom", "dry_breakers", "top_candidates"]
    names += [row["name"] for row in rows]
    out = [
        '"""Constructors of samplers, one for each row of the core\'s table, and samplers of one\'s own.',
        "",
        "``Chain([penalties(), top_k(40), temp(0.7), dist(seed=1)])`` makes a chain. docs/samplers.md lists them all;",
        "scripts/sampler_docs.py writes this file.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Callable, Iterable, Mapping, Sequence",
        "from typing import TYPE_CHECKING",
        "",
        "from logitree import _core",
        "from logitree._core import Random, Sampler, custom, dry_breakers, top_candidates",
        "from logitree._params import ChainParams, SamplingParams",
        "",
        "if TYPE_CHECKING:",
        "    from logitree._core import Vocabulary",
        "",
        "__all__ = [",
        *(f'    "{name}",' for name in sorted(names, key=lambda name: (not name[0].isupper(), name))),
        "]",
        "",
        "_native = _core.sampler_constructors()",
    ]
    for row in rows:
        parts = arguments(row)
        line = f"def {row['name']}({', '.join(parts)}) -> Sampler:"
        head = [f"def {row['name']}(", *(f"    {part}," for part in parts), ") -> Sampler:"]
        said = docstring(
            [row["doc"], *row["details"].split("\n\n")], [f"{p['name']}: {p['doc']}" for p in row["parameters"]]
        )
        given = ", ".join(part.split(":")[0] for part in parts)
        out += ["", "", *([line] if len(line) <= 120 else head), *said, f'    return _native["{row["name"]}"]({given})']
    return "\n".join(out) + "\n"


def docstring(paragraphs: list[str], parameters: list[str]) -> list[str]:
    """An indented docstring of these paragraphs and a list of the parameters."""
    out: list[str] = []
    for p in filter(None, paragraphs):
        out += [*textwrap.wrap(p, 112), ""]
    out += ["Args:"] if parameters else []
    for p in parameters:
        out += textwrap.wrap(p, 112, initial_indent="    ", subsequent_indent="        ")
    out = "\n".join(out).rstrip().split("\n")
    if len(out) == 1 and len(out[0]) <= 108:
        return [f'    """{out[0]}"""']
    return ['    """' + out[0], *("    " + line if line else "" for line in out[1:]), '    """']


def keywords() -> list[tuple[str, str, str, list[str]]]:
    """The keywords of whole chains: name, type, text, aliases."""
    rows = _core.sampler_table()
    found: dict[str, tuple[str, str, list[str]]] = {}
    for row in rows:
        for p in row["parameters"]:
            name = p["keyword"]
            if p["kind"] == "Seed" or name in found:
                continue
            limits = f", {p['range']}" if p["range"] else ""
            text = f"{row['name']}: {p['doc']} Default {p['default']}{limits}."
            found[name] = (TYPES[p["kind"]], text, p["aliases"])
    first = [(name, kind, text, []) for name, kind, text in CHAIN]
    return first + [(name, *rest) for name, rest in found.items()]


def params() -> str:
    """_params.py."""
    out = [
        '"""The keywords of whole chains. Written by scripts/sampler_docs.py from the core\'s table."""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping, Sequence",
        "from typing import TYPE_CHECKING, TypedDict",
        "",
        "if TYPE_CHECKING:",
        "    from logitree._core import Vocabulary",
        "",
        "",
        "class SamplingParams(TypedDict, total=False):",
        '    """Keywords of chains without their seed: what `generate` takes besides its own options.',
        "",
        "    Names and defaults are llama.cpp's (common/common.h), where it has them; the presets of transformers and",
        "    tsampler change some defaults. ``Chain.get`` and ``Chain.set`` read and set the numbers between tokens.",
        "    Of a keyword and its aliases only one may be given.",
        '    """',
        "",
    ]
    seed, *others = keywords()
    for one in others:
        out += fields(one)
    out += [
        "",
        "",
        "class ChainParams(SamplingParams, total=False):",
        '    """Keywords of ``Chain.parse`` and of the presets (``Chain.llama_cpp`` and others), all optional."""',
        "",
        *fields(seed),
    ]
    return "\n".join(out) + "\n"


def fields(keyword: tuple[str, str, str, list[str]]) -> list[str]:
    """A keyword and its aliases, each with its docstring."""
    name, kind, text, aliases = keyword
    out = []
    for key, said in [(name, text), *((alias, f"The same as ``{name}``.") for alias in aliases)]:
        lines = textwrap.wrap(said, 108)
        out.append(f"    {key}: {kind}")
        if len(lines) == 1:
            quote = " " if lines[0].startswith('"') else ""
            out.append(f'    """{quote}{lines[0]}"""')
        else:
            out += [f'    """{lines[0]}', *("    " + line for line in lines[1:]), '    """']
    return out


def document() -> str:
    """docs/samplers.md."""
    out = [
        "# Samplers",
        "",
        "Written by `python scripts/sampler_docs.py` from the core's table of samplers; a test keeps it so. Each",
        'sampler is a constructor in `logitree.samplers`, a name in `Chain.parse("top_k;temp")`, and a letter where',
        "llama.cpp has one.",
        "A keyword is the parameter's name where a whole chain takes it: `Chain.llama_cpp(top_k=20)`,",
        "`Chain.set(top_k=20)`.",
    ]
    for row in _core.sampler_table():
        names = ", ".join(f"`{alias}`" for alias in row["aliases"])
        also = [f"Also {names}."] if names else []
        also += [f"Letter `{row['letter']}`."] if row["letter"] else []
        out += ["", f"## {row['name']}", "", f"`{row['name']}{row['signature']}`", "", " ".join([row["doc"], *also])]
        if row["details"]:
            out += ["", row["details"]]
        if row["parameters"]:
            out += ["", "| parameter | keyword | default | range | |", "|---|---|---|---|---|"]
        for p in row["parameters"]:
            words = ", ".join(f"`{name}`" for name in [p["keyword"], *p["aliases"]])
            default = "required" if p["required"] else f"`{p['default']}`"
            out.append(f"| `{p['name']}` | {words} | {default} | {p['range']} | {p['doc']} |")
    return "\n".join(out) + "\n"


def files() -> dict[Path, str]:
    """What each file has to hold."""
    return {
        ROOT / "docs/samplers.md": document(),
        ROOT / "python/logitree/_params.py": params(),
        ROOT / "python/logitree/samplers.py": constructors(),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
