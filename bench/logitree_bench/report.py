"""Writes the tables of the documents, and charts, from ``bench/results``: ``python -m logitree_bench.report``.

A table goes between the markers ``<!-- bench:SUITE -->`` and ``<!-- /bench:SUITE -->``; ``headlines`` is the README's
selection of :data:`HEADLINES`. A suite without results leaves its table unchanged.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

Results = dict[str, Any]

RESULTS = Path("bench/results")
CHARTS = Path("bench/charts")
DOCUMENTS = (Path("README.md"), Path("docs/benchmarks.md"), Path("docs/comparison.md"), Path("docs/speed.md"))
MARKED = re.compile(r"(<!-- bench:(\w+) -->\n).*?(<!-- /bench:\2 -->)", re.DOTALL)
FIGURE = re.compile(r"\b\d[\d.,]*\s?(?:ns|us|µs|ms|tokens/s|x|times)\b")
"""Text that looks like a measured figure; measured figures belong in the tables."""
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
MAIN_PEER = "llama.cpp"
"""The peer that chains are compared with."""
HEADLINES = (
    ("choosing among 30 actions, SmolLM2-135M", "choices", "mode: logitree", "mode: llama.cpp grammar"),
    ("JSON Schema: MaskBench schemas passing", "maskbench", "logitree, 900", "llguidance, 900"),
    (
        "128 tools: new grammar, compile and first mask",
        "grammar",
        "llama-bpe, 128 tools: new grammar, compile and first mask",
        "",
    ),
    (
        "penalties, top_k, top_p, min_p, temp, dist over 128,256 logits",
        "sampling",
        "penalties, top_k 40, top_p .95, min_p .05, temp .8, dist",
        "",
    ),
    (
        "a step of 2 x 70 beams over 1,000,000 items",
        "catalogue",
        "a step of 2 x 70 beams, 1,000,000 items, beside others",
        "",
    ),
)
"""The README's rows: text, suite, our case, and the peer's case or column where it is a row or column of its own."""
MODE_COLUMNS = {
    "mode": "mode",
    "tokens_per_second": "tokens/s",
    "tokens_per_second_vs_grammar": "times grammar",
    "forward_passes_saved": "passes saved",
    "forward_passes_total": "of",
    "token_accuracy": "token accuracy",
    "skip_ratio_mean": "skip ratio",
}
RESPONSE_COLUMNS = {
    "task": "task",
    "mode": "mode",
    "tokens_per_second": "tokens/s",
    "bytes_per_second": "bytes/s",
    "output_tokens": "tokens",
    "forward_passes": "passes",
}
SPELLING_COLUMNS = {
    "what": "output",
    "tokenization": "tokenization",
    "nats_a_byte": "nats a byte",
    "of_the_tokenizers_spelling": "of the tokenizer's spelling",
    "right": "fields right",
    "output_tokens": "tokens",
    "forward_passes": "passes",
    "tokens_a_pass": "tokens a pass",
    "texts_of_any": 'same text as "any"',
    "repeated": "same tokens again",
}
FIRST_CALL_COLUMNS = {"first_call": "done once", "milliseconds": "ms of processor time"}
SCALE_COLUMNS = {
    "items": "items",
    "shape": "levels x codes",
    "build_s": "build, s",
    "resident_mb": "resident, MB",
    "index_mb": "index, MB",
    "open_ms": "open, ms",
    "first_ms": "first query, ms",
    "ours": "a step, us",
}


def load(folder: Path) -> dict[str, Results]:
    """The results files of a folder, by suite."""
    files = sorted(folder.glob("*.json"))
    return {f.stem: json.loads(f.read_text(encoding="utf-8")) for f in files}


def with_tables(text: str, results: dict[str, Results]) -> str:
    """``text`` with each marked table rewritten."""

    def draw(found: re.Match[str]) -> str:
        if found[2] == "headlines":
            return f"{found[1]}{headlines(results)}{found[3]}"
        suite = results.get(found[2])
        return found[0] if suite is None else f"{found[1]}{table(suite)}{found[3]}"

    return MARKED.sub(draw, text)


def marks(text: str) -> list[tuple[str, str]]:
    """The marked tables of a document: the text, and the suite."""
    return [(found[0], found[2]) for found in MARKED.finditer(text)]


def table(results: Results) -> str:
    """A suite as a Markdown table, with a line that says where it was measured."""
    if "board" in results:
        return f"{board_table(results['board'])}\n{where(results)}"
    modes = [r for r in results["records"] if "mode" in r and "task" not in r]
    responses = [r for r in results["records"] if "task" in r]
    spelled = [r for r in results["records"] if "tokenization" in r]
    firsts = [r for r in results["records"] if "first_call" in r]
    chains = [r for r in results["records"] if "chain" in r]
    scales = [r for r in results["records"] if r.get("scale")]
    cases = [r for r in results["records"] if "ours" in r and "chain" not in r and not r.get("scale")]
    parts = [_column_table(modes, MODE_COLUMNS)] if modes else []
    parts += [_column_table(responses, RESPONSE_COLUMNS)] if responses else []
    parts += [_column_table(spelled, SPELLING_COLUMNS)] if spelled else []
    parts += [_column_table(firsts, FIRST_CALL_COLUMNS)] if firsts else []
    parts += [_chain_table([r for r in chains if r["main"]]), _shape_table(chains)] if chains else []
    parts += [_case_table(cases)] if cases else []
    parts += [_column_table(scales, SCALE_COLUMNS)] if scales else []
    return "\n".join([*parts, where(results)])


def headlines(results: dict[str, Results]) -> str:
    """The README's few figures, each beside the peer; a suite without results has no row."""
    rows = ["| | logitree | beside it |", "|---|--:|--:|"]
    for text, suite, ours, theirs in HEADLINES:
        if suite in results:
            mine, peer = _headline(results[suite], ours, theirs)
            rows.append(f"| {text} | {mine} | {peer} |")
    return "\n".join(rows) + "\n"


def _headline(results: Results, ours: str, theirs: str) -> tuple[str, str]:
    """Our figure and the peer's: a mode's rate, a board's first row, or a case with its compared peer."""
    if "board" in results:
        columns, first = results["board"]["columns"], results["board"]["rows"][0]
        mine, peer = (_number(first[columns.index(name)]) for name in (ours, theirs))
        return f"{mine} %", f"{peer} % ({theirs.partition(',')[0]})"
    cases = {r["case"]: r for r in results["records"]}
    r = cases[ours]
    if theirs:
        rate = "tokens_per_second"
        return f"{_number(r[rate])} tokens/s", f"{_number(cases[theirs][rate])} tokens/s ({cases[theirs]['mode']})"
    return f"{_number(r['ours'])} {r['unit']}", f"{_number(r['peer'])} {r['unit']} ({r['peer_name']})"


def _case_table(cases: list[Results]) -> str:
    rows = ["| case | logitree | target | fastest peer | times better |", "|---|--:|--:|--:|--:|"]
    for r in cases:
        ours, peer, times = "skipped", "", ""
        if r["ours"] is not None:
            ours = f"{_number(r['ours'])} {r['unit']}"
        if r["peer"] is not None:
            peer, times = f"{_number(r['peer'])} {r['unit']} ({r['peer_name']})", _number(r["ratio"])
        rows.append(f"| {r['case']} | {ours} | {_target(r)} | {peer} | {times} |")
    return "\n".join(rows) + "\n"


def _target(r: Results) -> str:
    """What was asked of a case, and whether it was met."""
    goals = []
    if r["target"] is not None:
        goals.append(f"{'≥' if r['better'] == 'higher' else '≤'} {_number(r['target'])}")
    if r.get("target_ratio") is not None:
        goals.append(f"≥ {_number(r['target_ratio'])} times")
    verdict = {True: " met", False: " **missed**", None: ""}[r["meets"]]
    return ", ".join(goals) + verdict


def _chain_table(chains: list[Results]) -> str:
    """Chains over the main logits: a column a peer, and how many reads of the logits ours takes."""
    peers = list(dict.fromkeys(name for r in chains for name in r.get("peers", ())))
    columns = ["chain", "logitree", *peers, "times faster than " + MAIN_PEER, "target", "reads of the logits"]
    rows = ["| " + " | ".join(columns) + " |", "|---" + "|--:" * (len(columns) - 1) + "|"]
    for r in chains:
        cells = ["skipped", *[""] * (len(columns) - 2)]
        if r["ours"] is not None:
            theirs = [f"{_number(r['peers'][p])} {r['unit']}" if p in r["peers"] else "" for p in peers]
            times = _number(r["ratio"]) if r["peer_name"] == MAIN_PEER else ""
            cells = [f"{_number(r['ours'])} {r['unit']}", *theirs, times, _target(r), _number(r.get("reads"))]
        rows.append(f"| {r['chain']} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def _shape_table(chains: list[Results]) -> str:
    """Chains over other logits: ours, and how many times faster it is than the main peer."""
    found = {(r["chain"], r["logits"]): r for r in chains if not r["main"] and r["ours"] is not None}
    shapes = list(dict.fromkeys(logits for _, logits in found))
    rows = ["| chain over | " + " | ".join(shapes) + " |", "|---" + "|--:" * len(shapes) + "|"]
    for name in dict.fromkeys(chain for chain, _ in found):
        cells = []
        for shape in shapes:
            r = found.get((name, shape))
            times = f", {_number(r['ratio'])} times" if r and r["ratio"] is not None else ""
            cells.append(f"{_number(r['ours'])} {r['unit']}{times}" if r else "")
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n" if found else ""


def _column_table(records: list[Results], columns: dict[str, str]) -> str:
    rows = ["| " + " | ".join(columns.values()) + " |", "|---" + "|--:" * (len(columns) - 1) + "|"]
    rows += ["| " + " | ".join(_number(record.get(key)) for key in columns) + " |" for record in records]
    return "\n".join(rows) + "\n"


def _number(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 10000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def board_table(board: Results) -> str:
    """Rows and columns in their own order; the first column holds names, the others numbers."""
    columns = board["columns"]
    rows = ["| " + " | ".join(columns) + " |", "|---" + "|--:" * (len(columns) - 1) + "|"]
    rows += [f"| {name} | " + " | ".join(map(_number, cells)) + " |" for name, *cells in board["rows"]]
    return "\n".join(rows) + "\n"


def where(results: Results) -> str:
    """The line that says which machine and which versions the figures come from."""
    machine, versions = results["machine"], results["versions"]
    peers = ", ".join(f"{k} {v}" for k, v in versions.items() if k not in ("profile", "logitree"))
    quick = " A quick run." if results["quick"] else ""
    is_guided = versions.get("profile") == "profile-guided" and results["suite"] != "native"  # native is plain Rust
    guided = ", profile-guided build" if is_guided else ""
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}{guided}; {peers}.{quick}\n"


def plot(results: Results, path: Path) -> bool:
    """Draw a suite as bars, ours beside the peers; False where it has nothing to draw."""
    modes = [r for r in results["records"] if r.get("tokens_per_second") is not None]
    if modes:
        rows = [
            (": ".join(r[key] for key in ("task", "mode") if key in r), {"tokens/s": r["tokens_per_second"]})
            for r in modes
        ]
        _bars(
            rows,
            f"{results['suite']}: output tokens per second (higher is better)",
            "tokens per second",
            path,
            False,
        )
        return True
    timed = [r for r in results["records"] if r.get("unit") in SECONDS and r.get("peers") and r.get("main", True)]
    rows = []
    for r in timed:
        factor = SECONDS[r["unit"]] * 1e6
        rows.append((r["case"], {k: v * factor for k, v in {"logitree": r["ours"], **r["peers"]}.items() if v > 0}))
    if rows:
        _bars(
            rows,
            f"{results['suite']}: time of one operation (lower is better)",
            "microseconds (log scale)",
            path,
            True,
            min((r["read"] * SECONDS[r["unit"]] * 1e6 for r in timed if "read" in r), default=None),
        )
    return bool(rows)


def scaling(results: Results, path: Path) -> bool:
    """Draw how a step, the build and the index grow with the items, a line a shape; False where no record says."""
    scales = [r for r in results["records"] if r.get("scale")]
    if not scales:
        return False
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(1, 3, layout="constrained", figsize=(10, 3.2))
    for axis, (key, title) in zip(
        axes, (("ours", "a step, us"), ("build_s", "build, s"), ("index_mb", "index, MB")), strict=True
    ):
        for shape in dict.fromkeys(r["shape"] for r in scales):
            mine = [r for r in scales if r["shape"] == shape]
            axis.plot([r["items"] for r in mine], [r[key] for r in mine], marker="o", label=shape)
        axis.set(xscale="log", xlabel="items", title=title)
        axis.set_yscale("linear" if key == "ours" else "log")
        axis.set_ylim(bottom=0 if key == "ours" else None)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(fontsize=7, frameon=False, title="levels x codes", title_fontsize=7)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return True


def _pyplot() -> Any:
    """matplotlib's pyplot, that draws SVG files; the same figures give the same file."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "logitree"
    from matplotlib import pyplot

    return pyplot


def _bars(
    rows: list[tuple[str, dict[str, float]]],
    title: str,
    axis: str,
    path: Path,
    log: bool,
    read: float | None = None,
) -> None:
    pyplot = _pyplot()
    names = list(dict.fromkeys(name for _, values in rows for name in values))
    colours = {name: f"C{i}" for i, name in enumerate(names)}
    figure, axes = pyplot.subplots(layout="constrained", figsize=(8, 1.2 + 0.28 * sum(len(v) + 1 for _, v in rows)))
    at, ticks = 0.0, []
    for _, values in rows:
        ticks.append(at + (len(values) - 1) / 2)
        for name, value in values.items():
            axes.barh(at, value, color=colours[name], label=name)
            axes.text(value, at, f" {value:.3g}" if value < 1000 else f" {value:,.0f}", va="center", fontsize=7)
            at += 1
        at += 0.8
    if read is not None:
        axes.axvline(read, color="black", linewidth=0.8, linestyle="--", label="one read of the logits")
    axes.set_yticks(ticks, [textwrap.fill(case, 44) for case, _ in rows], fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.12, y=0.02)
    if log:
        axes.set_xscale("log")
    axes.set_xlabel(axis)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    if len(names) > 1:
        handles, labels = axes.get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        figure.legend(unique.values(), unique.keys(), fontsize=7, frameon=False, ncols=4, loc="outside lower center")
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main() -> int:
    """Write the tables and, without `--tables`, draw the charts; 1 if there are no results."""
    results = load(RESULTS)
    if not results:
        print(f"no results in {RESULTS}: run make bench in the repository's folder", file=sys.stderr)
        return 1
    for document in filter(Path.exists, DOCUMENTS):
        before = document.read_text(encoding="utf-8")
        after = with_tables(before, results)
        if after != before:
            document.write_text(after, encoding="utf-8")
            print(f"wrote the tables of {document}")
    if "--tables" in sys.argv[1:]:
        return 0
    CHARTS.mkdir(exist_ok=True)
    for suite, found in results.items():
        path = CHARTS / f"{suite}.svg"
        if plot(found, path):
            print(f"drew {path}")
        path = CHARTS / f"{suite}-scale.svg"
        if scaling(found, path):
            print(f"drew {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
