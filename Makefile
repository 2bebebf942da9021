# Everything runs in .venv, which is made when it is missing; PYTHON picks the interpreter (3.11 or newer).
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest

.PHONY: help setup run test test-long lint format check bench pictures figures wheel-check clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

setup: .venv/.serving  ## make .venv with what a run needs

run: setup  ## the main job: a tool-agent trace on the live core of this machine
	$(BIN)/vertumnus +experiment=tool_agent

test: .venv/.tools  ## the test suite: on all cores, then what starts ranks, one after the other
	$(PYTEST) -m "not live and not long and not gpu" -n auto --dist loadfile
	$(PYTEST) -m "live and not long and not gpu"

test-long: .venv/.tools  ## the test suite with soaks and many seeds
	$(PYTEST) -m "not gpu"

lint: .venv/.tools  ## style, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.tools  ## rewrite in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: format lint test  ## the loop before a commit

bench: .venv/.tools  ## speed of the hot paths, with spread
	$(BIN)/python -m vertumnus_profiling.bench
	$(BIN)/python -m vertumnus_console.bench

pictures: .venv/.tools  ## draw the documents' pictures of the console anew
	$(BIN)/python -m vertumnus_console.showcase docs/pictures

figures: .venv/.tools  ## the paper's tables and figures as one report, figures/report.html; FIGURES="table1 figure13" for some
	$(BIN)/vertumnus figures $(FIGURES)

wheel-check: .venv/.tools  ## build the wheel, install it elsewhere, run it from another folder
	$(BIN)/python tests/support/wheel_check.py

clean:  ## remove the environment and caches; runs/ stays
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"$(PYTHON) is Python {sys.version.split()[0]}; Vertumnus needs 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	touch $@

.venv/.serving: .venv/.python pyproject.toml constraints.txt
	$(PIP) install -q -c constraints.txt -e '.[live,console]'
	touch $@

.venv/.tools: .venv/.serving
	$(PIP) install -q -c constraints.txt -e '.[live,dev]'
	touch $@
