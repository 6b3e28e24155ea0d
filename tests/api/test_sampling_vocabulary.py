"""The samplers that need a vocabulary, dry and infill; the keywords of chains. tests/parity has llama.cpp's own."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import logitree as lt
from logitree import _core

TOKENS = [b"a", b"b", b"ab", b"xa", b"a:", b"\n", b"</s>"]


@pytest.fixture
def vocabulary() -> lt.Vocabulary:
    return lt.Vocabulary.from_tokens(TOKENS, end_tokens=[6])


def test_breakers_of_a_small_vocabulary(vocabulary: lt.Vocabulary) -> None:
    assert lt.samplers.dry_breakers(vocabulary) == [[4], [5]]
    assert lt.samplers.dry_breakers(vocabulary, ["b"]) == [[1], [2]]
    asked = []

    def tokenize(text: str) -> list[int]:
        asked.append(text)
        return [1]

    assert lt.samplers.dry_breakers(vocabulary, [b"ab"], tokenize) == [[0, 1], [2], [3, 1]]
    assert asked == ["b"]
    described = repr(lt.samplers.dry(0.8, vocabulary=vocabulary))
    assert described == "dry(0.8, base=1.75, allowed_length=2, last_n=64, breakers=[[4], [5]])"
    assert repr(lt.samplers.dry(0.8)) == "dry(0.8, base=1.75, allowed_length=2, last_n=64)"


def test_what_dry_and_infill_refuse(vocabulary: lt.Vocabulary) -> None:
    with pytest.raises(lt.SamplingError, match="has to be tokenised") as caught:
        lt.samplers.dry(0.8, vocabulary=vocabulary, breakers=["ab"])
    assert "tokenize" in str(caught.value.help)
    for wrong in ("ab", [[1]]):
        with pytest.raises(lt.SamplingError, match="text"):
            lt.samplers.dry_breakers(vocabulary, wrong)  # type: ignore[arg-type]
    with pytest.raises(lt.SamplingError, match="takes a vocabulary"):
        lt.samplers.dry(0.8, breakers=["ab"])
    with pytest.raises(lt.SamplingError, match="empty"):
        lt.samplers.dry_breakers(vocabulary, [""])
    with pytest.raises(ZeroDivisionError):
        lt.samplers.dry_breakers(vocabulary, ["ab"], lambda text: [1 // 0])
    with pytest.raises(lt.TokenError):
        lt.samplers.dry_breakers(vocabulary, ["ab"], lambda text: [-1])
    with pytest.raises(lt.VocabularyError, match="end-of-generation"):
        lt.samplers.infill(lt.Vocabulary.from_tokens([b"a"]))
    with pytest.raises(lt.TokenError):
        lt.samplers.infill(vocabulary, eot=7)


def test_infill_ends_the_text_where_nothing_is_likely(vocabulary: lt.Vocabulary) -> None:
    logits = np.where(np.arange(7) == 6, -30.0, 0.0).astype(np.float32)
    chain = lt.Chain([lt.samplers.infill(vocabulary), lt.samplers.greedy()])
    assert chain.draw(logits, allowed=[0, 1, 5, 6]) == 0
    assert chain.draw(logits) == 0
    nothing = np.array([0, 0, -math.inf, -math.inf, -math.inf, 0, -30, 0, 0, 0], np.float32)
    assert chain.draw(nothing) == 6
    with pytest.raises(lt.MaskError, match="infill wants token 6"):
        chain.draw(nothing, allowed=[0, 1, 5, 7, 8, 9])


def test_keywords_of_chains(vocabulary: lt.Vocabulary) -> None:
    chain = lt.Chain.parse("edskypmxt", seed=1, dry_multiplier=0.5, dry_breakers=[[3]], dynatemp_range=0.25)
    assert chain.names[1] == "dry"
    assert chain.names[-2:] == ["temp_ext", "dist"]
    assert chain.get("dry_multiplier") == chain.get("dynatemp_range") * 2 == 0.5
    chain.set(dry_multiplier=1.5, xtc_probability=0.25, dry_penalty_last_n=7)
    assert "dry(1.5, base=1.75, allowed_length=2, last_n=7, breakers=[[3]])" in repr(chain)
    assert chain.get("xtc_probability") == 0.25
    assert lt.Chain.parse("ki", vocabulary=vocabulary).names == ["top_k", "infill", "dist"]
    assert lt.Chain.llama_cpp(mirostat=1, n_vocab=7, seed=1).names == ["temp", "mirostat"]
    assert "mirostat(7, tau=5, eta=0.1, m=100, seed=1)" in repr(lt.Chain.llama_cpp(mirostat=1, n_vocab=7, seed=1))
    with pytest.raises(lt.SamplingError, match="tsampler"):
        lt.Chain.tsampler(mirostat=2)
    with pytest.raises(lt.SamplingError, match='no parameter mirrorstat; did you mean "mirostat"'):
        lt.Chain.llama_cpp(mirrorstat=2)  # type: ignore[call-arg]
    with pytest.raises(lt.SamplingError, match="no parameter wxyzv") as caught:
        lt.Chain.llama_cpp(wxyzv=2)  # type: ignore[call-arg]
    usual = re.fullmatch(r"known: (.*) and (\d+) more, in docs/samplers.md", str(caught.value.help))
    assert usual
    shown, known = set(usual[1].split(", ")), set(lt.samplers.ChainParams.__annotations__)
    assert shown < known
    aliases = {alias for row in _core.sampler_table() for p in row["parameters"] for alias in p["aliases"]}
    assert len(known - aliases) <= len(shown) + int(usual[2]) <= len(known)
    for name in known:
        with pytest.raises((lt.SamplingError, TypeError)) as caught:
            lt.Chain.llama_cpp(**{name: object()})  # type: ignore[misc]
        assert "no parameter" not in str(caught.value)
