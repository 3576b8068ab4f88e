# make demo   set up the command line and run the main job (no torch)
# make test   set up everything and run the tests
# make test-adapters  set up the libraries that are wrapped and run their tests
# make setup  a .venv with everything for development
# make check  the checks that read the code without running it
# make docs   the site of documents, into site/

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := python -m pip install --quiet --disable-pip-version-check
INSTALL := $(BIN)/$(PIP) --constraint constraints.txt --editable
# The forecasting libraries that are wrapped: one environment holds them all, but with pandas 2, and takes 2.4 GB.
# xgboost is no part of the extra: its wheel brings NVIDIA's libraries, that of xgboost-cpu does not.
ADAPTERS := .venv-adapters

.PHONY: demo test test-adapters setup check docs picture page pages clean

demo: $(VENV)/.command
	$(BIN)/ompb demo

# One thread per process: the tests run in as many processes as there are cores. The checks use one core at a time, so
# the tests of the adapters run beside them.
test: setup $(ADAPTERS)/.everything
	$(MAKE) --no-print-directory --jobs 2 $(addprefix --,$(filter output-sync,$(.FEATURES))) check test-adapters
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

# By file: the libraries take long to import.
test-adapters: $(ADAPTERS)/.everything
	OMP_NUM_THREADS=1 $(ADAPTERS)/bin/python -m pytest -n auto --dist loadfile tests/adapters tests/test_house.py -k 'adapters or needs'

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
	$(INSTALL) '.[all,dev,docs]'
	touch $@ $(VENV)/.command

$(ADAPTERS)/.everything: pyproject.toml constraints-adapters.txt
	test -x $(ADAPTERS)/bin/python || $(PYTHON) -m venv $(ADAPTERS)
	$(ADAPTERS)/bin/$(PIP) --constraint constraints-adapters.txt --editable '.[adapters,dev]' chronos-forecasting xgboost-cpu
	touch $@

# The site of documents; read it with: python -m http.server --directory site
docs: setup
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=docs/making $(BIN)/mkdocs build --strict --quiet

# The picture in the README.
picture: $(VENV)/.command
	$(BIN)/ompb demo --picture docs/report.png

# All results as one file.
page: $(VENV)/.command
	$(BIN)/ompb report --out page

# What the documents say of the results, from results/; the pictures need Chromium.
pages: setup
	$(BIN)/ompb bench page --readme README.md
	$(BIN)/python docs/making/provenance.py
	$(BIN)/python benchmarks/page_pictures.py

clean:
	rm -rf $(VENV) $(ADAPTERS) demo page site dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
