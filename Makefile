# Everything sets itself up: a virtual environment in .venv, from the package index alone.
PYTHON ?= python3
VENV ?= .venv
PAPER ?= # all of them
READINGS ?= # yes: also the readings that only differences.md tells of
BIN = $(VENV)/bin

.PHONY: run test lint format bench reproduce-tables clean

run: $(VENV)/ready
	$(BIN)/fkl run

test: $(VENV)/ready
	$(BIN)/python -m pytest --numprocesses=auto --dist=loadfile

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/ready
	$(BIN)/python scripts/bench_pof_mkl.py
	$(BIN)/python scripts/bench_graph_omkl.py
	$(BIN)/python scripts/bench_coke.py
	$(BIN)/python scripts/bench_parsimonious.py
	$(BIN)/python scripts/bench_fdskl.py

reproduce-tables: $(VENV)/ready
	$(BIN)/python scripts/reproduce_tables.py $(if $(READINGS),--readings) $(PAPER)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find fkl -name '*.nb[ci]' -delete

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@
