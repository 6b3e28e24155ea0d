"""Types of the compiled core. Shapes, units and errors are in the docstrings."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Final, Literal, Protocol, TypeAlias, final, overload

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from typing_extensions import Self, Unpack

from logitree._batch import Batch
from logitree._constraint import Context
from logitree._params import ChainParams
from logitree._spans import SpanStream

__version__: str
__profile__: str

# -- errors --

class LogitreeError(Exception):
    """Any error of logitree."""

    place: str
    """Where: a byte offset and field, a JSON pointer, a row and an id; empty where there is no place."""
    help: str
    """The way out; empty where there is none."""

class VocabularyError(LogitreeError, ValueError):
    """A vocabulary file or object that cannot be read."""

class PayloadError(LogitreeError, ValueError):
    """A token-tree payload that is malformed or does not fit."""

class ConstraintError(LogitreeError, ValueError):
    """A constraint that cannot be honoured."""

class MaskError(LogitreeError, ValueError):
    """A mask of the wrong length, dtype or shape."""

class LogitsError(LogitreeError, ValueError):
    """Logits with NaN, of the wrong length or dtype, or with nothing to choose."""

class SamplingError(LogitreeError, ValueError):
    """Sampler parameters or a chain that mean nothing."""

class TokenError(LogitreeError, ValueError):
    """A token that is not allowed here, or not in the vocabulary."""

class StateError(LogitreeError, RuntimeError):
    """A call at a time when it means nothing."""

class LimitError(LogitreeError, ValueError):
    """A limit of size, depth or time was reached."""

class FileError(LogitreeError, OSError):
    """The operating system refused."""

class MissingFileError(FileError, FileNotFoundError):
    """There is no file of this name."""

# -- vocabulary --

@final
class Vocabulary:
    """The bytes and the kind of every token, and the tokens that end a generation. Immutable; shared between
    threads.

    Compared and hashed by fingerprint. Pickled by value.

    The leading space: if `adds_prefix_space`, the tokenizer puts one space in front of a text, and its
    detokeniser takes one leading space off a whole text. The tokens' bytes keep that space.

    Padding: logits may be longer than the vocabulary; ids past its end have no token and are never allowed.
    """

    @staticmethod
    def from_gguf(path: str | PathLike[str]) -> Vocabulary:
        """The vocabulary of a GGUF file, a whole model or vocabulary-only.

        Raises FileError if it cannot be read; VocabularyError, naming field and byte offset, if it is
        malformed.
        """

    @staticmethod
    def from_tokenizer_json(source: str | bytes | PathLike[str]) -> Vocabulary:
        """The vocabulary of a Hugging Face tokenizer.json: its path, or its text as bytes or a str in braces.

        BPE and Unigram models, byte-level or SentencePiece style; a decoder whose output for one piece depends
        on its neighbours (WordPiece) is a VocabularyError. Ends of generation are the added tokens with
        well-known texts, because the file does not name them: see `replace`.
        """

    @staticmethod
    def from_transformers(tokenizer: Any, generation_config: Any = None) -> Vocabulary:
        """The vocabulary of a transformers tokenizer, fast or slow.

        End-of-generation ids: the tokenizer's eos, the generation config's where one is given, and the
        well-known markers. Raises VocabularyError for a tokenizer that cannot be read.
        """

    @staticmethod
    def from_tiktoken(encoding: Any) -> Vocabulary:
        """The vocabulary of a tiktoken Encoding; ids that it leaves out are unused."""

    @staticmethod
    def from_sentencepiece(source: str | bytes | PathLike[str] | Any) -> Vocabulary:
        """The vocabulary of a SentencePiece model: its path, its content, or a SentencePieceProcessor."""

    @staticmethod
    def from_tekken(source: str | bytes | PathLike[str]) -> Vocabulary:
        """The vocabulary of a Mistral tekken JSON file: its path, or its content as bytes."""

    @staticmethod
    def from_llama(llm: Any) -> Vocabulary:
        """The vocabulary of a llama_cpp.Llama."""

    @staticmethod
    def from_tokens(
        tokens: Iterable[bytes],
        special_ids: Sequence[int] = ...,
        end_tokens: Sequence[int] = ...,
        bos_id: int | None = None,
        name: str = ...,
        *,
        kinds: Sequence[str] | None = None,
        adds_prefix_space: bool = False,
        source: str = ...,
        find_markers: bool = False,
    ) -> Vocabulary:
        """A vocabulary of `tokens`, whose ids are their positions; `source` is "tokens" unless given.

        `special_ids` are control tokens. `kinds` gives every token's kind (see `kind`); without it tokens are
        "normal", and the `end_tokens` control tokens. `find_markers` gives control and user-defined tokens with
        well-known texts ("<|im_end|>", "<s>", ...) the roles that they have in a GGUF file. Raises
        VocabularyError for ids out of range.
        """

    @staticmethod
    def _from_parts(
        bytes: bytes, lengths: bytes, kinds: bytes, about: tuple[str, str, int | None, list[int], bool]
    ) -> Vocabulary: ...
    def replace(
        self, *, end_tokens: Sequence[int] | None = None, bos_id: int | None = None, name: str | None = None
    ) -> Vocabulary:
        """The same tokens with other end-of-generation ids, bos id or name; `None` keeps what there is."""

    def __len__(self) -> int: ...
    def __getitem__(self, id: int, /) -> bytes: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __contains__(self, bytes: bytes, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def token_bytes(self, id: int) -> bytes:
        """The bytes of token `id`; for a token that is not text, its name.

        Raises TokenError for an id that is not in the vocabulary.
        """

    def kind(self, id: int) -> str:
        """The kind of token `id`: "normal", "byte", "user_defined" (text), "control", "unknown", "unused".

        Raises TokenError for an id that is not in the vocabulary.
        """

    def find(self, bytes: bytes) -> list[int]:
        """Ids of the tokens of any kind whose bytes are exactly `bytes`, ascending."""

    def search(self, part: bytes | str, limit: int | None = None) -> list[int]:
        """Ids of the tokens of any kind whose bytes contain `part`, ascending, at most `limit`."""

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> bytes:
        """The concatenated bytes of `ids`; with `skip_special` those of text tokens only.

        No space is added or removed (see the class on the leading space). Raises TokenError for unknown ids.
        """

    def prepare(self) -> None:
        """Finds ahead what grammars need of this vocabulary: its trie, the tables of JSON's strings, keys, numbers
        and date-times, and the languages of the usual formats (some 20 to 60 ms). Without it the first
        grammars, and their first masks, take that time.

        A server calls it when it loads a model, or lets a thread do it:
        `threading.Thread(target=vocabulary.prepare)`. The GIL is released. Raises LimitError where `trie` does.
        """
    @property
    def trie(self) -> TokenTrie:
        """The text tokens as a byte trie, built when a file is loaded, otherwise on first use (about 50 ns per
        token).

        Raises LimitError if a token is longer than 1,023 bytes or the trie needs more than 4,194,303 nodes.
        """

    @property
    def special_ids(self) -> list[int]:
        """Ids of the tokens that are not text (control, unknown, unused), ascending."""

    @property
    def eog_ids(self) -> Any:
        """Deprecated: `end_tokens`."""
    @property
    def end_tokens(self) -> list[int]:
        """End-of-generation ids, ascending."""

    @property
    def bos_id(self) -> int | None:
        """Beginning-of-sequence id, if there is one."""

    @property
    def fingerprint(self) -> str:
        """32 hex digits, equal for equal tokens, kinds and end ids, whatever they were read from."""

    def clear_bindings(self) -> int:
        """Forgets what it keeps of constraints, so that equal ones share their masks: the 256 last used at most.
        Matchers live on. Returns how many there were.
        """

    @property
    def name(self) -> str:
        """The model's or tokenizer's own name; empty where the source has none."""

    @property
    def source(self) -> str:
        """What it was read from: "gguf", "tokenizer.json", "tekken", "sentencepiece", "tokens", ... ."""

    @property
    def adds_prefix_space(self) -> bool:
        """Whether the tokenizer puts one space in front of a text, which its detokeniser takes off again."""

# -- sampling --

@final
class Sampler:
    """One sampler with its parameters, to be put into chains. Each chain has its own copy, with its state."""

    @property
    def name(self) -> str:
        """llama.cpp's name of the sampler."""
    def __reduce__(self) -> tuple[Callable[..., Sampler], tuple[object, ...]]: ...

@final
class Effect:
    """What one sampler did in one step. A candidate counts while its logit is above -inf."""

    @property
    def sampler(self) -> str:
        """The sampler's name."""
    @property
    def before(self) -> int:
        """Candidates above -inf before it."""
    @property
    def after(self) -> int:
        """Candidates above -inf after it."""
    @property
    def changed(self) -> int:
        """Logits it changed, of those that stayed."""
    @property
    def mass_cut(self) -> float:
        """Probability of what it removed, under the logits before it: 0 to 1."""

@final
class Measures:
    """The distributions of a step, in nats: the model's, over all finite logits, and the one that the chain left
    and drew from. Feed `model_surprisal` to a `RollingPerplexity`.
    """

    @property
    def model_entropy(self) -> float:
        """Entropy of the model's distribution, over all finite logits."""
    @property
    def model_log_probability(self) -> float:
        """log p of the picked token under the model, before the filters."""
    @property
    def model_surprisal(self) -> float:
        """-log p of the picked token under the model."""
    @property
    def entropy(self) -> float:
        """Entropy of what the chain left, at least 0."""
    @property
    def log_probability(self) -> float:
        """log p of the picked token in what the chain left, after the filters."""
    @property
    def surprisal(self) -> float:
        """-log p of the picked token in what the chain left."""
    def bits(self) -> Measures:
        """The same in bits; from nats."""

@final
class Chain:
    """Samplers in order, with the state that follows accepted tokens.

    Logits: one row of float32, float16 or bfloat16, shape [n], read in place and never written: a NumPy array
    (bfloat16 of ml_dtypes, or its bits as uint16), or what NumPy or DLPack can view without copying (ctypes
    array, memoryview, array.array, torch tensor on the CPU). 16-bit logits are converted to float32 block by
    block, without a copy of the row. Anything else is a LogitsError, as are NaN and +inf among the allowed
    logits, and nothing to choose from.

    It can be pickled with samplers, mode and state.

    Not for two threads at once: the second call is a RuntimeError. `fork` and `states` give each its own.

    What is allowed: `mask`, one row of int32 (or uint32) words, shape [ceil(n / 32)], bit `id % 32` of word `id
    // 32`, ids past its end not being allowed; or `allowed`, token ids or an `AllowedTokens`. Only their logits
    are read. Neither: all. An allowed id without a logit is a MaskError.
    """

    def __new__(cls, samplers: Sequence[Sampler]) -> Chain: ...
    @staticmethod
    def parse(text: str, **params: Unpack[ChainParams]) -> Chain:
        """The chain that llama.cpp's notation names: "penalties;top_k;temperature", or its letters, "ekt".

        llama.cpp's own default is "edskypmxt"; "a" is adaptive_p, "i" infill. Biases come first and `dist` last
        if the text does not name them; adaptive_p is last wherever it is named. With `mirostat` 1 or 2 the
        named samplers are not used, as in llama.cpp. SamplingError for an invalid text.
        """

    @staticmethod
    def llama_cpp(**params: Unpack[ChainParams]) -> Chain:
        """llama.cpp's order: biases, penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature,
        dist.

        With `mirostat` 1 or 2: biases, temp and that mirostat. With an `adaptive_target` of 0 or more
        adaptive_p replaces dist.
        """

    @staticmethod
    def tsampler(**params: Unpack[ChainParams]) -> Chain:
        """tsampler's order: penalties, ts_top_k, typ_p, top_p, min_p, ts_top_n_sigma, temp, dist; repeat penalty
        1.1.

        The generator is tsampler's, xoroshiro128plus, which takes seeds of 64 bits: milliseconds will do.
        SamplingError for keywords that switch on a sampler that tsampler lacks.
        """

    @staticmethod
    def transformers(**params: Unpack[ChainParams]) -> Chain:
        """transformers' order (5.23, `do_sample=True`): biases, penalties, no_repeat_ngram, temp, hf_top_h,
        hf_top_k, hf_top_p, min_p, hf_typ_p, epsilon_cutoff, eta_cutoff, dist.

        The same candidates stay as in transformers, with the same probabilities within 1e-6; `min_keep` is
        `min_tokens_to_keep`. Accept the prompt too: penalties and no_repeat_ngram include it. The draws are
        `dist`'s: those of `torch.multinomial` are not reproduced. Defaults: `top_k` 50, `temp` 1, the penalties
        over all accepted tokens, everything else off. SamplingError for a `temp` of 0 or less, and for keywords
        that switch on a sampler that transformers lacks.
        """

    @staticmethod
    def greedy() -> Chain:
        """The chain that picks the most likely token."""

    def sample(
        self, logits: object, mask: object = None, *, allowed: Sequence[int] | AllowedTokens | None = None
    ) -> int:
        """Applies the chain, picks the next token and accepts it, as `llama_sampler_sample` does."""

    def draw(self, logits: object, mask: object = None, *, allowed: Sequence[int] | AllowedTokens | None = None) -> int:
        """Applies the chain and picks the next token, without accepting it."""

    def apply(
        self, logits: object, mask: object = None, *, allowed: Sequence[int] | AllowedTokens | None = None
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32], NDArray[np.float32]]:
        """Applies the chain (a `dist` draws): ids, logits and probabilities of the survivors, in order."""

    def explain(
        self, logits: object, mask: object = None, *, allowed: Sequence[int] | AllowedTokens | None = None
    ) -> list[Effect]:
        """What each sampler would do in the next step. Draws nothing and changes no state."""

    def pick(self) -> int:
        """The token that the last apply, draw or sample selected."""

    def accept(self, token: int) -> None:
        """Records an accepted token, picked here or elsewhere."""

    def forced(self) -> None:
        """Advances as `sample` would with one sole candidate; accept the forced token afterwards."""

    def rollback(self, n: int = 1) -> None:
        """Forgets the last n accepted tokens and what was drawn for them; StateError if there are fewer."""

    def reset(self) -> None:
        """Returns to the initial state; steering is cleared, a rule stays."""

    def fork(self) -> Chain:
        """An independent copy in the same state."""

    def clone(self) -> Chain:
        """The same as `fork`, by llama.cpp's name."""

    def __copy__(self) -> Chain: ...
    def __deepcopy__(self, memo: object, /) -> Chain: ...
    def __reduce__(self) -> tuple[Callable[..., Chain], tuple[object, ...]]: ...
    def sequences(self, n: int) -> list[Chain]:
        """n chains of the same samplers in the initial state, as sequences 0 to n - 1 of the seed.

        With `rng="philox"` a draw depends on seed, sequence and position alone; the other generators take the
        seed `sequence` further. LimitError above 2**20.
        """

    @overload
    def sample_batch(
        self,
        logits: object,
        masks: object = None,
        states: Sequence[Chain] | None = None,
        *,
        accept: bool = True,
        threads: int | None = None,
        log_probabilities: Literal[False] = False,
    ) -> NDArray[np.uint32]:
        """Samples each row with a chain of its own: tokens, uint32 [B]. A row's token depends on its logits, its
        mask and its chain alone, not on B, order or `threads`.

        `logits`: [B, V] (rows without gaps), or a list of rows of any lengths; dtypes as for `sample`. `masks`:
        int32 (or uint32) [B, ceil(V / 32)], or a list with words, a list of ids, or None (all) for each row.
        `states`: one chain for each row, of any samplers. Without it, this chain keeps `sequences(B)` from call
        to call, one more where B grows; `reset` and `restore` reset them. `accept`: each chain accepts its
        token. `threads`: a limit, by default one per core, fewer if there is little work; a batch with a
        callback runs on the calling thread. Otherwise the GIL is released, and other threads must not write to
        the logits.

        `log_probabilities`: returns (tokens, before, after): float64 [B], nats; `before` under all of the row's
        logits, `after` among the candidates that the chain left: those of `measures`.

        A bad row is an error of the kind that `sample` raises, with "row 3" in its place, for the first bad
        row: the others were sampled and have their token (`states[i].pick()`), and none has accepted it.
        """

    @overload
    def sample_batch(
        self,
        logits: object,
        masks: object = None,
        states: Sequence[Chain] | None = None,
        *,
        accept: bool = True,
        threads: int | None = None,
        log_probabilities: Literal[True],
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.float64]]: ...
    @property
    def names(self) -> list[str]:
        """The samplers' names, in order."""
    @property
    def samplers(self) -> list[Sampler]:
        """The samplers, in order, in their initial state: the present state stays with the chain."""
    def measure(self, on: bool = True) -> None:
        """Whether each step from now on is measured: see `measures`. Off costs nothing; on, the sums are those
        that the samplers use where all tokens are allowed.
        """
    @property
    def measures(self) -> Measures | None:
        """What the last step's distributions were; None if steps are not measured or it picked nothing."""
    @property
    def mode(self) -> str:
        """ "fast" or "parity"."""
    def parity(self) -> Chain:
        """A copy in the same state that computes as llama.cpp does, ties and rounding included, at its speed.

        SamplingError if a sampler is not one of llama.cpp's.
        """
    def get(self, name: str) -> float | None:
        """The value of a parameter, by its name as in `llama_cpp`; None if no sampler has it."""
    def set(self, **params: float) -> None:
        """Changes parameters from the next step on, by their names as in `llama_cpp`. SamplingError if no sampler
        has one, or for an invalid value.
        """
    def steer(self, edits: Steering | Mapping[int, float] | Sequence[tuple[int, float]] | None) -> None:
        """Adds to single logits before the first sampler, from the next step on; -inf vetoes.

        It stays until it is changed; None removes it. `fork` copies it, `rollback` keeps it, `reset` clears it,
        `snapshot` does not contain it. Ids that are not candidates are ignored. The cost depends on the edits,
        not on the vocabulary. Raises SamplingError for NaN and +inf. A step in which every allowed token is
        vetoed raises LogitsError.
        """
    @property
    def steering(self) -> Steering:
        """A copy of what steers it."""
    def adapt(self, rule: EntropyRule | Burst | Callable[[float, float], Mapping[str, float] | None] | None) -> None:
        """Lets `rule` select the parameters of each step from the next one on; None: the chain's own again.

        A callable is given the entropy (nats) and the top probability of the allowed logits, steering included,
        and returns settings by the names of `llama_cpp`, or None for the chain's own; its exceptions come out
        of the step unchanged. Settings apply to one step. The rule is not called where one token is allowed.
        The distribution is measured once per step, only while there is a rule.

        Raises SamplingError for a declared parameter that no sampler has (a sampler that is switched off must
        be in the chain to be switched on), or an invalid value; from a callable, at the step.
        """
    def snapshot(self) -> bytes:
        """The state (generators, histories, running means, a burst): `restore` continues from here.

        Steering is not in it.
        """
    def restore(self, snapshot: bytes) -> None:
        """Takes the state of a snapshot of a chain with the same samplers and parameters; else StateError."""
    @property
    def seed(self) -> int | None:
        """The seed it draws from, reported also where it was fresh entropy; None if it does not draw."""
    @property
    def accepted(self) -> int:
        """Number of tokens accepted, less those rolled back."""

@final
class Steering:
    """Edits of single logits, made before the first sampler of a chain (`Chain.steer`). Calls can be chained.

    `edits`: numbers to add by token id. Build one and keep it, or clear and fill the same at each token.
    """

    def __new__(cls, edits: Mapping[int, float] | Sequence[tuple[int, float]] | Steering | None = None) -> Self: ...
    def veto(self, ids: int | Iterable[int]) -> Self:
        """Bans the tokens; later additions do not allow them again."""

    def boost(self, ids: int | Iterable[int], by: float) -> Self:
        """Adds `by` to the tokens' logits, on top of earlier edits.

        Raises SamplingError for NaN and +inf; then nothing has changed.
        """

    def add(self, edits: Mapping[int, float] | Sequence[tuple[int, float]]) -> Self:
        """Adds to each token's logit its own number; -inf vetoes. Errors as `boost`."""

    def clear(self) -> Self:
        """Takes all edits away."""

    @property
    def edits(self) -> dict[int, float]:
        """The additions by token id, ascending; -inf is a veto."""

    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: object, /) -> Self: ...

@final
class EntropyRule:
    """Parameters by bands of entropy, for `Chain.adapt`.

    `bands`: pairs of a bound in nats and settings, ascending; the first band whose bound is above the entropy
    applies, and the last bound is None. An empty mapping leaves the chain's own parameters. Raises
    SamplingError for anything else.
    """

    def __new__(cls, bands: Sequence[tuple[float | None, Mapping[str, float]]]) -> Self: ...

@final
class Burst:
    """Other parameters for some tokens where the model is unsure, for `Chain.adapt`.

    `settings` apply to `tokens` (1) accepted tokens, starting with the step in which the top probability is
    below `top_p_below` or the entropy, in nats, is above `entropy_above`; meanwhile neither is checked. Its
    state follows accept, rollback, fork, reset and snapshot. Raises SamplingError without a trigger, or for an
    invalid number.
    """

    def __new__(
        cls,
        settings: Mapping[str, float],
        *,
        top_p_below: float | None = None,
        entropy_above: float | None = None,
        tokens: int | None = None,
    ) -> Self: ...

@final
class TokenHistory:
    """Accepted tokens and how often each occurs among the last `last_n` (64), for penalties by hand."""

    def __new__(cls, last_n: int | None = None) -> Self: ...
    def accept(self, token: int) -> None:
        """Records an accepted token."""
    def rollback(self, n: int = 1) -> None:
        """Forgets the last `n` tokens, or all; tokens that had left the window return."""
    def reset(self) -> None:
        """Forgets all tokens."""
    def count(self, token: int) -> int:
        """How often the token occurs in the window."""
    def has(self, token: int) -> bool:
        """Whether the token is in the window."""
    def __contains__(self, token: int, /) -> bool: ...
    def __len__(self) -> int: ...
    @property
    def last_n(self) -> int:
        """The length of the window."""
    @property
    def size(self) -> int:
        """How many tokens are in the window."""
    def unique_tokens(self) -> list[int]:
        """Each token of the window once, ascending."""
    def compute_adjustment(
        self, token: int, logit: float, *, repeat: float = 1.0, freq: float = 0.0, present: float = 0.0
    ) -> float:
        """A token's logit (float32) after the penalties: divided by `repeat` if above 0, else multiplied, then
        less `count * freq + present`; that of a token outside the window stays (llama.cpp's llama-sampler.cpp).

        Raises SamplingError for numbers that are not finite, or `repeat` not above 0.
        """
    @staticmethod
    def has_penalties(*, repeat: float = 1.0, freq: float = 0.0, present: float = 0.0) -> bool:
        """Whether penalties of these numbers change anything."""

@final
class Random:
    """Random numbers: those that `dist` of the same seed, generator and sequence draws."""

    def __new__(cls, seed: int | None = None, rng: str = "xoroshiro128plus", sequence: int = 0) -> Self: ...
    def uniform(self) -> float:
        """The next number in [0, 1), of 53 bits."""
    def seek(self, n: int) -> None:
        """Moves to the position after `n` numbers, in one step per number between, or in one step with philox.

        Raises StateError beyond 2**27 with another generator than philox.
        """
    @property
    def drawn(self) -> int:
        """How many numbers were drawn."""
    @property
    def seed(self) -> int:
        """The seed."""

def beam_top(
    logits: object, scores: Sequence[float] | NDArray[np.float64], width: int, masks: object = None
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]:
    """The best `width` continuations of B beams: rows (uint32), tokens (uint32) and scores (float64, nats).

    `logits` and `masks` as for `Chain.sample_batch`; `scores`: the beams' log-probabilities so far, [B]. A score is
    `scores[row] + log_softmax(logits[row])[token]`, with the softmax over the whole row; the mask only restricts which
    tokens are returned. Descending by score, then by row, then by token. A beam at -inf is not read, and a token at
    -inf is not returned; the result is shorter than `width` if there are fewer. LogitsError for NaN or +inf in a row or
    score, MaskError for an allowed id without a logit; their place names the row.
    """

def step_words(states: Sequence[Chain]) -> NDArray[np.int32]:
    """The steps of chains as numbers, for a kernel that runs them: int32 [B, words].

    The words are those of `step_words` in crates/logitree-sampling/src/chain/steps.rs. SamplingError, with the
    row in its place, for a chain that no kernel knows.
    """

def custom(fn: object, name: str = "custom", *, selects: bool = False) -> Sampler:
    """A sampler that calls `fn(ids, logits)`, anywhere in a chain.

    `ids`: uint32 [n], read only; `logits`: float32 [n], to be written in place; the candidates in their order,
    views of the chain's own memory. Returns None (all stay), a bool array [n] (which stay), or an integer array
    of positions (which stay, in that order). With `selects` it returns the position of one candidate, which is
    picked, and must be the last sampler. An array that outlives the call stays valid, at the cost of a copy.

    `fn` may be an object with `apply(ids, logits)`. Optional, for one that keeps state, on object or function:
    `accept(token)`, `rollback(n)`, `reset()`, `forced()` (a step with one candidate was skipped), `fork()`
    (returns a copy; without it `copy.deepcopy` if there is `accept`, else all chains share the object), `save()
    -> bytes` and `load(bytes)` for snapshots. Each chain forks it when it is built. `name` has 1 to 64 bytes.

    Errors: what `fn` raises comes out of the step unchanged; what a hook raises, out of the next step. NaN or
    +inf written, nothing left above -inf: LogitsError. An answer of another kind, dtype or shape, a position
    twice or out of range, nothing kept: SamplingError. Using the chain that is calling, or lacking the
    `rollback` or `reset` that goes with an `accept`: StateError. Parity mode refuses it.

    Cost: a call that does nothing takes 0.3 us with 40 candidates, an operation of NumPy in it 0.7 us or more.
    All 128,256 candidates of a vocabulary take 60 us more, because they must be listed, and each operation over
    them 70 us or more: put it after `top_k` where its rule allows.
    """

def sampler(name: str, arguments: dict[str, Any]) -> Sampler:
    """The sampler of this name with these keyword arguments of its constructor: how a sampler is unpickled.

    Raises:
        SamplingError: there is no such sampler, or the arguments do not fit.
    """

def sampler_constructors() -> dict[str, Callable[..., Sampler]]:
    """The constructor of every sampler, by its name."""

def sampler_table() -> list[dict[str, Any]]:
    """The table of samplers: for each its name, aliases, letter, documentation, signature and parameters."""

def unpickle_chain(
    samplers: Sequence[Sampler],
    parity: bool,
    snapshot: bytes,
    rows: Sequence[bytes],
    steering: object,
    rule: object,
) -> Chain:
    """The chain of these samplers in the state that the snapshots hold.

    Raises:
        StateError: the snapshots are not of such a chain.
    """

def dry_breakers(
    vocabulary: Vocabulary,
    breakers: Sequence[str | bytes] | None = None,
    tokenize: Callable[[str], Iterable[int]] | None = None,
) -> list[list[int]]:
    """The token sequences of DRY's breakers over the whole vocabulary: every token whose text contains one, and
    every token whose text ends with the beginning of one, followed by the tokens of the rest.

    Of a breaker 40 bytes count, of a rest 20 tokens. `tokenize` turns a rest into ids, without special tokens
    and without a space in front; breakers of one ASCII character need none, for others its absence is a
    SamplingError. A rest that is not UTF-8 reaches it with U+FFFD in it.
    """

# -- metrics --

def surprisal(
    logits: object, id: int, base: str = "nats", *, ids: Sequence[int] | NDArray[np.uint32] | None = None
) -> float:
    """-log p of a token under logits of the dtypes that a chain reads; +inf for an id out of range or a masked token.

    `base` is "nats" or "bits".

    With `ids`, the logits are those of the candidates that `Chain.apply` left: the surprisal of the sampling
    distribution; `entropy` of the same logits is its entropy. Raises LogitsError if their lengths differ.
    """

def entropy(logits: object, base: str = "nats") -> float:
    """The entropy of logits; `base` is "nats" or "bits". +inf if no logit is finite."""

def log_sum_exp(logits: object) -> float:
    """log(sum(exp(logits))) over the finite logits, in nats; never overflows."""

def log_softmax(logits: object, ids: Sequence[int]) -> NDArray[np.float64]:
    """log p, in nats, of each of the ids; -inf for an id out of range or a logit that is not finite."""

def top_candidates(logits: object, n: int = 10) -> list[tuple[int, float]]:
    """The n most likely tokens as (id, probability), descending, ties by id."""

@final
class RollingPerplexity:
    """Perplexity of a growing text or of its last `window` tokens: exp of the mean surprisal.

    Raises SamplingError for a window below 1.
    """

    def __new__(cls, window: int | None = None) -> RollingPerplexity: ...
    def add(self, surprisal: float) -> None:
        """Adds a surprisal in nats; a value that is not finite is ignored."""
    @property
    def value(self) -> float:
        """exp(sum / count); +inf before the first."""
    @property
    def count(self) -> int:
        """Number of surprisals in the mean."""
    @property
    def window(self) -> int | None:
        """Number of surprisals in the window; None: all."""
    def reset(self) -> None:
        """Forgets all surprisals."""

@final
class PerplexityGate:
    """Opens while the perplexity has been above `limit` after `patience + 1` surprisals in a row.

    `window`: number of surprisals in the perplexity; None: all. Raises SamplingError for a limit that is not a
    finite number of at least 1, a window below 1, a patience below 0.
    """

    def __new__(cls, limit: float, window: int | None = None, patience: int | None = None) -> Self: ...
    def add(self, surprisal: float) -> bool:
        """Adds a surprisal in nats and returns whether the gate is open. A value that is not finite is ignored."""
    @property
    def is_open(self) -> bool:
        """Whether it is open."""
    @property
    def value(self) -> float:
        """The current perplexity; +inf before the first surprisal."""
    @property
    def limit(self) -> float:
        """The limit."""
    def reset(self) -> None:
        """Returns to the initial state, closed."""

# -- constraint --

@final
class AllowedTokens:
    """The token ids that may come next: a set of ids below the vocabulary's size, fixed when it was asked for.

    `len(allowed)` counts them, `token in allowed` looks one up and iteration gives them in ascending order.
    Attributes: `is_all` (nothing is masked), `ids` (uint32 array, ascending), `vocabulary_size`. Two are equal
    if they hold the same ids of vocabularies of the same size.
    """

    @property
    def is_all(self) -> bool:
        """Whether every token is allowed: the matcher masks nothing."""

    @property
    def ids(self) -> npt.NDArray[np.uint32]:
        """The ids, ascending: a new uint32 array."""

    @property
    def vocabulary_size(self) -> int:
        """Number of ids that the mask covers."""

    def mask(self) -> npt.NDArray[np.int32]:
        """The same set as a new mask: int32 words, shape [ceil(vocabulary_size / 32)], least significant bit
        first.
        """

    def __len__(self) -> int: ...
    def __contains__(self, token: int, /) -> bool: ...
    def __iter__(self) -> Iterator[int]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Deadline:
    """Ends native calls early: a time limit, and a flag that another thread may set.

    It applies to the calls that a thread makes in its `with` block: compiling, masks, accepting, forced tokens,
    explanations, batches. A call that it ends raises LimitError within some ten milliseconds; matchers,
    grammars and their caches stay usable. Deadlines nest: the first one that applies ends the call. A block
    belongs to its thread, so do not `await` in it.

    Ctrl-C ends a native call in the same way, with or without a deadline.
    """

    def __new__(cls, seconds: float | None = None) -> Self: ...
    def cancel(self) -> None:
        """Ends the calls under it, those that run and those to come. Any thread may call it."""
    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
    @property
    def expired(self) -> bool:
        """Whether the time has passed."""
    @property
    def left(self) -> float | None:
        """Seconds until the time has passed, from 0 on; None without a time limit."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class LlamaSamplerMaker:
    """What makes native samplers for llama.cpp's chains: `logitree.engines.llama_sampler` calls it.

    Takes copies of matcher and chain. `functions`: the addresses of `functions_needed()`, all of one library
    that stays loaded; `sizes`: of its `llama_token_data` and `llama_token_data_array`.

    Raises ConstraintError for a library that does not fit, or without a matcher and a chain; VocabularyError if
    no token ends the generation; SamplingError for a chain that does not select.
    """

    def __new__(
        cls,
        vocabulary: Vocabulary,
        matcher: Matcher | None,
        chain: Chain | None,
        *,
        greedy: bool,
        stop: bool,
        counts_first: bool,
        functions: Sequence[int],
        sizes: tuple[int, int],
    ) -> Self: ...
    @staticmethod
    def functions_needed() -> list[str]:
        """The names of the functions of libllama whose addresses the constructor takes."""
    def make(self) -> int:
        """The address of a new `llama_sampler`, which belongs to the caller until a chain owns it."""
    def check(self) -> None:
        """Raises the first error of the samplers since the last call, if there is one."""
    def counts(self) -> tuple[int, int, int, int, float, float]:
        """Sums over the steps of all samplers: steps, steps with one allowed candidate, candidates, allowed
        candidates, skip ratios, their squares.
        """

class Constraint:
    """What may be generated: a value that knows no vocabulary, no model and no prompt. The base class of all
    constraints.

    A class defines `matcher`. The other methods are abilities with a default: a class overrides those that it
    has. `a + b` is first a, then b; `a | b` either; `a & b` what both allow.
    """

    def matcher(self, vocabulary: Vocabulary, /) -> Matcher:
        """A matcher at the beginning of the output.

        Raises:
            ConstraintError, LimitError: the constraint cannot be honoured with this vocabulary.
        """
    def bind(self, context: Context, /) -> Matcher:
        """A matcher where an engine runs the model. By default `matcher(context.vocabulary)`.

        Args:
            context: `vocabulary`; `tokenize`, the model's own tokenisation of a text, or None; `prompt`, its token ids.
        """
    def answer_start(self, tokens: Sequence[int], context: Context, /) -> int:
        """How many of the output's first tokens precede the answer. By default 0."""
    def value(self, text: str, tokens: Sequence[int], /) -> Any:
        """What a complete answer means. By default its text.

        Args:
            text: the answer's text.
            tokens: the answer's tokens.
        """
    def read(self, tokens: Sequence[int], context: Context, /) -> Any:
        """What a complete output means, from all of its tokens: `Generation.value`. By default NotImplemented:
        `value` of its answer. A constraint overrides it whose markers are control tokens, which no text has.

        Args:
            tokens: all tokens of the output.
            context: as of `bind`.
        """
    def span_chains(self, chain: Chain, /) -> dict[int, Chain]:
        """The chains of spans that have their own, by the span's number, for a generation with `chain`. By default
        none.
        """
    def span_stream(self) -> SpanStream | None:
        """What turns the tokens of one output into the events of its spans. By default None: there are no spans."""
    def form(self) -> str:
        """The constraint as JSON, in the core's form (docs/c.md), which C, TypeScript, the command line and
        `from_form` read.

        Raises:
            ConstraintError: it has none: it counts on Python code, on a vocabulary, or on bytes that are not UTF-8.
            LimitError: it is nested too deep.
        """
    @staticmethod
    def from_form(text: str | bytes, *, vocabulary: Vocabulary | None = None) -> Constraint:
        """The constraint of the core's JSON form (docs/c.md). A grammar comes back as a `Grammar`; of others
        `value` is the text.

        Args:
            text: the JSON. Paths in it, of catalogues and tokenizers, are opened.
            vocabulary: what the ids and names of token trees must fit; None: they are not checked.

        Raises:
            ConstraintError: with a JSON pointer.
            FileError: a file that it names cannot be read.
        """
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __or__(self, other: Any, /) -> Any: ...
    def __ror__(self, other: Any, /) -> Any: ...
    def __and__(self, other: Any, /) -> Any: ...
    def __rand__(self, other: Any, /) -> Any: ...

@final
class ReadConstraint(Constraint):
    """What `Constraint.from_form` read, where it is no grammar. Immutable; shared between threads, compared and
    pickled by its form.
    """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def matcher(self, vocabulary: Vocabulary, /) -> Matcher:
        """A matcher at the beginning of the output."""
    def form(self) -> str:
        """The form that was read, without what is left to defaults."""

@final
class Recogniser(Constraint):
    """The texts that an object of your own accepts, byte by byte.

    `make` is called without arguments, for example a class. What it returns has taken no byte yet and has the
    methods

    - `push(byte: int) -> bool`: takes one more byte, or returns False and changes nothing. It must take a byte only if
      a text continues so;
    - `pop(n: int)`: takes back the last n bytes;
    - `is_end() -> bool`: whether the bytes taken are a complete text.

    Each matcher has an object of its own. A fork makes a new one when it is used and pushes the accepted bytes
    again, so objects must depend on the bytes alone. An exception comes through as it is and leaves the matcher
    unchanged.
    """

    def __new__(cls, make: Callable[[], object]) -> Self: ...
    @property
    def make(self) -> Callable[[], object]:
        """What makes the objects."""

    def matcher(self, vocabulary: Vocabulary) -> Matcher:
        """A matcher at the beginning of a text. An end-of-generation token ends a text that could continue.

        Raises ConstraintError if the object takes no byte and accepts no empty text, and what the object
        raises.
        """

@final
class Composition:
    """What `logitree.compose` makes of constraints whose context is known."""

    MAX_NESTED: Final[int]
    @staticmethod
    def of(matcher: Matcher) -> Composition:
        """What a matcher allows from its state on."""

    @staticmethod
    def grammar(grammar: Grammar) -> Composition:
        """A grammar."""

    @staticmethod
    def then(parts: Sequence[Composition]) -> Composition:
        """One after the other."""

    @staticmethod
    def either(parts: Sequence[Composition]) -> Composition:
        """Any of them."""

    @staticmethod
    def both(first: Composition, second: Composition) -> Composition:
        """What both allow."""

    @staticmethod
    def repeat(part: Composition, min: int, max: int | None) -> Composition:
        """At least `min` and at most `max` times."""

    @staticmethod
    def until(text: Composition, stop: Composition) -> Composition:
        """A text, then `stop`, which occurs nowhere before."""

    @staticmethod
    def without(part: Composition, words: Sequence[str], tokens: Sequence[Sequence[int]]) -> Composition:
        """The part without these words and sequences of tokens."""

    @staticmethod
    def at_least(part: Composition, n: int) -> Composition:
        """The outputs of at least `n` tokens."""

    @staticmethod
    def at_most(part: Composition, n: int) -> Composition:
        """The outputs of at most `n` tokens."""

    def matcher(self, vocabulary: Vocabulary) -> Matcher:
        """A matcher at the beginning of the output."""

@final
class Matcher(Constraint):
    """A constraint bound to a vocabulary, with the state of one sequence: which tokens are allowed after those
    accepted.

    Not for two threads at once; `fork` gives each its own.
    """

    def mask(self) -> npt.NDArray[np.int32]:
        """Deprecated: `allowed().mask()`. The allowed tokens as a new int32 array of `ceil(vocabulary_size / 32)`
        words.

        Bit `id % 32` of word `id // 32`, least significant first. Raises StateError as `allowed`.
        """

    def fill_mask(self, out: _Mask) -> None:
        """Deprecated: `masks.fill_batch(matcher, out)`. Writes the allowed tokens over `out`."""

    def allowed(self) -> AllowedTokens:
        """The tokens that may come next. Raises StateError at the end of a constraint that no token ends."""

    def shortest_ending(self, vocabulary: Vocabulary | None = None, *, max_states: int = 20000) -> list[int]:
        """The tokens of the shortest ending, in bytes: after them `is_accepting` holds. Changes nothing.
        `vocabulary` is deprecated: the matcher has its own.
        """

    def certain_bytes(self, vocabulary: Vocabulary | None = None, *, max_bytes: int = 256) -> tuple[bytes, bool]:
        """The text that is certain: the bytes that every legal continuation begins with, however it is cut into
        tokens, and whether the text may end after them.

        At most `max_bytes`; fewer where finding them takes long. Empty where the text may end here, or where a
        special token may come. Changes nothing. `vocabulary` is deprecated: the matcher has its own.
        """

    def count_closed(self, tokens: Sequence[int], vocabulary: Vocabulary | None = None) -> int:
        """How many of `tokens`, from the first, are allowed and closed: no allowed token begins with the bytes of
        the last few of them and reaches past their end. At most four at the end are open. Changes nothing.
        `vocabulary` is deprecated: the matcher has its own.
        """

    def is_allowed(self, token: int) -> bool:
        """Whether `token` is allowed here."""

    def accept(self, token: int) -> None:
        """Accepts one token. Raises TokenError, and changes nothing, if it is not allowed here."""

    def accept_many(self, tokens: Iterable[int]) -> None:
        """Accepts all of `tokens` or none. Raises TokenError, with its place in the list, for the first that is
        not allowed.
        """

    def validate(self, tokens: Iterable[int]) -> int:
        """How many of `tokens` are allowed, one after the other. Changes nothing."""

    def matcher(self, vocabulary: Vocabulary, /) -> Matcher:
        """A copy in the same state: as a constraint, a matcher is what may follow."""

    def draft_masks(
        self, draft: Sequence[int] | tuple[Sequence[int], Sequence[int]], out: _Mask
    ) -> npt.NDArray[np.bool_]:
        """The masks of drafted tokens in one call, for speculative decoding. Changes nothing.

        `draft` is a list of n tokens, each after the previous one, or a tree `(parents, tokens)`: `parents[i]`
        is the index of the node before node i (less than i), or -1 for the matcher's current state. `out` has n
        + 1 rows (int32 or uint32): row 0 is the mask of the current state, row i + 1 the mask after node i.
        Returns which nodes are allowed, each after its parents: bool, shape [n]. Rows of the others are 0.

        Raises MaskError for an `out` that does not fit, TokenError for parents that are not a tree.
        """

    def explain(
        self, token: int | None = None, *, text: str | bytes | None = None, vocabulary: Vocabulary | None = None
    ) -> Explanation:
        """What is allowed here, and whether `token` or `text` is, with the byte at which it is refused.

        Raises TokenError for an id that is not in the vocabulary. `vocabulary` is deprecated: the matcher has
        its own.
        """

    def rollback(self, n: int = 1) -> None:
        """Forgets the last `n` tokens. Raises StateError, and changes nothing, if fewer were accepted."""

    def fork(self) -> Matcher:
        """An independent copy in the same state."""

    def clone(self) -> Matcher:
        """The same as `fork`, by llama.cpp's name."""

    def __copy__(self) -> Matcher: ...
    def __deepcopy__(self, memo: object, /) -> Matcher: ...
    def reset(self) -> None:
        """Returns to the state in which it was made."""

    def forced_tokens(self) -> list[int]:
        """The forced tokens: the run of tokens from here that are each the only one allowed. Changes nothing."""

    def bias(self) -> tuple[int, float] | None:
        """An allowed token and the number that the constraint adds to its logit here, or None.

        `Decoder` adds it. Without a decoder, add it before the chain: `chain.steer([matcher.bias()])`.
        """

    @property
    def is_accepting(self) -> bool:
        """Whether what was accepted is complete (more may still be allowed)."""

    @property
    def temperature(self) -> float | None:
        """The temperature at which the next token is to be sampled, where a rule of the grammar has one
        (`temperature=`): that of the innermost rule, the highest where the text may be in several. None: the
        sampler's own. Decoders, `generate` and the server sample at it; what only masks does not.
        """

    @property
    def is_finished(self) -> bool:
        """Whether the constraint has ended: complete, with no continuation. Then the end tokens alone are allowed
        (its own, or the vocabulary's), and after them too, unless `is_open_ended`.

        Without end tokens nothing may follow: `allowed` and the masks raise StateError.
        """

    @property
    def is_open_ended(self) -> bool:
        """Whether anything may follow the end of the constraint: nothing is masked there. So it is with token
        trees, which pin one span of a text; the caller says what comes after it.
        """

    @property
    def accepted(self) -> int:
        """Number of tokens accepted."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary that its tokens are of; None where it was made without one."""
    @property
    def vocabulary_size(self) -> int:
        """Number of token ids that masks cover."""

@final
class TokenTree(Constraint):
    """A compiled token-tree payload: the values' token lists, by path. Immutable; shared between threads."""

    @staticmethod
    def from_binary(data: bytes, vocabulary: Vocabulary | None = None) -> TokenTree:
        """Reads the binary form of one descriptor; leaf names are not part of it.

        Raises PayloadError with the byte offset for malformed input.
        """

    def form(self) -> str:
        """As `Constraint.form`: the constraint of a payload with one path."""

    def to_binary(self, path: str | None = None) -> bytes:
        """The binary form of the descriptor at `path` (optional if there is only one)."""

    @property
    def paths(self) -> list[str]:
        """The paths of the descriptors, in the payload's order."""

    @property
    def model_id(self) -> str | None:
        """The payload's model id."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The vocabulary that the payload was checked with."""

    @property
    def warnings(self) -> list[str]:
        """What did not fit the vocabulary, with the option to warn."""

    def at(
        self,
        path: str | None = None,
        *,
        following: str | bytes | None = None,
        end_tokens: Sequence[int] | None = None,
    ) -> TokenTreePath:
        """The constraint that the output is a leaf of the span at `path`, which may be left out where there is
        one.

        Args:
            path: a path of the payload's descriptors, such as "action".
            following: text that comes after the leaf and is generated too; it marks the end of a leaf that is a
                prefix of another.
            end_tokens: ids that end a leaf; None: the vocabulary's end-of-generation ids.

        Raises:
            ConstraintError: there is no such path, or there are several and none is given.
        """

    def matcher(self, vocabulary: Vocabulary) -> Matcher:
        """As `at().matcher(vocabulary)`: the constraint of a payload with one path.

        Raises:
            ConstraintError: the payload has several paths, or does not fit the vocabulary.
        """

    def leaves(self, path: str | None = None) -> list[tuple[str | None, list[int]]]:
        """Each leaf's name (None where the binary form lost it) and token list, in the order of the lists."""

    def look(self, path: str, tokens: Sequence[int]) -> dict[str, Any] | None:
        """The node after `tokens` as a dict, or None if there is no such node.

        children (ids, ascending), terminal (a value is complete), leaf_end (and no longer value exists), name.
        """

    def info(self, path: str | None = None) -> dict[str, Any]:
        """path, leaves, nodes, depth, inner_leaves (leaves with longer leaves below them), widest (children),
        bytes.
        """

    def dump(self, path: str | None = None, *, max_lines: int = 200) -> str:
        """The tree drawn in text, with the tokens' bytes where the vocabulary is known."""

    def __contains__(self, path: str, /) -> bool: ...

@final
class TokenTreePath(Constraint):
    """A span of a token tree as a constraint: the output is one of its leaves. Immutable; shared between threads."""

    def form(self) -> str:
        """As `Constraint.form`."""

    def matcher(self, vocabulary: Vocabulary | None = None) -> Matcher:
        """A matcher at the beginning of a leaf.

        Args:
            vocabulary: the model's vocabulary; None: the one that the payload was checked with, or none. Without one,
                a leaf that is a prefix of another needs `end_tokens`, and there is no `following`.

        Raises:
            ConstraintError: a token of the payload is outside the vocabulary, or nothing ends a leaf.
        """

    def value(self, text: str, tokens: Sequence[int]) -> str:
        """The name of the leaf that the output is; its text where the leaf has no name."""

    @property
    def path(self) -> str:
        """The path in the payload."""

@final
class OneOf:
    """One of several texts, the native form of `logitree.OneOf`. Immutable; shared between threads.

    `following` is text that comes after every choice: one token may span the end of a choice and the beginning
    of what follows, but not extend past its end. `tokens`: the only spelling of each text with what follows;
    None: any tokens. Repeated texts count once.
    """

    def __new__(
        cls,
        texts: Iterable[str | bytes],
        *,
        following: str | bytes | None = None,
        tokens: Sequence[Sequence[int]] | None = None,
    ) -> OneOf: ...
    def form(self) -> str:
        """As `Constraint.form`."""
    def matcher(self, vocabulary: Vocabulary, *, end_tokens: Sequence[int] | None = None) -> Matcher:
        """A matcher at the beginning of a choice.

        `end_tokens` end a choice that is a prefix of another; the default is the vocabulary's end-of-generation
        ids.

        Raises ConstraintError if there are no choices, one cannot be spelled, or nothing ends one that is a
        prefix of another; LimitError above 16 MiB of text.
        """

    def __len__(self) -> int: ...

@final
class TokenTreeCache:
    """The process-wide cache of compiled token trees: 128 entries, least recently used evicted first.

    Entries whose tree is in use are not evicted. With all 128 in use, a new tree is built and returned but not
    cached.
    """

    def info(self) -> dict[str, int]:
        """capacity, entries, hits, misses, bypassed (built, not cached), evicted."""

    def entries(self) -> list[dict[str, Any]]:
        """One dict per entry, most recently used first: digest, model_id, paths, nodes, bytes, hits, in_use."""

    def clear(self) -> None:
        """Forgets every entry; trees in use live on with their holders."""

    def __len__(self) -> int: ...

token_tree_cache: TokenTreeCache
"""The process-wide cache that `token_tree` uses."""

def token_tree(
    payload: str | bytes | bytearray | dict[str, Any],
    vocabulary: Vocabulary | None = None,
    *,
    on_mismatch: str = "error",
    model_id: str | None = None,
) -> TokenTree:
    """Compiles a token-tree payload `{modelId, descriptors: [{path, leaves: [{name, tokens}]}]}`.

    With a `vocabulary`, ids must be in range and each leaf's tokens must spell its name (with or without one
    leading space, bare or as a JSON string). With a `model_id`, the payload's model id must equal it, if there
    is one. A descriptor without leaves and a leaf without tokens are mismatches in any case: nothing of them
    could be generated. `on_mismatch="warn"` turns mismatches into warnings; leaves without tokens or with ids
    out of range are then left out. Compiled trees are cached in `token_tree_cache`.

    Raises PayloadError with JSON pointer, line and column; LimitError above 2^28 tokens.
    """

_Tag: TypeAlias = int | str | bytes | Sequence[int]

@final
class BoundReasoning:
    """How a model thinks before it answers, bound to a vocabulary. Immutable; shared between threads."""

    def matcher(
        self,
        *,
        prompt: Iterable[int] | None = None,
        at: Literal["outside", "inside", "closing"] | None = None,
        then: Matcher | Grammar | None = None,
    ) -> Matcher:
        """A matcher for what follows a prompt.

        It starts inside a reasoning block if `prompt` ends in one (`after`), or if `at` is "in"; without either
        only with `started`. A block that the prompt began counts as a block, its tokens so far do not count.
        `at="closing"` forces the end at once, message included: with `Decoder.activate` it interrupts a
        reasoning block. `then` is copied and constrains what follows; give it here or to `reasoning_budget`.

        Raises ConstraintError if the prompt began a reasoning block although no block is allowed, for a `then`
        of a larger vocabulary, or for one that would wait for the end of a block with a budget of 0.
        """

    def after(self, prompt: Iterable[int]) -> Literal["outside", "inside"]:
        """The state after a prompt: inside a reasoning block if its last begin has no end after it.

        A tag of ordinary tokens counts wherever its text occurs, in any tokens; a special token counts as
        itself. With `started` every prompt ends inside a block.
        """

    def split(
        self,
        tokens: Iterable[int],
        *,
        prompt: Iterable[int] | None = None,
        at: Literal["outside", "inside", "closing"] | None = None,
    ) -> tuple[list[int], list[int]]:
        """The generated tokens as two lists: the leading reasoning blocks, begins and ends included, and the
        answer.
        """

    def state(
        self,
        tokens: Iterable[int],
        *,
        prompt: Iterable[int] | None = None,
        at: Literal["outside", "inside", "closing"] | None = None,
    ) -> Literal["no", "in", "closing", "after"]:
        """The state after `tokens`, by RTP-LLM's names, without a constraint after the reasoning blocks."""

    @property
    def begin(self) -> list[list[int]]:
        """The token sequences that begin a reasoning block."""

    @property
    def end(self) -> list[list[int]]:
        """The token sequences that end it, the one that is forced first."""

    @property
    def budget(self) -> int | None:
        """The most tokens of a reasoning block; None is no limit."""

def reasoning_budget(
    vocabulary: Vocabulary,
    *,
    begin: _Tag | Sequence[str | bytes | Sequence[int]],
    end: _Tag | Sequence[str | bytes | Sequence[int]],
    budget: int | None = None,
    soft: int | None = None,
    ramp: float = 10.0,
    message: _Tag | None = None,
    max_blocks: int | None = 1,
    whole: bool = False,
    started: bool = False,
    then: Matcher | Grammar | None = None,
    tokenize: Callable[[str], Sequence[int]] | None = None,
) -> BoundReasoning:
    """A reasoning block within a budget, and what comes after it."""

# -- grammar --

@final
class Grammar(Constraint):
    """A formal language as a constraint: the text of one syntax, or several grammars combined.

    `a + b` is one after the other, `a | b` either; a `str` next to a grammar is a literal. Immutable; shared
    between threads. Compared, hashed and pickled by its source.

    Every constructor reports all problems at once as a ConstraintError, with line and column or JSON pointers,
    and raises LimitError for too large a source. docs/grammars.md describes the syntaxes.
    """

    @staticmethod
    def regex(pattern: str) -> Grammar:
        """Texts that match `pattern` as a whole: ECMA-262's syntax, with the common additions of RE2, Python and
        PCRE.
        """

    @staticmethod
    def gbnf(text: str, root: str = "root") -> Grammar:
        """A grammar in llama.cpp's notation, from the rule `root`."""

    @staticmethod
    def ebnf(text: str, root: str = "root") -> Grammar:
        """A grammar in XGrammar's EBNF, from the rule `root`: macros, rules with options, look-ahead."""

    @staticmethod
    def lark(text: str, *, grammars: dict[str, Grammar | str] | None = None) -> Grammar:
        """A grammar in llguidance's Lark, from its rule `start`; `grammars` maps the names of its `@name`
        references.
        """

    @staticmethod
    def json_schema(
        schema: Mapping[str, Any] | bool | str | bytes,
        *,
        order: Literal["schema", "any"] = "schema",
        whitespace: Literal["bounded", "compact", "free"] = "bounded",
        separators: tuple[str, str] | None = None,
        numbers: Literal["any", "plain"] = "any",
        ascii: bool = False,
        lenient: bool = False,
        draft: Literal["2020-12", "2019-09", "7", "6", "4"] | None = None,
        documents: Mapping[str, Any] | None = None,
    ) -> Grammar:
        """JSON that is valid under `schema`: parsed, or JSON text.

        `order`: keys in the schema's order, then all others ("schema"), or in any order ("any"). `whitespace`:
        as `json.dumps` writes with and without indent ("bounded"), only that of the separators ("compact"), or
        any that JSON allows ("free"). `separators`: the text between items, and between key and value.
        `numbers`: as JSON allows ("any"), or as Python writes integers and floats ("plain"). `ascii`: strings
        of ASCII only. `lenient`: keywords that cannot be honoured are dropped with a SchemaWarning and listed
        by `warnings`. `draft`: the dialect of a schema without `$schema`. `documents`: documents that `$ref`
        may name, by URI; nothing is fetched.
        """

    @staticmethod
    def json(
        *,
        whitespace: Literal["bounded", "compact", "free"] = "bounded",
        separators: tuple[str, str] | None = None,
        numbers: Literal["any", "plain"] = "any",
        ascii: bool = False,
    ) -> Grammar:
        """Any JSON value."""

    @staticmethod
    def literal(text: str) -> Grammar:
        """This text."""

    @staticmethod
    def choice(texts: Iterable[str]) -> Grammar:
        """One of these texts."""

    @staticmethod
    def text() -> Grammar:
        """Any text."""

    @staticmethod
    def token(token: str | int) -> Grammar:
        """One whole token: by its id, or the control token of a text, or else the one token that spells it."""

    @staticmethod
    def tags(
        tags: Iterable[tuple[Grammar | str, Grammar | str, Grammar | str | list[Grammar | str]]],
        *,
        triggers: Sequence[Grammar | str] | None = None,
        text: bool = True,
        at_least_one: bool = False,
        stop_after_first: bool = False,
        excludes: Sequence[Grammar | str] | None = None,
    ) -> Grammar:
        """Free text that contains tags, each `(begin, content, end)`; `end` may be a list of alternatives.

        Marks are texts, spelled with any tokens, or tokens (`Grammar.token(...)`), or either
        (`Grammar.token(text) | text`). `triggers`: texts that begin a tag wherever they occur; by default the
        beginnings of all tags. `text`: whether text may come before the first tag. `excludes`: texts that free
        text must not contain.
        """

    @staticmethod
    def structural_tag(tag: Mapping[str, Any] | str | bytes) -> Grammar:
        """XGrammar's structural tag: parsed, or JSON text."""

    @staticmethod
    def lazy(
        grammar: Grammar | str,
        *,
        words: Iterable[str] | None = None,
        tokens: Iterable[str | int] | None = None,
        patterns: Iterable[str] | None = None,
    ) -> Grammar:
        """Free text until a trigger, and from there on `grammar`, which starts with the trigger's own text.

        As llama.cpp's lazy grammars: `words` trigger wherever they occur, `tokens` by their text or id,
        `patterns` where they match (the grammar starts with the first group, or the match). Only the text
        decides, not the tokens that spell it. ConstraintError for a trigger that no text of the grammar starts
        with.
        """

    @staticmethod
    def tools(
        tools: Mapping[str, Any] | Iterable[Any],
        *,
        style: str | tuple[str, str, str, str] = "hermes",
        tokens: bool = False,
        text: bool = True,
        at_least_one: bool = False,
        stop_after_first: bool = False,
        **options: Any,
    ) -> Grammar:
        """Free text that contains calls of `tools`. Deprecated: `Protocol.constraint(tools=...)` of
        `logitree.protocols`.

        `style`: "hermes", "llama" (`<function=name>` around the arguments), or four texts: the beginning of a
        call, the text before and the text after the arguments, and the end; `{name}` is the tool's name.
        `tokens`: whether beginning and end are control tokens. Other options are those of `tags` and of `of`.
        `value` is the list of calls.
        """

    @staticmethod
    def recursive(body: Callable[[Grammar], Grammar | str]) -> Grammar:
        """The grammar that `body` makes of its own name: `recursive(lambda me: "(" + me + ")" | digits)`."""

    @staticmethod
    def of(source: Any, *, closed: bool = True, **options: Any) -> Grammar:
        """JSON that a Python type describes, in the order of its fields.

        A pydantic model, dataclass or TypedDict; a function, whose parameters are an object; an Enum, a
        Literal, bool, int, float, str, None, Any, unions, lists and dicts of them. Models, dataclasses,
        TypedDicts and functions need pydantic (`pip install "logitree[schemas]"`). A mapping is a JSON Schema,
        a Grammar itself.

        `closed`: objects have the declared fields and no others, unless the type allows others. `options` are
        those of `json_schema`.
        """

    @staticmethod
    def _read(written: str, value: Any = None) -> Grammar: ...
    @staticmethod
    def _arguments(
        tools: Sequence[tuple[str, str]],
        form: str | None = None,
        *,
        order: Literal["schema", "any"] = "schema",
        whitespace: Literal["bounded", "compact", "free"] = "bounded",
        separators: tuple[str, str] | None = None,
        numbers: Literal["any", "plain"] = "any",
        ascii: bool = False,
        lenient: bool = False,
        draft: Literal["2020-12", "2019-09", "7", "6", "4"] | None = None,
        documents: Mapping[str, Any] | None = None,
    ) -> list[Grammar]: ...
    @staticmethod
    def _json_text(schema: Any) -> str | None: ...
    @staticmethod
    def _all(parts: Sequence[Grammar | str]) -> Grammar: ...
    @staticmethod
    def _any(parts: Sequence[Grammar | str]) -> Grammar: ...
    def _with_value(self, value: Any) -> Grammar: ...
    def _names_text(self, vocabulary: Vocabulary) -> bool: ...
    def form(self) -> str:
        """As `Constraint.form`."""
    def value(self, text: str, tokens: Sequence[int], /) -> Any:
        """What a complete output means: the text itself, or what the grammar's maker reads in it."""

    @overload
    def __add__(self, other: Grammar | str, /) -> Grammar: ...
    @overload
    def __add__(self, other: Any, /) -> Any: ...
    @overload
    def __radd__(self, other: str, /) -> Grammar: ...
    @overload
    def __radd__(self, other: Any, /) -> Any: ...
    @overload
    def __or__(self, other: Grammar | str, /) -> Grammar: ...
    @overload
    def __or__(self, other: Any, /) -> Any: ...
    @overload
    def __ror__(self, other: str, /) -> Grammar: ...
    @overload
    def __ror__(self, other: Any, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def repeat(self, min: int = 0, max: int | None = None) -> Grammar:
        """At least `min` and, if given, at most `max` times. Counted, never unrolled."""

    def optional(self) -> Grammar:
        """Once or not at all."""

    def matcher(
        self,
        vocabulary: Vocabulary,
        *,
        end_tokens: Sequence[int] | None = None,
        fuel: int | None = None,
        mask_bytes: int | None = None,
        automata_bytes: int | None = None,
    ) -> Matcher:
        """A matcher at the beginning of a text. Matchers of equal grammars share what they find out, which the
        vocabulary keeps.

        `end_tokens` end a complete text; the default is the vocabulary's end-of-generation ids. `fuel` limits
        the work of one call, in steps of at most about a tenth of a microsecond (2,500,000). `mask_bytes`
        limits the memory of cached masks (64 MiB), beyond which the cache is cleared. `automata_bytes` limits
        that of automata (128 MiB): beyond it new matchers get new ones, and past about twice the limit a
        matcher raises LimitError.

        Raises ConstraintError if no text matches, or for a token that is not in the vocabulary; LimitError if
        it takes more than the limits, here and in the matcher's calls.
        """

    def matches(self, text: str | bytes) -> bool:
        """Whether the whole text matches, without a vocabulary. ConstraintError if the grammar names tokens."""
    def captures(self, text: str | bytes) -> dict[str, str | list[str]] | None:
        """What rules with the attribute `capture` captured of a whole text, by name: a text, or a list of texts
        where a name captured several; None if the text does not match. Of several ways to read the text, the
        one whose captures begin first and are longest. ConstraintError if the grammar names tokens; LimitError
        for more than a mebibyte, or if the search takes too long.
        """

    @property
    def warnings(self) -> list[str]:
        """What was dropped from its schemas with `lenient=True`."""

    def memory(self, vocabulary: Vocabulary) -> int:
        """Bytes of memory of automata and masks over `vocabulary`, without the tables of lexemes that all grammars
        of a vocabulary share.
        """

@final
class Explanation:
    """What a matcher allows in its current state, and why a token or a text is refused; `str` gives it in words."""

    @property
    def expected(self) -> list[str]:
        """What is expected, in words; empty if unknown."""

    @property
    def is_accepting(self) -> bool:
        """Whether what was accepted is complete."""

    @property
    def allowed(self) -> int | None:
        """Number of allowed tokens; None where nothing is masked."""

    @property
    def first(self) -> list[tuple[int, bytes]]:
        """The first allowed tokens by id, at most 12: (id, bytes)."""

    @property
    def token(self) -> int | None:
        """The token that was asked about, or None."""

    @property
    def bytes(self) -> bytes | None:
        """The bytes that were asked about, or None."""

    @property
    def is_allowed(self) -> bool | None:
        """Whether the token or the text that was asked about may come; None if nothing was asked."""

    @property
    def taken(self) -> int | None:
        """How many of the bytes that were asked about may come; None if nothing was asked."""

    @property
    def expected_there(self) -> list[str]:
        """What is expected after those bytes; empty if unknown."""

def fill_masks(matchers: Matcher | Sequence[Matcher] | Batch, out: _Mask, threads: int | None = None) -> None:
    """Writes each matcher's allowed tokens over its row of `out`, int32 or uint32, [B, words], in place.

    `matchers`: a list, one matcher with one row, or a `Batch`. A finished row of a batch allows the end tokens
    alone. A row is at least as long as `allowed().mask()`; words past the vocabulary are 0, or all ones where
    nothing is masked. The GIL is released, and up to `threads` threads (None: one per core; a batch takes one)
    run where the work is large enough. A row depends on its matcher alone. Raises MaskError for an `out` that
    does not fit, StateError for a matcher given twice, or the first error of a row, with its number: after all
    other rows of a list are written, and with an `out` of a batch that allows nothing.
    """

# -- decoder --

@final
class Step:
    """One decoded token and what is known about how it came.

    Attributes: `token`, `source` ("sampled", "forced" or "external"), `forced`, `allowed` (number of allowed
    tokens), `allowed_tokens` (their ids, ascending, where the constraint lists at most 256 of them, else None),
    `p_model`, `surprisal` and `entropy` (the model's own distribution, nats; None where no logits were looked
    at), `p` (after the chain; None where it did not run), `candidates` (the five most likely after the chain:
    id, probability), `alternatives` (what could have come, and what cut it), `effects` (one tuple per sampler:
    name, candidates before, after, logits changed, probability mass cut), `temperature` (what a rule of the
    grammar asked for, else None), `mass_allowed`, `mask_micros`, `micros`.
    """

    @property
    def token(self) -> int:
        """The token's id."""

    @property
    def origin(self) -> Any:
        """Deprecated: `source`."""
    @property
    def source(self) -> Literal["sampled", "forced", "external"]:
        """How it came: "sampled" (picked by the chain), "forced" (the only allowed token), "external" (passed in)."""

    @property
    def forced(self) -> bool:
        """Whether `source` is "forced"."""

    @property
    def allowed(self) -> int:
        """Number of allowed tokens at this step."""

    @property
    def allowed_tokens(self) -> list[int] | None:
        """Ids of the allowed tokens, ascending, where the constraint lists at most 256 of them; else None."""

    @property
    def p_model(self) -> float | None:
        """Probability by the model's own distribution (all tokens); None where no logits were looked at."""

    @property
    def surprisal(self) -> float | None:
        """`-ln p_model`, in nats; None where no logits were looked at."""

    @property
    def entropy(self) -> float | None:
        """Entropy of the model's own distribution, in nats; None where no logits were looked at."""

    @property
    def p(self) -> float | None:
        """Probability after the chain; None where the chain did not run."""

    @property
    def candidates(self) -> list[tuple[int, float]]:
        """The five most likely candidates after the chain: (id, probability)."""

    @property
    def alternatives(self) -> list[tuple[int, float, float | None, str | None]]:
        """The model's eight likeliest tokens, the `candidates` and the token itself, each once, by descending
        probability of the model: (id, probability by the model's own distribution, probability after the chain
        or None, what cut it: "constraint", "steering" or a sampler's name, or None).

        Empty where no logits were looked at.
        """

    @property
    def mass_allowed(self) -> float | None:
        """Probability of the allowed tokens together, by the model's own distribution; None where no logits were
        looked at.
        """

    @property
    def temperature(self) -> float | None:
        """The temperature that the constraint asked for (`temperature=` of a grammar's rule); None where it asked
        for none, or the chain did not run.
        """

    @property
    def mask_micros(self) -> float:
        """Of `micros`, the time that finding the allowed tokens took."""

    @property
    def effects(self) -> list[tuple[str, int, int, int, float]]:
        """One tuple per sampler: name, candidates before, after, logits changed, probability mass cut (0 to 1).

        If the chain is steered, "steering" is the first.
        """

    @property
    def micros(self) -> float:
        """Wall-clock time of the step in microseconds, the chain's bookkeeping for `effects` included."""

@final
class Decoder:
    """Decodes one sequence: constraint, chain, history, stop conditions and trace.

    `matcher` constrains the whole output and is copied: the caller's own does not move. `max_tokens` counts the
    output only. `stop`: texts that end the output where they appear. `stop_at_end_tokens`: the vocabulary's
    end-of-generation ids end it. `trace` records every step. `logprobs`: each step has its token's
    log-probability and so many of the likeliest tokens (`last_logprobs`); None: it does not. `span_chains`:
    chains that pick the tokens of single spans of a skeleton, by the spans' numbers; None: those that the
    skeleton says. Raises ConstraintError for a matcher of a larger vocabulary.

    Logits are read in place from any C-contiguous buffer of float32, float16 or bfloat16 with at least
    `len(vocabulary)` values, and never written.
    """

    def __new__(
        cls,
        vocabulary: Vocabulary,
        chain: Chain,
        matcher: Any = None,
        *,
        trace: bool = False,
        max_tokens: int | None = None,
        stop: Sequence[str | bytes] = ...,
        stop_at_end_tokens: bool = True,
        span_chains: dict[int, Chain] | None = None,
        logprobs: int | None = None,
        stop_at_eog: bool | None = None,
    ) -> Self: ...
    def step(self, logits: object) -> int:
        """One step in one native call: allowed tokens, chain, pick, acceptance. Returns the token.

        `logits`: float32, float16 or bfloat16, shape [n], n at least `len(vocabulary)`, as `Chain` reads them.
        They are read in place and never written. Values past the vocabulary (padding) are ignored, and all of
        them are where one token is allowed. Raises StateError when decoding is over; LogitsError for another
        dtype or shape, too few values, NaN or +inf among the allowed tokens, or nothing to choose from. The
        decoder is unchanged after an error.
        """

    def forced_tokens(self) -> list[int]:
        """The forced tokens: a run of tokens that are each the only one allowed. Changes nothing."""

    def take_forced(self) -> list[int]:
        """Accepts the forced tokens and returns them. They need no forward pass of their own."""

    def accept(self, token: int) -> None:
        """Takes a token from outside. Raises TokenError if it is not allowed here, StateError when decoding is
        over.
        """

    def vetoes(self, token: int) -> bool:
        """Whether `steer` has banned the token: `step` never picks it, and `accept` takes it all the same."""

    def prime(self, prompt: Sequence[int]) -> None:
        """Counts the prompt in the penalties, without touching the constraint.

        Raises StateError after the first token, TokenError for an id outside the vocabulary.
        """

    def rollback(self, n: int = 1) -> None:
        """Forgets the last `n` tokens: constraint, chain and its draws, history and trace are as before them.

        Raises StateError if there are fewer; the decoder is unchanged then.
        """

    def fork(self) -> Self:
        """An independent copy in the same state."""

    def clone(self) -> Self:
        """The same as `fork`, by llama.cpp's name."""

    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: object, /) -> Self: ...
    def sequences(self, n: int) -> list[Self]:
        """`n` decoders in this state for several answers to one prompt: their chains draw as consecutive sequences
        of the seed, starting with this decoder's own. If the chain has not drawn yet, the first equals this
        decoder.

        With `rng="philox"` the sequences of all seeds differ. With other generators sequence i of a seed is
        sequence 0 of `seed + i`: use seeds far apart. Raises StateError after the first token, SamplingError
        above 2**16.
        """

    def reset(self) -> None:
        """Returns to the state it was built with, without steering."""

    def steer(self, edits: Steering | Mapping[int, float] | Sequence[tuple[int, float]] | None) -> None:
        """Steers the chain from the next step on, as `Chain.steer`.

        A forced token that is vetoed is neither forced nor picked: the step raises LogitsError.
        """

    def adapt(self, rule: EntropyRule | Burst | Callable[[float, float], Mapping[str, float] | None] | None) -> None:
        """Lets a rule pick the chain's parameters for each step, as `Chain.adapt`."""

    def set(self, **params: float) -> None:
        """Changes parameters of the chain from the next step on, as `Chain.set`."""

    def activate(self, matcher: Any, *, then: Literal["continue", "stop"] = "continue") -> None:
        """Constrains the next tokens by a copy of `matcher`, in place of the constraint that runs now, until
        `clear`.

        When it ends, the output continues without a constraint (`then="continue"`) or ends too (`then="stop"`).
        A constraint that has ended and is not cleared within 500 tokens of its activation is dropped with a
        UserWarning; one that has not ended is never dropped.
        """

    def clear(self) -> None:
        """Ends whatever was activated: the output continues under the constraint that the decoder was made with,
        or without one. That constraint has seen all tokens. Does nothing if nothing was activated.

        Raises TokenError if the decoder's own constraint does not allow what was written; the activated one
        stays then.
        """

    def allowed(self) -> AllowedTokens:
        """The tokens that may come next; all where nothing constrains the output."""
    def mask(self) -> npt.NDArray[np.int32]:
        """Deprecated: `allowed().mask()`. The allowed tokens: int32 words, shape [ceil(len(vocabulary) / 32)],
        least significant bit first.
        """

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary it decodes over."""

    @property
    def tokens(self) -> list[int]:
        """The tokens accepted so far, without a primed prompt."""

    def span_marks(
        self, tokens: int, seen: int = 0, *, ended: bool = False
    ) -> tuple[int, list[tuple[str, int, int, int | None]], int] | None:
        """What is settled of a skeleton's spans after the first `tokens` tokens; None where no skeleton has begun.

        The number of the decoder's tokens before the skeleton's; the marks from number `seen` on; and the byte
        up to which the text is certain to belong to the open spans. A mark is "start", "end" or "item", the
        span's number, the byte of the skeleton's text, and at the end of an enum the number of its value.
        `ended`: the text ends after all tokens, and open spans with it.
        """
    @property
    def is_finished(self) -> bool:
        """Whether decoding is over."""

    @property
    def finish_reason(
        self,
    ) -> Literal["constraint", "end_of_generation", "stop", "max_tokens"] | None:
        """Why decoding is over: None, "constraint", "end_of_generation", "stop" or "max_tokens"."""

    @property
    def stop_index(self) -> int | None:
        """Index of the stop text that ended decoding, or None."""

    @property
    def matcher(self) -> Matcher | None:
        """A copy of the running constraint in its present state, or None."""

    @property
    def chain(self) -> Chain:
        """A copy of the chain in its present state."""

    @property
    def trace(self) -> list[Step]:
        """The steps recorded (with `trace=True`), oldest first."""

    def last_steps(self, n: int) -> list[Step]:
        """The last `n` steps recorded (with `trace=True`), oldest first; fewer where there are not so many."""

    @property
    def last(self) -> Step | None:
        """The last step recorded (with `trace=True`), or None."""

    @property
    def last_logprobs(self) -> tuple[float, list[tuple[int, float]], float, list[tuple[int, float]]] | None:
        """How likely the last token was (with `logprobs`); None where it came by no step.

        Its log-probability by the model's own distribution over all tokens, the likeliest tokens of that with
        theirs, its log-probability in what constraint and chain left, and the likeliest of that. In nats; -inf
        where it could not come.
        """
    @property
    def mask_seconds(self) -> float:
        """Seconds that steps and forced tokens have spent on finding what is allowed; a step that has it at once
        counts nothing.
        """

def step_batch(
    decoders: Sequence[Decoder], logits: object, end: int, *, each: bool = False, threads: int | None = None
) -> tuple[NDArray[np.uint32], list[tuple[int, Exception]]]:
    """One step of each decoder with its row of logits. With `each`, a row that fails does not affect the others
    and gets the token `end`; without it all rows step or none. `Batch` wraps it.
    """

def accept_batch(decoders: Sequence[Decoder], tokens: Iterable[int], ends: Sequence[int]) -> None:
    """Each decoder accepts its token, all or none. `Batch` wraps it."""

def take_forced_batch(decoders: Sequence[Decoder]) -> list[list[int]]:
    """Each decoder accepts its forced tokens, all or none. `Batch` wraps it."""

def mask_batch(decoders: Sequence[Decoder], out: _Mask, ends: Sequence[int]) -> None:
    """Writes each decoder's allowed tokens over its row of `out`. `Batch` wraps it."""

# -- trie --

_Automaton: TypeAlias = npt.NDArray[np.uint16] | npt.NDArray[np.uint32] | npt.NDArray[np.int32]
"""``table[state, byte]`` is the next state, or the dead value: shape [states, 256], C-contiguous."""

@final
class Tokenizer:
    """The tokenizer of a vocabulary: a text to the tokens that the model was trained on.

    It reads byte-pair encodings and SentencePiece models with scores, from a GGUF unigram models and WordPiece
    too; another kind is a VocabularyError when it is loaded. Immutable; shared between threads.
    """

    @staticmethod
    def from_gguf(path: str | PathLike[str]) -> Tokenizer:
        """The tokenizer of a GGUF file, a whole model or vocabulary-only.

        Raises FileError if it cannot be read; VocabularyError, naming field and byte offset, if it is malformed
        or its tokenizer or pre-tokenizer is of a kind that is not read.
        """
    @staticmethod
    def from_tokenizer_json(source: str | bytes | PathLike[str]) -> Tokenizer:
        """The tokenizer of a Hugging Face tokenizer.json: its path, or its text as bytes or a str in braces.

        Byte-pair encodings of bytes, or of characters with byte fallback, with what is compiled from the file's
        own normalizer, pre-tokenizer and added tokens (docs/tokenizer.md lists the steps); any other kind is a
        VocabularyError.
        """
    def encode(self, text: str) -> list[int]:
        """The token ids of `text`, without tokens that begin or end a sequence.

        The texts of control tokens are ordinary text; those of user-defined tokens are these tokens. Raises
        TokenError if the vocabulary has no token for a byte of the text.
        """
    def is_canonical(self, tokens: Sequence[int]) -> bool:
        """Whether `tokens` are what the tokenizer gives for their bytes, without a space in front.

        Each run of text between control, end and user-defined tokens is taken by itself. Bytes that are no
        UTF-8 have no canonical spelling, nor has any text where the tokenizer changes texts (see `canonical`).
        """
    def canonical(self, matcher: Matcher, before: Sequence[int] | None = None, *, fuel: int | None = None) -> Matcher:
        """A matcher that allows, of the tokens that `matcher` allows, those that the tokenizer itself would give
        for the text so far and some text that `matcher` allows after it.

        It begins in the present state of `matcher`, which it copies. `before` are the tokens before the text,
        such as the prompt's: a first token that continues their last piece must be what the tokenizer gives
        there. Without them, the text begins at the boundary of a token. `fuel` limits the work of one call,
        that of `matcher` included, in steps of at most about a tenth of a microsecond (10,000,000). Raises
        ConstraintError if the two have different vocabularies, the tokenizer makes different texts the same
        (unigram, WordPiece, a normalizer other than NFC and NFD), or no text has such a spelling; LimitError if
        it takes more than the fuel, here and in the matcher's calls.
        """
    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary that it was loaded with."""
    def __repr__(self) -> str: ...

@final
class TokenTrie:
    """A vocabulary's text tokens as a byte trie (`vocabulary.trie`). Immutable; shared between threads.

    It does not contain control, unknown, unused and empty tokens. `len` is the number of nodes, including the
    root.
    """

    def __len__(self) -> int: ...
    def __contains__(self, bytes: bytes, /) -> bool: ...
    def lookup(self, bytes: bytes) -> list[int]:
        """Ids of the tokens that are exactly `bytes`, ascending."""

    def has_prefix(self, bytes: bytes) -> bool:
        """Whether some token begins with `bytes`."""

    def with_prefix(self, bytes: bytes) -> list[int]:
        """Ids of the tokens that begin with `bytes`, in the order of their bytes, then ascending."""

    def longest_match(self, bytes: bytes) -> tuple[int, int] | None:
        """The longest token that `bytes` begin with: its lowest id and its length in bytes."""

    def prefixes(self, bytes: bytes) -> list[tuple[int, int]]:
        """All tokens that `bytes` begin with, shortest first: (id, length in bytes)."""

    def dump(self, prefix: bytes = ..., depth: int | None = None, max_nodes: int = 200) -> str:
        """The part below `prefix` as an indented tree; the last line counts what is left out."""

    def graphviz(self, prefix: bytes = ..., depth: int | None = None, max_nodes: int = 200) -> str:
        """The same part as a Graphviz digraph."""

    def allowed(
        self, table: _Automaton, start: int = 0, dead: int | None = None, out: _Mask | None = None
    ) -> npt.NDArray[np.int32]:
        """The tokens whose bytes the automaton accepts from `start`, as a mask.

        `dead` is the value that refuses a byte; by default the largest uint16 or uint32. `out`, if given, is a
        mask of one row to write instead of a new one, and is returned. Every entry of the table is checked.
        Raises ConstraintError for a table of another shape or dtype, or with an entry that is not a state;
        MaskError for an `out` that does not fit.
        """

    def count_visited(self, table: _Automaton, start: int = 0, dead: int | None = None) -> int:
        """Number of nodes whose byte the plain walk tests: a refused node counts, its subtree does not."""

    @property
    def token_count(self) -> int:
        """Number of ids in the trie."""

    @property
    def max_depth(self) -> int:
        """Length of the longest token in bytes."""

    @property
    def memory(self) -> int:
        """Bytes of memory that the trie holds."""

# -- mask --

class _DLPack(Protocol):
    def __dlpack__(self) -> Any: ...

_Mask: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.uint32] | _DLPack
"""Words [words], or rows [rows, words]; see ``logitree.mask``."""

def mask_new(size: int, rows: int | None = None, *, fill: bool = False) -> npt.NDArray[np.int32]:
    """An empty mask of ids below `size`, or with `fill` a full one; with `rows`, a batch: int32, [words] or [rows,
    words].
    """

def mask_words(size: int) -> int:
    """Number of 32-bit words of a mask of `size` ids."""

def mask_from_ids(size: int, ids: Iterable[int]) -> npt.NDArray[np.int32]:
    """The mask of `ids`, in any order. Raises MaskError for an id that is not below `size`."""

def mask_ids(mask: _Mask) -> npt.NDArray[np.int32]:
    """The ids in a mask of one row, ascending."""

def mask_count(mask: _Mask) -> Any:
    """The number of ids in the mask: an int, or for a batch an int64 array [rows]."""

def mask_first(mask: _Mask) -> int | None:
    """The lowest id in a mask of one row."""

def mask_contains(mask: _Mask, id: int) -> bool:
    """Whether `id` is in a mask of one row; ids past its end are not."""

def mask_insert(mask: _Mask, id: int) -> bool:
    """Adds `id` to a mask of one row, in place; True if it is new. MaskError past the mask's end."""

def mask_remove(mask: _Mask, id: int) -> bool:
    """Removes `id` from a mask of one row, in place; True if it was present. MaskError past its end."""

def mask_fill(mask: _Mask, size: int, value: bool = True) -> None:
    """Adds every id below `size`, or removes every id, in place, in every row."""

def _mask_copy(logits: Any, mask: _Mask, rows: Sequence[int], out: Any) -> list[tuple[int, bool]]: ...
def mask_apply(logits: Any, mask: _Mask) -> None:
    """Writes minus infinity to the logits of ids that are not in the mask, in place; other logits are not written.

    `logits`: float32, float16, bfloat16, or uint16 (bfloat16 bits), [ids] or [rows, ids]; rows may be part of
    longer ones (`logits[:, :size]`). NumPy arrays, or tensors in this machine's memory (DLPack). `mask`: one
    row for all, or one for each. Ids past the mask's end are banned. Raises LogitsError for another dtype,
    shape or layout, read-only memory, or a mask that allows an id in a word past those that the logits reach
    (that row is not written then); MaskError for a mask of another dtype or shape.
    """

# -- skeleton --

@final
class SkeletonProgram:
    """A skeleton, resolved: the native form of `logitree.Skeleton`. Immutable; shared between threads."""

    def __new__(cls, form: str) -> Self: ...
    def form(self) -> str:
        """The JSON form as text."""
    def spans(self) -> list[tuple[str, str, bool, bool, list[str], str | None]]:
        """For each span by its number: kind, path, whether it is greedy, whether it is inside of a string, and as
        JSON text its values and its sampler.
        """
    def runs(self) -> list[tuple[str, bool]]:
        """The texts of all runs of fixed text, and whether each is outside of arrays and switches."""
    def grammar(self) -> Grammar:
        """The grammar of the whole text."""
    def matcher(
        self,
        vocabulary: Vocabulary,
        tree: TokenTree | None = None,
        run_tokens: Sequence[Sequence[int] | None] | None = None,
    ) -> Matcher:
        """A matcher at the beginning of the text."""
    def read(self, text: bytes) -> tuple[list[tuple[str, int, int, int | None]], bool]:
        """The settled marks of a text, where it is cut off or complete, and which of the two."""

def prefill_plan(
    template: str | bytes | dict[str, Any],
    tokenize: Callable[[str], Sequence[int]] | None = None,
) -> dict[str, Any] | None:
    """The parts of a response that need no sampling, as a plan; None if there are none.

    `template` is `{spans: [{kind, key?, value?, enumValues?, rule?}], id?}` with the kinds literal, enum,
    number, boolean, free-string and free-json. The plan is `{prefix, runs, free_count, id}`; a run is
    `{after_free_span, text, token_ids}`, after_free_span -1 at the very beginning, token_ids only with
    `tokenize`. Enum values are JSON values: with quotes, unless the text before them opened a string.

    Raises PayloadError, with line and column, for any other template.
    """

def span_sampler_plan(template: str | bytes | dict[str, Any]) -> dict[str, Any]:
    """`{overrides: [{span_index, temperature, top_k}]}`, for the spans that take the most likely token.

    These are enums of several values, numbers and booleans.
    """

# -- catalogue --

@final
class BeamCandidates:
    """Continuations of several rows, as columns of one length."""

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """int64: the row that continues."""

    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """int32: with this token."""

    @property
    def scores(self) -> npt.NDArray[np.float64]:
        """float64: with this score."""

    @property
    def states(self) -> npt.NDArray[np.int64]:
        """int64: the state after the token."""

    def __len__(self) -> int: ...

def read_tree_decode(read: Callable[[int], str]) -> tuple[dict[str, Any], list[tuple[str, int, str]]]:
    """Reads the fields of RTP-LLM's tree-decode file: those that it has, by their names, and what it has that
    means nothing (kind, count, first place). A table is a dict from each key to its candidates in ascending
    order: the bytes of int32 ids and, in `prefix_weight_dict`, of as many float32 weights after them.
    `weight_dict` is a dict of floats.

    Args:
        read: returns about as many characters as it is asked for, and none at the end.

    Raises:
        PayloadError: it is no JSON, or no tree-decode file; `place` is a JSON pointer, with line and column.
    """

@final
class CatalogueIndexBuilder:
    """Takes items, then writes an index."""

    def __new__(
        cls,
        *,
        weighted: bool = False,
        keyed: bool = False,
        memory: int | None = None,
        folder: str | None = None,
        threads: int | None = None,
    ) -> CatalogueIndexBuilder: ...
    def push(
        self,
        tokens: npt.NDArray[np.uint32],
        items: npt.NDArray[np.uint64] | None,
        *,
        ends: npt.NDArray[np.int64] | None = None,
        weights: npt.NDArray[np.float32] | None = None,
        keys: list[str] | None = None,
    ) -> None:
        """Takes rows of tokens, with a number or a key each, or to be numbered."""
    def finish(
        self, path: str | None = None, progress: Callable[[float], object] | None = None
    ) -> tuple[CatalogueIndex, int]:
        """Writes the index to `path`, or keeps it in memory: the tree, and how many items were given twice."""
    def __len__(self) -> int: ...

@final
class CatalogueIndex:
    """A large set of items, each a sequence of tokens."""

    @staticmethod
    def open(path: str, *, durable: bool = False) -> CatalogueIndex:
        """Opens an index file with the changes that it records, and records later ones there if it is durable."""
    @staticmethod
    def from_bytes(data: bytes) -> CatalogueIndex:
        """The index with these bytes."""
    def to_bytes(self) -> bytes:
        """The bytes of the index as it was made, without later changes."""
    @property
    def path(self) -> PathLike[str] | None:
        """The file that it was opened from or written to."""
    def walk(
        self,
        *,
        end_token: int | None = None,
        allowed: Any = None,
        intersect: Matcher | Iterable[Matcher] | None = None,
        vocabulary_size: int | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> ItemWalk:
        """The tree as it is now, to be walked."""
    def add_rows(
        self,
        tokens: npt.NDArray[np.uint32],
        items: npt.NDArray[np.uint64] | None,
        *,
        ends: npt.NDArray[np.int64] | None = None,
        weights: npt.NDArray[np.float32] | None = None,
        keys: list[str] | None = None,
    ) -> int:
        """Adds items, with a number each, or to be numbered."""
    def remove_rows(
        self,
        tokens: npt.NDArray[np.uint32],
        items: npt.NDArray[np.uint64] | None,
        *,
        ends: npt.NDArray[np.int64] | None = None,
        keys: list[str] | None = None,
    ) -> int:
        """Removes items: rows of tokens, with one number each or whatever their number."""
    def remove_items(self, items: Any) -> int:
        """Removes the items with these numbers."""
    def reload(self, path: str) -> None:
        """Puts the index of a file in the place of all that is here."""
    def merge(
        self,
        path: str | None = None,
        *,
        memory: int | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> None:
        """Makes one index of all items that are there."""
    def check(self) -> None:
        """Compares the whole index with its checksums."""
    def items(self, tokens: Any) -> npt.NDArray[np.uint64] | list[str]:
        """Numbers of the items that are exactly these tokens, ascending."""
    def info(self) -> dict[str, Any]:
        """Counts and sizes."""
    def __contains__(self, tokens: Any, /) -> bool: ...
    def __len__(self) -> int: ...

@final
class ItemWalk:
    """A catalogue at one moment, walked by arrays of states: a native `logitree.beams.TokenWalk`.

    States are int64 and belong to this walk; -1 is a finished sequence, -2 one that took a token that was not
    allowed, after which only the end token may follow. Every call may raise PayloadError if the index file is
    damaged, and StateError for a state of another walk.
    """

    @property
    def start(self) -> int:
        """The state where every item begins."""

    @property
    def end(self) -> int | None:
        """The token after every item; None: an item ends by itself."""

    @property
    def vocabulary_size(self) -> int:
        """Number of ids that masks cover."""

    @property
    def weighted(self) -> bool:
        """Whether tokens have weights."""

    @property
    def nested(self) -> bool:
        """Whether one item may be the beginning of another, so that only an end token distinguishes them."""

    def advance(self, states: npt.ArrayLike, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """States [R] after one token each: int64 [R].

        The end token leads to -1 from every state, and no token leads out of it; a token that is not allowed
        leads to -2.
        """

    def find(self, tokens: npt.ArrayLike, state: int | None = None) -> int | None:
        """The state after these tokens, from the start or from `state`; None if no item has them there."""

    def mask(self, states: npt.ArrayLike, out: Any = None) -> npt.NDArray[np.int32]:
        """The allowed tokens of each state as masks, int32 [R, words], written over `out` if it is given.

        The end token is allowed after an item, and alone where nothing follows. Raises MaskError for an `out`
        of another shape or dtype, which is not written then, and StateError for a state of another tree, with
        its row: then no row of `out` allows anything.
        """

    def allowed(self, state: int) -> npt.NDArray[np.int32]:
        """The allowed tokens of one state, ascending."""

    def gather(self, states: npt.ArrayLike, logits: Any, scores: npt.ArrayLike | None = None) -> BeamCandidates:
        """Every continuation of every row, by row and token."""

    def top(
        self,
        states: npt.ArrayLike,
        logits: Any,
        scores: npt.ArrayLike | None,
        width: int,
        *,
        groups: npt.ArrayLike | None = None,
    ) -> BeamCandidates:
        """The best `width` continuations of each group's rows: by group, descending score, row, token."""

    def is_item(self, states: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether what was read is an item."""

    def may_continue(self, states: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether more tokens of an item may follow."""

    def items(self, state: int) -> npt.NDArray[np.uint64] | list[str]:
        """Numbers of the items that are exactly what leads to a state, ascending."""

    def matcher(self, *, intersect: Matcher | Iterable[Matcher] | None = None, fuel: int | None = None) -> Matcher:
        """A matcher at the beginning of an item. Arguments and errors as for `Catalogue.matcher`."""

    def __len__(self) -> int: ...
