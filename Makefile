# `make demo` and `make test` are the only set-up commands: each creates .venv and installs what it needs.

VENV := .venv
BIN := $(VENV)/bin
PYTHONS := python3 python3.14 python3.13 python3.12 python3.11
PYTHON ?= $(shell for python in $(PYTHONS); do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
# Arguments for the command behind the target: make demo ARGS=--once, make test ARGS="-k markers".
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-deploy test-faults lint bench screenshot constraints clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/examples.installed ## Trace a RAG app, judge its citations, show them in Phoenix (ARGS=--once stops it)
	@$(BIN)/citespan demo $(ARGS)

test: $(VENV)/dev.installed ## Run every test, on a real Phoenix too
	$(BIN)/pytest --numprocesses auto --dist loadgroup -m 'not deploy' $(ARGS)

test-deploy: $(VENV)/dev.installed ## Run compose.yaml's topology as processes (needs Debian's postgresql, prometheus)
	$(BIN)/pytest --numprocesses 0 -m deploy tests/deploy $(ARGS)

test-faults: $(VENV)/dev.installed ## Let each fault loose on the worker in full numbers, write docs/faults.md (half an hour)
	$(BIN)/pytest --full --numprocesses 2 --dist loadfile $(if $(ARGS),,--report docs/faults.md) tests/faults $(ARGS)

lint: $(VENV)/dev.installed ## Check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(VENV)/dev.installed ## Measure the tracer's overhead and the evaluator's throughput
	$(BIN)/python bench/tracer_overhead.py
	$(BIN)/python bench/evaluate_throughput.py

screenshot: $(VENV)/dev.installed ## Take the pictures in docs/images from a real Phoenix
	$(BIN)/python docs/make_screenshot.py

constraints: ## Pin the newest versions that pyproject.toml allows in constraints.txt
	$(PYTHON) -m venv --clear $(VENV)/newest
	$(VENV)/newest/bin/pip install -qq '.[dev]'
	echo '# The versions that the tests pass with. `make constraints` writes this file.' > constraints.txt
	$(VENV)/newest/bin/pip freeze --exclude citespan >> constraints.txt
	rm -r $(VENV)/newest

clean: ## Remove everything that make has created
	rm -rf $(VENV) .citespan build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The stamp makes the second run quick; a changed pyproject.toml or constraints.txt installs again.
$(VENV)/%.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing citespan[$*] into $(VENV): some minutes the first time"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt --editable '.[$*]'
	@touch $@

# A failed `venv` leaves a half-made folder behind, which the next run would take for a whole one.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "citespan needs Python 3.11 or newer. Install it, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "$(PYTHON) cannot create a virtual environment. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
