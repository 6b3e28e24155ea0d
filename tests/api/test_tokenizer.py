"""Tokenizers against llama.cpp's and Hugging Face's own, and matchers in canonical spelling."""

from __future__ import annotations

import functools
import io
import json
import os
import random
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
from data_files import VOCABULARIES, gguf_vocabulary, vocabularies
from gguf_files import gguf, rewritten
from logitree.engines.llama_cpp import LlamaCpp
from texts import varied_texts

# fmt: off
PIECES = (
    "a", "the", " the", "ing", "Z", "é", "ß", "ж", "Жук", "中", "文", "한국", "हि", "न्", "ไทย", "é", "٣", "Ⅷ",
    "½", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\xa0", "\u3000", "\u2028", "0", "7", "42",
    "1234567", "3.14", "'s", "'T", "'ll", "'re", "'", '"', '":', '": "', "{", "}", "[", "]", ",", ", ", ":",
    "_", "-", "---", "==", "//", "(", ");", "<", "</", "<|", "|>", "<s>", "</s>", "[PAD15]", "[PAD151646]",
    "<|im_end|>", "<0x0A>", "😀", "👍🏽", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "€", "…", "“", "\u200b",
    "\ufeff", "ſ", "K", "ǅ", "ﬁ", "Ａ", "！", "。", "▁", "\x7f", "\x00", "𝔘", "𠀀", "ø", "def f(x):\n    return x",
    '{"a": 1}', "camelCase", "https://x.y/z?q=1", "It's we'll", "\\n", "aaaa", "====", "...",
    "ア", "ひ", "ｶ", "㐀", "豈", "\U0002a700", "ဗမာ", "ខ្មែរ", "ລາວ", "한ㄱ", "ㄅㄆ", "，", "、", "〿", "︰", "्",
    "\u0301", "¹", "①",
    "<sentinel:12>", "IMGIMGABZ", "    ", "12 345", "a's", "É's", "DÉJÀ Vu", "Été", "।", "۔", "$x", "^", "|",
    "~`", "#tag", "/\n",
    "\u00ad", "\ufffe", "\U0010ffff", "\U000e0041", "\x85", "\u1680", "\u2003", "\u180e", "İ", "ꭰ", "Ↄ", "\U0001d7d8",
)
# fmt: on


def random_texts(seed: int, count: int) -> list[str]:
    """Texts of random pieces, and of random characters."""
    draw = random.Random(seed)
    texts = ["".join(draw.choices(PIECES, k=draw.randint(0, draw.choice((4, 12, 40))))) for _ in range(count)]
    for _ in range(count // 2):
        codes = [draw.randrange(draw.choice((0x80, 0x300, 0x3000, 0xD800))) for _ in range(draw.randint(0, 20))]
        texts.append("".join(map(chr, codes)))
    return texts


CASES = int(os.environ.get("CASES", "40"))
"""Random texts for each pre-tokenizer."""


@functools.cache
def crossing_vocabulary() -> dict[str, Any]:
    """A GGUF of a vocabulary whose merges cross every boundary between pieces: it was learnt from whole texts."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=4_000, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(random_texts(2, 400), trainer)
    model = json.loads(made.to_str())["model"]
    tokens = [*sorted(model["vocab"], key=model["vocab"].get), "<end>"]
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * (len(tokens) - 1) + [3],
        "tokenizer.ggml.merges": [" ".join(merge) for merge in model["merges"]],
        "tokenizer.ggml.bos_token_id": len(tokens) - 1,
        "tokenizer.ggml.eos_token_id": len(tokens) - 1,
    }


def named_vocabulary(pre: str, folder: Path) -> Path:
    """The vocabulary of merges that cross, with a pre-tokenizer's name."""
    path = folder / "named.gguf"
    path.write_bytes(gguf({**crossing_vocabulary(), "tokenizer.ggml.pre": pre}))
    return path


# fmt: off
PRE_TOKENIZERS = (
    "", "a.x-4.0", "afmoe", "bailingmoe", "bailingmoe2", "bloom", "chameleon", "chatglm-bpe", "codeshell", "cohere2moe",
    "command-r", "dbrx", "deepseek-coder", "deepseek-llm", "deepseek-r1-qwen", "deepseek-v3", "default", "exaone",
    "exaone-moe", "exaone4", "f2llmv2", "falcon", "falcon-h1", "falcon3", "gigachat", "glm4", "glm5", "gpt-2", "gpt-4o",
    "gpt3-finnish", "granite-docling", "granite-embed-multi-97m", "grok-2", "hunyuan", "hunyuan-dense", "hy_v4", "jais",
    "jais-2", "jina-de", "jina-es", "jina-v1-en", "jina-v2-code", "jina-v2-de", "jina-v2-es", "jina-v5-nano",
    "joyai-llm",
    "kanana2", "kimi-k2", "kormo", "laguna", "lfm2", "llada-moe", "llama-bpe", "llama-v3", "llama3", "llama4", "megrez",
    "mellum", "mellum2", "midm-2.0", "minerva-7b", "minicpm5", "minimax-m2", "modern-bert", "mpt", "olmo", "phi-2",
    "pixtral", "poro-chat", "qwen2", "qwen35", "refact", "roberta-bpe", "seed-coder", "smaug-bpe", "smollm",
    "solar-open",
    "spark2_5", "stablelm2", "starcoder", "superbpe", "talkie", "tekken", "tiny_aya", "trillion", "ufakzeka", "viking",
    "youtu",
)
"""The names of llama.cpp for merges of bytes."""
# fmt: on
CHARACTERS = ("gemma4", "granite-embed-multi-311m", "sarvam-moe")
"""Its names for merges of characters."""


def compare(ours: lt.Tokenizer, theirs: Any, texts: Iterable[str], drops: bool = False) -> int:
    """How many texts had equal tokens; from the others llama.cpp drops bytes."""
    compared = 0
    for text in texts:
        try:
            tokens = ours.encode(text)
        except lt.TokenError:
            assert drops
            continue
        assert tokens == theirs.tokenize(text.encode(), add_bos=False, special=False), repr(text)
        compared += 1
    return compared


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
def test_every_pre_tokenizer_of_llama_cpp_cuts_as_there(pre: str, tmp_path: Path) -> None:
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    path = named_vocabulary(pre, tmp_path)
    ours, theirs = lt.Tokenizer.from_gguf(path), llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    texts = random_texts(3, CASES)
    assert compare(ours, theirs, texts) == len(texts)
    assert all(ours.is_canonical(ours.encode(text)) for text in texts[:10])


@pytest.mark.parametrize("pre", CHARACTERS)
@pytest.mark.data
def test_every_pre_tokenizer_of_characters_merges_as_there(pre: str, tmp_path: Path) -> None:
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    path = tmp_path / "named.gguf"
    changed = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre}
    path.write_bytes(rewritten(gguf_vocabulary("gemma-4"), changed))
    ours, theirs = lt.Tokenizer.from_gguf(path), llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    texts = random_texts(3, CASES)
    assert compare(ours, theirs, texts) == len(texts)


@functools.cache
def unigram_model() -> tuple[dict[str, Any], bytes]:
    """A GGUF of a unigram model without its options, and its map of characters."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text.replace("\n", " ") for text in random_texts(5, 300)),
        model_writer=written,
        model_type="unigram",
        vocab_size=1_500,
        character_coverage=0.98,
        hard_vocab_limit=False,
        user_defined_symbols=["<tool>", "naïve"],
        minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    ids = range(model.get_piece_size())
    kinds = [2 if model.is_unknown(n) else 3 if model.is_control(n) else 1 for n in ids]
    user = [model.piece_to_id(text) for text in ("<tool>", "naïve")]
    metadata = {
        "general.architecture": "t5",
        "tokenizer.ggml.model": "t5",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": [model.id_to_piece(n) for n in ids],
        "tokenizer.ggml.scores": [model.get_score(n) for n in ids],
        "tokenizer.ggml.token_type": [4 if n in user else kind for n, kind in zip(ids, kinds, strict=True)],
        "tokenizer.ggml.unknown_token_id": model.unk_id(),
        "tokenizer.ggml.eos_token_id": model.eos_id(),
        "tokenizer.ggml.padding_token_id": model.unk_id(),
    }
    # The field normalizer_spec of the model, and its field precompiled_charsmap.
    return metadata, fields(fields(written.getvalue())[3])[2]


def fields(message: bytes) -> dict[int, bytes]:
    """The last value of each field of a protocol buffer that holds bytes."""
    found, at = dict[int, bytes](), 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 2:
            length = number()
            found[key >> 3] = message[at : at + length]
            at += length
        elif key & 7 == 0:
            number()
        else:
            at += 4 if key & 7 == 5 else 8
    return found


def as_llama_cpp(metadata: dict[str, Any], folder: Path) -> lt.Tokenizer:
    """Ours, once it gives llama.cpp's tokens for random texts."""
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    path = folder / "other.gguf"
    path.write_bytes(gguf(metadata))
    ours, theirs = lt.Tokenizer.from_gguf(path), llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    texts = random_texts(7, CASES)
    assert compare(ours, theirs, texts) == len(texts)
    return ours


def refuses_canonical(ours: lt.Tokenizer) -> None:
    """Such a tokenizer encodes, and its canonical spelling is an error."""
    assert not ours.is_canonical(ours.encode("a"))
    with pytest.raises(lt.ConstraintError, match="no canonical spelling"):
        ours.canonical(lt.OneOf(["a"]).matcher(ours.vocabulary))


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("merged", [False, True])
def test_unigram_models_are_those_of_llama_cpp(mapped: bool, prefix: bool, merged: bool, tmp_path: Path) -> None:
    metadata, charsmap = unigram_model()
    options = {"tokenizer.ggml.add_space_prefix": prefix, "tokenizer.ggml.remove_extra_whitespaces": merged}
    mapping = {"tokenizer.ggml.precompiled_charsmap": bytearray(charsmap)} if mapped else {}
    refuses_canonical(as_llama_cpp(metadata | options | mapping, tmp_path))


def test_a_damaged_map_of_characters_is_an_error(tmp_path: Path) -> None:
    metadata, charsmap = unigram_model()
    path = tmp_path / "damaged.gguf"
    for damaged in (b"", charsmap[:3], charsmap[:-1], charsmap[:4000]):
        path.write_bytes(gguf({**metadata, "tokenizer.ggml.precompiled_charsmap": bytearray(damaged)}))
        with pytest.raises(lt.VocabularyError, match="precompiled_charsmap"):
            lt.Tokenizer.from_gguf(path)
    blind = (4).to_bytes(4, "little") + b"\xff\xff\xff\x7f" + b"\0"
    path.write_bytes(gguf({**metadata, "tokenizer.ggml.precompiled_charsmap": bytearray(blind)}))
    with pytest.raises(lt.VocabularyError, match="outside of itself"):
        lt.Tokenizer.from_gguf(path).encode("a")


@pytest.mark.parametrize("lowercase", [None, False, True])
@pytest.mark.parametrize("strip_accents", [None, False, True])
def test_word_piece_is_that_of_llama_cpp(lowercase: bool | None, strip_accents: bool | None, tmp_path: Path) -> None:
    draw = random.Random(8)
    words = {word for text in random_texts(9, 200) for word in text.split()}
    parts = {word[start:end] for word in words for start in range(3) for end in range(start + 1, len(word) + 1)}
    parts = {part.lower() if draw.random() < 0.5 else part for part in sorted(parts) if "\x00" not in part}
    chosen = sorted(draw.sample(sorted(parts), min(3_000, len(parts))))
    tokens = ["[UNK]", "[CLS]", "[SEP]", *dict.fromkeys(mark + part for part in chosen for mark in ("", "\u2581"))]
    options = {"lowercase": lowercase, "strip_accents": strip_accents}
    metadata = {
        "general.architecture": "bert",
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": list(dict.fromkeys(tokens)),
        "tokenizer.ggml.token_type": [3] * 3 + [1] * (len(dict.fromkeys(tokens)) - 3),
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.seperator_token_id": 2,
        **{f"tokenizer.ggml.normalizer.{key}": value for key, value in options.items() if value is not None},
    }
    refuses_canonical(as_llama_cpp(metadata, tmp_path))


@functools.cache
def llama(path: Path) -> Any:
    """llama.cpp's own tokenizer of a file."""
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    return llama_cpp.Llama(str(path), vocab_only=True, verbose=False)


@functools.cache
def tokenizer(path: Path) -> lt.Tokenizer:
    """Ours."""
    return lt.Tokenizer.from_gguf(path)


@pytest.mark.parametrize("name", vocabularies(*VOCABULARIES))
def test_the_tokens_are_those_of_llama_cpp(name: str) -> None:
    path = gguf_vocabulary(name)
    texts = (*varied_texts()[:300], *random_texts(1, 400))
    # llama.cpp drops the bytes that SmolLM2 has no token for.
    assert compare(tokenizer(path), llama(path), texts, drops=name == "smollm2") > 500


@pytest.mark.parametrize("name", vocabularies(*VOCABULARIES))
def test_long_runs_take_time_in_their_length(name: str) -> None:
    ours = tokenizer(gguf_vocabulary(name))
    for unit in ("a", " ", "\n", "中", "'", "1"):
        assert ours.encode(unit * 200_000)
    assert len(ours.encode(" " * 100_000 + "x" + " " * 100_000)) > 1


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "kind": {"enum": ["cat", "category", "dog"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "age", "kind", "tags"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("name", vocabularies("smollm2", "llama-spm", "gemma-4"))
def test_a_matcher_allows_the_encoding_of_every_text_and_leads_to_ends(name: str) -> None:
    ours = tokenizer(gguf_vocabulary(name))
    vocabulary = ours.vocabulary
    plain = lt.Grammar.json_schema(SCHEMA).matcher(vocabulary)
    value = {"name": "Anna  Müller\n 中文 x", "age": 41, "kind": "category", "tags": ["a b", ""]}
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value, separators=(",", ":"))):
        matcher = ours.canonical(plain)
        tokens = ours.encode(text)
        if vocabulary.adds_prefix_space:
            plain_text = vocabulary.decode(tokens)
            assert plain_text == b" " + text.encode()
            continue
        for at, token in enumerate(tokens):
            assert token in matcher.allowed(), (text, at)
            matcher.accept(token)
        assert matcher.is_accepting
    # Whatever is drawn is canonical, and no draw leads to a dead end.
    draw = random.Random(4)
    for _ in range(3):
        matcher, tokens = ours.canonical(plain), list[int]()
        for _ in range(40):
            if matcher.is_finished:
                break
            allowed = list(matcher.allowed())
            tokens.append(draw.choice(allowed))
            matcher.accept(tokens[-1])
        text = vocabulary.decode([token for token in tokens if token not in vocabulary.end_tokens])
        if matcher.is_finished:
            assert ours.is_canonical(tokens), text
        else:
            # The end may change when the text continues, but not much of it.
            again = ours.encode(text.decode(errors="ignore"))
            again = again[1:] if vocabulary.adds_prefix_space else again
            assert vocabulary.adds_prefix_space or again[: len(tokens) - 8] == tokens[: len(tokens) - 8], text


def test_certain_text_is_forced(smollm2_gguf: Path) -> None:
    ours = tokenizer(smollm2_gguf)
    texts = ["the weather in Paris is fine", "the weather in Berlin is fine"]
    matcher = ours.canonical(lt.OneOf(texts).matcher(ours.vocabulary))
    tokens = ours.encode(texts[0])
    start = ours.encode("the weather in")
    assert matcher.forced_tokens() == start
    for token in tokens[: len(start) + 1]:
        matcher.accept(token)
    assert matcher.forced_tokens() == tokens[len(start) + 1 :]


def test_forcing_changes_no_token_of_a_model(engine: LlamaCpp) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}, "kind": {"enum": ["cat", "dog"]}},
        "required": ["name", "kind"],
        "additionalProperties": False,
    }
    ours = engine.own_tokenizer
    matcher = ours.canonical(lt.Grammar.json_schema(schema).matcher(engine.vocabulary))
    for seed in (1, 2):
        outputs = [
            lt.generate(
                engine, "A pet as JSON:", matcher, chat=False, force=force, seed=seed, temperature=0.8, max_tokens=80
            )
            for force in (True, False)
        ]
        forced, sampled = outputs
        assert forced.tokens == sampled.tokens
        text = [token for token in forced.tokens if token not in engine.vocabulary.end_tokens]
        assert ours.is_canonical(text)
        assert forced.stats.forward_passes < sampled.stats.forward_passes


def test_the_text_may_continue_the_prompt(smollm2_gguf: Path) -> None:
    ours = tokenizer(smollm2_gguf)
    plain = lt.OneOf(["ing"]).matcher(ours.vocabulary)
    assert ours.canonical(plain).forced_tokens() == ours.encode("ing")
    with pytest.raises(lt.ConstraintError):
        ours.canonical(plain, before=ours.encode("walk"))
    with pytest.raises(lt.TokenError):
        ours.canonical(plain, before=[10**6])


def test_other_vocabularies_are_refused(smollm2_gguf: Path) -> None:
    vocabulary = lt.Vocabulary.from_tokens([b"a", b"</s>"], end_tokens=[1])
    with pytest.raises(lt.ConstraintError, match="tokens"):
        tokenizer(smollm2_gguf).canonical(lt.OneOf(["a"]).matcher(vocabulary))


def test_a_call_takes_no_more_than_its_fuel(smollm2_gguf: Path) -> None:
    ours = tokenizer(smollm2_gguf)
    plain = lt.Grammar.regex(r"([a-z0-9]{2,9}-)?[A-Za-z ,'-]{0,24}x").matcher(ours.vocabulary)
    with pytest.raises(lt.LimitError) as caught:
        ours.canonical(plain, fuel=300).allowed().mask()
    assert caught.value.place == "token 0 of the text" and "fuel" in caught.value.help
    assert ours.canonical(plain, fuel=10**9).allowed().mask().any()


def test_a_deadline_ends_a_canonical_call(smollm2_gguf: Path) -> None:
    ours = tokenizer(smollm2_gguf)
    matcher = ours.canonical(lt.Grammar.regex("[a-z]{1,9}[0-9]{2}").matcher(ours.vocabulary))
    matcher.accept(ours.encode("a")[0])
    with lt.Deadline(0), pytest.raises(lt.LimitError, match="deadline"):
        matcher.allowed().mask()
    assert ours.encode("1")[0] in matcher.allowed(), "it stays usable"


GPT2 = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True, "trim_offsets": True}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": True}
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@functools.cache
def trained(characters: bool) -> str:
    """A small tokenizer.json, learnt from whole texts, so that its merges cross every boundary between pieces."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    alphabet = [] if characters else byte_level.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=2_500, initial_alphabet=alphabet, show_progress=False)
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    if characters:
        made.normalizer = tokenizers.normalizers.Replace(" ", "\u2581")
    else:
        made.pre_tokenizer = byte_level(add_prefix_space=False, use_regex=False)
        made.decoder = tokenizers.decoders.ByteLevel()
    made.train_from_iterator(random_texts(5, 300), trainer)
    made.add_tokens(["<tool>", "aaa", "ab"])
    made.add_special_tokens(["</s>"])
    return str(made.to_str())


def tokenizer_json(characters: bool = False, **changed: Any) -> dict[str, Any]:
    """A small tokenizer.json of bytes, or of characters with byte fallback, with some fields changed."""
    loaded: dict[str, Any] = json.loads(trained(characters))
    if characters:
        model = loaded["model"]
        model["byte_fallback"], vocab = True, model["vocab"]
        first = len(vocab)
        vocab.update({f"<0x{byte:02X}>": first + byte for byte in range(256)})
        # Their ids follow those of the vocabulary.
        later = [token for token in loaded["added_tokens"] if token["content"] not in vocab]
        for number, token in enumerate(later):
            token["id"] = len(vocab) + number
        replace = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
        loaded["decoder"] = {"type": "Sequence", "decoders": [replace, {"type": "ByteFallback"}, {"type": "Fuse"}]}
    for path, value in changed.items():
        *parents, last = path.split("__")
        at = loaded
        for parent in parents:
            at = at[parent]
        at[last] = value
    return loaded


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    """Pre-tokenizers or normalisers one after the other."""
    return {"type": "Sequence", "pretokenizers": list(steps), "normalizers": list(steps)}


def split(pattern: str, behavior: str = "Isolated", kind: str = "Regex", invert: bool = False) -> dict[str, Any]:
    """The pre-tokenizer Split."""
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


DIGITS = {"type": "Digits", "individual_digits": True}
CASED = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
HAN = r"\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
PRE_TOKENIZERS_OF_BYTES = {
    "gpt2": GPT2,
    "digits": sequence(DIGITS, GPT2),
    "runs-of-digits": sequence({"type": "Digits", "individual_digits": False}, GPT2),
    "llama3": sequence(split(SPLIT), BYTES),
    "gpt-4o": sequence(split(CASED), BYTES),
    "kimi": sequence(split(rf"\p{{Han}}+|[\p{{Lu}}\p{{Lt}}{HAN}*[\p{{Ll}}{HAN}+|\p{{N}}{{1,3}}|\s+(?!\S)|\s+"), BYTES),
    "cl100k": sequence(split(CL100K), BYTES),
    "deepseek": sequence(split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(r"\s?\p{P}+"), split(r"\s+$"), BYTES),
    "superbpe": sequence(split(r"\p{N}+"), split(r"(?=(\d{3})+(?!\d))"), BYTES),
    "aya": sequence(split(r"\d{1,3}(?=(?:\d{3})*\b)"), split(SPLIT), BYTES),
    "not-before-two": sequence(split(r"\w+(?!, |\n)|a(?=b(?:c|$))"), BYTES),
    "lazy": sequence(split(r"a+?|\(.*?\)|\s{2,}?"), BYTES),
    "previous": sequence(split(r"\s|[a1]+", "MergedWithPrevious"), BYTES),
    "next": sequence(split(r"\s|[a1]+", "MergedWithNext"), BYTES),
    "contiguous": sequence(split(r"\s|\p{N}", "Contiguous"), BYTES),
    "inverted": sequence(split(r"\s|[a1]+", "MergedWithNext", invert=True), BYTES),
    "of-a-text": sequence(split(" ", "MergedWithPrevious", kind="String"), BYTES),
    "punctuation": sequence({"type": "Punctuation", "behavior": "Isolated"}, DIGITS, BYTES),
    "punctuation-contiguous": sequence({"type": "Punctuation", "behavior": "Contiguous"}, BYTES),
    "nested": sequence(sequence(DIGITS, split(r"[[:punct:]x]+")), GPT2),
    "prefix": {**GPT2, "add_prefix_space": True},
    "whole": BYTES,
}


@pytest.mark.parametrize("name", PRE_TOKENIZERS_OF_BYTES)
@pytest.mark.parametrize("ignore_merges", [False, True])
def test_the_tokens_are_those_of_tokenizers(name: str, ignore_merges: bool) -> None:
    step = PRE_TOKENIZERS_OF_BYTES[name]
    same_as_tokenizers(tokenizer_json(pre_tokenizer=step, model__ignore_merges=ignore_merges))


def later_characters(texts: Iterable[str]) -> set[str]:
    """Characters that the package does not know: it normalises by tables of Unicode 9."""
    normalizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed").normalizers
    found = set[str]()
    for c in set[str]().union(*texts):
        strips = normalizers.StripAccents().normalize_str(c) == ""
        composed, decomposed = normalizers.NFKC().normalize_str(c), normalizers.NFKD().normalize_str(c)
        same = (composed, decomposed) == (unicodedata.normalize("NFKC", c), unicodedata.normalize("NFKD", c))
        if strips != (unicodedata.category(c)[0] == "M") or not same:
            found.add(c)
    return found


def same_as_tokenizers(changed: dict[str, Any], *, known_only: bool = False) -> None:
    """Both give the same tokens for random texts, of characters alone that both know where that matters."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    content = json.dumps(changed)
    theirs, ours = tokenizers.Tokenizer.from_str(content), lt.Tokenizer.from_tokenizer_json(content)
    texts = [*varied_texts()[: CASES // 2], *random_texts(6, CASES), "a<tool>b", "<tool", "aaaab", "<tool> aab <tool>"]
    unknown = later_characters(texts) if known_only else set()
    for text in texts:
        text = "".join(c for c in text.replace("</s>", "") if c not in unknown)
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids, repr(text)


SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
PREPEND = {"type": "Prepend", "prepend": "\u2581"}
METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}


@pytest.mark.parametrize(
    ("normalizer", "pre_tokenizer"),
    [
        (SPACES, None),
        (SPACES, split(" ", "MergedWithPrevious", kind="String")),
        (SPACES, split("\u2581", "MergedWithNext", kind="String")),
        (sequence(PREPEND, SPACES), None),
        (sequence({"type": "NFC"}, SPACES), sequence(split(r"\n+"), DIGITS)),
        (None, METASPACE),
        (None, {**METASPACE, "split": False, "prepend_scheme": "first"}),
        (None, {**METASPACE, "prepend_scheme": "never"}),
        (None, sequence(METASPACE, {"type": "Punctuation", "behavior": "MergedWithPrevious"}, split(r"\s+|[^ ]"))),
    ],
)
def test_characters_with_byte_fallback_are_merged_as_in_tokenizers(
    normalizer: dict[str, Any] | None, pre_tokenizer: dict[str, Any] | None
) -> None:
    same_as_tokenizers(tokenizer_json(characters=True, normalizer=normalizer, pre_tokenizer=pre_tokenizer))


@pytest.mark.parametrize(
    "normalizer",
    [
        {"type": "NFC"},
        {"type": "NFD"},
        {"type": "NFKC"},
        {"type": "NFKD"},
        {"type": "Lowercase"},
        sequence({"type": "NFD"}, {"type": "StripAccents"}),
        {"type": "Strip", "strip_left": True, "strip_right": False},
        {"type": "Prepend", "prepend": "x"},
        sequence(
            {"type": "Replace", "pattern": {"Regex": r"\s{2,}"}, "content": " "},
            {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
        ),
        sequence(),
    ],
)
def test_normalizers_are_those_of_tokenizers(normalizer: dict[str, Any]) -> None:
    same_as_tokenizers(tokenizer_json(normalizer=normalizer, pre_tokenizer=GPT2), known_only=True)


@pytest.mark.parametrize("lstrip", [False, True])
@pytest.mark.parametrize("rstrip", [False, True])
@pytest.mark.parametrize("single_word", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_added_tokens_are_found_as_in_tokenizers(
    lstrip: bool, rstrip: bool, single_word: bool, normalized: bool
) -> None:
    changed = tokenizer_json(normalizer={"type": "NFC"})
    for token in changed["added_tokens"][:2]:
        token |= {"lstrip": lstrip, "rstrip": rstrip, "single_word": single_word, "normalized": normalized}
    same_as_tokenizers(changed)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"normalizer": {"type": "Other"}}, "normalizer"),
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": "(?<=a)b"}, "content": ""}}, "normalizer"),
        ({"model__byte_fallback": True}, "pre_tokenizer"),
        ({"model__dropout": 0.1}, "model.dropout"),
        ({"model__end_of_word_suffix": "</w>"}, "model"),
        ({"pre_tokenizer": None}, "pre_tokenizer"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer"),
        ({"pre_tokenizer": sequence(split(" ", "Removed"), GPT2)}, "pre_tokenizer.pretokenizers[0]"),
        ({"pre_tokenizer": sequence(split(r"a\K"), GPT2)}, "pre_tokenizer.pretokenizers[0]"),
        ({"pre_tokenizer": sequence(split(r"\d(?=a(?!bc))"), BYTES)}, ""),
        ({"pre_tokenizer": sequence(DIGITS, {**GPT2, "add_prefix_space": True})}, "pre_tokenizer.pretokenizers[1]"),
        ({"model__merges": [["nothing", "known"]]}, "model.merges[0]"),
        ({"model__merges": ["ab"]}, "model.merges[0]"),
    ],
)
def test_other_kinds_of_tokenizer_json_are_errors(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(lt.VocabularyError, match=re.escape(f"field {field}") if field else "look-ahead"):
        lt.Tokenizer.from_tokenizer_json(json.dumps(tokenizer_json(**changed)))


def test_other_kinds_of_gguf_are_errors(smollm2_gguf: Path, tmp_path: Path) -> None:
    content = smollm2_gguf.read_bytes()[: 8 << 20]
    path = tmp_path / "other.gguf"
    for old, new, field in (
        (b"smollm", b"other!", "tokenizer.ggml.pre"),
        (b"merges", b"mergez", "tokenizer.ggml.merges"),
    ):
        at = content.index(b"tokenizer.ggml." + (b"pre" if old == b"smollm" else old))
        at = content.index(old, at)
        path.write_bytes(content[:at] + new + content[at + len(old) :])
        with pytest.raises(lt.VocabularyError, match=field):
            lt.Tokenizer.from_gguf(path)
