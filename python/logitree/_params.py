"""The keywords of a whole chain, with llama.cpp's names and defaults: one type for all that take them.

It refuses to know what the keywords do; ``Chain.parse`` and the presets read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from logitree._core import Vocabulary


class ChainParams(TypedDict, total=False):
    """Keywords of ``Chain.parse`` and of the presets (``Chain.llama_cpp`` and others), all of them optional.

    Names and defaults are llama.cpp's (common/common.h), where it has them. The numbers among them can be read and
    changed between tokens by ``Chain.get`` and ``Chain.set``, where a sampler of the chain has them.
    """

    seed: int | None
    """Seed of all that draws; each means itself, 0 too. None: fresh entropy, which ``Chain.seed`` tells."""
    rng: str
    """"mt19937" (llama.cpp's, the default), "xoroshiro128plus" or "philox"."""
    sequence: int
    """Which of many sequences of one seed, from 0; only philox tells them apart."""
    min_keep: int
    """At least so many candidates survive top_p, min_p, typ_p, xtc and the cut-offs each; 0."""
    top_k: int
    """Best candidates kept; 40 (transformers 50). 0 or less: all."""
    top_p: float
    """Probability that top_p keeps; 0.95 (transformers 1). 1: all."""
    min_p: float
    """Part of the highest probability that min_p asks for; 0.05 (transformers 0). 0: nothing."""
    typ_p: float
    """Probability that typ_p keeps; 1, which is all."""
    top_n_sigma: float
    """Standard deviations below the best logit; -1. 0 or less: off."""
    xtc_probability: float
    """Probability with which xtc strikes; 0, which is off."""
    xtc_threshold: float
    """Probability from which on xtc removes candidates; 0.1. Above 0.5: off."""
    temp: float
    """Temperature; 0.8 (transformers 1, and above 0). 0 or less: only the best stays above -inf."""
    dynatemp_range: float
    """How far the temperature may go from ``temp`` with the entropy; 0: it is fixed."""
    dynatemp_exponent: float
    """How the entropy is bent before it sets the temperature; 1. Not below 0."""
    penalty_last_n: int
    """Accepted tokens that the penalties look back at; 64 (transformers: all). 0 or less: off."""
    penalty_repeat: float
    """Repeat penalty; 1 (tsampler 1.1). 1: off."""
    penalty_freq: float
    """Frequency penalty; 0, which is off."""
    penalty_present: float
    """Presence penalty; 0, which is off."""
    dry_multiplier: float
    """What DRY takes from a token that goes on with a repetition of the allowed length; 0, which is off."""
    dry_base: float
    """By what factor more with each token of a longer one; 1.75. Below 1: off."""
    dry_allowed_length: int
    """Length of repetition, in tokens, from which on DRY penalises; 2."""
    dry_penalty_last_n: int
    """Accepted tokens that DRY looks back at; 64. 0 or less: off."""
    dry_breakers: Sequence[Sequence[int]]
    """Token sequences that no repetition goes back over, as ``dry_breakers`` makes them; none."""
    adaptive_target: float
    """Probability that adaptive_p aims at; -1. Below 0 it only draws; ``llama_cpp`` then ends in ``dist``."""
    adaptive_decay: float
    """How much of adaptive_p's running mean stays with each token; 0.9, held to 0 to 0.99."""
    mirostat: int
    """1 or 2: biases, temperature and that mirostat are the whole chain; 0, which is neither."""
    mirostat_tau: float
    """Surprisal, in bits, that mirostat aims at; 5."""
    mirostat_eta: float
    """Part of the error that mirostat corrects with each token; 0.1."""
    no_repeat_ngram: int
    """Tokens in a row that no_repeat_ngram lets come once; 0, which is off."""
    epsilon_cutoff: float
    """Probability that epsilon_cutoff asks for; 0, which is off. Below 1."""
    eta_cutoff: float
    """The epsilon of eta_cutoff; 0, which is off. Below 1."""
    top_h: float
    """Part of the entropy that top_h keeps; 0.4 (transformers 0). 0 or less: off."""
    min_k: float
    """The tau of min_k; 3."""
    p_less_norm: bool
    """Whether p_less is p-less-norm; False."""
    edt_theta: float
    """How soon the temperature of edt falls with the entropy, ``temp`` being its t0; 0: not at all."""
    edt_n: float
    """The n of edt; 0.8."""
    n_vocab: int | None
    """Size of the vocabulary, a number of mirostat 1's formula; None: the number of candidates."""
    vocabulary: Vocabulary | None
    """What infill needs to know of the tokens; None, which will do for all others."""
    logit_bias: Mapping[int, float] | Sequence[tuple[int, float]]
    """Numbers added to the logits of single tokens; -inf bans."""
