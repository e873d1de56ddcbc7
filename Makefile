PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# uv installs in a fifth of the time; pip knows mirrors that uv was not told of.
INSTALL := install() { $(BIN)/uv pip install --quiet --python $(BIN)/python "$$@" || $(PIP) "$$@"; }; install

# Python files are read from src/ as they stand; a change to any of these builds again.
NATIVE := pyproject.toml CMakeLists.txt $(wildcard src/declip/kernels/*.cpp src/declip/kernels/*.hpp)

# The kernels once more, with the address and undefined-behaviour sanitizers of GCC.
SANITIZED  := $(VENV)/build-sanitized
SANITIZING  = LD_PRELOAD="$(foreach lib,asan ubsan stdc++,$(shell $(CXX) -print-file-name=lib$(lib).so))" \
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
    DECLIP_KERNELS="$$(echo $(SANITIZED)/_kernels*.so)"

# uv leaves compiling to Python: where the environment says not to keep what was compiled, each process would begin anew.
export PYTHONDONTWRITEBYTECODE :=

# One thread of linear algebra a process: tests run in as many processes as there are cores.
PYTEST   := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest
PARALLEL := --numprocesses auto --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help install demo test test-long reliability bench bench-quick bench-dask paper paper-quick docs docs-quick refresh lint format clean cross release-check FORCE
.PHONY: coverage test-native fuzz mutation mutation-native
.DELETE_ON_ERROR:

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

install: $(VENV)/.installed-dev ## install what lint, tests and documentation need, at once
	@touch $(foreach extra,lint test docs,$(VENV)/.installed-$(extra))

demo: $(VENV)/.installed-run ## restore a simulated assay table; leaves table, cells and report in declip-demo
	$(BIN)/declip demo declip-demo

test: $(VENV)/.installed-test ## run the fast tests and the examples in docstrings
	$(PYTEST) -m "not slow" $(PARALLEL) $(ARGS)

test-long: $(VENV)/.installed-test ## run every test, with 1,000 examples of each property
	HYPOTHESIS_PROFILE=long $(PYTEST) $(PARALLEL) $(ARGS)

coverage: $(VENV)/.installed-test ## run the fast tests and count the lines that they reach
	$(PYTEST) -m "not slow" --cov --cov-report=term --cov-report=html $(ARGS)

test-native: $(SANITIZED)/.built ## run the tests of the kernels, and random tables, under sanitizers
	$(SANITIZING) $(PYTEST) tests/kernels -m "not slow" $(PARALLEL) $(ARGS)
	$(SANITIZING) $(BIN)/python -m tests.kernels.fuzz --seconds 10

fuzz: $(SANITIZED)/.built ## feed the sanitized kernels random tables for ten minutes
	$(SANITIZING) $(BIN)/python -m tests.kernels.fuzz --seconds 600 --first $$(date +%s)000000 $(ARGS)

mutation: $(VENV)/.installed-test ## put faults into intervals and validation; do the tests notice?
	$(BIN)/python -m tests.mutation $(ARGS)

mutation-native: $(VENV)/.installed-test ## the same for the compiled loss of a cell
	$(BIN)/python -m tests.mutation.native $(ARGS)

reliability: $(VENV)/.installed-test ## measure files, long fits, determinism and hostile input (hours; ARGS=--quick for a few cases)
	$(BIN)/python -m reliability.persistence $(ARGS)
	$(BIN)/python -m reliability.hostile $(ARGS)

bench: $(VENV)/.installed-bench ## measure declip beside its peers (an hour and a half, on a quiet machine)
	$(BIN)/python -m benchmarks $(ARGS)

bench-quick: $(VENV)/.installed-bench ## the same on small shapes, under three minutes
	$(BIN)/python -m benchmarks --quick $(ARGS)

bench-dask: $(VENV)/.installed-test ## FroCMC on Dask beside the fit in memory, and its traffic (five minutes, on a quiet machine)
	$(BIN)/python -m benchmarks.distributed $(ARGS)

docs: $(VENV)/.installed-docs ## build the documentation in docs/_build/html (its gallery runs: a few minutes)
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html $(ARGS)

docs-quick: $(VENV)/.installed-docs ## the same without running the gallery
	$(BIN)/python -m sphinx -W --keep-going -b html -D plot_gallery=0 -d docs/_build/quick-doctrees docs docs/_build/quick $(ARGS)

refresh: $(VENV)/.installed-test ## write anew what pages of the repository show of outputs and results
	PYTHONPATH=docs $(BIN)/python -m _pages.shown

paper: $(VENV)/.installed-run ## run the experiments of the paper, or what is left of them (PAPER.md says how long)
	$(BIN)/python -m experiments.paper $(ARGS)

paper-quick: $(VENV)/.installed-run ## the same, small and few of everything, under ten minutes
	$(BIN)/python -m experiments.paper --quick $(ARGS)

lint: $(VENV)/.installed-lint ## check style, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --offline --quiet .github/workflows

cross: $(VENV)/.installed-cross ## compile the kernels for Windows, macOS and musl with Zig (a minute of two cores)
	$(BIN)/python -m tests.kernels.cross

release-check: ## go through all targets in a fresh clone, build and install what would be released (an hour; ARGS="dist cross" for parts)
	.ci/release-check $(ARGS)

format: $(VENV)/.installed-lint ## put the Python files in house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove the environment, builds and caches
	rm -rf $(VENV) build dist .coverage htmlcov .hypothesis .reliability
	rm -rf docs/_build docs/generated
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The build tools live in the environment, so that a second build is incremental.
$(VENV)/.build-tools: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "declip needs Python 3.11 or newer, this is %s (%s): try make PYTHON=python3.12" % (sys.version.split()[0], sys.executable))'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	-$(PIP) uv
	$(INSTALL) cmake ninja $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')
	@touch $@

$(VENV)/.built: $(VENV)/.build-tools $(VENV)/.modules $(NATIVE)
	$(INSTALL) --no-build-isolation --config-settings build-dir=$(VENV)/build --editable .
	@touch $@

# Its extras apart from it: a package that is built from source has its own build tools.
EXTRA_run := all
$(VENV)/.installed-%: $(VENV)/.built
	$(INSTALL) 'declip[$(or $(EXTRA_$*),$*)]'
	@touch $@

$(SANITIZED)/.built: $(VENV)/.installed-test
	$(BIN)/cmake -S . -B $(SANITIZED) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
	    -DPython_EXECUTABLE=$(abspath $(BIN))/python -DDECLIP_SANITIZE=ON > /dev/null
	$(BIN)/cmake --build $(SANITIZED)
	@touch $@

# An editable install knows its modules by name: this list changes when one comes or goes.
$(VENV)/.modules: FORCE | $(VENV)/.build-tools
	@new=$@.$$$$; find src/declip -name '*.py' | sort > $$new; cmp -s $$new $@ && rm $$new || mv $$new $@
FORCE:
