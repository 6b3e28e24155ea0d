"""Constructors of samplers, one for each row of the core's table, and samplers of one's own.

``Chain([penalties(), top_k(40), temp(0.7), dist(seed=1)])`` makes a chain. docs/samplers.md lists them all;
scripts/sampler_docs.py writes this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from logitree import _core
from logitree._core import Random, Sampler, custom, dry_breakers, top_candidates
from logitree._params import ChainParams, SamplingParams

if TYPE_CHECKING:
    from logitree._core import Vocabulary

__all__ = [
    "ChainParams",
    "Random",
    "Sampler",
    "SamplingParams",
    "adaptive_p",
    "custom",
    "dist",
    "dry",
    "dry_breakers",
    "edt",
    "epsilon_cutoff",
    "eta_cutoff",
    "greedy",
    "hf_top_h",
    "hf_top_k",
    "hf_top_p",
    "hf_typ_p",
    "infill",
    "logit_bias",
    "min_k",
    "min_p",
    "mirostat",
    "mirostat_v2",
    "no_repeat_ngram",
    "p_less",
    "penalties",
    "temp",
    "temp_ext",
    "top_candidates",
    "top_h",
    "top_k",
    "top_n_sigma",
    "top_p",
    "ts_top_k",
    "ts_top_n_sigma",
    "typ_p",
    "xtc",
]

_native = _core.sampler_constructors()


def logit_bias(biases: Mapping[int, float] | Sequence[tuple[int, float]]) -> Sampler:
    """Adds a number to the logits of single tokens; -inf bans a token.

    Args:
        biases: Numbers added to the logits of single tokens.
    """
    return _native["logit_bias"](biases)


def penalties(last_n: int = 64, repeat: float = 1.0, freq: float = 0.0, present: float = 0.0) -> Sampler:
    """Penalises the last last_n accepted tokens: a logit above 0 is divided by repeat, others multiplied; then count *
    freq + present is subtracted.

    Args:
        last_n: Accepted tokens that the penalties look at; 0 or less: off.
        repeat: Repeat penalty; 1: off.
        freq: Frequency penalty; 0: off.
        present: Presence penalty; 0: off.
    """
    return _native["penalties"](last_n, repeat, freq, present)


def dry(
    multiplier: float = 0.0,
    base: float = 1.75,
    allowed_length: int = 2,
    last_n: int = 64,
    breakers: Sequence[str | bytes | Sequence[int]] | None = None,
    vocabulary: Vocabulary | None = None,
    tokenize: Callable[[str], Iterable[int]] | None = None,
) -> Sampler:
    """Penalises tokens that continue a repetition of allowed_length accepted tokens or more (DRY).

    A token that continues a repetition of length accepted tokens loses multiplier * base ** (length -
    allowed_length). Breakers are sequences of token ids or, with a vocabulary, texts, which go through
    dry_breakers; None with a vocabulary takes llama.cpp's newline, colon, double quote and asterisk. Source:
    llama.cpp, src/llama-sampler.cpp.

    Args:
        multiplier: Penalty for continuing a repetition of the allowed length; 0: off.
        base: Factor by which the penalty grows with each further token; below 1: off.
        allowed_length: Shortest repetition, in tokens, that is penalised.
        last_n: Accepted tokens searched for repetitions; 0 or less: off.
        breakers: Token sequences that no repetition extends across, as dry_breakers makes them.
    """
    return _native["dry"](multiplier, base, allowed_length, last_n, breakers, vocabulary, tokenize)


def top_n_sigma(n: float) -> Sampler:
    """Sets to -inf what lies more than n standard deviations below the best logit.

    Args:
        n: Standard deviations below the best logit; 0 or less: off.
    """
    return _native["top_n_sigma"](n)


def top_k(k: int = 40) -> Sampler:
    """Keeps the k best candidates, sorted.

    Args:
        k: Best candidates kept; 0 or less: all.
    """
    return _native["top_k"](k)


def typ_p(p: float = 1.0, min_keep: int | None = 0) -> Sampler:
    """Keeps the candidates of locally typical surprisal up to probability p.

    Args:
        p: Probability kept; 1: all.
        min_keep: At least this many candidates stay.
    """
    return _native["typ_p"](p, min_keep)


def top_p(p: float = 0.95, min_keep: int | None = 0) -> Sampler:
    """Keeps the fewest best candidates whose probabilities reach p.

    Args:
        p: Probability kept; 1: all.
        min_keep: At least this many candidates stay.
    """
    return _native["top_p"](p, min_keep)


def min_p(p: float = 0.05, min_keep: int | None = 0) -> Sampler:
    """Keeps the candidates at least p times as probable as the best.

    Args:
        p: Part of the highest probability that a candidate needs; 0: all stay.
        min_keep: At least this many candidates stay.
    """
    return _native["min_p"](p, min_keep)


def xtc(
    p: float = 0.0,
    t: float = 0.1,
    min_keep: int | None = 0,
    seed: int | None = None,
    rng: str = "mt19937",
    sequence: int = 0,
) -> Sampler:
    """With probability p, removes the candidates of at least probability t except the least probable of them. Draws
    one float per step.

    Nothing is removed where fewer than min_keep candidates would stay. A single candidate draws nothing. Source:
    llama.cpp, src/llama-sampler.cpp.

    Args:
        p: Probability that a step removes candidates; 0: off.
        t: Least probability of a removed candidate; above 0.5: off.
        min_keep: At least this many candidates stay.
        seed: Seed of the draws; every value, including 0, is a literal seed. None takes a fresh one.
    """
    return _native["xtc"](p, t, min_keep, seed, rng, sequence)


def temp(t: float = 0.8) -> Sampler:
    """Divides the logits by t; 0 or less leaves only the best.

    Args:
        t: Temperature; 0 or less leaves only the best above -inf.
    """
    return _native["temp"](t)


def temp_ext(t: float = 0.8, delta: float = 0.0, exponent: float = 1.0) -> Sampler:
    """A temperature between t - delta and t + delta that rises with the entropy; delta of 0 or less is temp(t).

    The temperature is t - delta + 2 * delta * (entropy / ln n) ** exponent for n candidates. Source: llama.cpp,
    src/llama-sampler.cpp.

    Args:
        t: Temperature in the middle of the range.
        delta: How far the temperature may move from t with the entropy; 0: it is fixed.
        exponent: Exponent of the normalised entropy.
    """
    return _native["temp_ext"](t, delta, exponent)


def infill(vocabulary: Vocabulary, eot: int | None = None) -> Sampler:
    """Ends the text if that is likely, merges candidates with a common beginning, and keeps what is then likely.

    For use after top_k and top_p. It keeps only end-of-generation tokens if they are likely; else it merges
    candidates where one's text begins with the other's, and keeps those of probability 0.2 and then 1 / (n + 1) or
    more. If no text is left, the end-of-text token eot is the only candidate; where it is not allowed, that is a
    MaskError. eot of None is found by the texts that llama.cpp knows.

    Args:
        vocabulary: The vocabulary, whose token texts infill reads.
    """
    return _native["infill"](vocabulary, eot)


def adaptive_p(
    target: float,
    decay: float = 0.9,
    seed: int | None = None,
    rng: str = "mt19937",
    sequence: int = 0,
) -> Sampler:
    """Prefers probabilities near target, corrected by the running mean of what was accepted; selects.

    The mean, which forgets by decay with each token, is of the probabilities that accepted tokens had. It must be
    the last sampler of a chain; put min_p before it. llama.cpp #17927.

    Args:
        target: Probability aimed at; below 0 it only draws.
        decay: Part of the running mean that each token keeps, clamped to 0 to 0.99.
        seed: Seed of the draws; every value, including 0, is a literal seed. None takes a fresh one.
    """
    return _native["adaptive_p"](target, decay, seed, rng, sequence)


def mirostat(
    n_vocab: int | None = None,
    tau: float = 5.0,
    eta: float = 0.1,
    m: int = 100,
    seed: int | None = None,
    rng: str = "mt19937",
    sequence: int = 0,
) -> Sampler:
    """Keeps as many of the best candidates as hold the surprisal of the drawn token near tau bits; selects.

    It must be the last sampler of a chain. Basu et al., ICLR 2021.

    Args:
        n_vocab: Size of the vocabulary in mirostat's formula; None: the number of candidates.
        tau: Surprisal aimed at, in bits.
        eta: Part of the error corrected with each token.
        m: Best candidates that estimate the exponent of Zipf's law.
        seed: Seed of the draws; every value, including 0, is a literal seed. None takes a fresh one.
    """
    return _native["mirostat"](n_vocab, tau, eta, m, seed, rng, sequence)


def mirostat_v2(
    tau: float = 5.0,
    eta: float = 0.1,
    seed: int | None = None,
    rng: str = "mt19937",
    sequence: int = 0,
) -> Sampler:
    """Keeps the candidates of at most mu bits and moves mu so that what is drawn has tau bits; selects.

    mu begins at 2 * tau and moves by eta of the error. It must be the last sampler of a chain. Basu et al., ICLR
    2021.

    Args:
        tau: Surprisal aimed at, in bits.
        eta: Part of the error corrected with each token.
        seed: Seed of the draws; every value, including 0, is a literal seed. None takes a fresh one.
    """
    return _native["mirostat_v2"](tau, eta, seed, rng, sequence)


def no_repeat_ngram(n: int) -> Sampler:
    """Bans the tokens that would complete an n-gram of the accepted tokens.

    A prompt counts if it was accepted. Where every candidate would be banned, none is.

    Paulus, Xiong, Socher: A Deep Reinforced Model for Abstractive Summarization, 2017, arXiv:1705.04304; as
    transformers has it.

    Args:
        n: Length of the n-grams that may not repeat; 0 or less: off.
    """
    return _native["no_repeat_ngram"](n)


def epsilon_cutoff(epsilon: float, min_keep: int | None = 1) -> Sampler:
    """Keeps the candidates of probability epsilon or more.

    The best min_keep candidates and their equals always stay.

    Hewitt, Manning, Liang: Truncation Sampling as Language Model Desmoothing, 2022, arXiv:2210.15191; as
    transformers has it.

    Args:
        epsilon: Least probability of a candidate; 0 or less: off.
        min_keep: At least this many candidates stay.
    """
    return _native["epsilon_cutoff"](epsilon, min_keep)


def eta_cutoff(epsilon: float, min_keep: int | None = 1) -> Sampler:
    """Keeps the candidates of probability min(epsilon, sqrt(epsilon) * exp(-entropy)) or more.

    The entropy is in nats. The best min_keep candidates and their equals always stay.

    Hewitt, Manning, Liang: Truncation Sampling as Language Model Desmoothing, 2022, arXiv:2210.15191; as
    transformers has it.

    Args:
        epsilon: The formula's epsilon; 0 or less: off.
        min_keep: At least this many candidates stay.
    """
    return _native["eta_cutoff"](epsilon, min_keep)


def top_h(h: float = 0.4) -> Sampler:
    """Keeps the most probable candidates while their entropy is at most h times that of all (top-H decoding).

    The best candidate always stays, and the order does too; 1 or more keeps all.

    Baghaei Potraghloo et al.: Top-H Decoding, NeurIPS 2025, arXiv:2509.02510, the paper's own bound; that of
    transformers is hf_top_h.

    Args:
        h: Part of the entropy kept; 0 or less: off.
    """
    return _native["top_h"](h)


def min_k(tau: float = 3.0) -> Sampler:
    """Cuts at the steepest step of the sorted logits, or after tau over their range (min-k sampling).

    The cut is after the first k at which (l[k] - l[k+1]) / R / k is greatest, l being the sorted logits and R their
    range, or after floor(tau / R), whichever is later.

    Ding et al.: Min-k Sampling, ACL 2026, arXiv:2604.11012.

    Args:
        tau: Candidates kept at least, times the range of the logits.
    """
    return _native["min_k"](tau)


def p_less(norm: bool = False) -> Sampler:
    """Keeps the candidates at least as probable as two draws are to agree (p-less sampling).

    The threshold is c = sum(p**2); with norm it is (v * c - 1) / (v - 1) for v candidates above -inf.

    Tan, Wu, Howard: p-less Sampling, 2025, arXiv:2509.23234.

    Args:
        norm: Whether the threshold is that of p-less-norm.
    """
    return _native["p_less"](norm)


def edt(t0: float, theta: float, n: float = 0.8) -> Sampler:
    """Divides the logits by t0 * n ** (theta / entropy) (entropy-based dynamic temperature).

    The entropy is in nats.

    Zhang, Bao, Huang: EDT, 2024, arXiv:2403.14541.

    Args:
        t0: Temperature of boundless entropy; 0 or less is greedy.
        theta: How soon the temperature falls with the entropy; 0: never.
        n: Base of the exponential.
    """
    return _native["edt"](t0, theta, n)


def hf_top_h(h: float = 0.4) -> Sampler:
    """transformers' top-H: of the best hundred those up to which the entropy's terms sum to h of it.

    TopHLogitsWarper: the entropy is that of the best hundred, renormalised; the output is sorted.

    Args:
        h: Part of the entropy kept; 0: off.
    """
    return _native["hf_top_h"](h)


def hf_top_k(k: int = 50, min_keep: int | None = 0) -> Sampler:
    """transformers' top-k: the k best and all that equal the last of them.

    TopKLogitsWarper: the candidates keep their order.

    Args:
        k: Best candidates kept; 0 or less: all.
        min_keep: At least this many candidates stay.
    """
    return _native["hf_top_k"](k, min_keep)


def hf_top_p(p: float, min_keep: int | None = 0) -> Sampler:
    """transformers' top-p: removes the least probable candidates that sum to at most 1 - p.

    TopPLogitsWarper: the candidates keep their order.

    Args:
        p: Probability kept; 1: all.
        min_keep: At least this many candidates stay.
    """
    return _native["hf_top_p"](p, min_keep)


def hf_typ_p(p: float, min_keep: int | None = 0) -> Sampler:
    """transformers' typical decoding: as near to the entropy as the last candidate needed to reach p.

    TypicalLogitsWarper: the candidates keep their order.

    Args:
        p: Probability kept; 1: all.
        min_keep: At least this many candidates stay.
    """
    return _native["hf_typ_p"](p, min_keep)


def ts_top_k(k: int = 40) -> Sampler:
    """tsampler's top-k: the k best candidates, sorted; all in their order where k are all.

    Args:
        k: Best candidates kept; 0 or less: all.
    """
    return _native["ts_top_k"](k)


def ts_top_n_sigma(n: float = -1.0) -> Sampler:
    """tsampler's top_n_sigma: of equal logits it leaves the first alone.

    Args:
        n: Standard deviations below the best logit; 0 or less: off.
    """
    return _native["ts_top_n_sigma"](n)


def greedy() -> Sampler:
    """Selects the first best candidate."""
    return _native["greedy"]()


def dist(seed: int | None = None, rng: str = "mt19937", sequence: int = 0) -> Sampler:
    """Draws by probability, with llama.cpp's draws for the same seed; selects.

    The generators are mt19937 (llama.cpp's, 32-bit seeds), xoroshiro128plus and philox (64-bit seeds). With philox
    a draw depends on seed, sequence and position (the number of accepted tokens) alone.

    Args:
        seed: Seed of the draws; every value, including 0, is a literal seed. None takes a fresh one.
    """
    return _native["dist"](seed, rng, sequence)
