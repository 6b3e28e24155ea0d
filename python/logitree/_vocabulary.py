"""Vocabularies from other libraries' tokenizer objects: each function ends in a constructor of the core.

The core reads file formats. No library is imported: the objects come from libraries that are loaded already.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from logitree._core import Vocabulary, VocabularyError


def from_sentencepiece(processor: Any) -> Vocabulary:
    """The vocabulary of a ``sentencepiece.SentencePieceProcessor``. Raises TypeError for anything else."""
    serialize = getattr(processor, "serialized_model_proto", None)
    if serialize is None:
        kind = type(processor).__name__
        raise TypeError(f"a path, bytes or a SentencePieceProcessor is expected, not {kind}")
    return Vocabulary.from_sentencepiece(bytes(serialize()))


def from_tiktoken(encoding: Any) -> Vocabulary:
    """The vocabulary of a ``tiktoken.Encoding``; ids that it leaves out are unused. TypeError for anything else."""
    if not hasattr(encoding, "decode_single_token_bytes"):
        raise TypeError(f"a tiktoken.Encoding is expected, not {type(encoding).__name__}")
    special = {encoding.encode_single_token(text) for text in encoding.special_tokens_set}
    tokens: list[bytes] = []
    kinds: list[str] = []
    for id in range(encoding.n_vocab):
        try:
            tokens.append(encoding.decode_single_token_bytes(id))
            kinds.append("control" if id in special else "normal")
        except KeyError:
            tokens.append(b"")
            kinds.append("unused")
    return Vocabulary.from_tokens(tokens, kinds=kinds, name=encoding.name, source="tiktoken", find_markers=True)


def from_transformers(tokenizer: Any, generation_config: Any = None) -> Vocabulary:
    """The vocabulary of a transformers tokenizer.

    A fast tokenizer is read through its own tokenizer.json; a mistral-common one through its file; a slow
    one through its SentencePiece model and added tokens, or its byte-level pieces. ``generation_config`` may
    name further ends of generation. Raises VocabularyError for a tokenizer that is none of these.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        vocabulary = Vocabulary.from_tokenizer_json(backend.to_str().encode())
    elif (mistral := _mistral_file(tokenizer)) is not None:
        load = Vocabulary.from_tekken if mistral.endswith(".json") else Vocabulary.from_sentencepiece
        vocabulary = load(mistral)
    else:
        vocabulary = _from_slow(tokenizer)
    ends = set(vocabulary.end_tokens)
    for named in (getattr(tokenizer, "eos_token_id", None), getattr(generation_config, "eos_token_id", None)):
        if named is not None:
            ends.update([named] if isinstance(named, int) else named)
    return vocabulary.replace(
        end_tokens=sorted(ends),
        bos_id=getattr(tokenizer, "bos_token_id", None),
        name=model_name(str(getattr(tokenizer, "name_or_path", "") or "")) or vocabulary.name,
    )


def cut(vocabulary: Vocabulary, size: int, control: Collection[int] = ()) -> Vocabulary:
    """A vocabulary as far as `size` logits reach, without the tokens past them. Those of `control` are no text."""
    if size >= len(vocabulary) and not control:
        return vocabulary
    tokens = list(vocabulary)[:size]
    return Vocabulary.from_tokens(
        tokens,
        kinds=["control" if token in control else vocabulary.kind(token) for token in range(len(tokens))],
        end_tokens=[token for token in vocabulary.end_tokens if token < size],
        bos_id=vocabulary.bos_id if vocabulary.bos_id is not None and vocabulary.bos_id < size else None,
        name=vocabulary.name,
        source=vocabulary.source,
        adds_prefix_space=vocabulary.adds_prefix_space,
    )


def model_name(named: str) -> str:
    """What a model is called that transformers calls `named`: an id as it is; a folder by the name in its config.json
    where there is one, by the id in its path in Hugging Face's cache, or else by its own last part."""
    folder = Path(named)
    if not named or not folder.is_dir():
        return named
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        config = None
    known = config.get("_name_or_path") if isinstance(config, dict) else None
    if isinstance(known, str) and known and not Path(known).exists():
        return known
    for part in folder.absolute().parts:
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/")
    return folder.resolve().name


def mistral_tokenizer(tokenizer: Any) -> Any:
    """What a transformers MistralCommonBackend encodes by; None for other tokenizers."""
    instruct = getattr(getattr(tokenizer, "tokenizer", None), "instruct_tokenizer", None)
    return getattr(instruct, "tokenizer", None)


def _mistral_file(tokenizer: Any) -> str | None:
    """The file of a transformers MistralCommonBackend."""
    path = getattr(mistral_tokenizer(tokenizer), "file_path", None)
    return None if path is None else str(path)


def _from_slow(tokenizer: Any) -> Vocabulary:
    model = getattr(tokenizer, "sp_model", None)
    byte_decoder = getattr(tokenizer, "byte_decoder", None)
    if model is not None:
        base = from_sentencepiece(model)
        tokens = list(base)
        kinds = [base.kind(id) for id in range(len(base))]
    elif byte_decoder is not None:
        pieces = tokenizer.convert_ids_to_tokens(list(range(tokenizer.vocab_size)))
        tokens = [_byte_level(piece, byte_decoder) for piece in pieces]
        kinds = ["normal"] * len(tokens)
        base = None
    else:
        raise VocabularyError(
            f"a {type(tokenizer).__name__} is neither fast, nor SentencePiece, nor byte-level; "
            "load it with use_fast=True"
        )
    for id, added in sorted(tokenizer.added_tokens_decoder.items()):
        while len(tokens) <= id:
            tokens.append(b"")
            kinds.append("unused")
        tokens[id] = str(added.content).encode()
        if kinds[id] != "unknown":
            kinds[id] = "control" if added.special else "user_defined"
    return Vocabulary.from_tokens(
        tokens,
        kinds=kinds,
        source="transformers",
        adds_prefix_space=base is not None and base.adds_prefix_space,
        find_markers=True,
    )


def _byte_level(piece: str | None, byte_decoder: dict[str, int]) -> bytes:
    if piece is None:
        return b""
    try:
        return bytes(byte_decoder[character] for character in piece)
    except KeyError:
        return piece.encode()


def from_llama(llm: Any) -> Vocabulary:
    """The vocabulary of a ``llama_cpp.Llama``.

    The model's file is read again with logitree's own reader, which takes milliseconds where asking
    llama.cpp for every token takes about a second; a test holds both equal. llama.cpp is asked where the
    file is gone, where its metadata were overridden on loading, or where the sizes differ. Raises TypeError for
    anything else.
    """
    if not hasattr(llm, "n_vocab"):
        raise TypeError(f"a llama_cpp.Llama is expected, not {type(llm).__name__}")
    path = getattr(llm, "model_path", None)
    if path and os.path.isfile(path) and not getattr(llm, "kv_overrides", None):
        vocabulary = Vocabulary.from_gguf(path)
        if len(vocabulary) == llm.n_vocab():
            return vocabulary
    return _ask_llama(llm)


def _ask_llama(llm: Any) -> Vocabulary:
    lib = importlib.import_module("llama_cpp")
    vocab = llm._model.vocab
    # Bits of llama.cpp's token attributes, the deciding one first.
    attributes = (
        (1, "unknown"),
        (2, "unused"),
        (8, "control"),
        (16, "user_defined"),
        (32, "byte"),
        (4, "normal"),
    )
    tokens: list[bytes] = []
    kinds: list[str] = []
    ends: list[int] = []
    buffer = ctypes.create_string_buffer(64)
    for id in range(lib.llama_vocab_n_tokens(vocab)):
        size = lib.llama_token_to_piece(vocab, id, buffer, len(buffer), 0, True)
        if size < 0:
            buffer = ctypes.create_string_buffer(-size)
            size = lib.llama_token_to_piece(vocab, id, buffer, len(buffer), 0, True)
        tokens.append(buffer.raw[:size])
        bits = lib.llama_vocab_get_attr(vocab, id)
        kinds.append(next((kind for bit, kind in attributes if bits & bit), "unused"))
        if lib.llama_vocab_is_eog(vocab, id):
            ends.append(id)
    bos = lib.llama_vocab_bos(vocab)
    default = "true" if lib.llama_vocab_type(vocab) == lib.LLAMA_VOCAB_TYPE_SPM else "false"
    return Vocabulary.from_tokens(
        tokens,
        kinds=kinds,
        end_tokens=ends,
        bos_id=bos if bos >= 0 else None,
        name=llm.metadata.get("general.name", ""),
        source="llama_cpp",
        adds_prefix_space=llm.metadata.get("tokenizer.ggml.add_space_prefix", default) == "true",
    )
