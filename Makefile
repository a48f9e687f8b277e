# Nothing has to be installed by hand: every target makes the environment that it needs.

# The first interpreter that is new enough; `make PYTHON=...` names another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
CASES ?= ../shared/cases
ARGS ?=

BIN := .venv/bin
PIP_INSTALL := -m pip install -q --disable-pip-version-check
PACKAGES := shape_inference xbuild interpreter

# The first NumPy of the 2 series that has wheels for the interpreter.
OLDEST_NUMPY := 'numpy==2.0.*; python_version < "3.13"' \
	'numpy==2.1.*; python_version == "3.13"' \
	'numpy==2.3.*; python_version > "3.13"'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo docs gallery test lint types stubs bench campaign mutants conformance wheel oldest-numpy newest-numpy clean

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: .venv/.demo ## recognise digits on several replicas
	$(BIN)/python -m examples.digits $(ARGS)

test: .venv/.test ## run the tests; ARGS="-k gather" goes to pytest
	$(BIN)/python -m pytest -n 2 tests $(ARGS)

gallery: .venv/.test ## draw all pictures of the documentation anew
	$(BIN)/python -m examples.gallery

lint: .venv/.test ## check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.test ## check the types of the three packages
	$(BIN)/mypy --strict $(PACKAGES)

docs: .venv/.docs ## build the site in build/site; warnings are errors
	$(BIN)/python -m docs.site build/pages
	$(BIN)/python -m sphinx -q -W --keep-going -j 2 -c docs/site build/pages build/site
	$(BIN)/python -m docs.site.links build/site

stubs: .venv/.test ## write the typing stubs of the strict ops anew
	$(BIN)/python -m xbuild.reference.stubs

bench: .venv/.test ## measure; nothing is asserted
	$(BIN)/python -m pytest benchmarks $(ARGS)

campaign: .venv/.test ## random programs and odd texts, at length; ARGS="--seconds 600"
	$(BIN)/python -m tests.campaign $(ARGS)
	$(BIN)/python -m tests.model.campaign $(ARGS)
	$(BIN)/python -m tests.exhaustive.campaign $(ARGS)
	$(BIN)/python -m tests.fuzzing $(ARGS)
	$(BIN)/python -m tests.fuzzing.traces $(ARGS)
	$(BIN)/python -m tests.equivalence.campaign $(ARGS)
	$(BIN)/python -m tests.sharding.propagation.against_shardy
	$(BIN)/python -m tests.sharding.against_xla

mutants: .venv/.test ## put faults into the shape rules, and list those that no case sees; ARGS="shaping dims"
	$(BIN)/python -m tests.mutation $(ARGS)

conformance: .venv/.test ## run the conformance cases in CASES, where they exist
	@status=0; \
	for pair in shape:shape_cases.json deadlock:deadlock_cases.json corpus:hlo_corpus \
			rejects:hlo_rejects.json acceptance:acceptance.json replication:xla_replication.json texts:xla_texts.json.gz \
			programs:xla_programs xla_deadlock:xla_deadlock.json stablehlo:stablehlo_interpret \
			shardy:shardy_executable; do \
		runner=$${pair%%:*}; cases="$(CASES)/$${pair#*:}"; \
		if [ ! -e "$$cases" ]; then echo "$$runner: no $$cases, not run"; continue; fi; \
		if [ ! -e "tests/conformance/$$runner.py" ]; then echo "$$runner: no runner, not run"; continue; fi; \
		echo "$$runner:"; $(BIN)/python -m "tests.conformance.$$runner" "$$cases" || status=1; \
	done; exit $$status

wheel: .venv/.test ## build dist/*.whl
	rm -rf dist
	$(BIN)/python -m build --quiet --wheel

oldest-numpy: .venv-oldest/.ready ## run the quick core with the oldest NumPy supported
	$(call quick-core,.venv-oldest)

newest-numpy: .venv-newest/.ready ## run the quick core with the newest NumPy
	$(call quick-core,.venv-newest)

clean: ## remove everything that make and the tools made
	rm -rf .venv .venv-oldest .venv-newest build dist .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

define new-venv
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(@D)
endef

define quick-core
@$(1)/bin/python -c 'import numpy; print("NumPy", numpy.__version__)'
$(1)/bin/python -m pytest -x -q -n 2 tests -m "not slow" -k "not oracle" $(ARGS)
endef

.venv/.made:
	$(new-venv)
	@touch $@

.venv/.demo: pyproject.toml | .venv/.made
	$(BIN)/python $(PIP_INSTALL) -e '.[demo]'
	@touch $@

# After .demo, because two pips must not write to one environment at once.
.venv/.test: pyproject.toml .venv/.demo
	$(BIN)/python $(PIP_INSTALL) -e '.[test]'
	@touch $@

.venv/.docs: pyproject.toml .venv/.test
	$(BIN)/python $(PIP_INSTALL) -e '.[docs]'
	@touch $@

.venv-oldest/.ready: NUMPY = $(OLDEST_NUMPY)
.venv-newest/.ready: NUMPY = numpy
.venv-oldest/.ready .venv-newest/.ready: pyproject.toml
	$(new-venv)
	$(@D)/bin/python $(PIP_INSTALL) --only-binary=numpy -e '.[demo]' hypothesis mpmath pytest pytest-xdist $(NUMPY)
	@touch $@
