"""The logits processor under both of vLLM's interfaces: rows that come, go and move, drafts, chains, wrong arguments.

The V1 runner's own batch (`InputBatch`) makes the updates; the V2 runner's requests and contexts are its real classes,
filled here, because its kernels need a GPU. After every step each row equals the slow way: a new matcher that takes the
request's tokens one by one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import logitree as lt
import vllm_model

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
vllm_model.require()

import torch  # noqa: E402
from vllm import SamplingParams  # noqa: E402
from vllm.exceptions import VLLMValidationError  # noqa: E402
from vllm.tokenizers import cached_tokenizer_from_config  # noqa: E402
from vllm.v1.engine.input_processor import InputProcessor  # noqa: E402
from vllm.v1.sample.logits_processor import (  # noqa: E402
    BatchUpdate,
    LogitsProcessors,
    MoveDirectionality,
    build_logitsprocs,
    validate_logits_processors_parameters,
)
from vllm.v1.worker.gpu.sample.logits_processor import (  # noqa: E402
    LogitsContext,
    build_custom_logits_processors,
    build_custom_logits_processors_params_validator,
)
from vllm.v1.worker.gpu.states import RequestState  # noqa: E402
from vllm.v1.worker.gpu_input_batch import CachedRequestState, InputBatch  # noqa: E402

from logitree.engines.vllm import LogitsProcessor  # noqa: E402

V, EOS = 49_152, 2
FORMS: list[dict[str, Any] | None] = [
    None,
    {"type": "regex", "pattern": "[ab]{3,9}"},
    {"type": "json_schema", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}},
    {"type": "sequence", "of": [{"type": "choices", "texts": ["yes", "no"]}, {"type": "regex", "pattern": "[0-9]{2}"}]},
    {"type": "ban", "of": {"type": "regex", "pattern": "[a-z ]{1,20}"}, "words": ["the"]},
    {"type": "choices", "texts": ["red", "green", "blue", "violet"]},
]
"""Constraints of requests; None: a request without one."""


@pytest.fixture(scope="module")
def vocabulary() -> lt.Vocabulary:
    tokenizer = cached_tokenizer_from_config(model_config=vllm_model.config().model_config)
    return lt.Vocabulary.from_transformers(tokenizer).replace(end_tokens=[EOS])


def params(given: Any, **others: Any) -> SamplingParams:
    return SamplingParams(extra_args=None if given is None else {"logitree": given}, max_tokens=64, **others)


def processor() -> LogitsProcessor:
    return LogitsProcessor(vllm_model.config(), torch.device("cpu"), False)


def matcher_after(vocabulary: lt.Vocabulary, form: dict[str, Any], tokens: Sequence[int]) -> lt.Matcher:
    """The slow way: a new matcher that takes the tokens one by one."""
    matcher = lt.Constraint.from_form(json.dumps(form)).matcher(vocabulary)
    for token in tokens:
        matcher.accept(token)
    return matcher


def slow(vocabulary: lt.Vocabulary, form: dict[str, Any] | None, tokens: Sequence[int], row: np.ndarray) -> np.ndarray:
    """A row of logits with -inf where the slow way does not allow the id."""
    if form is None or EOS in tokens:
        return row
    allowed = list(matcher_after(vocabulary, form, tokens).allowed())
    masked = np.full_like(row, -np.inf)
    masked[allowed] = row[allowed]
    return masked


class Running:
    """A request in a batch: what it asked for, and vLLM's own list of its tokens."""

    def __init__(self, number: int, rng: random.Random) -> None:
        self.name, self.form = f"r{number}", rng.choice(FORMS)
        given = json.dumps(self.form) if self.form is not None and rng.random() < 0.5 else self.form
        self.params = params(given)
        self.prompt = [rng.randrange(V) for _ in range(rng.randint(1, 4))]
        self.tokens: list[int] = []

    def allows(self, vocabulary: lt.Vocabulary, token: int) -> bool:
        """Whether a token may come next."""
        is_free = self.form is None or EOS in self.tokens
        return is_free or matcher_after(vocabulary, self.form, self.tokens).is_allowed(token)

    def following(self, vocabulary: lt.Vocabulary, rng: random.Random) -> int:
        """A token that may come next."""
        if self.form is None or EOS in self.tokens:
            return rng.randrange(V)
        return rng.choice(list(matcher_after(vocabulary, self.form, self.tokens).allowed()))


def check(
    made: LogitsProcessor, rows: Sequence[Running | None], vocabulary: lt.Vocabulary, generator: np.random.Generator
) -> None:
    """Applies the processor to random logits of a batch, and compares each row with the slow way."""
    given = generator.normal(0, 3, (len(rows), V)).astype(np.float32)
    logits = torch.from_numpy(given.copy())
    got = made.apply(logits)
    for at, one in enumerate(rows):
        expected = given[at] if one is None else slow(vocabulary, one.form, one.tokens, given[at])
        np.testing.assert_array_equal(got[at].numpy(), expected)


@pytest.mark.parametrize("seed", range(4))
def test_rows_follow_vllms_own_batch(seed: int, vocabulary: lt.Vocabulary) -> None:
    """vLLM's InputBatch adds, removes, condenses and swaps at random; preempted requests come back with tokens."""
    rng, generator = random.Random(seed), np.random.default_rng(seed)
    made = processor()
    batch = InputBatch(
        max_num_reqs=8,
        max_model_len=256,
        max_num_batched_tokens=256,
        device=torch.device("cpu"),
        vocab_size=V,
        block_sizes=[16],
        max_num_blocks_per_req=[16],
        logitsprocs=LogitsProcessors([made]),
    )
    assert batch.logitsprocs_need_output_token_ids  # else asynchronous scheduling hides the last tokens
    running: dict[str, Running] = {}
    preempted: list[Running] = []
    for step in range(60):
        for name in [name for name in running if rng.random() < 0.15]:
            batch.remove_request(name)
            gone = running.pop(name)
            if rng.random() < 0.5:
                preempted.append(gone)
        while len(running) < 8 and rng.random() < 0.5:
            one = preempted.pop() if preempted and rng.random() < 0.6 else Running(step * 10 + len(running), rng)
            state = CachedRequestState(
                req_id=one.name,
                prompt_token_ids=one.prompt,
                mm_features=[],
                sampling_params=one.params,
                generator=None,
                block_ids=([1],),
                num_computed_tokens=0,
                output_token_ids=one.tokens,
            )
            batch.add_request(state)
            running[one.name] = one
        batch.condense()
        if len(running) > 1 and rng.random() < 0.4:
            batch.swap_states(*rng.sample(range(len(running)), 2))
        batch.refresh_metadata()
        if not running:
            continue
        check(made, [running[name] for name in batch.req_ids], vocabulary, generator)
        for one in running.values():
            if rng.random() < 0.9:  # not every request takes a token in a step: prompts come in parts
                one.tokens.append(one.following(vocabulary, rng))


@pytest.mark.parametrize("seed", range(4))
def test_rows_follow_random_updates(seed: int, vocabulary: lt.Vocabulary) -> None:
    """Updates that no batch of today makes, in the order that vLLM's interface promises."""
    rng, generator = random.Random(100 + seed), np.random.default_rng(seed)
    made = processor()
    rows: list[Running | None] = [None] * 8
    for step in range(60):
        removed = [at for at in range(8) if rows[at] is not None and rng.random() < 0.2]
        for at in removed:
            rows[at] = None
        added = []
        for at in range(8):
            if rng.random() < 0.2:
                one = rows[at] = Running(step * 10 + at, rng)
                for _ in range(rng.choice((0, 0, 2))):
                    one.tokens.append(one.following(vocabulary, rng))
                added.append((at, one.params, one.prompt, one.tokens))
        moved = []
        for _ in range(rng.choice((0, 0, 1, 3))):
            first, second = rng.sample(range(8), 2)
            if rng.random() < 0.5:
                moved.append((first, second, MoveDirectionality.SWAP))
                rows[first], rows[second] = rows[second], rows[first]
            else:
                moved.append((first, second, MoveDirectionality.UNIDIRECTIONAL))
                rows[first], rows[second] = None, rows[first]
        made.update_state(BatchUpdate(batch_size=8, removed=removed, added=added, moved=moved))
        check(made, rows, vocabulary, generator)
        made.update_state(None)
        for one in rows:
            if one is not None:
                one.tokens.append(one.following(vocabulary, rng))


@pytest.fixture(autouse=True)
def no_pinned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM's own buffers for machines without a GPU: it takes the others for every CPU of today."""
    monkeypatch.setattr("vllm.v1.worker.gpu.buffer_utils.is_uva_available", lambda: False)


class SlotBatch:
    """V2's requests in their slots, filled as its kernels fill them."""

    def __init__(self) -> None:
        self.states = RequestState(
            max_num_reqs=6,
            max_model_len=128,
            max_num_batched_tokens=128,
            num_speculative_steps=4,
            vocab_size=V,
            device=torch.device("cpu"),
        )
        (made,) = build_custom_logits_processors(vllm_model.config(), self.states, is_pooling_model=False)
        self.processor: LogitsProcessor = made
        self.slots: dict[int, Running] = {}

    def add(self, slot: int, one: Running) -> None:
        self.slots[slot] = one
        assert self.processor.add_request(slot, one.params) == (one.form is not None)
        self.states.prompt_len.np[slot] = len(one.prompt)
        self.states.prefill_len.np[slot] = len(one.prompt) + len(one.tokens)
        self.write(slot)

    def write(self, slot: int) -> None:
        one = self.slots[slot]
        known = torch.tensor([*one.prompt, *one.tokens], dtype=torch.int32)
        self.states.all_token_ids.gpu[slot].zero_()
        self.states.all_token_ids.gpu[slot, : len(known)] = known

    def context(self, order: Sequence[int], drafts: dict[int, list[int]]) -> LogitsContext:
        slots, offsets, inputs, positions = [], [], [], []
        for slot in order:
            one = self.slots[slot]
            known = [*one.prompt, *one.tokens]
            for offset, token in enumerate([known[-1], *drafts[slot]]):
                slots.append(slot)
                offsets.append(offset)
                inputs.append(token)
                positions.append(len(known) - 1 + offset)
        return LogitsContext(
            expanded_idx_mapping=torch.tensor(slots, dtype=torch.int32),
            idx_mapping=torch.tensor(order, dtype=torch.int32),
            idx_mapping_np=np.array(order, np.int32),
            expanded_local_pos=torch.tensor(offsets, dtype=torch.int32),
            input_ids=torch.tensor(inputs, dtype=torch.int32),
            pos=torch.tensor(positions),
            seq_lens_upper_bound_np=np.array([max(positions) + 1] * len(order)),
        )


@pytest.mark.parametrize("seed", range(4))
def test_slots_and_drafts_of_the_second_runner(seed: int, vocabulary: lt.Vocabulary) -> None:
    """Slots that are reused and resumed, rows in random order, drafts that are right, wrong, and taken in part."""
    rng, generator = random.Random(200 + seed), np.random.default_rng(seed)
    batch = SlotBatch()
    wrong = 0
    for step in range(50):
        for slot in range(6):
            if slot not in batch.slots or rng.random() < 0.1:
                one = batch.slots.get(slot) if rng.random() < 0.3 else None  # resumed in another slot, or new
                batch.add(slot, one or Running(step * 10 + slot, rng))
        batch.processor.apply_staged_writes()
        order = rng.sample(range(6), rng.randint(1, 6))
        drafts: dict[int, list[int]] = {}
        for slot in order:
            one = batch.slots[slot]
            drafts[slot] = []
            kept = len(one.tokens)
            for _ in range(rng.randrange(4)):
                token = one.following(vocabulary, rng) if rng.random() < 0.8 else rng.randrange(V)
                drafts[slot].append(token)
                if not one.allows(vocabulary, token):
                    wrong += 1
                    break
                one.tokens.append(token)
            del one.tokens[kept:]
        rows = sum(1 + len(drafts[slot]) for slot in order)
        given = generator.normal(0, 3, (rows, V)).astype(np.float32)
        got = batch.processor.apply(torch.from_numpy(given.copy()), batch.context(order, drafts)).numpy()
        at = 0
        for slot in order:
            one = batch.slots[slot]
            valid = drafts[slot]
            for count in range(len(drafts[slot]) + 1):
                walk = [*one.tokens, *drafts[slot][:count]]
                is_over = one.form is None or EOS in walk[:-1]
                if count and not is_over and not matcher_after(vocabulary, one.form, walk[:-1]).is_allowed(walk[-1]):
                    valid = drafts[slot][: count - 1]
                    assert np.isneginf(got[at - 1][walk[-1]])  # the draft is refused, whatever comes after it
                    at += len(drafts[slot]) + 1 - count
                    break
                if one.form is None or EOS not in walk or walk.index(EOS) < len(one.tokens):
                    np.testing.assert_array_equal(got[at], slow(vocabulary, one.form, walk, given[at]))
                at += 1
            taken = valid[: rng.randint(0, len(valid))]
            if EOS in taken:
                del taken[taken.index(EOS) + 1 :]
            one.tokens += taken
            one.tokens.append(one.following(vocabulary, rng))
            batch.write(slot)
    assert wrong > 5


def test_a_prompt_in_parts_is_not_masked_before_its_end(vocabulary: lt.Vocabulary) -> None:
    batch = SlotBatch()
    one = Running(0, random.Random(1))
    one.form, one.params, one.prompt = FORMS[1], params(FORMS[1]), [5, 6, 7, 8]
    batch.add(0, one)
    batch.processor.apply_staged_writes()
    context = batch.context([0], {0: []})
    logits = torch.zeros((1, V))
    batch.processor.apply(logits, LogitsContext(**{**vars(context), "pos": torch.tensor([1])}))
    assert (logits == 0).all()
    batch.processor.apply(logits, context)
    np.testing.assert_array_equal(logits[0].numpy(), slow(vocabulary, FORMS[1], [], np.zeros(V, np.float32)))


def test_a_whole_chain_picks_as_it_does_alone(vocabulary: lt.Vocabulary) -> None:
    """The tokens of a chain in the processor are those of a decoder with the same seed, one step after the other."""
    form = {"type": "regex", "pattern": "[a-z]{4,12}"}
    chain = {"chain": "top_k;temperature;dist", "params": {"top_k": 40, "temperature": 1.5, "seed": 7}}
    made = processor()
    outputs: list[list[int]] = [[], []]
    ended = False
    arguments = [{"constraint": form, **chain}, chain]
    alone = [
        lt.Decoder(vocabulary, lt.Chain.parse(chain["chain"], **chain["params"]), matcher, stop_at_end_tokens=False)
        for matcher in (matcher_after(vocabulary, form, []), None)
    ]
    added = [(at, params(arguments[at]), [5, 6], outputs[at]) for at in range(2)]
    made.update_state(BatchUpdate(batch_size=2, removed=[], added=added, moved=[]))
    generator = np.random.default_rng(3)
    for decoder in alone:
        decoder.prime([5, 6])
    for step in range(12):
        given = generator.normal(0, 3, (2, V)).astype(np.float32)
        if step == 5:  # a pass whose token vLLM throws away
            made.apply(torch.from_numpy(given.copy()))
        got = made.apply(torch.from_numpy(given.copy()))
        for at, decoder in enumerate(alone):
            if EOS in outputs[at]:
                continue
            left = torch.isfinite(got[at]).nonzero().flatten().tolist()
            ended = ended or decoder.is_finished
            assert left == [EOS if decoder.is_finished else decoder.step(given[at])]
            outputs[at].append(left[0])
    assert ended


def test_reasoning_budgets_bias_what_ends_them(vocabulary: lt.Vocabulary) -> None:
    form = {"type": "reasoning_budget", "begin": "<think>", "end": "</think>", "budget": 8, "soft": 2, "ramp": 4}
    tokens = vocabulary.find(b"<think>")
    if not tokens:
        form |= {"begin": [1], "end": [3]}
    made = processor()
    output: list[int] = []
    made.update_state(BatchUpdate(batch_size=1, removed=[], added=[(0, params(form), [5], output)], moved=[]))
    matcher = lt.Constraint.from_form(json.dumps(form)).matcher(vocabulary)
    output += [1, 100, 101, 102, 103]
    for token in output:
        matcher.accept(token)
    bias = matcher.bias()
    assert bias is not None
    logits = torch.zeros((1, V))
    made.apply(logits)
    assert logits[0, bias[0]].item() == pytest.approx(bias[1])


def test_a_row_that_fails_never_ends_as_if_it_were_complete(vocabulary: lt.Vocabulary) -> None:
    made = processor()
    outputs: list[list[int]] = [[], []]
    added = [(at, params(FORMS[1]), [5], outputs[at]) for at in range(2)]
    made.update_state(BatchUpdate(batch_size=2, removed=[], added=added, moved=[]))
    outputs[0].append(100)  # what another processor forced
    outputs[1] += list(matcher_after(vocabulary, FORMS[1], []).allowed())[:1]
    logits = torch.zeros((2, V))
    made.apply(logits)
    assert torch.isneginf(logits[0]).nonzero().flatten().tolist() == [EOS]
    np.testing.assert_array_equal(logits[1].numpy(), slow(vocabulary, FORMS[1], outputs[1], np.zeros(V, np.float32)))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "type": ({"extra_args": {"logitree": {"type": "regexp", "pattern": "a"}}}, "type must be one of"),
    "pattern": ({"extra_args": {"logitree": {"type": "regex", "pattern": "a("}}}, r"not closed.*at 1:2"),
    "text": ({"extra_args": {"logitree": '{"type": '}}, "JSON"),
    "list": ({"extra_args": {"logitree": [1]}}, "is no constraint"),
    "nothing": ({"extra_args": {"logitree": {}}}, "neither constraint nor chain"),
    "field": ({"extra_args": {"logitree": {"constrain": {"type": "text"}}}}, "'constrain' means nothing"),
    "chain": ({"extra_args": {"logitree": {"chain": "top_q"}}}, "top_q"),
    "params": ({"extra_args": {"logitree": {"chain": "top_k", "params": {"top_q": 1}}}}, "top_q"),
    "no chain": ({"extra_args": {"logitree": {"constraint": {"type": "text"}, "params": {}}}}, "parameters of a chain"),
    "file": ({"extra_args": {"logitree": {"type": "catalogue", "index": "/etc/hosts"}}}, "may not open the file"),
    "min_tokens": (
        {"extra_args": {"logitree": {"type": "regex", "pattern": "a"}}, "min_tokens": 3},
        "min_tokens is 3.*at_least",
    ),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("runner", ["V1", "V2"])
def test_wrong_arguments_are_refused_by_both_runners_when_submitted(case: str, runner: str) -> None:
    given, message = WRONG[case]
    request = SamplingParams(**given)
    validators = {
        "V1": lambda: validate_logits_processors_parameters(None, request),
        "V2": lambda: build_custom_logits_processors_params_validator(None)(request),
    }
    with pytest.raises(VLLMValidationError, match=message):
        validators[runner]()


def test_both_runners_take_the_class_of_the_entry_point() -> None:
    config = vllm_model.config()
    built = build_logitsprocs(config, torch.device("cpu"), False, False)
    assert [type(one) for one in built.non_argmax_invariant].count(LogitsProcessor) == 1
    assert not any(isinstance(one, LogitsProcessor) for one in built.argmax_invariant)
    assert type(SlotBatch().processor) is LogitsProcessor


def test_what_only_the_models_vocabulary_refuses_is_refused_when_submitted() -> None:
    """The check that vLLM's front end makes, by its own class."""
    front = InputProcessor(vllm_model.config())
    tasks = ("generate",)
    front._validate_params(params(FORMS[1]), tasks)
    tree = {"descriptors": [{"path": "p", "leaves": [{"name": "b", "tokens": [V + 5]}]}]}
    for given, message in (
        ({"type": "token", "token": "<|no such token|>"}, "no such token"),
        ({"type": "token_tree", "payload": tree}, str(V + 5)),
    ):
        with pytest.raises(VLLMValidationError, match=message):
            front._validate_params(params(given), tasks)
    both = params(FORMS[1])
    both.structured_outputs = lt_outputs()
    with pytest.raises(VLLMValidationError, match="two constraints"):
        front._validate_params(both, tasks)
    drafting = InputProcessor(vllm_model.config(drafts=True))
    with pytest.raises(VLLMValidationError, match='V1 runner.*structured_outputs={"grammar": form}'):
        drafting._validate_params(params(FORMS[1]), tasks)


def lt_outputs() -> Any:
    """Structured outputs beside a constraint of ours."""
    from vllm.sampling_params import StructuredOutputsParams

    return StructuredOutputsParams(regex="a")


def test_the_arguments_come_over_http() -> None:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    form = json.dumps(FORMS[1])
    request = ChatCompletionRequest(
        model="m", messages=[{"role": "user", "content": "?"}], vllm_xargs={"logitree": form}
    )
    made = request.to_sampling_params(16, {})
    assert made.extra_args == {"logitree": form}
