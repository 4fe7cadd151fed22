# Everything a person or CI runs here. Needs make and a Python of at least 3.11; the rest is installed into .venv.

PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup test lint types format bench lock clean

help:
	@echo "make setup    install everything into .venv (nothing happens if nothing changed)"
	@echo "make test     check style and types, then run all tests (WORKERS=2 at a time)"
	@echo "make lint     check style and formatting only"
	@echo "make types    check types only"
	@echo "make format   format the code and sort its imports"
	@echo "make bench    run every script in bench/; each ends with one line of JSON"
	@echo "make lock     resolve requirements/lock.txt anew (UPGRADE=1 also raises what is pinned)"
	@echo "make clean    remove .venv and everything made here"

setup: $(READY)

# pip is quiet because it would otherwise warn of what it finds in its user's own configuration; errors are still shown.
$(READY): pyproject.toml requirements/lock.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Denizen needs Python 3.11 or newer: make PYTHON=/path/to/python3"; exit 1; }
	@echo "Installing into .venv: this takes a minute the first time."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip --disable-pip-version-check -qq install --require-hashes -r requirements/lock.txt
	@$(BIN)/python -m pip --disable-pip-version-check -qq install --no-deps --no-build-isolation --editable .
	@touch $@

test: lint types
	$(BIN)/python -m pytest -n $(WORKERS) --dist=worksteal

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff check --select I --fix
	$(BIN)/ruff format

bench: $(READY)
	$(BIN)/python -m bench

# One file for every platform, with hashes and without the names of the hosts that served it.
lock:
	@test -x $(BIN)/uv || $(MAKE) setup
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate $(if $(UPGRADE),--upgrade) --quiet --output-file requirements/lock.txt

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
