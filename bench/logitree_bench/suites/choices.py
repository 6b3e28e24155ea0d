"""The benchmark mode: one model chooses among 30 actions, with and without constraint, grammar, forcing.

Every mode runs on the same context, greedily, from a prompt that is evaluated already, one mode after the
other on each prompt, several rounds over. A pass is one evaluation of the model, that of the prompt's
last token being the first; a mode without forcing needs one for each token. All modes stop by the same
rule: at an end-of-generation token, at ``MAX_TOKENS``, or as soon as the output is an action that is no
prefix of another (the end-of-generation token that llama.cpp's grammar would still ask for is not charged
to it).

llama.cpp's grammar runs as a llama.cpp program would run it: a native chain of grammar and greedy on the
context's own logits, which Python never touches; and, in a mode of its own, as llama.cpp's own tools run it:
sampled first, the one token checked, and only a refused one sampled again under the grammar. Ours runs
through ``logitree.generate``, events and all; and, as a link of such a native chain, in the grammar's place.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import logitree as lt
from logitree_bench import Bench, lower_quartile, machine, model_file, optional, required
from logitree_bench.suites._actions import ACTIONS, REQUESTS, prompt

MAX_TOKENS = 24
BASELINE = "llama.cpp grammar"
CHECKED = "llama.cpp grammar, sampled first"
UNCONSTRAINED = "unconstrained"
IN_CHAIN = "logitree, in llama.cpp's chain"
FORCED = "logitree"
UNFORCED = "logitree, no forcing"
ANY_SPELLING = "logitree, any tokenisation"


@dataclass
class Run:
    """One answer to one prompt."""

    tokens: list[int]
    passes: int
    seconds: float


@dataclass
class Mode:
    """One way of answering, and what it answered."""

    name: str
    answer: Callable[[str, list[int]], Run]
    """Given the prompt as text and as tokens."""
    constraint: Any = None
    """What it chooses by, to count what was legal; None: everything is."""
    runs: list[list[Run]] = field(default_factory=list)
    """By prompt, then by round."""

    def rate(self) -> float:
        """Output tokens per second over all prompts; a prompt's time is the lower quartile of its rounds."""
        seconds = sum(lower_quartile([run.seconds for run in runs]) for runs in self.runs)
        return sum(len(run.tokens) for run in self.first()) / seconds

    def same(self, other: Mode) -> float:
        """The share of prompts with the same tokens in another mode."""
        pairs = list(zip(self.first(), other.first(), strict=True))
        return sum(a.tokens == b.tokens for a, b in pairs) / len(pairs)

    def first(self) -> list[Run]:
        """The first round: greedy modes repeat themselves exactly."""
        return [runs[0] for runs in self.runs]


def run(bench: Bench) -> None:
    """Measure every mode and record one row a mode, then the figures that have targets."""
    path = str(required(model_file()))
    stage = Stage(required(optional("llama_cpp")), path)
    modes = stage.modes()
    measure(stage, modes, rounds=2 if bench.quick else 7)
    report(bench, stage, modes)
    report_sampled(bench, stage)
    report_exact(bench, path, rounds=1 if bench.quick else 3)


class Stage:
    """The model, its context, and everything that runs on them."""

    def __init__(self, llama: Any, path: str, names: Sequence[str] = ACTIONS, max_tokens: int = MAX_TOKENS) -> None:
        from logitree.engines.llama_cpp import LlamaCpp

        self.llama = llama
        # As many threads for one token as for a batch: Llama's defaults differ, and the modes differ in their batches.
        threads = int(machine()["cores"])
        self.model = llama.Llama(
            path, n_ctx=1024, n_threads=threads, n_threads_batch=threads, flash_attn=True, verbose=False
        )
        self.engine = LlamaCpp(self.model)
        self.vocabulary = self.engine.vocabulary
        self.names, self.max_tokens = names, max_tokens
        self._native = llama.llama_model_get_vocab(self.model.model)

    def modes(self) -> list[Mode]:
        """The modes, in the order of the report."""
        free = lt.OneOf(self.names)
        canonical = lt.OneOf(self.names, tokenize=self.engine.tokenize)
        return [
            Mode(UNCONSTRAINED, self._by_llama(None)),
            self.baseline(),
            Mode(CHECKED, self._by_llama(self._grammar(), sample_first=True), free),
            self.linked(canonical),
            Mode(UNFORCED, self.asked(canonical, force=False), canonical),
            self.forced(canonical),
            Mode(ANY_SPELLING, self.asked(free), free),
        ]

    def baseline(self) -> Mode:
        """llama.cpp's grammar of the names."""
        return Mode(BASELINE, self._by_llama(self._grammar()), lt.OneOf(self.names))

    def linked(self, constraint: Any) -> Mode:
        """A constraint as a link of llama.cpp's own chain."""
        return Mode(IN_CHAIN, self._by_llama(self._link(constraint)), constraint)

    def forced(self, constraint: Any) -> Mode:
        """A constraint in logitree's own loop."""
        return Mode(FORCED, self.asked(constraint), constraint)

    def sampling(self, seed: int) -> list[Mode]:
        """The grammar and the same choices, in any tokenisation, at temperature 0.8 with one seed."""
        llama = self.llama
        free = lt.OneOf(self.names)
        picks = (llama.llama_sampler_init_temp(0.8), llama.llama_sampler_init_dist(seed))
        chain = lt.Chain([lt.samplers.temp(0.8), lt.samplers.dist(seed)])
        return [
            Mode(BASELINE, self._by_llama(self._grammar(), picks=picks), free),
            Mode(UNFORCED, self.asked(free, force=False, chain=chain), free),
            Mode(FORCED, self.asked(free, chain=chain), free),
        ]

    def canonical(self, tokens: Iterable[int]) -> list[int]:
        """The tokenizer's own tokens of what these tokens spell."""
        text = b"".join(self.vocabulary[t] for t in tokens if t not in self.vocabulary.end_tokens)
        return list(self.engine.tokenize(text.decode()))

    def pieces(self, tokens: Iterable[int]) -> list[str]:
        """The tokens as text, for people."""
        return [self.vocabulary[t].decode("utf-8", "replace") for t in tokens]

    def skip_ratios(self, mode: Mode, run: Run) -> list[float]:
        """For each step, the share of the vocabulary that was not legal; forced steps count too."""
        if mode.constraint is None:
            return [0.0 for _ in run.tokens]
        matcher, size, ratios = mode.constraint.matcher(self.vocabulary), len(self.vocabulary), []
        for token in run.tokens:
            allowed = matcher.allowed()
            ratios.append((size - len(allowed)) / size)
            matcher.accept(token)
        return ratios

    def ready(self, tokens: list[int]) -> None:
        """Have the context hold all of a prompt but its last token, untimed."""
        session = self.engine.session()
        session.begin(tokens)
        session.evaluate(tokens[len(session.tokens) :])

    def _grammar(self) -> Any:
        """A new grammar sampler: one of the actions."""
        names = " | ".join(json.dumps(name) for name in self.names)
        return self.llama.llama_sampler_init_grammar(self._native, f"root ::= {names}".encode(), b"root")

    def _link(self, choices: Any) -> Any:
        """A new sampler of ours for a native chain: mode 0, the likeliest of the allowed tokens."""
        from logitree.engines.llama_sampler import LlamaSampler

        return LlamaSampler(self.vocabulary, choices, mode="greedy").make()

    def _by_llama(
        self, grammar: Any | None, *, sample_first: bool = False, picks: Sequence[Any] = ()
    ) -> Callable[[str, list[int]], Run]:
        llama = self.llama
        chain = self._chain(grammar, *picks)
        free = self._chain(None)
        complete = self._complete()
        one = llama.llama_token_data()
        alone = llama.llama_token_data_array(data=ctypes.pointer(one), size=1, selected=-1, sorted=False)

        def sample() -> int:
            if sample_first:
                token = int(llama.llama_sampler_sample(free, self.model.ctx, -1))
                one.id, one.logit, alone.size = token, 1.0, 1
                llama.llama_sampler_apply(grammar, ctypes.byref(alone))
                if one.logit > float("-inf"):
                    llama.llama_sampler_accept(grammar, token)
                    return token
            return int(llama.llama_sampler_sample(chain, self.model.ctx, -1))

        def answer(text: str, prompt: list[int]) -> Run:
            llama.llama_sampler_reset(chain)
            out: list[int] = []
            began = time.perf_counter()
            session = self.engine.session()
            session.begin(prompt)
            pending: Sequence[int] = prompt[len(session.tokens) :]
            while True:
                session.evaluate(pending)
                token = sample()
                out.append(token)
                if len(out) == self.max_tokens or llama.llama_vocab_is_eog(self._native, token) or complete(out):
                    return Run(out, len(out), time.perf_counter() - began)
                pending = (token,)

        return answer

    def _chain(self, grammar: Any | None, *picks: Any) -> Any:
        """A native chain of the grammar, if any, and the samplers that pick; greedy if none are given."""
        llama = self.llama
        chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        for sampler in filter(None, (grammar, *(picks or (llama.llama_sampler_init_greedy(),)))):
            llama.llama_sampler_chain_add(chain, sampler)
        return chain

    def _complete(self) -> Callable[[list[int]], bool]:
        """Whether the tokens spell an action that is no prefix of another."""
        ends = {a.encode() for a in self.names if not any(b != a and b.startswith(a) for b in self.names)}
        pieces = [self.vocabulary[token] for token in range(len(self.vocabulary))]

        def complete(tokens: list[int]) -> bool:
            return b"".join([pieces[token] for token in tokens]) in ends

        return complete

    def asked(self, constraint: Any, **options: Any) -> Callable[[str, list[int]], Run]:
        """How ``logitree.generate`` answers under a constraint, greedily unless the options have a chain."""
        usual = {"chain": lt.Chain.greedy(), "max_tokens": self.max_tokens, "chat": False, "tokenization": "any"}
        options = {**usual, **options}

        def answer(text: str, prompt: list[int]) -> Run:
            made = lt.generate(self.engine, text, constraint, **options)
            return Run(list(made.tokens), made.stats.forward_passes, made.stats.seconds)

        return answer


def measure(stage: Stage, modes: list[Mode], rounds: int, texts: Sequence[str] | None = None) -> None:
    """Let every mode answer every prompt, in an order that rotates, so that noise hits all of them alike."""
    texts = [prompt(request) for request in REQUESTS] if texts is None else texts
    for mode in modes:
        mode.runs = [[] for _ in texts]
    for at, text in enumerate(texts):
        tokens = stage.engine.encode(text, chat=False)
        for turn in range(rounds + 1):
            for k in range(len(modes)):
                mode = modes[(k + turn) % len(modes)]
                stage.ready(tokens)
                run = mode.answer(text, tokens)
                if turn:  # the first turn warms up
                    mode.runs[at].append(run)


def report(bench: Bench, stage: Stage, modes: list[Mode]) -> None:
    """One row a mode, then the figures with targets."""
    by_name = {mode.name: mode for mode in modes}
    baseline = by_name[BASELINE]
    rows = {mode.name: row(stage, mode, baseline) for mode in modes}
    for name, values in rows.items():
        bench.fact(f"mode: {name}", **values)
    ours = rows[FORCED]
    bench.higher(
        "output tokens per second, beside llama.cpp's grammar", ours["tokens_per_second_vs_grammar"], "times", 1.8
    )
    bench.higher(
        "output tokens per second, beside llama.cpp's grammar sampled first",
        ours["tokens_per_second"] / rows[CHECKED]["tokens_per_second"],
        "times",
        1.8,
    )
    in_chain = rows[IN_CHAIN]["tokens_per_second_vs_grammar"]
    bench.higher("output tokens per second in llama.cpp's chain, beside its grammar", in_chain, "times", 1.08)
    saved = ours["forward_passes_saved"] / ours["forward_passes_total"]
    bench.higher("share of forward passes saved by forcing", saved, "of 1", 0.5)
    alike, left = same_spelling(stage, by_name[FORCED], baseline)
    bench.higher("token accuracy where the grammar spells canonically", alike, "of 1", 1.0, spelt_otherwise=left)


def report_sampled(bench: Bench, stage: Stage) -> None:
    """With a seed: the same tokens as llama.cpp's grammar, forced or not, because the draws are the same."""
    same, left = {UNFORCED: 0, FORCED: 0}, []
    for seed, request in enumerate(REQUESTS):
        text = prompt(request)
        tokens = stage.engine.encode(text, chat=False)
        answers: dict[str, list[int]] = {}
        for mode in stage.sampling(seed):
            stage.ready(tokens)
            answers[mode.name] = mode.answer(text, tokens).tokens
        for name in same:
            same[name] += answers[name] == answers[BASELINE]
        if answers[FORCED] != answers[BASELINE]:
            left.append({"request": request, "seed": seed, **{k: stage.pieces(v) for k, v in answers.items()}})
    for name, count in same.items():
        case = f"prompts sampled with the grammar's tokens, one seed each: {name}"
        bench.higher(case, count / len(REQUESTS), "of 1", 1.0, differing=left)


def report_exact(bench: Bench, path: str, rounds: int) -> None:
    """What exact probabilities of all actions cost beside the greedy choice: after a prompt that the same call
    evaluates, and after one that memory holds already."""
    from logitree.engines.llama_cpp import LlamaCpp

    engine = LlamaCpp(path, n_ctx=1024)
    texts = [prompt(request) for request in REQUESTS[:3]]
    nothing = engine.tokenize("Something else.")
    methods: tuple[Literal["greedy", "exact"], ...] = ("greedy", "exact")
    times: dict[tuple[bool, str], list[float]] = {}
    answers: dict[str, list[str]] = {}
    for at in range(rounds + 1):
        for is_held, method in itertools.product((False, True), methods):
            total, chosen = 0.0, []
            for text in texts:
                engine.session().evaluate(engine.encode(text, chat=False) if is_held else nothing)
                began = time.perf_counter()
                chosen.append(lt.choose(engine, text, ACTIONS, chat=False, method=method).text)
                total += time.perf_counter() - began
            answers[method] = chosen
            if at:  # the first round warms up
                times.setdefault((is_held, method), []).append(total)
    for is_held, prompted in ((False, "prompt included"), (True, "prompt evaluated already")):
        greedy, exact = (min(times[is_held, method]) for method in methods)
        bench.record(
            f"exact probabilities of 30 actions beside the greedy choice, {prompted}",
            exact / greedy,
            unit="times",
            target=None if is_held else 1.5,
            seconds=exact / len(texts),
            answers=answers,
        )


def row(stage: Stage, mode: Mode, baseline: Mode) -> dict[str, Any]:
    """The record of the benchmark mode, all of its fields."""
    runs = mode.first()
    total = sum(len(run.tokens) for run in runs)
    ratios = [r for run in runs for r in stage.skip_ratios(mode, run)]
    return {
        "mode": mode.name,
        "model": stage.engine.name,
        "skip_ratio_mean": round(statistics.fmean(ratios), 5) if ratios else 0.0,
        "skip_ratio_std": round(statistics.pstdev(ratios), 5) if ratios else 0.0,
        "tokens_per_second": round(mode.rate(), 1),
        "tokens_per_second_vs_grammar": round(mode.rate() / baseline.rate(), 3),
        "token_accuracy": accuracy(zip(runs, baseline.first(), strict=True)),
        "forward_passes_saved": total - sum(run.passes for run in runs),
        "forward_passes_total": total,
        "prompts": len(runs),
        "rounds": len(mode.runs[0]),
        "temperature": 0,
    }


def accuracy(pairs: Iterable[tuple[Run, Run]]) -> float:
    """Share of the positions, over both outputs' lengths, where the tokens are the same."""
    same, positions = 0, 0
    for a, b in pairs:
        same += sum(x == y for x, y in zip(a.tokens, b.tokens, strict=False))
        positions += max(len(a.tokens), len(b.tokens))
    return round(same / positions, 4)


def same_spelling(stage: Stage, ours: Mode, baseline: Mode) -> tuple[float, list[dict[str, Any]]]:
    """Accuracy where the grammar chose the tokenizer's own tokens of its text, and the other prompts."""
    alike, left = [], []
    for request, a, b in zip(REQUESTS, ours.first(), baseline.first(), strict=True):
        if stage.canonical(b.tokens) == [t for t in b.tokens if t not in stage.vocabulary.end_tokens]:
            alike.append((a, b))
            continue
        spelt = {"logitree": stage.pieces(a.tokens), "grammar": stage.pieces(b.tokens)}
        left.append({"prompt": request, "why": "the grammar's greedy tokens are not the tokenizer's", **spelt})
    return accuracy(alike) if alike else 0.0, left
