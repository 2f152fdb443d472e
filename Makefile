# Every target sets up .venv by itself when it is missing or pyproject.toml has changed.
PYTHON  ?= python3
WORKERS ?= 2
COVERAGE ?=
TRUST ?= tests

VENV := .venv
BIN  := $(VENV)/bin
CORE := $(VENV)/.installed-core
DEV  := $(VENV)/.installed-dev
BENCH := $(VENV)/.installed-bench
DOCS := $(VENV)/.installed-docs

.DEFAULT_GOAL := help
.PHONY: help demo test test-all trust audit check lint format docs bench clean clean-all

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo: $(CORE) ## study the bundled SUPPORT patients and write a report to demo-output/
	$(BIN)/plurigp demo --out demo-output

# Workers take over each other's tests in the end; one that crashes is replaced, but not for ever.
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --max-worker-restart 2 $(if $(COVERAGE),--cov)

test: $(DEV) ## run the tests, except the slow ones (COVERAGE=1: and measure what they cover)
	$(PYTEST)

test-all: $(DEV) ## run every test
	$(PYTEST) -m "not trust"

trust: $(DEV) ## check the promises of docs/trust.md in full, which takes hours (TRUST_SEED=7: with other choices)
	$(BIN)/python -m pytest -m trust --durations 0 $(TRUST)

audit: $(DEV) ## licences, limits and consistency of what is installed; writes build/sbom.json; needs no network
	$(BIN)/python -m pip check
	mkdir -p build
	$(BIN)/python tools/supply_chain.py --extra dev --extra cohort --check --sbom build/sbom.json

check: lint ## lint, and the tests of what differs from main
	$(PYTEST) $$($(BIN)/python tools/changed_tests.py)

lint: $(DEV) ## check style, types and the order of the layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV) ## put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DOCS) ## run the tutorials and build the site into site/; a warning or a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	$(BIN)/python tools/site/check_site.py site
	@echo 'open site/index.html'

bench: $(BENCH) ## time an epoch beside GPyTorch, in one run
	$(BIN)/python benchmarks/speed.py

clean: ## remove caches and what the targets wrote
	rm -rf demo-output build dist site .cache .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src paper tests benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +

clean-all: clean ## remove .venv too
	rm -rf $(VENV)

PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check

$(CORE): pyproject.toml $(BIN)/python
	@echo 'installing plurigp and what it needs into $(VENV)'
	@$(PIP) --editable .
	@touch $@

$(DEV): pyproject.toml paper/pyproject.toml $(BIN)/python
	@echo 'installing plurigp and what it needs into $(VENV)'
	@$(PIP) --editable ".[dev]" --editable paper
	@touch $@ $(CORE)

$(BENCH): pyproject.toml paper/pyproject.toml $(BIN)/python
	@echo 'installing plurigp and what it needs into $(VENV)'
	@$(PIP) --editable ".[bench]" --editable paper
	@touch $@ $(CORE)

$(DOCS): pyproject.toml $(BIN)/python
	@echo 'installing plurigp and what its site needs into $(VENV)'
	@$(PIP) --editable ".[docs]"
	@touch $@ $(CORE)

# Also runs when the link is dangling, that is, when the Python it was made with has gone.
$(BIN)/python:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "error: '$(PYTHON)' was not found; install Python 3.11 or newer, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: plurigp needs Python 3.11 or newer and '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1); name another: make PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up $(VENV) with $$("$(PYTHON)" -V 2>&1)"
	@"$(PYTHON)" -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }
