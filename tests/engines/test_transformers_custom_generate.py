"""`model.generate` with logitree's loop: the outputs of transformers' own loop with a processor, in fewer passes."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest

import logitree as lt
from logitree.engines.transformers import ConstraintLogitsProcessor, Transformers, custom_generate
from small_object import PAIR
from tiny_models import counted, tiny, tokenizer, torch, transformers

pytestmark = pytest.mark.peers

END, PAD, WIDTH = 1, 2, 320
TOKENIZER = tokenizer()
PROMPTS = ["the cat", "it said that the mat was yes", "no"]
SCHEMA = lt.Grammar.json_schema(PAIR, whitespace="compact")


def encoded(prompts: list[str] = PROMPTS) -> Any:
    return TOKENIZER(prompts, return_tensors="pt", padding=True)


def texts(out: Any, length: int) -> list[str]:
    """What each row says after the prompt, end tokens and padding left out."""
    vocabulary = lt.Vocabulary.from_transformers(TOKENIZER)
    rows = [[token for token in row if token not in (END, PAD)] for row in out[:, length:].tolist()]
    return [vocabulary.decode(row).decode("utf-8", "replace") for row in rows]


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize(
    "settings",
    [
        {"do_sample": False},
        {"do_sample": False, "repetition_penalty": 1.7, "no_repeat_ngram_size": 3},
        {"do_sample": True, "top_k": 1},
    ],
)
def test_the_tokens_are_those_of_a_processor_in_fewer_passes(family: str, settings: dict[str, Any]) -> None:
    model, prompts = tiny(family, WIDTH, 128), encoded()
    length = prompts["input_ids"].shape[1]
    settings = {**settings, "max_new_tokens": 60, "pad_token_id": PAD, "eos_token_id": END}
    processor = ConstraintLogitsProcessor(SCHEMA, TOKENIZER)
    with counted(model) as theirs:
        want = texts(model.generate(**prompts, **settings, logits_processor=[processor]), length)
    own = custom_generate(SCHEMA, TOKENIZER, tokenization="any")
    for _ in range(2):
        with counted(model) as ours:
            assert texts(model.generate(**prompts, **settings, custom_generate=own), length) == want
        assert len(ours) <= len(theirs) / 2
    assert all(json.loads(text).keys() == {"a", "b"} for text in want)


def test_samples_are_reproduced_by_torchs_seed_and_differ_between_rows() -> None:
    model = tiny("llama", WIDTH, 128)
    prompts = encoded(["the cat"])
    length = prompts["input_ids"].shape[1]
    own = custom_generate(lt.Grammar.regex("[a-z]{6}"), TOKENIZER)
    made = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        out = model.generate(
            **prompts,
            max_new_tokens=9,
            do_sample=True,
            temperature=1.5,
            top_k=0,
            num_return_sequences=4,
            custom_generate=own,
        )
        made.append(texts(out, length))
    assert made[0] == made[1] != made[2]
    assert len(set(made[0])) > 1
    assert all(len(text) == 6 for rows in made for text in rows)


def test_each_row_has_its_constraint_and_rows_are_padded() -> None:
    model, prompts = tiny("llama", WIDTH, 128), encoded()
    length = prompts["input_ids"].shape[1]
    own = custom_generate([["yes"], None, SCHEMA], TOKENIZER)
    out = model.generate(**prompts, max_new_tokens=30, do_sample=False, pad_token_id=PAD, custom_generate=own)
    assert torch.equal(out[:, :length], prompts["input_ids"])
    found = texts(out, length)
    assert found[0] == "yes"
    assert out[0, length:].tolist().count(PAD) > 0
    assert json.loads(found[2]).keys() == {"a", "b"}
    made = model.generate(
        **prompts,
        max_new_tokens=30,
        do_sample=False,
        pad_token_id=PAD,
        return_dict_in_generate=True,
        custom_generate=own,
    )
    assert torch.equal(made.sequences, out)


def test_limits_stops_and_ends_are_those_of_generate() -> None:
    model, prompts = tiny("llama", WIDTH, 128), encoded(["the cat"])
    length = prompts["input_ids"].shape[1]
    long = custom_generate(lt.Grammar.regex("[ab]{40}"), TOKENIZER, tokenization="any")
    out = model.generate(**prompts, max_new_tokens=7, do_sample=False, custom_generate=long)
    assert out.shape[1] == length + 7
    ends = lt.Vocabulary.from_transformers(TOKENIZER).find(b"a")
    first = model.generate(
        **prompts,
        max_new_tokens=20,
        do_sample=False,
        eos_token_id=ends,
        custom_generate=custom_generate(None, TOKENIZER),
    )
    plain = model.generate(**prompts, max_new_tokens=20, do_sample=False, eos_token_id=ends)
    assert first[0].tolist() == plain[0].tolist()
    stop = custom_generate(["yes no yes"], TOKENIZER)
    criteria = [transformers.StopStringCriteria(TOKENIZER, ["no"])]
    out = model.generate(**prompts, max_new_tokens=9, do_sample=False, stopping_criteria=criteria, custom_generate=stop)
    assert texts(out, length)[0].startswith("yes no")


def test_a_streamer_gets_the_tokens() -> None:
    model, prompts = tiny("llama", WIDTH, 128), encoded(["the cat"])
    streamer = transformers.TextIteratorStreamer(TOKENIZER, skip_prompt=True)
    own = custom_generate(["yes sir"], TOKENIZER, streamer=streamer)
    model.generate(**prompts, max_new_tokens=9, custom_generate=own)
    assert "".join(streamer) == "yes sir"
    with pytest.raises(lt.ConstraintError, match="a streamer for 3 rows; give one prompt"):
        model.generate(**encoded(), max_new_tokens=9, custom_generate=own)


def test_what_only_transformers_has_is_an_error() -> None:
    model, prompts = tiny("llama", WIDTH, 128), encoded(["the cat"])
    own = custom_generate(["yes", "no"], TOKENIZER)
    penalty = transformers.RepetitionPenaltyLogitsProcessor(1.3, prompt_ignore_length=1)
    for settings, match in (
        ({"num_beams": 3}, "num_beams is 3; use logitree.beam_search"),
        ({"output_scores": True, "return_dict_in_generate": True}, "output_scores=True; leave it out, or use"),
        ({"bad_words_ids": [[5]]}, "the logits processor NoBadWordsLogitsProcessor; leave it out"),
        ({"max_time": 1.0}, "the stopping criterion MaxTimeCriteria; leave it out"),
        ({"position_ids": torch.tensor([[5, 6]])}, "the model's input position_ids"),
        ({"logits_processor": [penalty]}, "a repetition penalty that ignores a part of the prompt"),
        ({"inputs_embeds": torch.zeros(1, 2, 32)}, "the model's input inputs_embeds"),
    ):
        with pytest.raises(lt.ConstraintError, match=match):
            model.generate(**prompts, **settings, max_new_tokens=9, custom_generate=own)
    with pytest.raises(lt.ConstraintError, match="2 constraints for 1 prompts"):
        model.generate(**prompts, max_new_tokens=9, custom_generate=custom_generate([SCHEMA, None], TOKENIZER))
    broken = copy.deepcopy(model)
    with torch.no_grad():
        broken.lm_head.weight[:] = math.nan
    with pytest.raises(lt.LogitsError, match="NaN"):
        broken.generate(**prompts, max_new_tokens=9, custom_generate=own)


def test_a_prompt_that_fills_the_context_is_an_error() -> None:
    model = tiny("llama", WIDTH, 128)
    ids = torch.full((1, 126), 4)
    own = custom_generate(lt.Grammar.regex("[ab]{40}"), Transformers(model, TOKENIZER).tokenizer, tokenization="any")
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=40, custom_generate=own)
    assert out.shape[1] == 129, "the last token needs no room"
