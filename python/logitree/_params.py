"""The keywords of whole chains. Written by scripts/sampler_docs.py from the core's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from logitree._core import Vocabulary


class SamplingParams(TypedDict, total=False):
    """Keywords of chains without their seed: what `generate` takes besides its own options.

    Names and defaults are llama.cpp's (common/common.h), where it has them; the presets of transformers and
    tsampler change some defaults. ``Chain.get`` and ``Chain.set`` read and set the numbers between tokens.
    Of a keyword and its aliases only one may be given.
    """

    rng: str
    """ "mt19937" (llama.cpp's, the default), "xoroshiro128plus" (tsampler's default) or "philox"."""
    sequence: int
    """Which of many sequences of one seed, from 0; only philox tells them apart."""
    mirostat: int
    """1 or 2: biases, temperature and that mirostat are the whole chain; 0, the default: neither."""
    logit_bias: Mapping[int, float] | Sequence[tuple[int, float]]
    """logit_bias: Numbers added to the logits of single tokens. Default None."""
    penalty_last_n: int
    """penalties: Accepted tokens that the penalties look at; 0 or less: off. Default 64."""
    penalty_repeat: float
    """penalties: Repeat penalty; 1: off. Default 1.0, above 0."""
    repeat_penalty: float
    """The same as ``penalty_repeat``."""
    repetition_penalty: float
    """The same as ``penalty_repeat``."""
    penalty_freq: float
    """penalties: Frequency penalty; 0: off. Default 0.0."""
    frequency_penalty: float
    """The same as ``penalty_freq``."""
    penalty_present: float
    """penalties: Presence penalty; 0: off. Default 0.0."""
    presence_penalty: float
    """The same as ``penalty_present``."""
    dry_multiplier: float
    """dry: Penalty for continuing a repetition of the allowed length; 0: off. Default 0.0."""
    dry_base: float
    """dry: Factor by which the penalty grows with each further token; below 1: off. Default 1.75."""
    dry_allowed_length: int
    """dry: Shortest repetition, in tokens, that is penalised. Default 2."""
    dry_penalty_last_n: int
    """dry: Accepted tokens searched for repetitions; 0 or less: off. Default 64."""
    dry_breakers: Sequence[Sequence[int]] | None
    """dry: Token sequences that no repetition extends across, as dry_breakers makes them. Default None."""
    top_n_sigma: float
    """top_n_sigma: Standard deviations below the best logit; 0 or less: off. Default -1.0."""
    top_k: int
    """top_k: Best candidates kept; 0 or less: all. Default 40."""
    typ_p: float
    """typ_p: Probability kept; 1: all. Default 1.0."""
    min_keep: int
    """typ_p: At least this many candidates stay. Default 0, from 0."""
    top_p: float
    """top_p: Probability kept; 1: all. Default 0.95."""
    min_p: float
    """min_p: Part of the highest probability that a candidate needs; 0: all stay. Default 0.05."""
    xtc_probability: float
    """xtc: Probability that a step removes candidates; 0: off. Default 0.0."""
    xtc_threshold: float
    """xtc: Least probability of a removed candidate; above 0.5: off. Default 0.1."""
    temp: float
    """temp: Temperature; 0 or less leaves only the best above -inf. Default 0.8."""
    temperature: float
    """The same as ``temp``."""
    dynatemp_range: float
    """temp_ext: How far the temperature may move from t with the entropy; 0: it is fixed. Default 0.0."""
    dynatemp_exponent: float
    """temp_ext: Exponent of the normalised entropy. Default 1.0, from 0."""
    vocabulary: Vocabulary | None
    """infill: The vocabulary, whose token texts infill reads. Default None."""
    adaptive_target: float
    """adaptive_p: Probability aimed at; below 0 it only draws. Default -1.0."""
    adaptive_decay: float
    """adaptive_p: Part of the running mean that each token keeps, clamped to 0 to 0.99. Default 0.9."""
    n_vocab: int | None
    """mirostat: Size of the vocabulary in mirostat's formula; None: the number of candidates. Default None, from
    1.
    """
    mirostat_tau: float
    """mirostat: Surprisal aimed at, in bits. Default 5.0."""
    mirostat_eta: float
    """mirostat: Part of the error corrected with each token. Default 0.1."""
    mirostat_m: int
    """mirostat: Best candidates that estimate the exponent of Zipf's law. Default 100, from 1."""
    no_repeat_ngram: int
    """no_repeat_ngram: Length of the n-grams that may not repeat; 0 or less: off. Default 0, to 1024."""
    epsilon_cutoff: float
    """epsilon_cutoff: Least probability of a candidate; 0 or less: off. Default 0.0, below 1."""
    eta_cutoff: float
    """eta_cutoff: The formula's epsilon; 0 or less: off. Default 0.0, below 1."""
    top_h: float
    """top_h: Part of the entropy kept; 0 or less: off. Default 0.4."""
    min_k: float
    """min_k: Candidates kept at least, times the range of the logits. Default 3.0, from 0."""
    p_less_norm: bool
    """p_less: Whether the threshold is that of p-less-norm. Default False."""
    edt_theta: float
    """edt: How soon the temperature falls with the entropy; 0: never. Default 0.0, from 0."""
    edt_n: float
    """edt: Base of the exponential. Default 0.8, above 0 to 1."""


class ChainParams(SamplingParams, total=False):
    """Keywords of ``Chain.parse`` and of the presets (``Chain.llama_cpp`` and others), all optional."""

    seed: int | None
    """Seed of all that draws; every value from 0 is a literal seed. None or -1: a fresh one, see ``Chain.seed``."""
