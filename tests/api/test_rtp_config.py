"""RTP-LLM's settings: their sources, what they make, and that every problem is found at once and named."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree import rtp
from logitree.rtp._settings import DEFAULTS, SETTINGS, VARIABLES

HOSTILE = Path(__file__).resolve().parents[2] / "testdata" / "hostile" / "rtp_config"
TREE = '{"start_token_id": 9, "prefix_dict": {"9": [10, 20], "9_10": [2], "9_20": [11], "9_20_11": [2]}}'


@pytest.fixture(scope="module")
def vocabulary() -> lt.Vocabulary:
    words = [b"<%d>" % i for i in range(30)] + [b"<think>", b"</think>", b"yes", b"no", b"\n\n"]
    return lt.Vocabulary.from_tokens(words, special_ids=[2, 30, 31], end_tokens=[2])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    path = tmp_path / "tree.json"
    path.write_text(TREE)
    return path


def tokenize(text: str) -> list[int]:
    return {"<think>\n": [30], "</think>\n\n": [31, 34]}[text]


def problems(run: Any) -> list[str]:
    """The problems of what raises them, as text."""
    with pytest.raises(rtp.ConfigError) as caught:
        run()
    found = [str(problem) for problem in caught.value.problems]
    assert caught.value.place == caught.value.problems[0].place
    assert all(line in str(caught.value) for line in found)
    assert all(problem.place and problem.message for problem in caught.value.problems)
    return found


def allowed(processor: rtp.Processor, size: int = 35) -> list[list[int]]:
    logits = np.zeros((processor.rows, size), np.float32)
    processor.process(logits)
    return [np.flatnonzero(row > -np.inf).tolist() for row in logits]


def kinds(made: rtp.Processors | None) -> list[str]:
    return [type(one).__name__ for one in made or []]


# -- sources


def test_the_table_and_the_fields_agree() -> None:
    fields = {field.name: field for field in dataclasses.fields(rtp.Config) if field.init}
    assert {setting.target for setting in SETTINGS.values()} == set(fields) == set(DEFAULTS)
    assert {name: field.default for name, field in fields.items()} == DEFAULTS
    assert {"TREE_DECODE_CONFIG", "THINK_MODE", "THINK_START_TAG", "THINK_END_TAG", "THINK_END_TOKEN_ID"} < set(
        VARIABLES
    )


def test_file_environment_and_request_in_their_order(tmp_path: Path, tree: Path) -> None:
    path = tmp_path / "rtp.json"
    path.write_text('{"tree_decode_config": "tree.json", "num_beams": 4, "eos_token_id": 2, "num_return_sequences": 3}')
    file = rtp.Config.from_json(path)
    environment = rtp.Config.from_env({"LOGITREE_RTP_NUM_BEAMS": "8", "OTHER": "1", "THINK_END_TAG": ""})
    assert file.tree_decode_config == str(tree)
    assert (file.num_beams, environment.num_beams, environment.tree_decode_config) == (4, 8, None)
    both = file.merged(environment)
    assert (both.num_beams, both.num_return_sequences, both.eos_token_id) == (8, 3, (2,))
    assert both == rtp.Config.load(path, {"LOGITREE_RTP_NUM_BEAMS": "8"})
    request = both.with_request({"num_beams": 1, "eos_token_id": [2, 3]})
    assert (request.num_beams, request.rows, request.eos_token_id) == (1, 3, (2, 3))
    assert (both.num_beams, both.rows) == (8, 1)
    assert request.sources["num_beams"] == "/num_beams in the request"
    assert request.sources["num_return_sequences"] == f"/num_return_sequences in {path}"
    assert both.sources["num_beams"] == "LOGITREE_RTP_NUM_BEAMS"
    assert request.with_request({"num_beams": None}).num_beams == 1
    assert "num_beams = 8 (LOGITREE_RTP_NUM_BEAMS)" in both.describe().splitlines()


def test_every_setting_has_one_value_from_json_and_from_its_variable() -> None:
    said: dict[str, tuple[Any, str]] = {
        "tree_decode_config": ("a.json", "a.json"),
        "think_mode": ("adaptive", "Adaptive"),
        "think_start_tag": ("<a>\n", "<a>\\n"),
        "think_end_tag": ("\\</a>\t", "\\\\</a>\\t"),
        "think_end_token_id": (7, "7"),
        "begin_think_token_ids": ([5, 6], "5, 6"),
        "end_think_token_ids": ([8], "[8]"),
        "max_thinking_tokens": (9, " 9 "),
        "json_schema": ({"type": "string"}, '{"type": "string"}'),
        "regex": ("a+", "a+"),
        "ebnf": ('root ::= "a"', 'root ::= "a"'),
        "structural_tag": (
            {"type": "structural_tag", "format": {"type": "const_string", "value": "a"}},
            '{"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}',
        ),
        "constrained_json_disable_any_whitespace": (True, "1"),
        "grammar_terminate_without_stop_token": (True, "true"),
        "check_tree_root": (True, "on"),
        "combo_token_size": (3, "3"),
        "banned_combo_token_ids": ([], "[]"),
        "enable_cross_sequence_ban": (False, "off"),
        "cross_seq_diverge_start_combo": (1, "1"),
        "num_beams": (2, "2"),
        "variable_num_beams": ([2, 4], "2,4"),
        "num_return_sequences": (2, "2"),
        "eos_token_id": ([2], "2"),
    }
    assert set(VARIABLES.values()) == set(said)
    for variable, name in VARIABLES.items():
        value, text = said[name]
        target = SETTINGS[name].target
        from_json, from_env = rtp.Config.from_json({name: value}), rtp.Config.from_env({variable: text})
        assert from_json == from_env, name
        assert from_json.sources == {target: f"/{name}"}
        assert from_env.sources == {target: variable}
        again = rtp.Config(**{target: getattr(from_json, target)})
        assert again == from_json


def test_a_stronger_source_takes_the_place_of_alternatives() -> None:
    base = rtp.Config.from_json({"regex": "a", "end_think_token_ids": [5], "think_end_token_id": -1})
    assert base.end_think_token_ids == (5,)
    other = base.with_request({"json_schema": True, "end_think_token_ids": [6, 7]})
    assert (other.regex, other.json_schema, other.end_think_token_ids) == (None, "true", (6, 7))
    assert "regex" not in other.sources
    tagged = base.merged(rtp.Config.from_env({"THINK_END_TAG": "</t>"}))
    assert (tagged.end_think_token_ids, tagged.think_end_tag) == ((), "</t>")
    assert base.with_request({"regex": None}).regex is None


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINK_MODE", "0")
    monkeypatch.setenv("TREE_DECODE_CONFIG", "t.json")
    monkeypatch.setenv("CHECKPOINT_PATH", "models")
    found = rtp.Config.from_env()
    assert (found.think_mode, found.tree_decode_config) == ("disabled", os.path.join("models", "t.json"))


# -- what they make


def test_processors_of_a_tree_and_beams(tree: Path, vocabulary: lt.Vocabulary) -> None:
    base = rtp.Config.from_json({"tree_decode_config": str(tree)})
    base.check(vocabulary)
    assert kinds(base.processors(vocabulary)) == ["TreeProcessor"]
    made = base.with_request({"num_beams": 2}).processors(vocabulary)
    assert made is not None
    assert kinds(made) == ["TreeProcessor", "MultiSequenceProcessor"]
    assert allowed(made) == [[10, 20]]
    made.update_multi_seq_status([0, 0])
    made.update_status([10, 20])
    assert allowed(made) == [[2], [11]]
    three = base.with_request({"num_return_sequences": 3}).processors(vocabulary)
    assert three is not None
    assert three.rows == 3
    assert rtp.Config().processors(vocabulary) is None


def test_a_tree_is_read_once_and_again_when_its_file_changes(tree: Path, vocabulary: lt.Vocabulary) -> None:
    base = rtp.Config.from_json({"tree_decode_config": str(tree)})
    first = base.tree(35)
    assert first is not None
    assert base.with_request({"num_beams": 2}).tree(35) is first
    tree.write_text(TREE.replace("[10, 20]", "[10]"))
    os.utime(tree, (1, 1))
    made = base.processors(vocabulary)
    assert made is not None
    assert allowed(made) == [[10]]
    copied = pickle.loads(pickle.dumps(base))
    assert copied == base
    assert kinds(copied.processors(vocabulary)) == ["TreeProcessor"]
    tree.write_text('{"prefix_dict": {"225": "x"}}')
    (found,) = problems(lambda: base.processors(vocabulary))
    assert found.startswith(f"/tree_decode_config ({tree}), /prefix_dict/225")
    tree.unlink()
    assert "cannot be opened" in problems(base.check)[0]


@pytest.mark.parametrize("mode", ["enabled", "adaptive"])
def test_thoughts_end_within_their_budget_and_a_grammar_follows(mode: str, vocabulary: lt.Vocabulary) -> None:
    given = {"think_mode": mode, "max_thinking_tokens": 2, "regex": "yes|no"}
    made = rtp.Config.from_json(given).processors(vocabulary, prompt=[30], tokenize=tokenize)
    assert kinds(made) == ["ThinkProcessor"]
    assert made is not None
    assert 31 in allowed(made)[0]
    assert 30 not in allowed(made)[0]
    made.update_status([[5, 5]])
    assert allowed(made) == [[31]]
    made.update_status([31])
    assert allowed(made) == [[34]]
    made.update_status([34])
    assert allowed(made) == [[32, 33]]


def test_adaptive_thinking_reads_the_prompt(vocabulary: lt.Vocabulary) -> None:
    base = rtp.Config.from_json({"think_mode": "adaptive", "begin_think_token_ids": 30, "think_end_token_id": 31})
    outside, inside = base.processors(vocabulary), base.processors(vocabulary, prompt=[4, 30])
    assert outside is not None
    assert inside is not None
    assert (30 in allowed(outside)[0], 31 in allowed(outside)[0]) == (True, False)
    assert (30 in allowed(inside)[0], 31 in allowed(inside)[0]) == (False, True)
    for off in ({"in_think_mode": False}, {"max_thinking_tokens": 0}):
        assert base.with_request(off).processors(vocabulary) is None


def test_recommendation_and_grammar(vocabulary: lt.Vocabulary) -> None:
    base = rtp.Config.from_env(
        {
            "LOGITREE_RTP_COMBO_TOKEN_SIZE": "2",
            "LOGITREE_RTP_BANNED_COMBO_TOKEN_IDS": "[[1, 2], [1, 3]]",
            "LOGITREE_RTP_ENABLE_CROSS_SEQUENCE_BAN": "on",
        }
    )
    made = base.processors(vocabulary, 2)
    assert made is not None
    assert kinds(made) == ["RecommendationProcessor", "MultiSequenceProcessor"]
    made.update_status([1, 4])
    assert allowed(made)[0] == [i for i in range(35) if i not in (2, 3)]
    both = base.with_request({"ebnf": 'root ::= "yes"'}).processors(vocabulary)
    assert both is not None
    assert kinds(both) == ["GrammarProcessor", "RecommendationProcessor"]
    assert allowed(both) == [[32]]


# -- problems


@pytest.mark.parametrize("path", sorted(HOSTILE.iterdir()), ids=lambda path: path.name)
def test_hostile_files_are_errors_that_name_their_places(path: Path) -> None:
    began = time.perf_counter()
    found = problems(lambda: rtp.Config.from_json(path))
    assert time.perf_counter() - began < 5
    assert len(found) <= 100
    assert all(path.name in line for line in found), found
    assert max(map(len, found)) < 600
    if path.name == "every_type.json":
        given = json.loads(path.read_text())
        named = {line.split(" in ")[0].split("/")[1] for line in found}
        assert named == set(given)
        for inner in ("/end_think_token_ids/2", "/banned_combo_token_ids/0/1", "/banned_combo_token_ids/1", "/regex"):
            assert any(line.startswith(f"{inner} in ") for line in found), inner


def test_all_problems_of_all_sources_come_together(tmp_path: Path, vocabulary: lt.Vocabulary) -> None:
    path = tmp_path / "rtp.json"
    path.write_text('{"combo_token_sise": 3, "num_beams": 0, "tree_decode_config": "gone.json", "a/b~": 1}')
    environ = {"THINK_MOED": "1", "THINK_MODE": "maybe", "LOGITREE_RTP_EOS_TOKEN_ID": "99", "TREE": "1"}
    found = problems(lambda: rtp.Config.load(path, environ, vocabulary=vocabulary))
    for place, said in (
        (f"/combo_token_sise in {path}", "did you mean combo_token_size?"),
        (f"/num_beams in {path}", "from 1 to"),
        (f"/tree_decode_config in {path} ({tmp_path / 'gone.json'})", "cannot be opened"),
        (f"/a~1b~0 in {path}", "an unknown setting"),
        ("THINK_MOED", "did you mean THINK_MODE?"),
        ("THINK_MODE", "give disabled, adaptive or enabled"),
        ("LOGITREE_RTP_EOS_TOKEN_ID", "not in the vocabulary: 99; its ids run from 0 to 34"),
    ):
        assert any(line.startswith(place) and said in line for line in found), (place, found)
    assert len(found) == 7


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"regex": "a", "ebnf": 'root ::= "a"'}, "a second grammar"),
        ({"banned_combo_token_ids": [[1]]}, "there is no combo_token_size"),
        ({"combo_token_size": 2, "banned_combo_token_ids": [[1, 2], [1]]}, "an item of 1 tokens"),
        ({"combo_token_size": 1, "enable_cross_sequence_ban": True}, "combo_token_size is 1"),
        ({"combo_token_size": 2, "enable_cross_sequence_ban": True, "variable_num_beams": [1, 3]}, "there are 3 beams"),
        ({"think_mode": 1, "combo_token_size": 2}, "constrains the first token on"),
        ({"think_mode": 1, "tree_decode_config": "t"}, "constrains the first token on"),
        ({"think_mode": 1, "in_think_mode": True}, "the setting is there twice"),
        ({"think_end_token_id": 3, "end_think_token_ids": [3]}, "the setting is there twice"),
        ({3: 4}, "an unknown setting"),
        ({"num_beams": True}, "the value is True"),
        ({"num_beams": 10**5000}, "more than 60 digits"),
        ({"json_schema": {"type": "x", "minLength": -1}}, "2 problems in the schema"),
    ],
)
def test_settings_that_contradict_each_other(given: dict[str, Any], said: str) -> None:
    assert any(said in line for line in problems(lambda: rtp.Config.from_json(given)))


def test_a_request_sets_no_files_and_changes_nothing_when_it_is_wrong() -> None:
    base = rtp.Config.from_json({"num_beams": 3})
    given = {"tree_decode_config": "/etc/passwd", "think_end_tag": "x", "combo_token_sise": 3, "num_beams": 2}
    found = problems(lambda: base.with_request(given))
    assert [line.split(":")[0] for line in found] == [
        "/tree_decode_config in the request",
        "/think_end_tag in the request",
        "/combo_token_sise in the request",
    ]
    assert base == rtp.Config.from_json({"num_beams": 3})
    with pytest.raises(rtp.ConfigError, match="num_beams"):
        rtp.Config(num_beams=-1)
    with pytest.raises(FileNotFoundError, match="cannot be opened"):
        rtp.Config.from_json("no/such/file.json")
    with pytest.raises(lt.StateError):
        base.processors(lt.Vocabulary.from_tokens([b"a"], end_tokens=[0]), -1)


def test_what_does_not_fit_the_vocabulary(tree: Path, vocabulary: lt.Vocabulary) -> None:
    bare = lt.Vocabulary.from_tokens([b"a", b"b"])
    rows = rtp.Config.from_json({"num_return_sequences": 2})
    assert "no end of generation" in problems(lambda: rows.processors(bare))[0]
    thinking = rtp.Config.from_json({"think_mode": "enabled"})
    (found,) = problems(lambda: thinking.processors(vocabulary))
    assert found.startswith("think_start_tag (the default)")
    assert found.endswith("give begin_think_token_ids, or tokenize=")
    several = rtp.Config.from_json(
        {
            "begin_think_token_ids": [99],
            "combo_token_size": 2,
            "banned_combo_token_ids": [[1, 50], [60, 70]],
            "regex": "z",
            "tree_decode_config": str(tree),
        }
    )
    found = problems(lambda: several.check(bare))
    assert [line.split(":")[0].split(" ")[0].split(",")[0] for line in found] == [
        "/begin_think_token_ids",
        "/regex",
        "/tree_decode_config",
        "/banned_combo_token_ids",
    ]
    assert "50, 60, 70" in found[-1]


# -- RTP-LLM's own names


UPSTREAM = {
    "max_new_tokens": 10,
    "max_input_tokens": 10,
    "do_sample": True,
    "top_k": 1,
    "top_p": 0.9,
    "temperature": [1.0],
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "min_new_tokens": 0,
    "no_repeat_ngram_size": None,
    "random_seed": 7,
    "top_p_reset_ids": None,
    "stop_words_str": ["x"],
    "stop_words_list": [[1]],
    "bad_words_list": None,
    "pad_token_id": 3,
    "bos_token_id": 1,
    "print_stop_words": False,
    "timeout_ms": -1,
    "request_format": "raw",
    "calculate_loss": 0,
    "return_logits": False,
    "return_cum_log_probs": False,
    "select_tokens_id": [],
    "trace_id": "",
    "ignore_eos": False,
    "adapter_name": None,
    "is_streaming": True,
    "reuse_cache": True,
    "global_request_id": -1,
    "thinking_mode": 2,
    "think_terminate_token_id": 1,
}


def test_a_request_is_given_as_it_is() -> None:
    base = rtp.Config.from_json({"combo_token_size": 2})
    ours = {
        "num_return_sequences": 2,
        "eos_token_id": [2],
        "auto_parse_banned_combo": False,
        "banned_combo_token_ids": [[1, 2], [1], [3, 4, 5]],
        "cross_seq_diverge_start_combo": -4,
        "chat_template_kwargs": {"enable_thinking": False},
        "response_format": None,
        "json_format": False,
    }
    made = base.with_request({**UPSTREAM, **ours})
    assert (made.num_return_sequences, made.eos_token_id, made.banned_combo_token_ids) == (2, (2,), ((1, 2),))
    assert (made.cross_seq_diverge_start_combo, made.think_mode) == (0, "disabled")
    noted = {note.split(" in the request: ")[0].removeprefix("/") for note in made.notes}
    assert noted == {*UPSTREAM, "banned_combo_token_ids", "cross_seq_diverge_start_combo"}
    assert "passed over: /top_k in the request: no setting of these processors" in made.describe()
    assert base.notes == () and made == pickle.loads(pickle.dumps(made))
    (found,) = problems(lambda: base.with_request({"auto_parse_banned_combo": True}))
    assert "give their ids in banned_combo_token_ids" in found


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"type": "json_object"}, "json_schema", '{"type": "object"}'),
        ({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "null"}}}, "json_schema", None),
        ({"type": "regex", "pattern": "a+"}, "regex", "a+"),
        ('{"type": "regex", "pattern": "a+"}', "regex", "a+"),
        ({"type": "ebnf", "grammar": 'root ::= "a"'}, "ebnf", 'root ::= "a"'),
        ({"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}, "structural_tag", None),
    ],
)
def test_the_response_format_of_a_request_is_a_grammar(given: Any, name: str, value: str | None) -> None:
    made = rtp.Config.from_json({"regex": "b"}).with_request({"response_format": given})
    assert {one for one in ("json_schema", "regex", "ebnf", "structural_tag") if getattr(made, one)} == {name}
    assert value in (None, getattr(made, name))
    assert made.sources[name] == "/response_format in the request"


def test_a_response_format_that_means_nothing_is_a_problem() -> None:
    base = rtp.Config()
    assert base.with_request({"response_format": {"type": "text"}}) == base
    assert base.with_request({"json_format": True}).json_schema == '{"type": "object"}'
    for given in ({"type": "xml"}, 3, "text", {"type": "regex"}, {"type": "json_schema"}, {}):
        (found,) = problems(lambda given=given: base.with_request({"response_format": given}))
        assert found.startswith("/response_format in the request")


def test_upstream_variables_do_not_stop_a_server() -> None:
    environ = {
        "THINK_TERMINATE_TOKEN_ID": "-1",
        "THINK_MODE": " enabled ",
        "THINK_SOMETHING_NEW": "1",
        "CONSTRAINED_JSON_DISABLE_ANY_WHITESPACE": "1",
        "GRAMMAR_TERMINATE_WITHOUT_STOP_TOKEN": "1",
    }
    made = rtp.Config.load({"think_terminate_token_id": 1}, environ)
    assert (made.think_mode, made.grammar_terminate_without_stop_token) == ("enabled", True)
    assert [note.split(":")[0] for note in made.notes] == [
        "/think_terminate_token_id",
        "THINK_SOMETHING_NEW",
        "THINK_TERMINATE_TOKEN_ID",
    ]
    for variable in ("THINK_MOED", "LOGITREE_RTP_NUM_BEMS", "LOGITREE_RTP_WHATEVER"):
        assert problems(lambda variable=variable: rtp.Config.from_env({variable: "1"}))[0].startswith(variable)


def test_the_two_grammar_settings_do_what_they_say() -> None:
    words = [*(bytes([b]) for b in range(256)), b"</s>"]
    vocabulary = lt.Vocabulary.from_tokens(words, special_ids=[256], end_tokens=[256])
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    for disabled, compact, spaced in ((True, True, False), (False, True, True)):
        given = {"json_schema": schema, "constrained_json_disable_any_whitespace": disabled}
        for text, expected in (("[1, 2]", compact), ("[\n1,\n2\n]", spaced)):
            made = rtp.Config.from_json(given).processors(vocabulary)
            assert made is not None
            try:
                made.update_status([list(text.encode())])
                is_read = True
            except lt.TokenError:
                is_read = False
            assert is_read == expected, (disabled, text)
    early = rtp.Config.from_json({"regex": "ab?", "grammar_terminate_without_stop_token": True})
    made = early.processors(vocabulary)
    assert made is not None
    made.update_status([97])
    (processor,) = made
    assert isinstance(processor, rtp.GrammarProcessor) and processor.finished.tolist() == [True]


def test_the_root_of_the_tree_is_checked_where_it_is_asked_for(tree: Path, vocabulary: lt.Vocabulary) -> None:
    base = rtp.Config.from_json({"tree_decode_config": str(tree)})
    assert base.processors(vocabulary, prompt=[1]) is not None
    strict = base.with_request({"check_tree_root": True})
    strict.check(vocabulary)
    assert strict.processors(vocabulary, prompt=[1, 9]) is not None
    (found,) = problems(lambda: strict.processors(vocabulary, prompt=[1]))
    assert found.startswith("/check_tree_root in the request: the prompt ends with token 1")
    (found,) = problems(lambda: strict.processors(vocabulary))
    assert "the prompt is empty" in found


def test_a_tree_of_another_vocabulary_stops_a_server(tmp_path: Path, vocabulary: lt.Vocabulary) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"prefix_dict": {"225": [64000], "225_64000": [2]}}')
    (found,) = problems(lambda: rtp.Config.load({"tree_decode_config": str(path)}, {}, vocabulary=vocabulary))
    assert "1 candidates lie outside the vocabulary of 35 tokens" in found
