#!/usr/bin/env python3
"""Runs suites of the bench with two installed versions in turns, and lists each case's ratio.

`python scripts/turns.py BEFORE AFTER SUITE...`. BEFORE and AFTER are what goes into PYTHONPATH: the folder of a build
(`pip install --no-deps --target FOLDER WHEEL`) and the folder `bench` that belongs to it, with a colon between.
Both versions meet the same noise of the machine, because they run one after the other many times, in an order that
alternates. Two ratios are given: of the best figures of all turns, and the median of the turns' own. A case is slower
(or worse, where more is better) if both are past the limit; noise alone seldom moves both.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys


def figures(path, suite, quick):
    """What a version measures in one run: for each case the figure, the unit and whether less is better."""
    command = [sys.executable, "-m", "logitree_bench", suite, "--json", *(["--quick"] if quick else [])]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, check=True, text=True
    )
    records = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        record["case"]: (record.get("ours_min", record["ours"]), record["unit"], record["better"] == "lower")
        for record in records
        if record.get("ours") is not None
    }


def compared(turns):
    """For each case of both versions: the best figures, the unit, and both ratios; above 1 the second is worse."""
    for case, (_, unit, lower) in turns[0][0].items():
        pairs = [(a[case][0], b[case][0]) for a, b in turns if case in a and case in b]
        if len(pairs) < len(turns) or min(map(min, pairs)) <= 0:
            continue
        before, after = (min(side) if lower else max(side) for side in zip(*pairs, strict=True))
        ratios = [(before, after), *pairs]
        best, *each = [b / a if lower else a / b for a, b in ratios]
        yield case, before, after, unit, best, statistics.median(each)


def main():
    """Run the suites and print a line a case; 1 if a case is past the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", metavar="BEFORE", help="PYTHONPATH of the first version")
    parser.add_argument("after", metavar="AFTER", help="PYTHONPATH of the second version")
    parser.add_argument("suites", nargs="+", metavar="SUITE")
    parser.add_argument(
        "--turns", type=int, default=7, metavar="N", help="runs of each version; %(default)s if left out"
    )
    parser.add_argument("--quick", action="store_true", help="short runs: take more turns")
    parser.add_argument("--limit", type=float, default=3.0, metavar="PERCENT", help="%(default)s if left out")
    parser.add_argument("--all", action="store_true", help="also list the cases within the limit")
    arguments = parser.parse_args()
    paths, worse = (arguments.before, arguments.after), 0
    for suite in arguments.suites:
        turns = []
        for turn in range(arguments.turns):
            order = (0, 1) if turn % 2 == 0 else (1, 0)
            found = {at: figures(paths[at], suite, arguments.quick) for at in order}
            turns.append((found[0], found[1]))
        cases = list(compared(turns))
        print(f"\n{suite}: {len(cases)} cases\n{'best':>7} {'median':>7} {'before':>12} {'after':>12}", flush=True)
        for case, before, after, unit, best, median in cases:
            past = min(best, median) > 1 + arguments.limit / 100
            worse += past
            if past or arguments.all:
                mark = "SLOWER" if past else ""
                print(f"{best:7.3f} {median:7.3f} {before:12.4g} {after:12.4g} {unit:<5} {case}  {mark}", flush=True)
        only = turns[0][0].keys() ^ turns[0][1].keys()
        if only:
            print(f"in one version only: {', '.join(sorted(only))}")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
