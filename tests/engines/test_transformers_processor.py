"""Constraints in transformers' own `generate`: every row is what its constraint allows, in every way of decoding."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree.engines.transformers import ConstraintLogitsProcessor, ConstraintStoppingCriteria, Transformers
from small_object import PAIR
from tiny_models import alone, tiny, tokenizer, torch, transformers

pytestmark = pytest.mark.peers

END, PAD, WIDTH = 1, 2, 320
TOKENIZER = tokenizer()
VOCABULARY = Transformers(tiny("llama", WIDTH, 128), TOKENIZER).vocabulary
PROMPTS = ["the cat", "it said that the mat was yes", "no"]

SCHEMA = lt.Grammar.json_schema(PAIR, whitespace="compact")
PATTERN = re.compile("(yes|no|maybe)( [a-c]{2})?")
TEXTS = ["yes", "no", "yes sir"]


def is_json(text: str) -> bool:
    value = json.loads(text)
    return value.keys() == {"a", "b"} and isinstance(value["a"], bool) and value["b"] in ("x", "y")


CONSTRAINTS: dict[str, tuple[Any, Any]] = {
    "regex": (PATTERN, PATTERN.fullmatch),
    "grammar": (lt.Grammar.regex(PATTERN.pattern), PATTERN.fullmatch),
    "schema": (SCHEMA, is_json),
    "texts": (TEXTS, TEXTS.__contains__),
    "int": (int, int),
    "matcher": (lt.Grammar.regex(PATTERN.pattern).matcher(VOCABULARY), PATTERN.fullmatch),
}

WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True, "top_k": 0, "temperature": 1.5},
    "sequences": {"do_sample": True, "num_return_sequences": 3},
    "beams": {"do_sample": False, "num_beams": 4, "num_return_sequences": 3},
    "sampled beams": {"do_sample": True, "num_beams": 4, "temperature": 1.5},
}


def encoded(prompts: list[str] = PROMPTS) -> Any:
    return TOKENIZER(prompts, return_tensors="pt", padding=True)


def outputs(out: Any, length: int) -> list[str]:
    """What each row says after the prompt; it must end with an end token, and nothing but padding may follow."""
    texts = []
    for row in out[:, length:].tolist():
        at = row.index(END)
        assert set(row[at + 1 :]) <= {PAD, END}
        texts.append(VOCABULARY.decode(row[:at], skip_special=False).decode())
    return texts


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_every_row_obeys(kind: str, way: str) -> None:
    constraint, is_allowed = CONSTRAINTS[kind]
    prompts = encoded()
    length = prompts["input_ids"].shape[1]
    assert (prompts["input_ids"] == PAD).any(), "the prompts are padded on the left"
    torch.manual_seed(3)
    model = tiny("llama", WIDTH, 128)
    processor = ConstraintLogitsProcessor(constraint, TOKENIZER)
    # An integer is as long as its model likes: longer outputs are not wanted here.
    lengths = {"max_new_tokens": 60, "exponential_decay_length_penalty": (8, 3.0)}
    out = model.generate(**prompts, logits_processor=[processor], **WAYS[way], **lengths)
    texts = outputs(out, length)
    assert len(texts) == len(PROMPTS) * WAYS[way].get("num_return_sequences", 1)
    for text in texts:
        assert is_allowed(text) is not None and is_allowed(text) is not False, text


@pytest.mark.parametrize("model", ["gpt2", "llama"])
def test_greedy_rows_take_the_likeliest_allowed_token(model: str) -> None:
    prompts = encoded()
    length = prompts["input_ids"].shape[1]
    processor = ConstraintLogitsProcessor(PATTERN, TOKENIZER)
    run = tiny(model, WIDTH, 128)
    out = run.generate(**prompts, logits_processor=[processor], do_sample=False, max_new_tokens=30)
    for prompt, text in zip(PROMPTS, outputs(out, length), strict=True):
        matcher = lt.Grammar.regex(PATTERN.pattern).matcher(VOCABULARY)
        ids, slow = TOKENIZER(prompt)["input_ids"], b""
        while True:
            tokens = [END] if matcher.is_finished else list(map(int, matcher.allowed()))
            logits = alone(run, [ids])[0]
            token = max(tokens, key=lambda token: logits[token])
            if token == END:
                break
            matcher.accept(token)
            ids, slow = [*ids, token], slow + VOCABULARY[token]
        assert text == slow.decode()


def test_each_prompt_has_its_own_constraint() -> None:
    prompts = encoded()
    processor = ConstraintLogitsProcessor([PATTERN, None, SCHEMA], TOKENIZER)
    options = {"do_sample": True, "num_return_sequences": 2, "max_new_tokens": 40, "num_beams": 2}
    out = tiny("llama", WIDTH, 128).generate(**prompts, logits_processor=[processor], **options)
    rows = out[:, prompts["input_ids"].shape[1] :]
    for row in rows[:2]:
        assert PATTERN.fullmatch(outputs(row[None], 0)[0])
    for row in rows[4:]:
        assert is_json(outputs(row[None], 0)[0])


def test_beams_find_the_likeliest_texts() -> None:
    run = tiny("llama", WIDTH, 128)
    prompts = encoded(PROMPTS[:1])
    length = prompts["input_ids"].shape[1]
    texts = ["a", "bc", "def", "ghij"]
    tokenized = {text: [VOCABULARY.find(bytes([c]))[0] for c in text.encode()] for text in texts}
    likely = {}
    for text, tokens in tokenized.items():
        ids = [*TOKENIZER(PROMPTS[0])["input_ids"], *tokens, END]
        with torch.inference_mode():
            log_p = torch.log_softmax(run(torch.tensor([ids]), use_cache=False).logits[0].double(), -1)
        likely[text] = sum(float(log_p[at - 1, ids[at]]) for at in range(length, len(ids)))
    processor = ConstraintLogitsProcessor(texts, TOKENIZER)
    options = {"num_beams": 8, "num_return_sequences": 4, "length_penalty": 0.0, "do_sample": False}
    out = run.generate(**prompts, logits_processor=[processor], max_new_tokens=8, **options)
    assert outputs(out, length) == sorted(texts, key=lambda text: -likely[text])


def test_speculation_changes_nothing() -> None:
    run, prompts = tiny("llama", WIDTH, 128), encoded(PROMPTS[1:2])
    found = []
    for options in ({}, {"prompt_lookup_num_tokens": 3}):
        processor = ConstraintLogitsProcessor(re.compile("(the |mat ){6}"), TOKENIZER)
        found.append(
            run.generate(**prompts, logits_processor=[processor], max_new_tokens=40, do_sample=False, **options)
        )
    assert torch.equal(*found)


def test_an_assistant_changes_nothing() -> None:
    run, prompts = tiny("llama", WIDTH, 128), encoded(PROMPTS[:1])
    found = []
    for options in ({}, {"assistant_model": tiny("llama", WIDTH, 128, hidden=16)}):
        processor = ConstraintLogitsProcessor(re.compile("(the |mat |yes ){4}"), TOKENIZER)
        found.append(
            run.generate(**prompts, logits_processor=[processor], max_new_tokens=40, do_sample=False, **options)
        )
    assert torch.equal(*found)


def test_a_streamer_gets_the_text() -> None:
    prompts = encoded(PROMPTS[:1])
    streamer = transformers.TextIteratorStreamer(TOKENIZER, skip_prompt=True, skip_special_tokens=True)
    processor = ConstraintLogitsProcessor(SCHEMA, TOKENIZER)
    out = tiny("llama", WIDTH, 128).generate(
        **prompts, logits_processor=[processor], streamer=streamer, do_sample=False, max_new_tokens=60
    )
    said = "".join(streamer)
    assert is_json(said)
    assert [said] == outputs(out, prompts["input_ids"].shape[1])


def test_a_pipeline_takes_the_processor() -> None:
    pipeline = transformers.pipeline("text-generation", model=tiny("llama", WIDTH, 128), tokenizer=TOKENIZER)
    made = pipeline(
        PROMPTS[0],
        logits_processor=[ConstraintLogitsProcessor(TEXTS, TOKENIZER)],
        return_full_text=False,
        do_sample=True,
        max_new_tokens=20,
    )
    assert made[0]["generated_text"] in TEXTS


# -- a chain, and the end


@pytest.mark.parametrize("samples", [True, False])
def test_a_chain_picks_each_rows_tokens(samples: bool) -> None:
    run, prompts = tiny("llama", WIDTH, 128), encoded()
    chain = lt.Chain([lt.samplers.penalties(repeat=1.4), lt.samplers.temp(1.6), lt.samplers.dist(11)])
    processor = ConstraintLogitsProcessor([PATTERN, None, SCHEMA], TOKENIZER, chain=chain)
    out = run.generate(**prompts, logits_processor=[processor], do_sample=samples, max_new_tokens=30)
    rows = out[:, prompts["input_ids"].shape[1] :].tolist()
    for prompt, constraint, own, row in zip(PROMPTS, (PATTERN, None, SCHEMA), chain.sequences(3), rows, strict=True):
        ids = TOKENIZER(prompt)["input_ids"]
        for token in ids:
            own.accept(token)
        grammar = lt.Grammar.regex(constraint.pattern) if isinstance(constraint, re.Pattern) else constraint
        matcher = None if grammar is None else grammar.matcher(VOCABULARY)
        for token in row:
            logits = alone(run, [ids])[0][: len(VOCABULARY)]
            allowed = None if matcher is None else matcher.allowed()
            assert own.sample(logits, allowed=allowed) == token
            if token == END:
                break
            if matcher is not None:
                matcher.accept(token)
            ids = [*ids, token]
    processor.reset()
    again = run.generate(**prompts, logits_processor=[processor], do_sample=samples, max_new_tokens=30)
    assert torch.equal(out, again)


@pytest.mark.parametrize("options", [{"num_beams": 3}, {"prompt_lookup_num_tokens": 3}])
def test_a_chain_takes_no_beams_and_no_lookup(options: dict[str, int]) -> None:
    constraint = re.compile("(the |mat ){6}")
    processor = ConstraintLogitsProcessor(constraint, TOKENIZER, chain=lt.Chain([lt.samplers.dist(1)]))
    with pytest.raises(lt.StateError, match="do not continue with the tokens that the chain picked"):
        tiny("llama", WIDTH, 128).generate(
            **encoded(PROMPTS[1:2]), logits_processor=[processor], do_sample=False, max_new_tokens=20, **options
        )


def test_a_chain_refuses_a_row_of_nan() -> None:
    processor = ConstraintLogitsProcessor(PATTERN, VOCABULARY, chain=lt.Chain([lt.samplers.dist(1)]))
    with pytest.raises(lt.LogitsError):
        processor(torch.tensor([[4, 5]]), torch.full((1, WIDTH), math.nan))


@pytest.mark.parametrize("chain", [None, lt.Chain([lt.samplers.temp(1.5), lt.samplers.dist(3)])])
def test_a_criterion_ends_rows_where_they_are_complete(chain: Any) -> None:
    prompts = encoded()
    run = tiny("llama", WIDTH, 128)
    texts = ["yes", "no, no", "a"]
    rows = {}
    for stops in (False, True):
        processor = ConstraintLogitsProcessor([lt.OneOf([text]) for text in texts], TOKENIZER, chain=chain)
        criteria = [ConstraintStoppingCriteria(processor)] if stops else []
        out = run.generate(
            **prompts, logits_processor=[processor], stopping_criteria=criteria, do_sample=False, max_new_tokens=30
        )
        rows[stops] = out[:, prompts["input_ids"].shape[1] :]
    assert outputs(rows[False], 0) == texts
    assert [VOCABULARY.decode([t for t in row if t != PAD]).decode() for row in rows[True].tolist()] == texts
    assert rows[True].shape[1] == rows[False].shape[1] - 1  # no pass for the end token


# -- one call


def allowed_by(out: Any, row: int) -> list[int]:
    return torch.isfinite(out[row]).nonzero().flatten().tolist()


def test_rows_come_in_any_order_and_from_anywhere() -> None:
    processor = ConstraintLogitsProcessor(PATTERN, VOCABULARY, prompt_length=2)
    generator = np.random.default_rng(5)
    known: list[list[int]] = [[]]
    for _ in range(40):
        some = [known[i] for i in generator.integers(0, len(known), 3)]
        length = min(map(len, some))
        ids = torch.tensor([[3, 3, *row[:length]] for row in some])
        out = processor(ids, torch.zeros(3, WIDTH))
        for at, row in enumerate(some):
            matcher = lt.Grammar.regex(PATTERN.pattern).matcher(VOCABULARY)
            matcher.accept_many(row[:length])
            expected = [END] if matcher.is_finished else list(map(int, matcher.allowed()))
            assert allowed_by(out, at) == expected
            inner = [token for token in expected if token != END]
            if inner:
                known.append([*row[:length], inner[int(generator.integers(len(inner)))]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("width", [len(VOCABULARY), WIDTH, 1000])
def test_scores_of_every_kind(dtype: Any, width: int) -> None:
    processor = ConstraintLogitsProcessor([TEXTS, None], TOKENIZER)
    scores = torch.arange(2.0 * width).reshape(2, width).to(dtype)
    before = scores.clone()
    out = processor(torch.tensor([[4, 5], [4, 5]]), scores)
    assert torch.equal(scores, before) and out.dtype == dtype
    expected = [token for text in TEXTS for n in (1, 2, 3) for token in VOCABULARY.find(text[:n].encode())]
    assert allowed_by(out, 0) == sorted(set(expected))
    assert torch.equal(out[0, expected], before[0, expected]) and torch.equal(out[1], before[1])


def test_what_is_over_may_only_end() -> None:
    yes = [*map(ord, "yes"), END, PAD, PAD]
    spelled = [VOCABULARY.find(bytes([token]))[0] if token > 9 else token for token in yes]
    processor = ConstraintLogitsProcessor(["yes"], TOKENIZER)
    for n in range(len(spelled) + 1):
        out = processor(torch.tensor([[4, *spelled[:n]]]), torch.zeros(1, WIDTH))
        if n >= 3:
            assert allowed_by(out, 0) == [END]
    # A row with a token that was not allowed: of a beam that transformers fills up with.
    processor.reset()
    processor(torch.tensor([[4]]), torch.zeros(1, WIDTH))
    out = processor(torch.tensor([[4, 200]]), torch.zeros(1, WIDTH))
    assert allowed_by(out, 0) == [END]
    # Other end tokens than the vocabulary's.
    other = ConstraintLogitsProcessor(["yes"], VOCABULARY, eos_token_id=[4, 0], prompt_length=1)
    assert allowed_by(other(torch.tensor([[4, *spelled[:3]]]), torch.zeros(1, WIDTH)), 0) == [0, 4]


def test_a_constraint_is_given_its_own_prompt() -> None:
    seen = []

    class Noting(lt.Constraint):
        def matcher(self, vocabulary: lt.Vocabulary) -> lt.Matcher:
            raise AssertionError("bind comes first")

        def bind(self, context: Any) -> lt.Matcher:
            assert context.vocabulary == VOCABULARY and context.tokenize("the") == TOKENIZER("the")["input_ids"]
            seen.append(list(context.prompt))
            return lt.Grammar.regex("a").matcher(context.vocabulary)

    processor = ConstraintLogitsProcessor(Noting(), TOKENIZER)
    ids = encoded()["input_ids"].repeat_interleave(2, dim=0)
    processor(ids, torch.zeros(6, WIDTH))
    processor(torch.cat((ids, ids[:, :1]), dim=1), torch.zeros(6, WIDTH))
    assert seen == [TOKENIZER(prompt)["input_ids"] for prompt in PROMPTS]


def test_an_engine_is_a_vocabulary_too() -> None:
    engine = Transformers(tiny("llama", WIDTH, 128), TOKENIZER)
    for vocabulary in (engine, TOKENIZER, VOCABULARY):
        out = ConstraintLogitsProcessor(["a"], vocabulary)(torch.tensor([[4]]), torch.zeros(1, WIDTH))
        assert allowed_by(out, 0) == VOCABULARY.find(b"a")


def test_misuse_is_an_error() -> None:
    ids, scores = torch.tensor([[4, 5, 6]]), torch.zeros(1, WIDTH)
    with pytest.raises(TypeError, match="may mean several constraints"):
        ConstraintLogitsProcessor("yes", TOKENIZER)
    with pytest.raises(lt.ConstraintError, match="no end token"):
        ConstraintLogitsProcessor(["a"], lt.Vocabulary.from_tokens([b"a"]))
    with pytest.raises(lt.LogitsError, match="30 scores a row, the vocabulary has"):
        ConstraintLogitsProcessor(["a"], VOCABULARY)(ids, torch.zeros(1, 30))
    other = lt.Vocabulary.from_tokens([b"a", b"</s>"], end_tokens=[1])
    with pytest.raises(lt.ConstraintError, match="a matcher for 2 tokens"):
        ConstraintLogitsProcessor(lt.Grammar.regex("a").matcher(other), VOCABULARY)(ids, scores)
    with pytest.raises(lt.ConstraintError):
        ConstraintLogitsProcessor(["b"], other)(ids, scores)
    with pytest.raises(lt.StateError, match="3 rows for 2 constraints"):
        ConstraintLogitsProcessor([PATTERN, None], VOCABULARY)(ids.repeat(3, 1), scores.repeat(3, 1))
    for bad, match in ((-math.inf, "row 1: no score above -inf"), (math.nan, "row 1: a NaN among the allowed")):
        for dtype in (torch.float32, torch.bfloat16):
            given = torch.cat((scores, torch.full((1, WIDTH), bad))).to(dtype)
            with pytest.raises(lt.LogitsError, match=match):
                ConstraintLogitsProcessor(["a"], VOCABULARY)(ids.repeat(2, 1), given)
    processor = ConstraintLogitsProcessor(["a"], VOCABULARY)
    processor(ids, scores)
    with pytest.raises(lt.StateError, match="2 tokens, the prompt has 3"):
        processor(ids[:, :2], scores)
    with pytest.raises(lt.StateError, match="token 7 is not allowed after 0 generated tokens"):
        processor(torch.tensor([[4, 5, 6, 7, 8, 9]]), scores)
    processor.reset()
    processor(ids[:, :2], scores)


def test_scores_of_every_kind_are_masked_alike() -> None:
    ids = torch.tensor([[4, 5], [4, 6], [4, 7]])
    scores = torch.randn(3, WIDTH, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    want = ConstraintLogitsProcessor([SCHEMA, None, TEXTS], TOKENIZER)(ids, scores)
    for given in (
        scores.float(),
        scores.float().repeat(1, 2)[:, :WIDTH],
        scores.float().T.contiguous().T,
        scores.double(),
    ):
        before = given.clone()
        torch.set_default_dtype(torch.float64)
        try:
            got = ConstraintLogitsProcessor([SCHEMA, None, TEXTS], TOKENIZER)(ids, given)
        finally:
            torch.set_default_dtype(torch.float32)
        assert got.dtype == given.dtype
        assert torch.equal(got.to(torch.bfloat16), want)
        assert got.is_contiguous()
        assert torch.equal(given, before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_masks_as_the_cpu_does() -> None:
    generator = np.random.default_rng(1)
    scores = torch.from_numpy(generator.normal(size=(3, WIDTH))).to(torch.float32)
    ids = torch.tensor([[4, 5], [4, 6], [4, 7]])
    made = [ConstraintLogitsProcessor([SCHEMA, None, TEXTS], TOKENIZER) for _ in range(2)]
    assert torch.equal(made[0](ids, scores), made[1](ids.to("cuda"), scores.to("cuda")).cpu())
