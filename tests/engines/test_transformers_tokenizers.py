"""Tokenizers of every kind that transformers loads: outputs are legal, and their texts are the tokenizer's own."""

from __future__ import annotations

import base64
import json
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
from logitree.engines.transformers import ConstraintLogitsProcessor, Transformers
from tiny_models import tiny, tokenizer, torch, transformers

pytestmark = pytest.mark.peers

TEXTS = [
    "the cat sat on the mat",
    "Zoë où est le café?",
    "yes no naïve façade — 12 345",
    '{"name": "value", "ok": true, false}',
    "日本語の文 🙂",
    "a\nb",
]


def unigram(folder: Path, data: Path) -> Any:
    """SentencePiece's Unigram, trained here."""
    sentencepiece = pytest.importorskip("sentencepiece")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 30),
        model_prefix=str(folder / "spiece"),
        model_type="unigram",
        vocab_size=330,
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return transformers.T5Tokenizer.from_pretrained(str(folder))


def sentencepiece_bpe(folder: Path, data: Path) -> Any:
    """SentencePiece's BPE: Mistral 7B's."""
    shutil.copy(data / "tokenizer.model.v1", folder / "tokenizer.model")
    return transformers.LlamaTokenizer.from_pretrained(str(folder))


def byte_level(folder: Path, data: Path) -> Any:
    """GPT-2's kind, in tokenizer.json."""
    return tokenizer()


def tiktoken(folder: Path, data: Path) -> Any:
    """A file of tiktoken, as Llama 3 and Qwen 1 came with: bytes and ranks."""
    pieces = [bytes([byte]) for byte in range(256)] + [
        b"th",
        b"the",
        b" c",
        b" ca",
        b" cat",
        "é".encode(),
        b" s",
        b" sat",
    ]
    path = folder / "tokenizer.model"
    path.write_text("".join(f"{base64.b64encode(piece).decode()} {rank}\n" for rank, piece in enumerate(pieces)))
    convert = pytest.importorskip("transformers.convert_slow_tokenizer")
    made = convert.TikTokenConverter(vocab_file=str(path), extra_special_tokens=["<s>", "</s>"]).converted()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")


def tekken(folder: Path, data: Path) -> Any:
    """mistral_common's own backend."""
    return transformers.MistralCommonBackend(tokenizer_path=str(data / "tekken_240718.json"))


KINDS = [unigram, sentencepiece_bpe, byte_level, tiktoken, tekken]

PERSON = {
    "type": "object",
    "properties": {"name": {"enum": ["Zoë", "日本 🙂", 'a "b"']}, "ok": {"type": "boolean"}},
    "required": ["name", "ok"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, mistral_data: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers' own
        own = request.param(tmp_path_factory.mktemp("tokenizer"), mistral_data)
    model = tiny("llama", len(own), 96)
    model.generation_config.eos_token_id = own.eos_token_id
    return Transformers(model, own)


def test_texts_are_spelled_and_read_as_the_tokenizer_does(engine: Any) -> None:
    vocabulary, own = engine.vocabulary, engine.tokenizer
    assert own.eos_token_id in vocabulary.end_tokens
    for text in TEXTS:
        ids = list(own.encode(text, add_special_tokens=False))
        ours = vocabulary.decode(ids).decode("utf-8", "replace")
        if vocabulary.adds_prefix_space:
            ours = ours.removeprefix(" ")
        if own.unk_token_id not in ids:
            assert ours == own.decode(ids, skip_special_tokens=True) or ours == text, text


@pytest.mark.parametrize("seed", range(3))
def test_generations_are_legal_and_the_tokenizers_own_text(engine: Any, seed: int) -> None:
    own = engine.tokenizer
    for constraint, check in (
        (["Zoë", "naïve façade", "🙂 12"], ["Zoë", "naïve façade", "🙂 12"].__contains__),
        (re.compile("[a-zé]{2,6} \\d{3}"), re.compile("[a-zé]{2,6} \\d{3}").fullmatch),
        (PERSON, lambda text: json.loads(text)["name"] in PERSON["properties"]["name"]["enum"]),  # type: ignore[index]
    ):
        for tokenization in ("auto", "any"):
            made = lt.generate(
                engine, "the cat", constraint, seed=seed, temp=2.0, max_tokens=60, tokenization=tokenization
            )
            assert check(made.text), (made.text, tokenization)
            ids = [id for id in made.tokens if id not in engine.vocabulary.end_tokens]
            assert own.decode(ids, skip_special_tokens=True).strip() == made.text.strip()


def test_transformers_own_generate_is_legal(engine: Any) -> None:
    own, pattern = engine.tokenizer, re.compile("(yes|no|où)( [a-cé]{2})?")
    ids = torch.tensor([own.encode("the cat", add_special_tokens=False)] * 2)
    made = engine.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        logits_processor=[ConstraintLogitsProcessor(pattern, engine.vocabulary)],
        do_sample=True,
        max_new_tokens=24,
        eos_token_id=own.eos_token_id,
        pad_token_id=own.eos_token_id,
    )
    for row in made:
        text = own.decode(row[ids.shape[1] :], skip_special_tokens=True)
        assert pattern.fullmatch(text.strip()), text


def test_mistral_common_encodes_chats(mistral_data: Path, tmp_path: Path) -> None:
    own = tekken(tmp_path, mistral_data)
    engine = Transformers(tiny("llama", len(own), 96), own)
    assert engine.has_chats and engine.chat_template is None
    chat = [{"role": "user", "content": "hi"}]
    written = own.apply_chat_template(chat, return_dict=False)
    assert engine.encode("hi") == engine.encode(chat) == engine.encode_chat(chat) == written
    assert engine.encode("hi", chat=False) == own("hi")["input_ids"] != written
    tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object"}}}
    assert len(engine.encode_chat(chat, tools=[tool])) > len(written)
    with pytest.raises(lt.EngineError, match="the tokenizer's chat template refuses these messages"):
        engine.encode_chat([*chat, {"role": "assistant", "content": "x"}])
    assert lt.generate(engine, "hi", ["yes", "no"], seed=1).text in ("yes", "no")
