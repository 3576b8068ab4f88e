# make demo   set up the command line and run the main job (no torch)
# make test   set up everything and run the tests
# make setup  a .venv with everything for development
# make check  the checks that read the code without running it

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo test setup check picture clean

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

clean:
	rm -rf $(VENV) demo dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
