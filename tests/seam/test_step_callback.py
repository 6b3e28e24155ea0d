"""`generate(on_step=...)` with the examples' tiny model: when it is called, what it may do, and what not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tiny

import logitree as lt


@pytest.fixture(scope="module")
def engine() -> Any:
    return tiny.TinyEngine(tiny.STORY)


def finish(engine: Any, **options: Any) -> lt.Finish:
    last = list(lt.generate(engine, "The fox", seed=1, **options))[-1]
    assert isinstance(last, lt.Finish)
    return last


def test_it_is_called_before_each_sampled_token_and_steers(engine: Any) -> None:
    fox = engine.vocabulary.search("fox") + engine.vocabulary.search("x")
    seen: list[int] = []

    def on_step(decoder: lt.Decoder, logits: Any) -> None:
        seen.append(len(decoder.tokens))
        assert logits.dtype == np.float32 and len(logits) == len(engine.vocabulary)
        with pytest.raises(ValueError, match="read-only"):
            logits[0] = 0.0
        decoder.steer(lt.steering.Steering().veto(fox))
        decoder.set(temp=0.9)

    free = finish(engine, max_tokens=40)
    steered = finish(engine, max_tokens=40, on_step=on_step)
    assert "x" in free.text and "x" not in steered.text
    assert seen == list(range(steered.stats.output_tokens))
    idle = finish(engine, max_tokens=40, on_step=lambda decoder, logits: None)
    assert (idle.text, idle.tokens) == (free.text, free.tokens)


def test_forcing_changes_neither_its_calls_nor_the_output(engine: Any) -> None:
    texts = ["The farm was warm", "The farm was cold", "The boat"]
    outcomes = []
    for force in (True, False):
        calls: list[int] = []

        def on_step(decoder: lt.Decoder, logits: Any, calls: list[int] = calls) -> None:
            calls.append(len(decoder.tokens))
            decoder.steer({token: 0.1 * len(calls) for token in range(90)})

        options = {"constraint": texts, "force": force, "on_step": on_step}
        outcomes.append((finish(engine, **options).tokens, calls))
    assert outcomes[0] == outcomes[1]
    assert 0 < len(outcomes[0][1]) < len(outcomes[0][0])


def test_its_exceptions_end_the_generation_and_tokens_are_not_its_to_take(engine: Any) -> None:
    def fails(decoder: lt.Decoder, logits: Any) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        finish(engine, on_step=fails)
    with pytest.raises(lt.StateError, match="on_step accepted tokens"):
        finish(engine, on_step=lambda decoder, logits: decoder.accept(3))
    with pytest.raises(lt.LogitsError, match="steering vetoes"):
        finish(engine, on_step=lambda decoder, logits: decoder.steer(lt.steering.Steering().veto(range(len(logits)))))


def test_choose_stays_greedy_with_it(engine: Any) -> None:
    chosen = [
        lt.choose(engine, "The river was", [" cold", " old"], method="greedy", on_step=on_step).text
        for on_step in (None, lambda decoder, logits: decoder.steer(lt.steering.Steering().boost(range(60, 200), 0.0)))
    ]
    assert chosen == [" cold", " cold"]
