"""Draws the README's tables and the plots from ``bench/results``: ``python -m logitree.bench.report``.

It measures nothing: every number it writes stands in a results file. A table goes between the markers
``<!-- bench:SUITE -->`` and ``<!-- /bench:SUITE -->``; a suite without results leaves its table as it is.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

Results = dict[str, Any]

RESULTS = Path("bench/results")
DOCUMENTS = (Path("README.md"), Path("DESIGN.md"))
MARKED = re.compile(r"(<!-- bench:(\w+) -->\n).*?(<!-- /bench:\2 -->)", re.DOTALL)
FIGURE = re.compile(r"\b\d[\d.,]*\s?(?:ns|us|µs|ms|tokens/s|x|times)\b")
"""What looks like a measured figure in prose; those belong into tables."""
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
MODE_COLUMNS = {
    "mode": "mode",
    "tokens_per_second": "tokens/s",
    "tokens_per_second_vs_grammar": "times grammar",
    "forward_passes_saved": "passes saved",
    "forward_passes_total": "of",
    "token_accuracy": "token accuracy",
    "skip_ratio_mean": "skip ratio",
}


def load(folder: Path) -> dict[str, Results]:
    """The results files of a folder, by suite."""
    files = sorted(folder.glob("*.json"))
    return {f.stem: json.loads(f.read_text(encoding="utf-8")) for f in files}


def with_tables(text: str, results: dict[str, Results]) -> str:
    """``text`` with each marked table drawn anew."""

    def draw(found: re.Match[str]) -> str:
        suite = results.get(found[2])
        return found[0] if suite is None else f"{found[1]}{table(suite)}{found[3]}"

    return MARKED.sub(draw, text)


def marks(text: str) -> list[tuple[str, str]]:
    """The marked tables of a document: what stands there, and the suite."""
    return [(found[0], found[2]) for found in MARKED.finditer(text)]


def table(results: Results) -> str:
    """A suite as a Markdown table, with a line that says where it was measured."""
    modes = [r for r in results["records"] if "mode" in r]
    cases = [r for r in results["records"] if "ours" in r]
    parts = [_mode_table(modes)] if modes else []
    parts += [_case_table(cases)] if cases else []
    return "\n".join([*parts, _where(results)])


def _case_table(cases: list[Results]) -> str:
    rows = ["| case | logitree | target | fastest peer | times better |", "|---|--:|--:|--:|--:|"]
    for r in cases:
        ours, target, peer, times = "skipped", "", "", ""
        if r["ours"] is not None:
            ours = f"{_number(r['ours'])} {r['unit']}"
        if r["target"] is not None:
            bound = "≥" if r["better"] == "higher" else "≤"
            target = f"{bound} {_number(r['target'])} {'met' if r['meets'] else '**missed**'}"
        if r["peer"] is not None:
            peer, times = f"{_number(r['peer'])} {r['unit']} ({r['peer_name']})", _number(r["ratio"])
        rows.append(f"| {r['case']} | {ours} | {target} | {peer} | {times} |")
    return "\n".join(rows) + "\n"


def _mode_table(modes: list[Results]) -> str:
    rows = ["| " + " | ".join(MODE_COLUMNS.values()) + " |", "|---" + "|--:" * (len(MODE_COLUMNS) - 1) + "|"]
    rows += ["| " + " | ".join(_number(mode.get(key)) for key in MODE_COLUMNS) + " |" for mode in modes]
    return "\n".join(rows) + "\n"


def _number(value: Any) -> str:
    if value is None:
        return ""
    return (
        f"{value:,.4g}"
        if isinstance(value, float) and abs(value) < 10000
        else f"{value:,}"
        if isinstance(value, int | float)
        else str(value)
    )


def _where(results: Results) -> str:
    machine, versions = results["machine"], results["versions"]
    peers = ", ".join(f"{k} {v}" for k, v in versions.items() if k not in ("profile", "logitree"))
    quick = " A quick run." if results["quick"] else ""
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}; {peers}.{quick}\n"


def plot(results: Results, path: Path) -> bool:
    """Draw a suite as bars, ours beside the peers; False where it has nothing to draw."""
    modes = [r for r in results["records"] if r.get("tokens_per_second") is not None]
    if modes:
        rows = [(r["mode"], {"tokens/s": r["tokens_per_second"]}) for r in modes]
        _bars(
            rows,
            f"{results['suite']}: output tokens per second (higher is better)",
            "tokens per second",
            path,
            False,
        )
        return True
    timed = [r for r in results["records"] if r.get("unit") in SECONDS and r.get("peers")]
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
        )
    return bool(rows)


def _bars(rows: list[tuple[str, dict[str, float]]], title: str, axis: str, path: Path, log: bool) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "logitree"  # the same figures give the same file
    from matplotlib import pyplot

    names = list(dict.fromkeys(name for _, values in rows for name in values))
    colours = {name: f"C{i}" for i, name in enumerate(names)}
    figure, axes = pyplot.subplots(layout="constrained", figsize=(8, 1.2 + 0.28 * sum(len(v) + 1 for _, v in rows)))
    at, ticks = 0.0, []
    for _, values in rows:
        ticks.append(at + (len(values) - 1) / 2)
        for name, value in values.items():
            axes.barh(at, value, color=colours[name], label=name)
            axes.text(value, at, f" {value:.3g}", va="center", fontsize=7)
            at += 1
        at += 0.8
    axes.set_yticks(ticks, [case for case, _ in rows], fontsize=8)
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
    """Draw everything; 1 where there are no results."""
    results = load(RESULTS)
    if not results:
        print(f"no results in {RESULTS}: run make bench in the repository's folder", file=sys.stderr)
        return 1
    for document in filter(Path.exists, DOCUMENTS):
        before = document.read_text(encoding="utf-8")
        after = with_tables(before, results)
        if after != before:
            document.write_text(after, encoding="utf-8")
            print(f"drew the tables of {document}")
    for suite, found in results.items():
        path = RESULTS / f"{suite}.svg"
        if plot(found, path):
            print(f"drew {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
