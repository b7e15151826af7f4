# Needs Python 3.11 or newer and make; `make java` sees to Java.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.NOTPARALLEL:

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.viewkeeper-setup

# The first Python that is new enough and can make virtual environments; PYTHON=... overrides it.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; \
	done)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(STAMP) ## Make .venv with all that development and tests need

# uv itself comes from the same hash-checked list as everything it installs. Where uv cannot reach
# the packages (it does not read pip's configuration), pip gets a try.
$(STAMP): requirements-dev.txt pyproject.toml
	@python='$(PYTHON)'; if [ -z "$$python" ]; then \
		echo 'No Python 3.11 or newer with its venv module was found' \
			'(Debian, Ubuntu: sudo apt-get install -y python3-venv). Or name one: make setup PYTHON=...' >&2; \
		exit 1; \
	fi; \
	[ -x $(BIN)/python ] || { echo "Making $(VENV) with $$python"; "$$python" -m venv $(VENV); }
	@awk '/^[a-z]/ {wanted = /^uv==/} wanted' requirements-dev.txt >$(VENV)/uv.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-dev.txt || \
		$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e . || \
		$(BIN)/python -m pip install --quiet --no-deps -e .
	@touch $@

.PHONY: java
java: ## Make sure there is Java 17 or newer
	@tools/ensure_java.sh

.PHONY: demo
demo: setup java ## See Viewkeeper at work on a small warehouse
	$(BIN)/viewkeeper demo

.PHONY: test
test: check test-spark ## All checks and all tests (what CI runs)

.PHONY: check
check: lint test-core ## Lint, types, import fences and the core tests

.PHONY: lint
lint: setup ## Lint, types and import fences only
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python tools/fences.py

# Random examples come in slices that a check has time for: every commit looks at the next.
SLICE ?= $(shell git rev-list --count HEAD 2>/dev/null || echo 0)

.PHONY: test-core
test-core: setup ## The tests that need no Java; SLICE=n repeats a slice of the random examples
	$(BIN)/pytest -m "not spark" -n 2 --dist worksteal --durations=10 --hypothesis-seed=$(SLICE)

.PHONY: test-spark
test-spark: setup java ## The tests on a local Spark
	$(BIN)/pytest -m spark -n 2 --dist worksteal --timeout 900 --durations=15

.PHONY: fuzz
fuzz: setup java ## Every shape, then random views and histories on a local Spark for MINUTES=n; SEED=n repeats
	VIEWKEEPER_FUZZ=$(or $(MINUTES),10) $(if $(SEED),VIEWKEEPER_SEED=$(SEED)) $(BIN)/pytest -m spark \
		tests/spark/test_shapes.py tests/spark/test_refresh.py tests/spark/test_change_kinds.py tests/spark/test_stack.py \
		tests/spark/test_tpch.py tests/spark/test_two_ways.py tests/spark/test_bench_cases.py tests/spark/test_random_views.py

.PHONY: format
format: setup ## Format the code and fix what ruff can fix
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

.PHONY: bench
bench: setup java ## Refreshes against recomputes on TPC-H at scale 1, with a report
	$(BIN)/viewkeeper bench

.PHONY: bench-quick
bench-quick: setup java ## The same with fewer cases at scale 0.1
	$(BIN)/viewkeeper bench --quick

.PHONY: bench-large
bench-large: setup java ## Some of it at scale 10
	$(BIN)/viewkeeper bench --large

.PHONY: bench-graphs
bench-graphs: setup ## Choosing views and ordering updates on plain graphs: the published studies
	$(BIN)/python bench/graphs

# Keeps the pinned versions that still fit; `make lock LOCK_FLAGS=--upgrade` takes the newest.
LOCK := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--fork-strategy fewest \
	--no-config --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

.PHONY: lock
lock: setup ## Pin the dependencies anew, with hashes
	$(LOCK) $(LOCK_FLAGS) --extra dev --output-file requirements-dev.txt >/dev/null
	$(LOCK) $(LOCK_FLAGS) --constraints requirements-dev.txt --output-file requirements.txt >/dev/null

.PHONY: clean
clean: ## Remove caches and build output, not .venv
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
