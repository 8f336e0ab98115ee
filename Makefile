# Every target makes its own virtual environment first, from the hashed lock files.
# Only Python 3.11 to 3.14 and make are needed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Test processes side by side. Each has its own database, and runs whole files. Twice as many as two
# cores: whoever waits for a schedule or a killed process leaves its core to another.
WORKERS ?= 4
# Options for `workspace up`, for example: make up UP="--port 0 --state-dir /tmp/trial"
UP ?=
UV ?= uv
# Scenarios in simulated time that `make explore` plays: make explore SEEDS=10000..19999
SEEDS ?= 0..9999

# The sandbox loads a workflow's module for every replay; without bytecode it would compile it, too.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup up test test-all test-failed quick explore mutants check fix demo bench profile histories openapi examples screenshots release lock clean

help: ## Show this list.
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-11s %s\n", $$1, $$2}'

setup: $(INSTALLED) ## Install everything into .venv.

$(INSTALLED): requirements-dev.lock requirements-uv.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || { \
		echo "$(PYTHON) is not Python 3.11 to 3.14: name one that is, as in make setup PYTHON=python3.14"; \
		exit 1; }
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || { echo "Make $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python .ci/install.py requirements-dev.lock requirements-uv.lock
	@touch $@

up: setup ## Start the whole platform and keep it running until Ctrl-C.
	$(BIN)/workspace up $(UP)

test: setup ## Run all tests but the long ones; within seven minutes.
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m "not long"

test-all: setup ## Run all tests: also each moment of a kill, each page in a browser, growth.
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

test-failed: setup ## Run alone what failed last, one test after the other.
	$(BIN)/pytest --last-failed --last-failed-no-failures none --maxfail 1 -v

quick: setup ## Lint, types and the fast tests: rules, models and runtime.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m "not takes and not crash and not long" \
		tests/architecture tests/models tests/runtime

explore: setup ## Run the random tests long, with examples nobody has tried.
	$(BIN)/python -m tests.simulation --seeds $(SEEDS)
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --hypothesis-profile explore \
		$$(grep -rlE --include='test_*.py' 'from (hypothesis|tests.support.exploring)' tests)

mutants: setup ## Break 400 lines of the rules one at a time: a test has to notice (ARGS=--seed 2).
	$(BIN)/python -m tests.mutants $(ARGS)

check: setup ## Lint, types, import rules, migrations, openapi.json.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.architecture.domains
	$(BIN)/python -m tests.architecture.figures
	$(BIN)/workspace migrate --check
	$(BIN)/workspace openapi | cmp openapi.json -

fix: setup ## Let ruff repair what it can.
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

demo: setup ## Run an automation on real data, with a worker killed in the middle.
	$(BIN)/workspace demo

bench: setup ## Measure against the floors and print ratios; ten minutes (ARGS=--full for all).
	$(BIN)/python -m bench $(ARGS)

profile: setup ## Print where API and worker spend their time under load.
	$(BIN)/python -m bench.profile $(ARGS)

histories: setup ## Record histories of the workflow branches that have none, and the fingerprints.
	$(BIN)/python -m tests.support.record_histories
	$(BIN)/python -m tests.support.fingerprints

openapi: setup ## Write openapi.json anew.
	$(BIN)/workspace openapi > openapi.json

screenshots: setup ## Make the pictures of the README anew.
	RECORD_SCREENSHOTS=1 $(BIN)/pytest -n 0 tests/pages/test_screenshots.py

examples: setup ## Record the examples of openapi.json anew, and write it.
	RECORD_EXAMPLES=1 $(BIN)/pytest -n 1 tests/contract/test_examples.py -k answered
	$(BIN)/workspace openapi > openapi.json

release: setup ## Build wheel, sdist, bill of materials and checksums into dist.
	$(BIN)/python .ci/release.py dist

COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate --group build --extra embedded --extra demo

lock: ## Resolve the lock files anew; needs uv.
	$(COMPILE) --group dev pyproject.toml --output-file requirements-dev.lock
	@# What runs is what was tested: the same versions, without the tools.
	$(COMPILE) --constraint requirements-dev.lock pyproject.toml --output-file requirements.lock
	@echo uv | $(UV) pip compile --quiet --generate-hashes --no-emit-index-url --no-header --no-annotate \
		- --output-file requirements-uv.lock

clean: ## Remove the environment and the caches; the state directory stays.
	rm -rf $(VENV) .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
