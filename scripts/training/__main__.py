"""What trains a profile-guided build of the core: `python scripts/training [--quick]`, run by maturin's `--pgo`.

The compiler arranges code for what runs here, so each hot loop has its part, and no part runs so long that the others
look rare beside it. Everything is made from seeds and from the sources' texts, nothing from the data of the bench:
it measures the build on data that it was not trained with. `--quick` takes a second, to see that everything works.
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
    quick = sys.argv[1:] == ["--quick"]
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
