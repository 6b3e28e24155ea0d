"""Prints a checksum of every mask along MaskBench's texts.

`PYTHONPATH=bench python tests/support/mask_checksums.py > after` in the repository, with the data folder at hand.
A line for each schema and order of properties: name, number of masks, checksum of the masks and of the tokens that
were taken. Two states of the core allow the same tokens if `diff before after` is empty. It takes two minutes.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

import logitree as lt
from logitree_bench._data import MASKBENCH, data_file, parse_case, read_maskbench
from logitree_bench._harness import Skip


def masks(grammar: lt.Matcher, texts: Sequence[Sequence[int]], words: np.ndarray) -> Iterator[bytes]:
    """The masks along each text until a token is refused, and what refused it."""
    for tokens in texts:
        matcher = grammar.fork()
        try:
            for token in tokens:
                lt.masks.fill_batch(matcher, words)
                yield words.tobytes()
                matcher.accept(token)
            lt.masks.fill_batch(matcher, words)
            yield words.tobytes()
        except lt.LogitreeError as problem:
            yield type(problem).__name__.encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--vocabulary", default="llama-bpe")
    parser.add_argument("--part", type=int, default=1, help="only every PART-th schema")
    arguments = parser.parse_args()
    archive, path = data_file(MASKBENCH), data_file(f"vocabs/ggml-vocab-{arguments.vocabulary}.gguf")
    if isinstance(archive, Skip) or isinstance(path, Skip):
        raise SystemExit("the data folder is absent: set LOGITREE_DATA")
    tokenizer = lt.Tokenizer.from_gguf(path)
    vocabulary = tokenizer.vocabulary
    words = np.zeros(lt.masks.words(len(vocabulary)), np.int32)
    files = read_maskbench(archive)
    for name in sorted(files)[:: arguments.part]:
        case = parse_case(name, files[name])
        texts = [tokenizer.encode(instance.text) for instance in case.instances]
        for order in ("schema", "any"):
            count, checksum = 0, 0
            try:
                grammar = lt.Grammar.json_schema(case.schema, order=order).matcher(vocabulary)
            except lt.LogitreeError as problem:
                print(name, order, type(problem).__name__)
                continue
            for mask in masks(grammar, texts, words):
                count, checksum = count + 1, zlib.crc32(mask, checksum)
            print(name, order, count, f"{checksum:08x}", flush=True)


if __name__ == "__main__":
    main()
