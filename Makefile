# `make run` and `make test` are the README's two commands; both set up what they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

.PHONY: services setup run test test-all check fmt bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e . --group dev
	touch $@

# The Redis backend is tested against a real server. Where none can be installed those tests are skipped.
services:
	@command -v redis-server >/dev/null 2>&1 \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
	       && { apt-get install -y -qq --no-install-recommends redis-server >/dev/null 2>&1 \
	            || { apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server; } \
	               >/dev/null 2>&1; }; } \
	  || echo 'redis-server is not here: the tests of the Redis backend are skipped'

# The main job on the embedded model: no key, no account. What cannot be had is said, and a script takes over.
QUESTION ?= What does the variable AGENTCTL_HOME move?
run: setup
	@$(BIN)/python -c 'import xllamacpp' 2>/dev/null \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local]' \
	  || echo 'the llama.cpp runtime cannot be installed on this machine'
	@$(BIN)/agentctl models install || true
	$(BIN)/agentctl run scout "$(QUESTION)"

test: setup services
	$(BIN)/python -m pytest -q -m "not slow and not local_model"

test-all: setup services
	$(BIN)/python -m pytest -q -m "not local_model"

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/architecture

fmt: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis
