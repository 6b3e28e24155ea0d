"""Ray Data on one machine: rows per second of two workers with a core each, beside one.

Each worker decodes batches with one thread. The time counts from the first finished batch of the slower worker to the
last batch: what comes before is Ray's and the model's start.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

from logitree_bench import Bench, machine, model_file, optional, required

ROWS, TOGETHER, TOKENS = 256, 8, 16


def run(bench: Bench) -> None:
    """Measures one worker, then two."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray = required(optional("ray"))
        required(optional("pyarrow"))
        required(optional("llama_cpp"))
    path = str(required(model_file()))
    if int(machine()["cores"]) < 2:
        bench.skip("two workers beside one", "there is one core")
        return
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        rows = ROWS // 6 if bench.quick else ROWS
        one = _rate(ray, path, rows // 2, 1)
        two = _rate(ray, path, rows, 2)
    finally:
        ray.shutdown()
    bench.record(
        "rows per second of two workers beside one",
        two / one,
        unit="times",
        target=1.7,
        better="higher",
        one_worker=round(one, 2),
        two_workers=round(two, 2),
        rows=rows,
        tokens_per_row=TOKENS,
    )


def _rate(ray: Any, path: str, rows: int, workers: int) -> float:
    import logitree.ray

    ray.data.DataContext.get_current().enable_progress_bars = False
    given = [{"id": at, "prompt": f"A story about the number {at}: "} for at in range(rows)]
    with tempfile.TemporaryDirectory() as folder:
        made = logitree.ray.generate(
            ray.data.from_items(given, override_num_blocks=rows // TOGETHER),
            path,
            checkpoint=folder,
            key="id",
            seed=1,
            rows=TOGETHER,
            workers=workers,
            chat=False,
            max_tokens=TOKENS,
            logit_bias={2: float("-inf")},
        )
        made.materialize()
        times = sorted(part.stat().st_mtime for part in Path(folder).glob("*.arrow"))
    first = workers  # each has finished one by then, or nearly
    return (len(times) - first) * TOGETHER / (times[-1] - times[first - 1])
