# The verbs. Each may be the very first command in a fresh clone: it makes .venv itself, once.
# Needed: Python >= 3.10, cargo, a C and a C++ compiler. Another Python: make PYTHON=/path/to/python3.12 demo
PYTHON ?= python3
ready   = $(PYTHON) scripts/setup.py
venv    = .venv/bin/python
export PATH := $(PATH):$(HOME)/.cargo/bin
export PYO3_PYTHON = $(CURDIR)/$(venv)
# What maturin sets for PyO3, once it has run: with it cargo takes what maturin has compiled, and does not compile it again.
maturin = $(shell ls $(CURDIR)/target/maturin/pyo3-config-*.txt 2>/dev/null | head -1 | \
	sed "s/.*/PYO3_BUILD_EXTENSION_MODULE=1 PYO3_CONFIG_FILE='&'/")
FUZZ_SECONDS ?= 60
PREFIX  ?= /usr/local
GUIDED  ?= $(venv) scripts/profile_guided.py
CASES   ?= 20000
LOAD_SECONDS ?= 180
SERVER_TESTS ?= tests/server tests/browser/test_playground.py tests/engines/test_llama_slots.py

.PHONY: help setup demo serve c install test test-rust test-python test-data test-native test-random check docs site parity bench bench-peers bench-engines bench-server bench-sglang test-engines test-vllm test-sglang test-llama-oldest test-ray test-server wheel fuzz clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed 's/:.*##/\t/' | expand -t 16

setup:  ## make .venv ready for every verb
	@$(ready) setup

demo:  ## a real model chooses actions, with a trace (the first run builds llama.cpp)
	@$(ready) demo
	@$(venv) -m logitree demo

serve:  ## SmolLM2 over HTTP, for OpenAI's clients
	@$(ready) test
	$(venv) -m logitree serve

test-server:  ## the server with real clients, 64 streams for three minutes, and the playground in Chromium (in .venv-clients)
	@$(ready) clients
	LOGITREE_LOAD_SECONDS=$(LOAD_SECONDS) .venv-clients/bin/python -m pytest $(SERVER_TESTS)

c:  ## the C library and its headers, in target/c (needs cargo alone)
	cargo build --release --locked -p logitree-c
	$(PYTHON) scripts/c_library.py release target/c

install: c  ## the C library, its headers and a pkg-config file, under PREFIX (/usr/local)
	$(PYTHON) scripts/c_library.py release $(PREFIX)

test: test-rust test-python  ## the core's tests, then the package's

test-rust:  ## the core's tests
	@$(ready) test
	cargo test --workspace

test-python:  ## the package's tests
	@$(ready) test
	$(venv) -m pytest -n 2 --dist loadfile --ignore=tests/native

test-data:  ## the tests that need the shared data alone (LOGITREE_DATA, or ../shared/data)
	@$(ready) test
	@# After `--`, for a filter before it makes cargo compile tests of libraries that have none.
	cargo test --workspace -- with_the_data
	$(venv) -m pytest -n 2 --dist loadfile -m "data and not peers"

test-native:  ## the C interface from C and C++, its examples, under valgrind where that is installed
	@$(ready) test
	@# With the bindings, whose build has compiled what the two have in common.
	$(maturin) cargo build --locked -p logitree-c -p logitree-python
	$(venv) -m pytest tests/native

test-random:  ## the core's random tests with CASES new cases each
	PROPTEST_CASES=$(CASES) PROPTEST_MAX_GLOBAL_REJECTS=1000000000 PROPTEST_MAX_LOCAL_REJECTS=1000000000 \
	CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
	cargo test --release --workspace

check:  ## format, lint, types, stubs, docs, tidiness; changes nothing
	@$(ready) check
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	$(maturin) cargo clippy --workspace --all-targets -- -D warnings
	$(maturin) RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
	$(venv) -m ruff format --check .
	$(venv) -m ruff check .
	$(venv) -m mypy
	$(venv) -m mypy.stubtest logitree._core
	$(venv) scripts/stubs.py --check
	$(venv) -m pytest tests/docs/test_tidy.py

docs:  ## write what is generated: stubs, the header of C, docs/api.md, docs/cli.md, docs/samplers.md, the cookbook, tables of figures
	@$(ready) check
	$(venv) scripts/stubs.py
	$(venv) scripts/c_header.py > include/logitree.h.new && mv include/logitree.h.new include/logitree.h
	$(venv) scripts/c_header.py --typescript > bindings/typescript/src/functions.ts.new && \
		mv bindings/typescript/src/functions.ts.new bindings/typescript/src/functions.ts
	$(venv) scripts/sampler_docs.py
	$(venv) scripts/cookbook_docs.py
	$(venv) scripts/api_docs.py
	$(venv) -m logitree.cli.docs > docs/cli.md.new && mv docs/cli.md.new docs/cli.md
	PYTHONPATH=bench $(venv) -m logitree_bench.report --tables

site:  ## the document site in target/site; a link that leads nowhere fails it
	@$(ready) site
	NO_MKDOCS_2_WARNING=1 $(venv) -m mkdocs build --quiet

parity:  ## a million comparisons of parity mode with llama.cpp's samplers (some 8 minutes)
	@$(ready) test
	$(venv) tests/parity/parity.py --cases 1000000 --jobs 2

bench:  ## every suite, then the tables of the documents and charts from bench/results
	@$(ready) bench
	PYTHONPATH=bench $(venv) -m logitree_bench all --save bench/results
	PYTHONPATH=bench $(venv) -m logitree_bench maskbench --save bench/results
	PYTHONPATH=bench $(venv) -m logitree_bench.report

bench-peers:  ## the same beside xgrammar, llguidance, transformers and torch (several GB, in .venv-engines)
	@$(ready) bench-peers
	PYTHONPATH=bench .venv-engines/bin/python -m logitree_bench all --save bench/results
	PYTHONPATH=bench .venv-engines/bin/python -m logitree_bench maskbench --save bench/results
	PYTHONPATH=bench .venv-engines/bin/python -m logitree_bench.report

bench-engines:  ## vLLM with our backend and each of its own (in .venv-vllm)
	@$(ready) bench-engines
	PYTHONPATH=bench .venv-vllm/bin/python -m logitree_bench.vllm_backends --save bench/results \
		$$(PYTHONPATH=tests/support .venv-vllm/bin/python -m vllm_model)

bench-server:  ## logitree serve beside llama.cpp's own server
	@$(ready) bench-server
	PYTHONPATH=bench $(venv) -m logitree_bench.server --save bench/results

bench-sglang:  ## SGLang's grammar backends beside ours (in .venv-sglang)
	@$(ready) bench-sglang
	PYTHONPATH=bench .venv-sglang/bin/python -m logitree_bench.sglang_backends \
		$$(PYTHONPATH=tests/support .venv-sglang/bin/python -c "import data_files; print(data_files.smollm2())")

test-engines:  ## the tests that need the peer libraries (several GB, in .venv-engines)
	@$(ready) engines
	.venv-engines/bin/python -m pytest -n 2 --dist loadfile -m peers --ignore=tests/engines/test_ray_docs.py

test-vllm:  ## the tests with vLLM itself, its server among them (12 GB, in .venv-vllm)
	@$(ready) vllm
	.venv-vllm/bin/python -m pytest -m peers tests/engines/test_vllm_backend.py tests/engines/test_vllm_processor.py \
		tests/engines/test_vllm_engine.py tests/engines/test_protocols_vllm.py

test-sglang:  ## the tests with SGLang's own grammar classes, which need no GPU (several GB, in .venv-sglang)
	@$(ready) sglang
	.venv-sglang/bin/python -m pytest -m peers tests/engines/test_sglang*.py

test-ray:  ## Ray on a cluster of two nodes on this machine, with a thousand rows, and the programs of its page
	@$(ready) engines
	LOGITREE_RAY_ROWS=1000 .venv-engines/bin/python -m pytest tests/engines/test_ray.py tests/engines/test_ray_docs.py

test-llama-oldest:  ## the tests of LlamaCpp with the oldest llama-cpp-python that the extra allows (in .venv-llama-oldest)
	@$(ready) llama-oldest
	.venv-llama-oldest/bin/python -m pytest tests/engines/test_engine_llama.py tests/engines/test_engine_llama_beams.py \
		tests/engines/test_llama_sampler.py tests/engines/test_llama_cpp_python.py

wheel:  ## an sdist and this platform's wheel of it in dist, tried in an empty environment
	@$(ready) wheel
	rm -f dist/logitree-*
	$(GUIDED) $(venv) -m maturin build --release --locked --sdist --out dist
	$(venv) scripts/try_wheel.py dist/logitree-*.whl

fuzz:  ## every fuzz target for FUZZ_SECONDS each (needs cargo-fuzz)
	@cargo fuzz --version >/dev/null 2>&1 || { echo "make fuzz needs: cargo install cargo-fuzz"; exit 1; }
	@# The sanitizers are unstable flags; the variable lets the stable compiler take them.
	@export RUSTC_BOOTSTRAP=1; for target in $$(cargo fuzz list); do echo "-- $$target"; \
		cargo fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; done

clean:  ## forget everything that was built
	rm -rf .venv .venv-clients .venv-engines .venv-llama-oldest .venv-sglang .venv-vllm target fuzz/target dist python/logitree/*.so
	find . -name __pycache__ -prune -exec rm -rf {} +
