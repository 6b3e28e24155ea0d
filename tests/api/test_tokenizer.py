"""Tokenizers against llama.cpp's and Hugging Face's own, and matchers in canonical spelling."""

from __future__ import annotations

import functools
import json
import random
from pathlib import Path
from typing import Any

import pytest

import logitree as lt
from data_files import VOCABULARIES, gguf_vocabulary, vocabularies
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
    theirs, ours = llama(path), tokenizer(path)
    compared = 0
    for text in (*varied_texts()[:300], *random_texts(1, 400)):
        try:
            tokens = ours.encode(text)
        except lt.TokenError:
            # llama.cpp drops the bytes that SmolLM2 has no token for.
            assert name == "smollm2"
            continue
        assert tokens == theirs.tokenize(text.encode(), add_bos=False, special=False), repr(text)
        compared += 1
    assert compared > 500


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


def tokenizer_json(**changed: Any) -> dict[str, Any]:
    """A small tokenizer.json."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=900, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.train_from_iterator(random_texts(5, 400), trainer)
    made.add_tokens(["<tool>"])
    made.add_special_tokens(["</s>"])
    loaded: dict[str, Any] = json.loads(made.to_str())
    for path, value in changed.items():
        *parents, last = path.split("__")
        at = loaded
        for parent in parents:
            at = at[parent]
        at[last] = value
    return loaded


@pytest.mark.parametrize(
    "pre_tokenizer",
    [
        GPT2,
        {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, GPT2]},
        {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False},
                BYTES,
            ],
        },
    ],
)
@pytest.mark.parametrize("ignore_merges", [False, True])
def test_the_tokens_are_those_of_tokenizers(pre_tokenizer: dict[str, Any], ignore_merges: bool) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    content = json.dumps(tokenizer_json(pre_tokenizer=pre_tokenizer, model__ignore_merges=ignore_merges))
    theirs, ours = tokenizers.Tokenizer.from_str(content), lt.Tokenizer.from_tokenizer_json(content)
    for text in (*varied_texts()[:200], *random_texts(6, 300), "a<tool>b", "<tool"):
        text = text.replace("</s>", "").replace("ſ", "").replace("K", "")
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids, repr(text)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"normalizer": {"type": "NFC"}}, "normalizer"),
        ({"model__byte_fallback": True}, "model.byte_fallback"),
        ({"model__dropout": 0.1}, "model.dropout"),
        ({"model__end_of_word_suffix": "</w>"}, "model"),
        ({"pre_tokenizer": None}, "pre_tokenizer"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer"),
        ({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True}}, "pre_tokenizer"),
        ({"model__merges": [["nothing", "known"]]}, "model.merges[0]"),
        ({"model__merges": ["ab"]}, "model.merges[0]"),
    ],
)
def test_other_kinds_of_tokenizer_json_are_errors(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(lt.VocabularyError, match=f"field {field}".replace("[", r"\[")):
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
