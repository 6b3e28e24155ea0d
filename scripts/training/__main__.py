"""What trains a profile-guided build of the core: `python scripts/training [--quick]`, run by maturin's `--pgo`.

The compiler arranges code for what runs here, so each hot loop has its part, and no part runs so long that the others
look rare beside it. Everything is made from seeds and from the sources' texts: no schema, text or vocabulary is one of
the bench. `--quick` takes a second or two, to see that everything works.
"""

import sys
import time

import _catalogues
import _grammars
import _sampling
import _schemas
import _texts


def main() -> int:
    """Run every part, and print how long each took."""
    if sys.argv[1:] not in ([], ["--quick"]):
        print("usage: python scripts/training [--quick]", file=sys.stderr)
        return 2
    quick = len(sys.argv) > 1
    began = time.perf_counter()
    model = _texts.Model.made(20_000 if quick else _texts.SIZE)
    print(f"{len(model.vocabulary):,} tokens: {time.perf_counter() - began:.1f} s")
    for part in (_schemas, _grammars, _sampling, _catalogues):
        began = time.perf_counter()
        done = part.run(model, quick=quick)
        print(f"{done}: {time.perf_counter() - began:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
