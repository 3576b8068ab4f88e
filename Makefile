# make demo   set up the command line and run the main job (no torch)
# make test   set up everything and run the tests
# make setup  a .venv with everything for development
# make check  the checks that read the code without running it

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo test setup check picture page pages clean

demo: $(VENV)/.command
	$(BIN)/ompb demo

# One thread per process: the tests run in as many processes as there are cores.
test: setup check
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

setup: $(VENV)/.everything

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/.command: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[cli,report]'
	touch $@

$(VENV)/.everything: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[all,dev]'
	touch $@ $(VENV)/.command

# The picture in the README.
picture: $(VENV)/.command
	$(BIN)/ompb demo --picture docs/report.png

# All results as one file.
page: $(VENV)/.command
	$(BIN)/ompb report --out page

# What the documents say of the results, from results/; the pictures need Chromium.
pages: setup
	$(BIN)/ompb bench page --readme README.md
	$(BIN)/python benchmarks/page_pictures.py

clean:
	rm -rf $(VENV) demo page dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
