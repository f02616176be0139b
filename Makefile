# make run    set up, then evaluate on the embedded default: no key, no network beyond package installs
# make test   set up, then lint, types and tests
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test check tools bench clean

run: .venv/ready
	$(BIN)/weft run

test: check tools
	$(BIN)/pytest

# a browser and a LaTeX for the tests that want them; where they cannot be had, those tests are skipped and say so
tools:
	@sh tests/tools.sh

check: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

bench: .venv/ready
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/tiny.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/again.py
	$(BIN)/python benchmarks/walk.py

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .weft reports
