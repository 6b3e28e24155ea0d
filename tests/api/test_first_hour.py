"""What a newcomer tries in the first hour: arguments that work, or errors that say what to write."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree.engines import open as open_engine
from logitree.engines._messages import read_messages
from logitree.engines.llama_cpp import LlamaCpp
from table_engine import DraftingEngine, TableEngine

ENGINE = TableEngine()


def _id(value: Any) -> str:
    """The name of a case, the same in every process."""
    return re.sub(r" at 0x\w+", "", str(value))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_tokens": 3.5}, TypeError, "max_tokens is 3.5: give a whole number, or None"),
        ({"max_tokens": True}, TypeError, "max_tokens is True"),
        ({"max_tokens": "5"}, TypeError, "max_tokens is '5'"),
        ({"stop": [1]}, TypeError, r"stop\[0\] is 1 \(int\): give a text, or a list of texts"),
        ({"stop": ["a", b"b"]}, TypeError, r"stop\[1\] is b'b'"),
        ({"stop": 1}, TypeError, "stop is 1"),
        ({"stop": ["a", ""]}, lt.ConstraintError, "a stop string is empty"),
        ({"seed": 2**40}, lt.SamplingError, r"mt19937 takes seeds below 2\*\*32"),
        ({"seed": -2}, lt.SamplingError, r"seed is -2; give 0 to 2\*\*32 - 1; None or -1 draws one"),
        ({"seed": True}, TypeError, "seed is True"),
        ({"seed": 1.5}, TypeError, "seed is 1.5"),
        ({"seed": "a"}, TypeError, "seed is 'a'"),
        ({"temperature": True}, lt.SamplingError, "temperature is True; temperature must be a number"),
        ({"top_k": True}, lt.SamplingError, "top_k must be a whole number"),
        ({"chat": "chatml"}, TypeError, "chat is 'chatml': give True, False, or None"),
        ({"force": 1}, TypeError, "force is 1"),
        ({"trace": "yes"}, TypeError, "trace is 'yes': give True or False"),
        ({"chain": "greedy"}, TypeError, "give a Chain, such as"),
        ({"on_step": 3}, TypeError, "give a function of the decoder and the logits"),
        ({"drafter": 3}, TypeError, "give one of logitree.speculation"),
        ({"n": 0}, lt.LimitError, "n is 0; give 1 to 1024"),
        ({"n": 2.0}, TypeError, "n is 2.0: give the number of answers"),
        ({"n": 2, "seed": [1]}, lt.SamplingError, "1 seeds for 2 answers"),
        ({"on_limit": "stop"}, lt.ConstraintError, "on_limit is 'stop'"),
        ({"temp": 1.0, "temperature": 1.0}, lt.SamplingError, "temperature and temp are the same parameter"),
        ({"max_tokens": -1}, lt.LimitError, "max_tokens is -1"),
        ({"n": 3, "chain": [lt.Chain.greedy()]}, lt.SamplingError, "1 chains for 3 answers; give one for each"),
        ({"chain": [lt.Chain.greedy(), 3]}, TypeError, "chain is 3"),
        ({"chain": lt.Chain.greedy(), "seed": 3}, lt.SamplingError, "both a chain and seed"),
        ({"constraint": []}, lt.ConstraintError, "nothing to choose from"),
        ({"constraint": object()}, TypeError, "type object means no constraint: give a constraint, a list of texts"),
    ],
    ids=_id,
)
def test_a_wrong_argument_says_what_to_write(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lt.generate(ENGINE, "x", **options)


@pytest.mark.parametrize(
    ("keyword", "message"),
    [
        ("temprature", "did you mean temperature="),
        ("max_token", "did you mean max_tokens="),
        ("topk", "did you mean top_k="),
        ("n_predicts", "write max_tokens="),
        ("max_new_tokens", "write max_tokens="),
        ("json_schema", r"constraint=schema, or constraint=Grammar.json_schema\(schema\)"),
        ("regex", r"constraint=Grammar.regex\(pattern\)"),
        ("choices", r"constraint=\[...\], a list of texts"),
        ("stream", "pieces"),
        ("system_prompt", "write messages"),
        ("flavour", r"it has max_tokens=, stop=, seed=, temperature=, .*docs/samplers.md"),
    ],
)
def test_an_unknown_keyword_says_what_it_resembles(keyword: str, message: str) -> None:
    with pytest.raises(TypeError, match=rf"generate\(\) has no {keyword}=.*{message}") as raised:
        lt.generate(ENGINE, "x", **{keyword: 1})
    assert len(str(raised.value)) < 240


def test_type_checkers_see_every_option() -> None:
    parameters = inspect.signature(lt.generate).parameters
    named = {name for name, one in parameters.items() if one.kind is inspect.Parameter.KEYWORD_ONLY}
    assert named - {"n"} == set(lt.GenerateOptions.__annotations__) - set(lt.samplers.SamplingParams.__annotations__)
    assert set(lt.samplers.ChainParams.__annotations__) - set(lt.samplers.SamplingParams.__annotations__) == {"seed"}


def test_chains_and_json_forms_say_the_same() -> None:
    with pytest.raises(lt.SamplingError, match='no parameter temprature; did you mean "temperature"'):
        lt.Chain.llama_cpp(temprature=0.2)  # type: ignore[call-arg]
    with pytest.raises(lt.SamplingError, match="known: temperature, top_k") as raised:
        lt.Chain.llama_cpp(flavour=0.2)  # type: ignore[call-arg]
    assert len(str(raised.value)) < 200


def test_the_seed_minus_one_is_drawn() -> None:
    drawn = {lt.generate(ENGINE, "x", seed=-1, max_tokens=1).stats.seed for _ in range(4)}
    assert len(drawn) == 4 and all(seed is not None and 0 <= seed < 2**32 for seed in drawn)
    assert len({lt.Chain.llama_cpp(seed=-1).seed for _ in range(4)}) == 4
    seeds = [one.stats.seed for one in lt.generate(ENGINE, ["x", "y"], seed=[-1, 3], max_tokens=1)]
    assert seeds[1] == 3 and seeds[0] not in (None, -1)
    assert lt.generate(ENGINE, "x", seed=np.int64(3), max_tokens=np.int32(2)).stats.seed == 3  # type: ignore[call-overload]


def test_max_tokens_none_has_no_limit_but_the_context() -> None:
    generation = lt.generate(DraftingEngine(n_ctx=700), "x", lt.Grammar.regex("a*b{2000}"), max_tokens=None, seed=0)
    assert (generation.finish_reason, len(generation.tokens) > 256) == ("context_full", True)
    assert lt.generate(ENGINE, "x", ["red"], max_tokens=None).value == "red"


def test_stop_may_be_none_or_one_text() -> None:
    assert lt.generate(ENGINE, "x", max_tokens=2, stop=None).finish_reason == "max_tokens"
    assert lt.generate(ENGINE, "x", lt.Grammar.literal("abc"), stop="b").text == "a"


def test_several_answers_to_one_prompt() -> None:
    answers = lt.generate(ENGINE, "x", ["red", "green", "blue"], n=8, seed=5)
    assert isinstance(answers, lt.Generations) and len(answers) == 8
    assert [one.stats.seed for one in answers] == list(range(5, 13))
    alone = [lt.generate(ENGINE, "x", ["red", "green", "blue"], seed=5 + at).value for at in range(8)]
    assert answers.values == alone and len(set(alone)) > 1
    assert len(lt.generate(ENGINE, "x", n=1, max_tokens=1)) == 1
    assert len({one.stats.seed for one in lt.generate(ENGINE, "x", n=3, max_tokens=1)}) == 3
    assert [one.stats.seed for one in lt.generate(ENGINE, "x", n=2, seed=2**32 - 1, max_tokens=1)] == [2**32 - 1, 0]
    with pytest.raises(TypeError, match="n= is for one prompt"):
        lt.generate(ENGINE, ["x", "y"], n=2)  # type: ignore[call-overload]


def test_an_id_of_hugging_face_is_told_from_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HuggingFaceTB/SmolLM2-135M", "https://huggingface.co/HuggingFaceTB/SmolLM2-135M"):
        with pytest.raises(lt.EngineError, match="nothing is downloaded") as raised:
            lt.generate(name, "x")
        assert "hf download HuggingFaceTB/SmolLM2-135M --local-dir SmolLM2-135M" in str(raised.value)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "small.gguf").touch()
    for name in ("models/smal.gguf", "models/smal", str(tmp_path / "models" / "smal.gguf")):
        with pytest.raises(lt.EngineError, match=r"no such file or folder \(at .*smal.*did you mean .*small\.gguf"):
            open_engine(name)
    with pytest.raises(lt.EngineError, match=r"at nowhere/x\.gguf.*there is no folder nowhere"):
        open_engine("nowhere/x.gguf")
    for kind in (lt.EngineError, lt.FileError, FileNotFoundError):
        with pytest.raises(kind, match="no such file or folder.*nothing is downloaded"):
            LlamaCpp("gpt2")
    with pytest.raises(lt.EngineError, match="path of the model is empty"):
        open_engine("")
    with pytest.raises(lt.EngineError, match=r"it has GGUF files: give .*small\.gguf"):
        open_engine("models")


@pytest.mark.parametrize("model", [None, object(), 3, [], LlamaCpp], ids=_id)
def test_what_is_no_model_says_what_is(model: Any) -> None:
    with pytest.raises(TypeError, match="is no model: give an engine, the path of a GGUF file"):
        lt.generate(model, "x")


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (None, "a prompt is a text, messages or token ids, not NoneType"),
        (object(), "not object"),
        ([1, "a"], "token 1 of the prompt is 'a'"),
        ([True], "token 0 of the prompt is True"),
        ([1, 2.5], "token 1 of the prompt is 2.5"),
        ({"role": "user", "content": "x"}, r"give \[message\]"),
    ],
    ids=_id,
)
def test_what_is_no_prompt_says_what_is(prompt: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        lt.generate(ENGINE, prompt)


def test_the_content_of_messages_may_be_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}, "c"]
    given = [{"role": "user", "content": parts, "name": "x"}]
    assert read_messages(given) == [{"role": "user", "content": "a\nb\nc", "name": "x"}]
    assert given[0]["content"] is parts
    called = {"role": "assistant", "content": None, "tool_calls": [{}]}
    assert read_messages([called]) == [called]
    with pytest.raises(lt.EngineError, match="part 1 of message 0 is of the type 'image_url'"):
        read_messages([{"role": "user", "content": [*parts[:1], {"type": "image_url", "image_url": {"url": "x"}}]}])
    for wrong, message in [
        ({"content": "x"}, 'message 0 has no "role"'),
        ({"role": "user"}, 'the "content" of message 0 is missing'),
        ({"role": "user", "content": None}, 'the "content" of message 0 is None'),
        ({"role": "user", "content": 3}, 'the "content" of message 0 is 3'),
        ({"role": "user", "content": [3]}, "part 0 of message 0 is 3"),
        ({"role": "user", "content": [{"type": "text"}]}, "part 0 of message 0 is"),
        ("x", "message 0 is 'x'"),
    ]:
        with pytest.raises(TypeError, match=message):
            read_messages([wrong])


def test_an_engine_reads_messages_in_parts(smollm2_gguf: Path) -> None:
    engine = LlamaCpp(smollm2_gguf, n_ctx=64, n_threads=1)
    whole = engine.encode([{"role": "user", "content": "Hello\nthere"}])
    parts = [{"type": "text", "text": "Hello"}, {"type": "text", "text": "there"}]
    assert engine.encode([{"role": "user", "content": parts}]) == whole
    with pytest.raises(lt.EngineError, match="logitree reads parts of text only"):
        lt.generate(engine, [{"role": "user", "content": [{"type": "image_url"}]}])


def test_values_that_are_no_list_say_so() -> None:
    for values in (None, object(), 3):
        with pytest.raises(TypeError, match="give a list of texts"):
            lt.OneOf(values)  # type: ignore[arg-type]


def test_a_trace_names_the_model_and_not_its_folder(tmp_path: Path) -> None:
    from logitree._vocabulary import model_name

    folder = tmp_path / "checkpoint-7"
    folder.mkdir()
    assert model_name(str(folder)) == "checkpoint-7"
    (folder / "config.json").write_text(json.dumps({"_name_or_path": "owner/small"}), encoding="utf-8")
    assert model_name(str(folder)) == "owner/small"
    cached = tmp_path / "models--owner--large" / "snapshots" / "0123abcd"
    cached.mkdir(parents=True)
    assert model_name(str(cached)) == "owner/large"
    assert [model_name(name) for name in ("owner/small", "")] == ["owner/small", ""]

    class Named(TableEngine):
        """An engine that says what its model is called."""

        name = "small"

    trace = lt.generate(Named(), "x", ["red"], trace=True).trace
    trace.to_html(tmp_path / "page.html")
    assert trace.about["model"] == "small"
    assert '"model":"small"' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_info_is_called_everywhere() -> None:
    catalogue = lt.Catalogue.from_texts(["red", "green"], lambda text: list(text.encode()))
    tree = lt.elizaos.token_tree({"descriptors": [{"path": "p", "leaves": [{"name": "a", "tokens": [1]}]}]})
    report = [catalogue.info(), tree.info(), lt.elizaos.token_tree_cache.info(), lt.elizaos.tokenizer_cache.info()]
    assert all(isinstance(one, dict) for one in report) and report[0]["items"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_ctx": "512"}, "n_ctx is '512': give a whole number"),
        ({"n_ctx": 3.5}, "n_ctx is 3.5"),
        ({"n_ctx": True}, "n_ctx is True"),
        ({"n_threads": "4"}, "n_threads is '4'"),
        ({"n_gpu_layers": None}, "n_gpu_layers is None"),
    ],
    ids=_id,
)
def test_numbers_of_an_engine(smollm2_gguf: Path, options: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        LlamaCpp(smollm2_gguf, **options)


def test_arguments_of_beam_search(smollm2_gguf: Path) -> None:
    (found,) = lt.beam_search(smollm2_gguf, "Yes or no?", ["yes", "no"], width=2)
    assert {one.value for one in found} == {"yes", "no"}
    engine = LlamaCpp(smollm2_gguf, n_ctx=64, n_threads=1)
    assert lt.beam_search(engine, "x", ["a", "b"], sample=True, seed=-1, width=2)
    for prompt in (None, object(), {"role": "user", "content": "x"}):
        with pytest.raises(TypeError, match="a prompt is a text, messages or token ids, not"):
            lt.beam_search(engine, prompt, ["a"])  # type: ignore[arg-type]
    for what in (object(), 3):
        with pytest.raises(TypeError, match="means no constraint"):
            lt.beam_search(engine, "x", what)
    for model in (None, object()):
        with pytest.raises(TypeError, match="is no model: give an engine"):
            lt.beam_search(model, "x", ["a"])  # type: ignore[arg-type]
    with pytest.raises(lt.EngineError, match="nothing is downloaded"):
        lt.beam_search("owner/model", "x", ["a"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 2}, r"choose\(\) has no n=: write generate"),
        ({"chat": "x"}, "chat is 'x': give True, False, or None"),
        ({"max_tokens": 3.5}, "max_tokens is 3.5"),
        ({"temprature": 1}, "did you mean temperature="),
    ],
    ids=_id,
)
def test_arguments_of_choose(options: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        lt.choose(ENGINE, "x", ["a", "b"], **options)
