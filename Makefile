# Everything a clone needs, with nothing but Python 3.11 or newer and make:
#
#   make demo    see looptape at work (no key, no network once installed)
#   make test    what CI runs: lint, types, import contracts, tests, and a smoke part against the built wheel
#
# Another interpreter: make PYTHON=python3.13 test. More test processes: make JOBS=8 test.
# The environments lie in .venv, .venv-wheel and .venv-sdk-*; they are renewed when pyproject.toml changes.

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.looptape-run
DEV := $(VENV)/.looptape-dev
PIP := -m pip install --quiet --disable-pip-version-check

# Old and new SDKs for `make test-sdks`: the lowest that pyproject.toml promises (of every dependency), the middle
# of the road, the newest.
SDKS := old middle new
SDK_old := --requirement .venv-sdk-old/lowest.txt
SDK_middle := anthropic>=1,<2 openai>=2,<3
SDK_new := anthropic>=2,<3 openai>=3,<4

.DELETE_ON_ERROR:
.PHONY: help demo test lint format unit smoke test-sdks bench pictures snapshots clean
.NOTPARALLEL:

help:
	@sed -n 's/^#  *make /make /p' Makefile
	@echo "make lint, format, unit, smoke    the parts of make test"
	@echo "make test-sdks                    the SDK tests against old and new anthropic and openai"
	@echo "make pictures                     the pictures of README and docs, made anew by the program"
	@echo "make snapshots                    the pictures that the tests compare the screens with"
	@echo "make bench                        the measurements (they print, they never fail)"
	@echo "make clean                        remove what make made"

demo: $(RUN)
	@$(BIN)/looptape demo

test: lint unit smoke

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# --confcutdir: else pytest takes the repository itself for a package, which fails in a folder named my-clone.
unit: $(DEV)
	$(BIN)/python -m pytest --confcutdir=tests -n $(JOBS)

smoke: $(DEV)
	$(BIN)/python tests/support/built_wheel.py smoke .venv-wheel

test-sdks: $(SDKS:%=sdk-%)

sdk-%: .venv-sdk-%/.looptape-sdk
	@.venv-sdk-$*/bin/python -m pip list --disable-pip-version-check 2>/dev/null | grep -E '^(anthropic|openai|httpx2?) '
	.venv-sdk-$*/bin/python -m pytest --confcutdir=tests -n $(JOBS) tests/tracer/test_sdk_*.py tests/replay/test_sdk_*.py

bench: $(DEV)
	@for file in tests/bench/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

pictures: $(DEV)
	$(BIN)/python tests/support/pictures.py

snapshots: $(DEV)
	$(BIN)/python tests/support/snapshots.py

clean:
	rm -rf build dist *.egg-info .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A virtual environment that Debian left without pip, or an old Python, is said in words, not in a traceback.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "looptape needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + ": make PYTHON=python3.12 ...")'
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "$(PYTHON) has no venv module: install it (Debian, Ubuntu: apt-get install python3-venv)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUN): pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) --editable .
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) --editable '.[dev]'
	@touch $(RUN) $@

# The folder is made anew, so that no version of an earlier time stays in it.
.venv-sdk-%/.looptape-sdk: pyproject.toml Makefile $(DEV)
	$(PYTHON) -m venv --clear .venv-sdk-$*
	$(BIN)/python tests/support/built_wheel.py requirements > .venv-sdk-$*/tools.txt
	$(BIN)/python tests/support/built_wheel.py lowest > .venv-sdk-$*/lowest.txt
	.venv-sdk-$*/bin/python $(PIP) --editable . --requirement .venv-sdk-$*/tools.txt $(SDK_$*:%='%')
	@touch $@
.PRECIOUS: .venv-sdk-%/.looptape-sdk
