"""Our token bytes against what the owners' own tokenise -> detokenise gives, for 1,000 varied texts each.

For the ids that the owner's tokeniser gives for a text, the concatenated bytes of our vocabulary (``joined``)
and the owner's detokenised bytes differ by these rules and nothing else:

1. *Leading space* (llama.cpp, SentencePiece; where ``adds_prefix_space``): the owner takes one leading space
   off its first token.
2. *Clean-up* (llama.cpp, some byte-pair pre-tokenisers; ``CLEANS``): the owner's detokeniser rewrites the
   text for reading: it drops the space before ``? ! . ,``, both spaces around a lone apostrophe, and the
   space before ``'s 'm 're 've``. A generated token's own bytes (``llama_token_to_piece``) are not.
3. *First piece* (Hugging Face Metaspace): the owner drops every replacement character of the first piece.
4. *Missing bytes* (llama.cpp, byte-level): a byte that no token stands for (SmolLM2 has no token for some
   bytes of four-byte UTF-8) is dropped when a text is tokenised.
5. *Escape* (SentencePiece style; ``ESCAPES``): the tokeniser writes spaces as U+2581, so a U+2581 in the text
   comes back as a space.
6. *Unknown* (SentencePiece): an unknown token is shown as a question mark; our unknown token is no text.

Where the tokeniser is lossless, ``joined`` is also held against the text itself, without the owner.
"""

from __future__ import annotations

import ctypes
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
from data_files import VOCABULARIES, gguf_vocabulary, vocabularies
from texts import varied_texts

TEXTS = varied_texts()

CLEANS = {"gpt-2": True, "llama-bpe": True, "gemma-4": True, "qwen2": False, "deepseek-llm": False}
"""Rule 2 by vocabulary; the SentencePiece ones are never cleaned up."""

ESCAPES = {"gemma-4", "llama-spm", "phi-3"}
"""Rule 5 by vocabulary."""


def clean_up(text: bytes) -> bytes:
    """Rule 2."""
    text = re.sub(rb" ([?!.,])", rb"\1", text)
    text = re.sub(rb" ' ", rb"'", text)
    return re.sub(rb" ('(?:s|m|re|ve))", rb"\1", text)


def strip_one(ids: list[int], vocabulary: lt.Vocabulary) -> bytes:
    """Rule 1: the joined bytes of ``ids`` without a leading space of the first."""
    joined = vocabulary.decode(ids)
    first = vocabulary.decode(ids[:1])
    return joined[1:] if vocabulary.adds_prefix_space and first.startswith(b" ") else joined


class LlamaOwner:
    """llama.cpp's own tokeniser of one GGUF file, through its C functions, special tokens off."""

    def __init__(self, path: Path) -> None:
        self.lib = pytest.importorskip("llama_cpp")
        self.llm = self.lib.Llama(str(path), vocab_only=True, verbose=False)
        self.vocab = self.llm._model.vocab
        self.buffer = ctypes.create_string_buffer(1 << 16)

    def tokenize(self, text: bytes) -> list[int]:
        return list(self.llm.tokenize(text, add_bos=False, special=False))

    def detokenize(self, ids: list[int]) -> bytes:
        array = (ctypes.c_int32 * len(ids))(*ids)
        n = self.lib.llama_detokenize(self.vocab, array, len(ids), self.buffer, len(self.buffer), False, False)
        assert n >= 0
        return self.buffer.raw[:n]

    def piece(self, id: int, special: bool) -> bytes:
        n = self.lib.llama_token_to_piece(self.vocab, id, self.buffer, len(self.buffer), 0, special)
        return self.buffer.raw[:n]


@pytest.fixture(scope="module", params=vocabularies(*VOCABULARIES))
def gguf(request: pytest.FixtureRequest) -> Iterator[tuple[str, lt.Vocabulary, LlamaOwner]]:
    name = request.param
    path = gguf_vocabulary(name)
    owner = LlamaOwner(path)
    yield name, lt.Vocabulary.from_gguf(path), owner
    owner.llm.close()


def test_gguf_texts(gguf: tuple[str, lt.Vocabulary, LlamaOwner]) -> None:
    name, vocabulary, owner = gguf
    known = [bool(vocabulary.find(bytes([byte]))) for byte in range(256)]
    for text in TEXTS:
        ids = owner.tokenize(text.encode())
        expected = strip_one(ids, vocabulary)
        assert owner.detokenize(ids) == (clean_up(expected) if CLEANS.get(name) else expected), (name, text)
        prefix = b" " if vocabulary.adds_prefix_space else b""
        escaped = text.replace("\u2581", " ") if name in ESCAPES else text
        kept = bytes(byte for byte in escaped.encode() if known[byte])  # rule 4
        assert vocabulary.decode(ids) == prefix + kept, (name, text)


def test_gguf_every_token(gguf: tuple[str, lt.Vocabulary, LlamaOwner]) -> None:
    _, vocabulary, owner = gguf
    lib = owner.lib
    assert len(vocabulary) == lib.llama_vocab_n_tokens(owner.vocab)
    for id in range(len(vocabulary)):
        is_text = vocabulary.kind(id) in ("normal", "byte", "user_defined")
        assert owner.piece(id, special=False) == (vocabulary[id] if is_text else b""), id
        assert owner.piece(id, special=True) == vocabulary[id], id
    ends = [id for id in range(len(vocabulary)) if lib.llama_vocab_is_eog(owner.vocab, id)]
    assert vocabulary.end_tokens == ends and ends
    assert vocabulary.bos_id == lib.llama_vocab_bos(owner.vocab)


def test_from_llama(gguf: tuple[str, lt.Vocabulary, LlamaOwner]) -> None:
    _, vocabulary, owner = gguf
    by_file = lt.Vocabulary.from_llama(owner.llm)
    assert by_file == vocabulary and by_file.source == "gguf"
    llm = owner.llm
    gone = types.SimpleNamespace(model_path="gone.gguf", _model=llm._model, metadata=llm.metadata, n_vocab=llm.n_vocab)
    asked = lt.Vocabulary.from_llama(gone)
    assert asked == vocabulary and asked.source == "llama_cpp" and asked.name == vocabulary.name
    assert (asked.bos_id, asked.adds_prefix_space) == (vocabulary.bos_id, vocabulary.adds_prefix_space)


@pytest.mark.parametrize("name", ["tekken_240911.json", "tekken_240718.json"])
def test_tekken(mistral_data: Path, name: str) -> None:
    tekken = pytest.importorskip("mistral_common.tokens.tokenizers.tekken")
    path = mistral_data / name
    owner = tekken.Tekkenizer.from_file(path)
    vocabulary = lt.Vocabulary.from_tekken(path)
    assert vocabulary == lt.Vocabulary.from_tekken(path.read_bytes())
    for text in TEXTS:
        ids = owner.encode(text, bos=False, eos=False)
        assert vocabulary.decode(ids) == owner.decode(ids).encode() == text.encode(), text
    keep = tekken.SpecialTokenPolicy.KEEP
    assert len(vocabulary) == owner.n_words
    for id in range(len(vocabulary)):
        assert vocabulary[id] == owner.id_to_byte_piece(id, keep), id
        assert (id in owner._special_token_ids) == (vocabulary.kind(id) != "normal"), id
    assert (vocabulary.end_tokens, vocabulary.bos_id) == ([owner.eos_id], owner.bos_id)
    assert (vocabulary.name, vocabulary.source) == (name.removesuffix(".json"), "tekken")


@pytest.mark.parametrize("name", ["tokenizer.model.v1", "mistral_instruct_tokenizer_240323.model.v3"])
def test_sentencepiece_mistral(mistral_data: Path, name: str) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    path = mistral_data / name
    owner = sentencepiece.SentencePieceProcessor(model_file=str(path))
    vocabulary = lt.Vocabulary.from_sentencepiece(path)
    assert vocabulary.adds_prefix_space
    assert vocabulary == lt.Vocabulary.from_sentencepiece(path.read_bytes())
    assert vocabulary == lt.Vocabulary.from_sentencepiece(owner)
    for text in TEXTS:
        ids = owner.encode(text)
        assert strip_one(ids, vocabulary) == owner.decode(ids).encode(), text
    check_pieces(owner, vocabulary)


def check_pieces(owner: Any, vocabulary: lt.Vocabulary) -> None:
    """Kinds, special ids and texts of all pieces."""
    assert len(vocabulary) == owner.get_piece_size()
    for id in range(len(vocabulary)):
        kind = vocabulary.kind(id)
        assert (kind == "control") == owner.is_control(id)
        assert (kind == "unknown") == owner.is_unknown(id)
        assert (kind == "unused") == owner.is_unused(id)
        assert (kind == "byte") == owner.is_byte(id)
        piece = owner.id_to_piece(id)
        if kind == "byte":
            assert vocabulary[id] == bytes([int(piece[3:5], 16)])
        elif kind in ("normal", "user_defined"):
            assert vocabulary[id] == piece.replace("▁", " ").encode()
        else:
            assert vocabulary[id] == piece.encode()
    assert vocabulary.bos_id == (owner.bos_id() if owner.bos_id() >= 0 else None)
    assert owner.eos_id() in vocabulary.end_tokens


@pytest.mark.parametrize("dummy_prefix", [True, False])
@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_sentencepiece_trained(tmp_path: Path, model_type: str, dummy_prefix: bool) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS[:300]),
        model_prefix=str(tmp_path / "m"),
        vocab_size=1200,
        model_type=model_type,
        byte_fallback=True,
        character_coverage=0.98,
        hard_vocab_limit=False,
        add_dummy_prefix=dummy_prefix,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        user_defined_symbols=["▁▁▁", "<end_of_turn>"],
        control_symbols=["<ctl>"],
        minloglevel=2,
    )
    path = tmp_path / "m.model"
    owner = sentencepiece.SentencePieceProcessor(model_file=str(path))
    vocabulary = lt.Vocabulary.from_sentencepiece(path)
    assert vocabulary.adds_prefix_space == dummy_prefix
    for text in TEXTS[300:]:
        ids = [id for id in owner.encode(text) if not owner.is_unknown(id)]  # rule 6
        assert strip_one(ids, vocabulary) == owner.decode(ids).encode(), text
    end = owner.piece_to_id("<end_of_turn>")
    assert vocabulary.kind(end) == "control" and end in vocabulary.end_tokens
    assert owner.is_control(owner.piece_to_id("<ctl>")) and vocabulary.find(b"<ctl>")


def test_tiktoken() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([b]): b for b in range(256)} | {b"ab": 256, b" a": 258, b"\xc3\xa9": 259}
    special = {"<|endoftext|>": 262, "<|x|>": 264}
    owner = tiktoken.Encoding("tiny", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens=special)
    vocabulary = lt.Vocabulary.from_tiktoken(owner)
    assert len(vocabulary) == 265 and (vocabulary.name, vocabulary.source) == ("tiny", "tiktoken")
    assert vocabulary.end_tokens == [262] and vocabulary.special_ids == [257, 260, 261, 262, 263, 264]
    assert [vocabulary.kind(id) for id in (257, 262, 264)] == ["unused", "control", "control"]
    for text in TEXTS:
        ids = owner.encode_ordinary(text)
        assert vocabulary.decode(ids) == owner.decode_bytes(ids) == text.encode()
