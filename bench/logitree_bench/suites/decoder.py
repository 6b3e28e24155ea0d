"""What a step costs beyond the model: the fused step, payloads, the chain over a whole vocabulary.

Logits are random and fixed, so that every contender walks the same way. Nothing here runs a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import logitree as lt
from logitree.elizaos import token_tree, token_tree_cache
from logitree_bench import Bench, Contender, Skip, large_vocabulary, required
from logitree_bench.suites._actions import ACTIONS
from logitree_bench.suites._llama import LlamaChain, Sampler, llama_chain

Logits = npt.NDArray[np.float32]
Leaves = dict[str, list[int]]


def run(bench: Bench) -> None:
    """Measure the step, the payloads and the chain."""
    vocabulary = lt.Vocabulary.from_gguf(required(large_vocabulary()))
    size = len(vocabulary)
    logits = np.random.default_rng(7).normal(0, 3, size).astype(np.float32)
    leaves = {name: spell(vocabulary, name.encode()) for name in ACTIONS}
    steps(bench, vocabulary, leaves, logits)
    payloads(bench, vocabulary, leaves)
    chains(bench, vocabulary, logits)


def spell(vocabulary: lt.Vocabulary, text: bytes) -> list[int]:
    """Tokens of a text, the longest match first."""
    tokens, at = [], 0
    while at < len(text):
        found = vocabulary.trie.longest_match(text[at:])
        assert found is not None, f"no token begins {text[at:]!r}"
        tokens.append(found[0])
        at += found[1]
    return tokens


def payload(leaves: Leaves, model: str) -> str:
    """The JSON payload of one descriptor."""
    named = [{"name": name, "tokens": tokens} for name, tokens in leaves.items()]
    return json.dumps({"modelId": model, "descriptors": [{"path": "action", "leaves": named}]})


def steps(bench: Bench, vocabulary: lt.Vocabulary, leaves: Leaves, logits: Logits) -> None:
    """One step of 30 actions through the fused path, beside the loop that one would write in Python."""
    tree = token_tree(payload(leaves, "bench"), vocabulary)
    chains = {
        "greedy": lt.Chain.greedy(),
        "temp, dist": lt.Chain.parse("temperature", temp=0.8, seed=0),
    }
    for name, chain in chains.items():
        decoder = lt.Decoder(vocabulary, chain, tree.at("action"))
        length = walk_length(decoder, logits)
        peers: dict[str, Callable[[], object]] = {}
        if name == "greedy":
            peers = {"Python loop, NumPy": python_walk(leaves, logits)}
        bench.case(
            f"step, 30 actions, {name}, beyond a plain call",
            walk(decoder.step, decoder.reset, logits, length),
            peers=peers,
            minus=walk(len, str, logits, length),
            target=1.0,
            per=length,
        )


def walk_length(decoder: Any, logits: Logits) -> int:
    """Steps until the decoder is finished."""
    decoder.reset()
    length = 0
    while not decoder.is_finished:
        decoder.step(logits)
        length += 1
    return length


def walk(step: Callable[[Any], Any], reset: Callable[[], Any], logits: Logits, n: int) -> Callable[[], None]:
    """Start over and take n steps."""

    def go() -> None:
        reset()
        for _ in range(n):
            step(logits)

    return go


def python_walk(leaves: Leaves, logits: Logits) -> Callable[[], None]:
    """The naive version: a trie of dictionaries, the likeliest child, until a leaf."""
    root = python_trie(leaves)

    def go() -> None:
        node = root
        while any(type(key) is int for key in node):
            ids = np.fromiter((key for key in node if type(key) is int), np.int64)
            node = node[int(ids[logits[ids].argmax()])]

    return go


def python_trie(leaves: Leaves) -> dict[Any, Any]:
    """Token sequences as nested dictionaries; a leaf's name is under "name"."""
    root: dict[Any, Any] = {}
    for name, tokens in leaves.items():
        node = root
        for token in tokens:
            node = node.setdefault(token, {})
        node.setdefault("name", name)
    return root


def payloads(bench: Bench, vocabulary: lt.Vocabulary, leaves: Leaves) -> None:
    """JSON to a tree that can decode: not seen before, seen before, and large."""

    def new(text: str) -> Callable[[], object]:
        def build() -> object:
            token_tree_cache.clear()
            return token_tree(text, vocabulary)

        return build

    def python(text: str) -> Callable[[], object]:
        def build() -> object:
            (found,) = json.loads(text)["descriptors"]
            return python_trie({leaf["name"]: leaf["tokens"] for leaf in found["leaves"]})

        return build

    small = payload(leaves, "bench")
    bench.case("payload of 30 actions, new", new(small), peers={"Python dicts": python(small)}, target=60.0)
    bench.case("payload of 30 actions, cached", lambda: token_tree(small, vocabulary), target=5.0)
    as_dict = json.loads(small)
    bench.case("payload of 30 actions, cached, as a dict", lambda: token_tree(as_dict, vocabulary), target=5.0)
    names = [f"ACTION_{i * 7919 % 100_003}" for i in range(10_000)]
    large = payload({name: spell(vocabulary, name.encode()) for name in names}, "bench")
    peers = {"Python dicts": python(large)}
    bench.case("payload of 10,000 leaves, new", new(large), peers=peers, unit="ms", target=30.0)


def chains(bench: Bench, vocabulary: lt.Vocabulary, logits: Logits) -> None:
    """Unconstrained: llama.cpp's default order over the whole vocabulary."""
    ours = lt.Decoder(vocabulary, lt.Chain.llama_cpp(top_k=40, top_p=0.95, min_p=0.05, temp=0.8, seed=1))
    greedy = lt.Decoder(vocabulary, lt.Chain.greedy())
    size = f"{len(vocabulary):,}"

    def step(decoder: Any) -> Callable[[], None]:
        def go() -> None:
            decoder.step(logits)
            decoder.rollback(1)

        return go

    peers = llama_chains(logits)
    bench.case(f"default chain over {size} logits", step(ours), peers={"llama.cpp": peers["default"]})
    bench.case(
        f"greedy over {size} logits",
        step(greedy),
        peers={"llama.cpp": peers["greedy"], "NumPy argmax": lambda: int(logits.argmax())},
    )


def llama_chains(logits: Logits) -> dict[str, Contender | Skip]:
    """llama.cpp's own samplers on an array of candidates, refilled each time by one memory copy (its own
    llama_sampler_sample fills it in a loop)."""
    default: list[Sampler] = [
        ("top_k", {"k": 40}),
        ("top_p", {"p": 0.95, "min_keep": 1}),
        ("min_p", {"p": 0.05, "min_keep": 1}),
        ("temp", {"t": 0.8}),
        ("dist", {"seed": 1}),
    ]
    greedy: list[Sampler] = [("greedy", {})]
    return {"default": refilling(llama_chain(logits, default)), "greedy": refilling(llama_chain(logits, greedy))}


def refilling(chain: LlamaChain | Skip) -> Contender | Skip:
    """A call that counts the filling of the candidates."""
    if isinstance(chain, Skip):
        return chain

    def go() -> None:
        chain.refill()
        chain.apply()

    return go
