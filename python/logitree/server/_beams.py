"""Beam searches of requests, in the fields of vLLM's clients: what is searched becomes the outputs of rows."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import replace

from .. import _core
from .._row import Row
from ..beams import Hypothesis
from ..beams._options import Options, checked
from ..beams._search import search_after
from ..engines import Engine
from ._fields import Fields, RequestError
from ._limits import Limits


def asked(
    fields: Fields, limits: Limits, engine: Engine, n: int, *, stream: bool, logprobs: int | None
) -> Options | None:
    """The beam search that is asked for in the way of vLLM's clients."""
    power = fields.take("length_penalty")
    if not fields.flag("use_beam_search"):
        if power is not None:
            raise RequestError("length_penalty is of beams: give use_beam_search too", "length_penalty")
        return None
    width = fields.whole("best_of", n, n, limits.answers) or n
    power, heat = 1.0 if power is None else power, fields.take("temperature", 1.0)
    refused = {"stream": stream, "logprobs": logprobs is not None, "stop": bool(fields.take("stop"))}
    refused |= dict.fromkeys(sorted(fields.sampling()), True)
    for name, is_given in refused.items():
        if is_given:
            raise RequestError(f"{name} with use_beam_search: beams do without it", name)
    if engine.beam_rows == 0:
        raise RequestError("use_beam_search: the engine searches no beams", "use_beam_search")
    try:
        # Greedy sampling is what clients say who want no sampling.
        return checked(
            width=width,
            returned=n,
            max_tokens=None,
            length_penalty=power,
            normalize="vocabulary",
            groups=1,
            diversity=0.0,
            temperature=heat or 1.0,
            sample=False,
            seed=None,
            unfinished=True,
        )
    except _core.SamplingError as wrong:
        param = "length_penalty" if "length_penalty" in str(wrong) else "temperature"
        raise RequestError(str(wrong), param) from wrong


def search(engine: Engine, rows: Sequence[Row], beams: Options) -> Generator[None, None, None]:
    """Searches what each prompt's rows become."""
    for first in range(0, len(rows), beams.returned):
        some = rows[first : first + beams.returned]
        began = time.perf_counter()
        room = some[0].options.max_tokens
        if engine.n_ctx is not None:
            room = max(1, min(room, engine.n_ctx - len(some[0].unseen)))
        all_beams = replace(beams, max_tokens=room, returned=beams.most_rows or beams.returned)
        made = yield from search_after(engine, some[0], all_beams)
        # Several sequences of tokens may spell one text: the first is the likeliest.
        different: dict[str | None, Hypothesis] = {}
        for one in made:
            different.setdefault(one.text, one)
        found = list(different.values())[: len(some)]
        if len(found) < len(some):
            raise RequestError(f"n is {len(some)}, and there are only {len(found)} different outputs", "n")
        for row, hypothesis in zip(some, found, strict=True):
            row.began = began
            row.begin_with(hypothesis.tokens[:-1])
            if not row.decoder.is_finished:
                row.begin_with(hypothesis.tokens[-1:])
            row.check()
            if not row.over:
                row.end("context_full")
