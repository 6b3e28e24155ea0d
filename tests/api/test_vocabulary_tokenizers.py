"""tokenizer.json against the tokenizers package, and transformers tokenizers, on small ones trained here.

The owner's ``decode`` and our joined bytes differ by one rule: where ``adds_prefix_space``, the owner takes
the leading space off the text (Metaspace: every space of the first piece; Strip after Fuse: one).
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
from texts import varied_texts

tokenizers = pytest.importorskip("tokenizers")

TEXTS = varied_texts(600, seed=7)
SPECIAL = ["<unk>", "<s>", "<|im_end|>"]


def _train(tokenizer: Any, trainer: Any) -> Any:
    tokenizer.train_from_iterator(TEXTS[:200], trainer)
    tokenizer.add_tokens(["<<tool>>", "  two", tokenizers.AddedToken("<<raw>>", normalized=False)])
    tokenizer.add_special_tokens(["<|extra|>"])
    return tokenizer


def byte_level() -> Any:
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    return _train(t, tokenizers.trainers.BpeTrainer(vocab_size=700, special_tokens=SPECIAL, initial_alphabet=alphabet))


def metaspace(scheme: str) -> Any:
    t = tokenizers.Tokenizer(tokenizers.models.Unigram())
    t.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme=scheme)
    t.decoder = tokenizers.decoders.Metaspace(prepend_scheme=scheme)
    return _train(t, tokenizers.trainers.UnigramTrainer(vocab_size=900, special_tokens=SPECIAL, unk_token="<unk>"))


def llama_style(prefix: bool) -> Any:
    t = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    n, d = tokenizers.normalizers, tokenizers.decoders
    steps = [d.Replace("▁", " "), d.ByteFallback(), d.Fuse()]
    t.normalizer = n.Replace(" ", "▁")
    if prefix:
        t.normalizer = n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")])
        steps.append(d.Strip(" ", 1, 0))
    t.decoder = d.Sequence(steps)
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=900, special_tokens=SPECIAL + bytes_, limit_alphabet=150)
    data = json.loads(_train(t, trainer).to_str())
    # The trainer can only bring the byte pieces in as special tokens; in a real file they are ordinary ones.
    data["added_tokens"] = [a for a in data["added_tokens"] if a["content"] not in bytes_]
    return tokenizers.Tokenizer.from_str(json.dumps(data))


CASES: dict[str, Callable[[], Any]] = {
    "byte level": byte_level,
    "metaspace": lambda: metaspace("always"),
    "metaspace first": lambda: metaspace("first"),
    "metaspace never": lambda: metaspace("never"),
    "llama": lambda: llama_style(True),
    "gemma": lambda: llama_style(False),
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[str, Any, lt.Vocabulary]:
    owner = CASES[request.param]()
    return request.param, owner, lt.Vocabulary.from_tokenizer_json(owner.to_str())


def shown(name: str, ids: list[int], vocabulary: lt.Vocabulary) -> bytes:
    """The joined bytes as the owner shows them."""
    first, rest = vocabulary.decode(ids[:1]), vocabulary.decode(ids[1:])
    if vocabulary.adds_prefix_space:
        first = first.replace(b" ", b"") if name.startswith("metaspace") else first.removeprefix(b" ")
    return first + rest


def test_decode(case: tuple[str, Any, lt.Vocabulary]) -> None:
    name, owner, vocabulary = case
    special = set(vocabulary.special_ids)
    assert vocabulary.adds_prefix_space == (name in ("metaspace", "metaspace first", "llama"))
    for text in TEXTS:
        all_ids = owner.encode(text, add_special_tokens=False).ids
        ids = [id for id in all_ids if id not in special]  # no text: the owner leaves them out too
        assert shown(name, ids, vocabulary) == owner.decode(ids).encode(), text
        if name in ("byte level", "gemma") and ids == all_ids:
            assert vocabulary.decode(ids) == text.replace("▁", " " if name == "gemma" else "▁").encode()


def test_every_token(case: tuple[str, Any, lt.Vocabulary]) -> None:
    name, owner, vocabulary = case
    assert len(vocabulary) == owner.get_vocab_size()
    special = {id for id, added in owner.get_added_tokens_decoder().items() if added.special}
    assert set(vocabulary.special_ids) == special
    assert vocabulary.kind(owner.token_to_id("<<tool>>")) == "user_defined"
    unknown = "control" if name == "byte level" else "unknown"  # a byte-level model has no unknown token
    assert vocabulary.kind(owner.token_to_id("<unk>")) == unknown
    assert vocabulary.end_tokens == [owner.token_to_id("<|im_end|>")]
    assert vocabulary.bos_id == owner.token_to_id("<s>")
    # After an ordinary first piece, so that nothing is stripped; whole characters only, which decode shows.
    first = vocabulary.find(b"a")[0]
    for id in set(range(len(vocabulary))) - special:
        try:
            text = vocabulary[id].decode()
        except UnicodeDecodeError:
            continue
        assert owner.decode([first, id]) == "a" + text, (id, text)


def test_sources(tmp_path: Path) -> None:
    owner = byte_level()
    path = tmp_path / "tokenizer.json"
    owner.save(str(path))
    vocabularies = [
        lt.Vocabulary.from_tokenizer_json(source)
        for source in (path, str(path), path.read_bytes(), path.read_text(encoding="utf-8"))
    ]
    assert len(set(vocabularies)) == 1 and vocabularies[0].source == "tokenizer.json"
    with pytest.raises(lt.FileError):
        lt.Vocabulary.from_tokenizer_json(tmp_path / "absent.json")
    path.write_text(path.read_text(encoding="utf-8").replace('"id": 1,', '"id": "one",', 1), encoding="utf-8")
    with pytest.raises(lt.VocabularyError) as raised:
        lt.Vocabulary.from_tokenizer_json(path)
    assert "added_tokens[1].id" in raised.value.place and raised.value.place.startswith("offset ")


def test_word_pieces_are_refused() -> None:
    owner = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    owner.decoder = tokenizers.decoders.WordPiece()
    with pytest.raises(lt.VocabularyError, match="WordPiece"):
        lt.Vocabulary.from_tokenizer_json(owner.to_str())


@pytest.mark.peers
def test_transformers_fast() -> None:
    transformers = pytest.importorskip("transformers")
    owner = llama_style(True)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=owner, eos_token="<|extra|>", bos_token="<s>")
    vocabulary = lt.Vocabulary.from_transformers(fast)
    assert list(vocabulary) == list(lt.Vocabulary.from_tokenizer_json(owner.to_str()))
    assert vocabulary.end_tokens == sorted(owner.token_to_id(t) for t in ("<|im_end|>", "<|extra|>"))
    config = transformers.GenerationConfig(eos_token_id=[5, 6])
    assert {5, 6} < set(lt.Vocabulary.from_transformers(fast, config).end_tokens)
    for text in TEXTS:
        ids = fast.encode(text, add_special_tokens=False)
        ids = [id for id in ids if id not in vocabulary.special_ids]
        assert shown("llama", ids, vocabulary) == owner.decode(ids).encode()


@pytest.mark.peers
def test_transformers_slow(mistral_data: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    path = mistral_data / "tokenizer.model.v1"

    class Added:
        def __init__(self, content: str, special: bool) -> None:
            self.content, self.special = content, special

    class Slow:
        """The part of a slow tokenizer's interface that is used."""

        def __init__(self) -> None:
            self.sp_model = sentencepiece.SentencePieceProcessor(model_file=str(path))
            self.added_tokens_decoder = {32001: Added("<|im_end|>", True), 32002: Added("<tool>", False)}
            self.eos_token_id, self.bos_token_id, self.name_or_path = 2, 1, "slow"

    vocabulary = lt.Vocabulary.from_transformers(Slow())
    base = lt.Vocabulary.from_sentencepiece(path)
    assert list(vocabulary) == [*base, b"", b"<|im_end|>", b"<tool>"]
    assert [vocabulary.kind(id) for id in (32000, 32001, 32002)] == ["unused", "control", "user_defined"]
    assert (vocabulary.end_tokens, vocabulary.bos_id, vocabulary.name) == ([2, 32001], 1, "slow")
    assert vocabulary.adds_prefix_space
    with pytest.raises(lt.VocabularyError, match="neither fast"):
        lt.Vocabulary.from_transformers(object())
    with pytest.raises(TypeError, match="SentencePieceProcessor"):
        lt.Vocabulary.from_sentencepiece(object())


@pytest.mark.parametrize("name", ["tekken_240911.json", "mistral_instruct_tokenizer_240323.model.v3"])
@pytest.mark.peers
def test_transformers_mistral(mistral_data: Path, name: str) -> None:
    mistral = pytest.importorskip("mistral_common.tokens.tokenizers.mistral")
    owner = mistral.MistralTokenizer.from_file(str(mistral_data / name))
    backend = types.SimpleNamespace(tokenizer=owner, eos_token_id=2, bos_token_id=1)
    load = lt.Vocabulary.from_tekken if name.endswith(".json") else lt.Vocabulary.from_sentencepiece
    vocabulary = lt.Vocabulary.from_transformers(backend)
    assert vocabulary == load(mistral_data / name) and vocabulary.end_tokens == [2]
