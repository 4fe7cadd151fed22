# Everything a person or CI runs here. Needs make and a Python of at least 3.11; the rest is installed into .venv.

# The Python that .venv is made with: `python3`, or a much faster one of this machine, unless it is named.
PYTHON ?=
# One more than the cores, at most nine: tests also wait for browsers and other processes. Each takes about 1 GB with its
# browser.
WORKERS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((cores > 8 ? 9 : cores + 1)))
BIN := .venv/bin
RUNNABLE := .venv/.runnable
READY := .venv/.ready
COMPILED := .venv/.compiled
BROWSER := .venv/.browser
# Empty is as if it were not set. Where an image sets it, each of the hundreds of processes that the tests start would
# compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help run setup test test-all tests test-bridges test-clients test-ranges dist release test-hard mutants lint types \
	format bench lab real picture features walk web \
	schema screenshots lock audit clean

help:
	@echo "make run      set up and start Denizen on http://127.0.0.1:8420"
	@echo "make setup    install everything into .venv (nothing happens if nothing changed)"
	@echo "make test     check style and types, then run the tests (WORKERS=$(WORKERS) at a time)"
	@echo "make test-all the same, with every test on both databases and many more examples: much longer"
	@echo "make test-hard  run the tests under load, as another user, ... (CONDITIONS=load ONLY=tests/cli)"
	@echo "make test-clients  run real client packages against a server (.venv-clients and .node-clients are kept)"
	@echo "make test-ranges  run the tests of models with the oldest and newest openai and pydantic-ai that are allowed"
	@echo "make dist     build the wheel and the source distribution, and the wheel of the client alone, into dist;"
	@echo "              PROJECT_URL=https://HOST/OWNER/NAME puts links to the project into them"
	@echo "make release  tag this commit as its version if it can be released, then make dist (PROJECT_URL=... as there)"
	@echo "make test-bridges  run bridges against real servers such as Synapse (.venv-bridges is kept)"
	@echo "make mutants  put SAMPLE=200 small defects into the core, one at a time, and list those that no test finds"
	@echo "make lint     check style and formatting only"
	@echo "make types    check types only"
	@echo "make format   format the code and sort its imports"
	@echo "make bench    run every script in bench/; each ends with one line of JSON"
	@echo "make lab      try faults on real servers for HOURS=1 (DATABASE=sqlite, KEEP_LAB=.lab); adds up over runs"
	@echo "make real     live with real models for an hour or two, and go on where it stopped (KEEP=FOLDER, REAL=\"NAME ...\")"
	@echo "make picture  make docs/chat.svg anew from a real conversation"
	@echo "make features  write docs/features.md from tests/features"
	@echo "make walk     make docs/walk.md anew: which functions run for a message, a panel round and a memory pass"
	@echo "make web      build the web client anew (make run builds it where it is missing or older)"
	@echo "make schema   make the web client's types anew from the HTTP API"
	@echo "make screenshots  make the pictures in docs/screenshots anew"
	@echo "make lock     resolve requirements/lock.txt anew (UPGRADE=1 also raises what is pinned)"
	@echo "make audit    compare the locked packages with advisories, without a network (ADVISORIES=\"PyPI.zip npm.zip\")"
	@echo "make clean    remove .venv and everything made here"

# Everything that is needed is in the lock, and --no-deps keeps pip from what one of them asks for beyond it. What is
# never imported is never compiled: that is a third of the time it takes.
LOCKED := --no-deps --no-compile --require-hashes

setup: $(COMPILED)

# pip is quiet because it would otherwise warn of what it finds in its user's own configuration; errors are still shown.
$(RUNNABLE): pyproject.toml requirements/run.txt
	@echo "Installing into .venv: this takes a minute the first time."
	@test -x $(BIN)/python || { python=$$($(or $(PYTHON),python3) requirements/pick_python.py $(PYTHON)) \
		&& "$$python" -m venv .venv; }
	@$(BIN)/python -m pip --disable-pip-version-check -qq install $(LOCKED) -r requirements/run.txt
	@$(BIN)/python -m pip --disable-pip-version-check -qq install --no-deps --no-build-isolation --editable .
	@touch $@

$(READY): $(RUNNABLE) requirements/lock.txt
	@echo "Installing what the checks need."
	@$(BIN)/python -m pip --disable-pip-version-check -qq install $(LOCKED) -r requirements/lock.txt
	@touch $@

# Once for all: workers that start together would each compile all that the tests import, and Hypothesis would list in
# each which characters there are. What is wrong with the tests is told when they run.
$(COMPILED): $(READY)
	@echo "Compiling what the tests import."
	@$(BIN)/python -m pytest --collect-only -qq > /dev/null 2>&1 || true
	@$(BIN)/python -c 'from hypothesis import strategies; strategies.text().validate()'
	@touch $@

# Once: where it cannot be had, the next run does not wait for it again. A test that finds no browser looks for one, too.
$(BROWSER): $(READY) tests/browser.py
	@$(BIN)/python -m tests.browser
	@touch $@

run: $(RUNNABLE)
	@$(BIN)/python hatch_build.py
	@exec $(BIN)/denizen up

# Types are checked beside the tests: neither has to wait for the other.
test: lint
	@$(MAKE) --no-print-directory --jobs=2 types tests

test-all: lint
	@HYPOTHESIS_PROFILE=thorough $(MAKE) --no-print-directory --jobs=2 types tests \
		PYTEST_ARGUMENTS="--all-databases --timeout=1800"

tests: $(COMPILED) $(BROWSER)
	@$(BIN)/python hatch_build.py
	$(BIN)/python -m pytest -n $(WORKERS) --dist=worksteal --durations=10 $(PYTEST_ARGUMENTS)

# With packages of others that are no part of the lock: they are clients, and some cannot share our environment.
test-clients: $(READY)
	DENIZEN_TEST_CLIENTS=1 $(BIN)/python -m pytest -q -n 0 tests/clients

# The packages that pyproject.toml bounds above, at both ends of their ranges.
test-ranges: $(READY)
	$(BIN)/python -m tests.ranges -n $(WORKERS)

# A wheel and a source distribution of the package, and a wheel of its client alone. test-clients tries them.
DIST ?= dist

dist: $(READY)
	$(BIN)/python -m hatchling build --directory $(abspath $(DIST)) --target sdist --target wheel
	cd packages/client && $(CURDIR)/$(BIN)/python -m hatchling build --directory $(abspath $(DIST)) --target wheel

release: $(READY)
	@$(BIN)/python -m requirements.release
	@$(MAKE) --no-print-directory dist

# With servers of others that are no part of the lock: they run as processes of their own.
test-bridges: $(READY)
	DENIZEN_TEST_BRIDGES=1 $(BIN)/python -m pytest -q -n 0 --timeout=600 tests/bridges/real

test-hard: $(READY) $(BROWSER)
	@$(BIN)/python hatch_build.py
	@$(BIN)/python -m tests.hard $(CONDITIONS) --only "$(ONLY)" --workers $(WORKERS)

# For a change of the core, not for every commit: the first run takes minutes to learn which tests run which lines.
SAMPLE ?= 200
SEED ?= 1

mutants: $(READY)
	$(BIN)/python -m tests.mutants --sample $(SAMPLE) --seed $(SEED)

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

DATABASE ?= sqlite
HOURS ?= 1
KEEP_LAB ?= .lab

lab: $(READY)
	nice $(BIN)/python -m lab --database $(DATABASE) --hours $(HOURS) --keep $(KEEP_LAB)

# Not part of `make bench`: 1.1 GB of weights are downloaded, and a model of that size takes its time.
KEEP ?= .real
REAL ?= local:smollm2 qwen2.5-coder-1.5b

real: $(READY)
	@for model in $(REAL); do \
		nice $(BIN)/python -m bench.real --keep $(KEEP) --model $$model || exit 1; \
	done

features: $(READY)
	$(BIN)/python -m tests.features.page

picture: $(READY)
	$(BIN)/python docs/make_picture.py

walk: $(READY)
	$(BIN)/python docs/make_walk.py

web: $(RUNNABLE)
	$(BIN)/python hatch_build.py --always

schema: $(RUNNABLE)
	@$(BIN)/python hatch_build.py
	cd web && PATH=$(CURDIR)/$(BIN):$$PATH npm run --silent schema

screenshots: $(READY)
	@$(BIN)/python hatch_build.py
	$(BIN)/python docs/make_screenshots.py

# For every platform, with hashes and without the names of the hosts that served it. run.txt is what a user needs, and
# the image has: with the small extras, which nobody can add to an image; lock.txt is that and what the checks need. They
# are made in this order, so that both pin the same.
COMPILE = $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --quiet

lock:
	@test -x $(BIN)/uv || $(MAKE) setup
	$(COMPILE) --group dev $(if $(UPGRADE),--upgrade) --output-file requirements/lock.txt
	$(COMPILE) --group build --extra tokens --extra otel --constraint requirements/lock.txt --output-file requirements/run.txt

# Ends with an error if a locked package is affected; IGNORE="GHSA-..." names advisories that do not apply.
audit: $(READY)
	@$(BIN)/python -m requirements.audit $(ADVISORIES) $(addprefix --ignore=,$(IGNORE))

clean:
	rm -rf .venv .real .pytest_cache .ruff_cache .hypothesis dist build web/node_modules src/denizen/server/web
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
