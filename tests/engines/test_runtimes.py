"""ONNX Runtime GenAI and mlx-lm on one tiny model: logits are those of transformers, and sessions keep the rules."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logitree as lt
from logitree import engines
from logitree.engines import ContextFull, Engine
from tiny_models import alone, tiny, tokenizer

pytestmark = pytest.mark.peers

KINDS = ["onnx", "mlx"]
CONTEXT = 96


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model of two layers with its tokenizer, as save_pretrained writes them."""
    made = tmp_path_factory.mktemp("model") / "tiny"
    words = tokenizer(template=True)
    tiny("llama", len(words), CONTEXT, 64).save_pretrained(made)
    words.save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def onnx_folder(folder: Path) -> Path:
    """The same model as the runtime's own builder converts it."""
    pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")
    pytest.importorskip("onnx_ir", reason="onnx-ir, which converts the model, is not installed")
    made = folder.with_name("tiny-onnx")
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(folder), "-o", str(made)]
    command += ["-p", "fp32", "-e", "cpu", "-c", str(folder.with_name("cache"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return made


def opened(kind: str, request: pytest.FixtureRequest) -> Engine:
    if kind == "onnx":
        return engines.open(request.getfixturevalue("onnx_folder"))
    mlx_lm = pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
    pytest.importorskip("mlx.core", reason="MLX is not installed: on Linux, mlx[cpu]")
    return engines.open(mlx_lm.load(str(request.getfixturevalue("folder"))))


@pytest.fixture(scope="module", params=KINDS)
def engine(request: pytest.FixtureRequest) -> Engine:
    return opened(request.param, request)


@pytest.fixture(scope="module")
def beside(folder: Path) -> Engine:
    return engines.open(folder)


def close(got: Any, rows: list[list[int]]) -> None:
    model = tiny("llama", len(tokenizer(template=True)), CONTEXT, 64)
    for logits, expected in zip(got, alone(model, rows), strict=True):
        assert logits.dtype == np.float32
        assert np.ptp(expected) > 1.0
        np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-3)


def test_vocabulary_and_prompts_are_those_of_transformers(engine: Engine, beside: Engine) -> None:
    assert list(engine.vocabulary) == list(beside.vocabulary)
    assert engine.vocabulary.end_tokens == beside.vocabulary.end_tokens == [1]
    messages = [{"role": "user", "content": "the cat"}, {"role": "model", "content": [{"type": "text", "text": "yes"}]}]
    for prompt, chat in (("the cat", None), ("the cat", False), ("the mat", True), (messages, None), ("", False)):
        assert engine.encode(prompt, chat=chat) == beside.encode(prompt, chat=chat)
    assert engine.tokenize is not None and beside.tokenize is not None
    assert engine.tokenize("the <s> cat") == beside.tokenize("the <s> cat")
    assert engine.n_ctx == CONTEXT
    for wrong, kind in (([{"role": "tool", "content": "x"}], lt.EngineError), ([{"content": "x"}], TypeError)):
        with pytest.raises(kind):
            engine.encode(wrong)


def test_logits_are_those_of_transformers_without_a_cache(engine: Engine) -> None:
    session = engine.session()
    close([session.evaluate([10, 11, 12])], [[10, 11, 12]])
    close([session.evaluate([13])], [[10, 11, 12, 13]])
    close([session.evaluate([])], [[10, 11, 12, 13]])
    session.rollback(2)
    close([session.evaluate([20, 21])], [[10, 11, 20, 21]])
    session.rollback(4)
    close([session.evaluate([5])], [[5]])
    other = engine.session()
    assert other.begin([5, 6, 7]) == 1
    close([other.evaluate([6, 7])], [[5, 6, 7]])
    close([session.evaluate([9])], [[5, 9]])


def test_long_prompts_are_evaluated_in_parts(engine: Engine) -> None:
    prompt = [3 + i % 200 for i in range(50)]
    before = engine.session().evaluate(prompt).copy()
    engine._cached._pass_tokens, kept = 7, engine._cached._pass_tokens  # type: ignore[attr-defined]
    engine.session().evaluate([9])
    try:
        np.testing.assert_allclose(engine.session().evaluate(prompt), before, rtol=1e-3, atol=1e-3)
    finally:
        engine._cached._pass_tokens = kept  # type: ignore[attr-defined]


def test_misuse_is_an_error_that_changes_nothing(engine: Engine) -> None:
    session = engine.session()
    with pytest.raises(lt.EngineError, match="empty"):
        session.evaluate([])
    session.evaluate([10, 11])
    with pytest.raises(lt.EngineError, match="begun"):
        session.begin([10])
    for wrong in ([-1], [len(engine.vocabulary)], [12, 10**9]):
        with pytest.raises(lt.TokenError):
            session.evaluate(wrong)
    with pytest.raises(ContextFull):
        session.evaluate([7] * CONTEXT)
    with pytest.raises(lt.EngineError, match="roll back"):
        session.rollback(3)
    with pytest.raises(lt.EngineError, match="fork"):
        session.reorder([0, 0])
    close([session.evaluate([12])], [[10, 11, 12]])


def test_rows_do_not_disturb_each_other(engine: Engine) -> None:
    session = engine.batch_session(3)
    close(session.evaluate_rows([[4, 5], [6], [7, 8, 9]]), [[4, 5], [6], [7, 8, 9]])
    close(session.evaluate_rows([[1], [], [2, 3]])[::2], [[4, 5, 1], [7, 8, 9, 2, 3]])
    with pytest.raises(lt.EngineError, match="fork"):
        engine.batch_session(3, forks=True)


def test_generation_is_that_of_transformers(engine: Engine, beside: Engine) -> None:
    schema = {"type": "object", "properties": {"n": {"enum": ["cat", "mat", "on"]}}, "required": ["n"]}
    constraint = lt.Grammar.json_schema(schema | {"additionalProperties": False})
    for seed in range(5):
        mine, theirs = (lt.generate(made, "the cat", constraint, max_tokens=40, seed=seed) for made in (engine, beside))
        assert mine.tokens == theirs.tokens
        json.loads(mine.text)
    rows = lt.generate(engine, ["the cat", "to", "it said"], lt.Grammar.regex("(yes|no)( cat){1,3}"), seed=2)
    others = lt.generate(beside, ["the cat", "to", "it said"], lt.Grammar.regex("(yes|no)( cat){1,3}"), seed=2)
    assert [row.text for row in rows] == [row.text for row in others]
    spelled = lt.generate(
        engine, "the cat", ["said yes", "that question"], seed=1, tokenization="canonical", chat=False
    )
    assert list(spelled.tokens) == beside.encode(spelled.text, chat=False)


def test_another_thread_gets_the_same(engine: Engine) -> None:
    texts: list[str] = []

    def run() -> None:
        texts.append(lt.generate(engine, "the cat", lt.Grammar.regex("[a-z]{9}"), seed=3).text)

    run()
    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(texts) == 4 and len(set(texts)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_fails_is_an_engine_error_and_goes_on(kind: str, request: pytest.FixtureRequest) -> None:
    engine: Any = opened(kind, request)
    session = engine.session()
    session.evaluate([10, 11])

    class Failing:
        def __call__(self, *args: Any, **given: Any) -> Any:
            raise ValueError("out of memory")

        append_tokens = __call__

    model = engine._cached._model
    if kind == "onnx":
        engine._cached._generator = Failing()
    else:
        engine._cached._model = Failing()
    with pytest.raises(lt.EngineError, match="out of memory"):
        session.evaluate([12])
    engine._cached._model = model
    close([session.evaluate([12])], [[10, 11, 12]])


def test_numbers_out_of_range(onnx_folder: Path) -> None:
    from logitree.engines.onnx import OnnxGenAI

    for given in ({"n_ctx": 0}, {"n_ctx": CONTEXT + 1}, {"n_batch": 0}):
        with pytest.raises(lt.EngineError, match="n_ctx|n_batch"):
            OnnxGenAI(onnx_folder, **given)
    assert OnnxGenAI(onnx_folder, n_ctx=8).n_ctx == 8
    with pytest.raises(TypeError):
        OnnxGenAI(onnx_folder, n_ctx="8")  # type: ignore[arg-type]


def test_folders_that_cannot_be_read(onnx_folder: Path, folder: Path, tmp_path: Path) -> None:
    from logitree.engines.onnx import OnnxGenAI

    with pytest.raises(lt.EngineError, match=r"no genai_config\.json"):
        OnnxGenAI(folder)
    with pytest.raises(FileNotFoundError):
        OnnxGenAI(tmp_path / "none")
    broken = tmp_path / "broken"
    shutil.copytree(onnx_folder, broken)
    settings = json.loads((broken / "genai_config.json").read_text("utf-8"))
    del settings["model"]["vocab_size"]
    for text, match in (
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", 'no "model"'),
        (json.dumps(settings), "vocab_size"),
    ):
        (broken / "genai_config.json").write_text(text, encoding="utf-8")
        with pytest.raises(lt.EngineError, match=match):
            OnnxGenAI(broken)
    shutil.copy(onnx_folder / "genai_config.json", broken)
    (broken / "model.onnx").write_bytes(b"no model")
    with pytest.raises(lt.EngineError, match="cannot load the model"):
        OnnxGenAI(broken)
    shutil.copy(onnx_folder / "model.onnx", broken)
    (broken / "tokenizer.json").unlink()
    with pytest.raises(lt.LogitreeError):
        lt.generate(OnnxGenAI(broken), "the cat", ["yes"])


def test_what_mlx_does_not_run(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
    pytest.importorskip("mlx.core", reason="MLX is not installed: on Linux, mlx[cpu]")
    from logitree.engines.mlx import MlxLm

    assert MlxLm.load(folder).n_ctx == CONTEXT
    with pytest.raises(FileNotFoundError):
        MlxLm.load(tmp_path / "none")
    with pytest.raises(lt.EngineError, match="cannot run a int"):
        MlxLm(3)
    (tmp_path / "config.json").write_text('{"model_type": "no such type"}', encoding="utf-8")
    with pytest.raises(lt.EngineError, match="cannot load the model"):
        MlxLm.load(tmp_path)
    without = MlxLm(MlxLm.load(folder).model)
    with pytest.raises(lt.EngineError, match="no tokenizer"):
        without.encode("the cat")
    close([without.session().evaluate([10, 11])], [[10, 11]])
