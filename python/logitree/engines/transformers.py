"""transformers: sessions of beams over a loaded model, and trees as drop-ins for its own `generate`.

Knows nothing of files and downloads (the model is loaded already), of samplers, the command line or other engines.
torch is imported when it is used.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._errors import EngineError, error
from . import Messages, Rows
from ._rows import checked_prompts, checked_step

if TYPE_CHECKING:
    from .. import Paths

_FINISHED = -1
"""The state after the end, as trees number it."""

Ints = npt.NDArray[np.int64]


class Transformers:
    """A causal language model of transformers, for `logitree.beam_search`.

    Args:
        model: a loaded model with a key-value cache, in evaluation mode.
        tokenizer: its tokenizer, for prompts that are text or messages.

    Raises:
        EngineError: torch is missing, or this is no such model.
    """

    beam_rows: int | None = None
    """As many beams as memory holds."""

    def __init__(self, model: Any, tokenizer: Any = None) -> None:
        _torch()
        config = getattr(model, "config", None)
        if config is None or not callable(getattr(model, "forward", None)):
            raise EngineError(f"cannot run a {type(model).__name__}", help="give a model of transformers")
        if getattr(config, "is_encoder_decoder", False):
            raise EngineError("the model has an encoder and a decoder", help="only causal models can be searched")
        if model.training:
            raise EngineError("the model is in training mode: its logits are random", help="call model.eval()")
        text = config.get_text_config()
        self.model, self.tokenizer = model, tokenizer
        self.name = str(getattr(config, "name_or_path", "") or type(model).__name__)
        """What to call the model."""
        self.n_ctx: int | None = getattr(text, "max_position_embeddings", None)
        """Tokens of one sequence; None: the model does not say."""
        self._takes = frozenset(inspect.signature(model.forward).parameters)

    def encode(self, prompt: str | Messages, *, chat: bool | None = None) -> list[int]:
        """The prompt's tokens.

        Args:
            prompt: text, or messages with "role" and "content".
            chat: True applies the tokenizer's template, text being one message of the user; False takes the text as it
                is; None: where there is a template.

        Raises:
            EngineError: there is no tokenizer, or messages or `chat=True` and no template.
        """
        if self.tokenizer is None:
            raise EngineError("the engine has no tokenizer", help="give one, or give prompts as token ids")
        template = getattr(self.tokenizer, "chat_template", None) if chat is not False else None
        if template is None:
            if chat or not isinstance(prompt, str):
                raise EngineError(
                    "the tokenizer has no chat template" if chat is not False else "messages need a chat template",
                    help="give the whole prompt as text with chat=False",
                )
            return [int(token) for token in self.tokenizer(prompt)["input_ids"]]
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        text = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return [int(token) for token in self.tokenizer(text, add_special_tokens=False)["input_ids"]]

    def beam_session(self, rows: int | None = None, tokens: int | None = None) -> TransformersBeams:
        """A new session of beams. It holds as many as memory does, whatever is asked for."""
        return TransformersBeams(self)

    def __repr__(self) -> str:
        return f"Transformers({self.name!r})"


class TransformersBeams:
    """A beam session of a Transformers engine: the rows of a key-value cache, reordered by parents each step."""

    def __init__(self, engine: Transformers) -> None:
        self._engine = engine
        self._cache: Any = None
        self._mask: Any = None
        """int64 [rows, positions]: 0 where a prompt was padded on the left."""
        self._begun = False
        self._vocabulary = int(engine.model.config.get_text_config().vocab_size)

    def begin(self, prompts: Sequence[Sequence[int]]) -> Rows:
        """Evaluates the prompts in one pass, shorter ones padded on the left; float32 [P, V].

        Raises:
            EngineError: a prompt is empty or too long, the session has begun already, the model keeps no cache, or it
                takes no positions and the prompts have several lengths.
            TokenError: a token is not in the vocabulary.
        """
        torch = _torch()
        checked = checked_prompts(prompts, self._vocabulary)
        if self._begun:
            raise EngineError("the session has begun already", help="use a new session for new prompts")
        longest = max(map(len, checked))
        self._fits(longest)
        if min(map(len, checked)) < longest and "position_ids" not in self._engine._takes:
            raise EngineError(
                "the model takes no position_ids, and the prompts have several lengths",
                help="search prompts of the same length together",
            )
        self._begun = True
        ids = torch.zeros((len(checked), longest), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(checked):
            ids[row, longest - len(prompt) :] = torch.tensor(prompt)
            mask[row, longest - len(prompt) :] = 1
        return self._evaluate(ids.to(self._engine.model.device), mask.to(self._engine.model.device), None)

    def step(self, parents: npt.ArrayLike, tokens: npt.ArrayLike) -> Rows:
        """Copies the parents' rows of the cache and evaluates a token in each; float32 [R, V].

        Raises:
            StateError, TokenError: a parent is no row, or a token not in the vocabulary. Nothing has changed.
            EngineError: the sequences are as long as the model allows, and nothing has changed; or the session has no
                rows.
        """
        torch = _torch()
        if self._cache is None:
            raise EngineError(
                "the session has no rows", help="begin it first; after a failure or close, make a new one"
            )
        old, new = checked_step(parents, tokens, self._mask.shape[0], self._vocabulary)
        self._fits(self._mask.shape[1] + 1)
        index = torch.tensor(old, device=self._mask.device)
        ids = torch.tensor(new, device=self._mask.device)[:, None]
        cache, self._cache = self._cache, None
        cache.reorder_cache(index)
        return self._evaluate(ids, torch.cat((self._mask[index], torch.ones_like(ids)), dim=1), cache)

    def close(self) -> None:
        """Gives the cache back."""
        self._cache = None

    def _fits(self, length: int) -> None:
        """An EngineError where sequences of that many positions are too long."""
        most = self._engine.n_ctx
        if most is not None and length > most:
            raise EngineError(f"a beam is {length} tokens long, the model takes {most}", help="shorten the prompt")

    def _evaluate(self, ids: Any, mask: Any, cache: Any) -> Rows:
        """One pass; the cache is known again after it only if it went well."""
        torch, engine = _torch(), self._engine
        given: dict[str, Any] = {"input_ids": ids, "attention_mask": mask, "past_key_values": cache, "use_cache": True}
        if "position_ids" in engine._takes:
            given["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        if "logits_to_keep" in engine._takes:
            given["logits_to_keep"] = 1
        with torch.inference_mode():
            out = engine.model(**given)
            logits = out.logits[:, -1].float().cpu().contiguous().numpy()
        cache = getattr(out, "past_key_values", None)
        if not hasattr(cache, "reorder_cache"):
            raise EngineError("the model keeps no cache that can be reordered", help="use a model with attention only")
        self._cache, self._mask = cache, mask
        rows: Rows = logits
        rows.flags.writeable = False
        return rows


# -- drop-ins for model.generate


class _Walk:
    """The states of generated rows, found again from one step to the next by what was generated.

    transformers reorders rows between steps and says nothing of it, so a row's state is looked up by its tokens but
    the last. Equal to walking each row from the start, which happens where it was not seen before.
    """

    def __init__(self, paths: Paths, prompt_length: int, end: int | None) -> None:
        if end is None:
            end = paths.end
        if end is None:
            raise error(
                _core.ConstraintError,
                "the tree has no end token, and none is given",
                help="give `end`: generation goes on until a token ends it",
            )
        if paths.end is not None and end != paths.end:
            raise error(
                _core.ConstraintError, f"the tree ends with token {paths.end}, not {end}", help="leave out `end`"
            )
        if not 0 <= end < paths.vocabulary_size:
            raise error(_core.TokenError, f"the end token {end} is outside the vocabulary of {paths.vocabulary_size}")
        self.paths, self.end, self.prompt_length = paths, end, prompt_length
        self._seen: dict[int, dict[bytes, int]] = {}
        """Tokens generated -> row's bytes -> state, for this step's number and the one before."""

    def states(self, input_ids: Any) -> Ints:
        """int64 [R]: where each row of prompts and generated tokens [R, T] stands."""
        if input_ids.shape[1] < self.prompt_length:
            raise error(
                _core.StateError,
                f"{input_ids.shape[1]} tokens, the prompt has {self.prompt_length}",
                help="prompt_length is input_ids.shape[1], padding included",
            )
        rows = np.ascontiguousarray(input_ids[:, self.prompt_length :].cpu().numpy(), np.int64)
        length = rows.shape[1]
        self._seen = {n: seen for n, seen in self._seen.items() if n in (length - 1, length)}
        if not length:
            return np.full(len(rows), self.paths.start, np.int64)
        before = self._seen.get(length - 1, {})
        states = np.array([self._from_start(row[:-1], before) for row in rows], np.int64)
        states = self._advance(states, rows[:, -1])
        known = self._seen.setdefault(length, {})
        known.update(zip((row.tobytes() for row in rows), map(int, states), strict=True))
        return states

    def _from_start(self, row: Ints, seen: dict[bytes, int]) -> int:
        """The state after a row, remembered or walked to."""
        known = seen.get(row.tobytes())
        if known is not None:
            return known
        state = np.array([self.paths.start], np.int64)
        for token in row:
            state = self._advance(state, token[None])
        return int(state[0])

    def _advance(self, states: Ints, tokens: Ints) -> Ints:
        """The tree's own steps, and the end of an item in a tree whose items end by themselves."""
        if self.paths.end is not None:
            return np.asarray(self.paths.advance(states, tokens), np.int64)
        after = np.array(states, np.int64)
        ended = (states == _FINISHED) | (tokens == self.end)
        after[ended] = _FINISHED
        if not ended.all():
            after[~ended] = self.paths.advance(states[~ended], tokens[~ended])
        return after

    def may_end(self, states: Ints) -> npt.NDArray[np.bool_]:
        """Where the end token is allowed beside what the tree itself says: after an item, and where nothing follows."""
        may = states < 0
        alive = np.flatnonzero(~may)
        if alive.size:
            may[alive] = ~np.asarray(self.paths.open(states[alive]), np.bool_)
            if self.paths.end is None:
                may[alive] |= np.asarray(self.paths.complete(states[alive]), np.bool_)
        return may


def prefix_allowed_tokens_fn(
    paths: Paths, prompt_length: int, *, end: int | None = None
) -> Callable[[int, Any], list[int]]:
    """What `model.generate` takes as `prefix_allowed_tokens_fn`: the tokens that may follow, for one row at a time.

    It can only ban: weights of the tree are not added. `TreeLogitsProcessor` adds them, and asks for all rows at once.
    With more beams than paths transformers goes on with banned tokens; `logitree.beam_search` does not.

    Args:
        paths: the tree.
        prompt_length: how many tokens precede the generated ones in each row, padding included:
            `input_ids.shape[1]`.
        end: the token that ends the generation; None: the tree's. The `eos_token_id` of `generate` must be the same.

    Raises:
        ConstraintError: there is no end token, or the tree has another.
        TokenError: the end token is not in the vocabulary.
    """
    walk = _Walk(paths, prompt_length, end)
    logits = np.zeros((1, paths.vocabulary_size), np.float32)

    def allowed(batch_id: int, input_ids: Any) -> list[int]:
        """The tokens that may follow this row."""
        states = walk.states(input_ids[None])
        tokens = set() if states[0] < 0 else {int(token) for token in paths.gather(states, logits).tokens}
        return sorted(tokens | ({walk.end} if walk.may_end(states)[0] else set()))

    return allowed


class TreeLogitsProcessor:
    """A logits processor for `model.generate` that leaves a tree's tokens, their weights added, and bans all else.

    Args and errors are those of `prefix_allowed_tokens_fn`.
    """

    def __init__(self, paths: Paths, prompt_length: int, *, end: int | None = None) -> None:
        self._walk = _Walk(paths, prompt_length, end)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores [R, V] with -inf where the tree bans; the given ones are not changed.

        Raises:
            LogitsError: an allowed token's score is NaN, or there are fewer scores than the tree has tokens.
        """
        torch, walk = _torch(), self._walk
        size = walk.paths.vocabulary_size
        if scores.shape[-1] < size:
            raise error(_core.LogitsError, f"{scores.shape[-1]} scores a row, the tree has {size} tokens")
        states = walk.states(input_ids)
        given = scores[:, :size].float().cpu().contiguous().numpy()
        out = torch.full_like(scores, -torch.inf)
        ends = np.flatnonzero(walk.may_end(states))
        out[torch.from_numpy(ends).to(out.device), walk.end] = torch.from_numpy(given[ends, walk.end]).to(out)
        alive = np.flatnonzero(states >= 0)
        if alive.size:
            found = walk.paths.gather(states[alive], given[alive])
            rows = torch.from_numpy(alive[np.asarray(found.rows)]).to(out.device)
            tokens = torch.from_numpy(np.asarray(found.tokens, np.int64)).to(out.device)
            out[rows, tokens] = torch.from_numpy(np.asarray(found.scores, np.float64)).to(out)
        return out


def _torch() -> Any:
    try:
        import torch
    except ImportError as missing:
        raise EngineError(
            f"torch is not usable: {missing}", help="pip install 'logitree[transformers]' torch"
        ) from missing
    return torch
