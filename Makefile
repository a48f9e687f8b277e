# Nothing has to be installed by hand: every target makes the environment that it needs.

# The first interpreter that is new enough; `make PYTHON=...` names another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
# The version of JAX that is tested with; `make JAX=0.8.1` or `make JAX=newest` names another.
JAX ?= 0.10.2
CASES ?= ../shared/cases
ARGS ?=

# An environment for each interpreter and JAX; .venv has the JAX above and the interpreter that it was made with.
VERSION := $(shell $(PYTHON) -c 'import platform; print(platform.python_version())' 2>/dev/null)
MADE_WITH := $(or $(shell sed -n 's/^version *= *//p' .venv/pyvenv.cfg 2>/dev/null),$(VERSION))
VENV := $(if $(filter $(JAX)/$(MADE_WITH),0.10.2/$(VERSION)),.venv,.venv-$(VERSION)-jax-$(JAX))
BIN := $(VENV)/bin
WITH_JAX := $(if $(filter newest,$(JAX)),jax,'jax==$(JAX)')
PIP_INSTALL := -m pip install -q --disable-pip-version-check
PACKAGES := shape_inference xbuild interpreter

# The first NumPy of the 2 series that has wheels for the interpreter.
OLDEST_NUMPY := 'numpy==2.0.*; python_version < "3.13"' \
	'numpy==2.1.*; python_version == "3.13"' \
	'numpy==2.3.*; python_version > "3.13"'

# Each conformance runner with its cases in CASES.
RUNNERS := shape:shape_cases.json deadlock:deadlock_cases.json corpus:hlo_corpus rejects:hlo_rejects.json \
	acceptance:acceptance.json replication:xla_replication.json texts:xla_texts.json.gz programs:xla_programs \
	xla_deadlock:xla_deadlock.json stablehlo:stablehlo_interpret shardy:shardy_executable \
	jax:jax_suite/programs.jsonl.gz
# What one JAX says of texts, and long programs that no JAX takes part in.
OF_ONE_JAX := texts:% programs:%

# Bytecode is kept, wherever the caller says that it should not be: commands that tests start compile nothing again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo docs gallery test quick test-room lint types stubs bench bench-quick bench-eval campaign attack mutants conformance \
	jax bin wheel release oldest-numpy newest-numpy clean

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.demo ## recognise digits on several replicas
	$(BIN)/python -m examples.digits $(ARGS)

test: $(VENV)/.test ## run the tests; ARGS="-k gather" goes to pytest
	$(versions)
	$(BIN)/python -m pytest -n 2 tests $(ARGS)

quick: $(VENV)/.test ## the cases of all ops and one path through every room, without JAX: a minute of processor time
	$(BIN)/python -m pytest -q -m "not slow and not oracle" @tests/quick.txt $(ARGS)

# A room is a folder of tests, or a folder of a package whose tests are in a folder of another name.
TESTS_cli := tests/commands
TESTS_differentiation := tests/vjp
TESTS_ops := tests/ops tests/array_functions
TESTS_pages := tests/pages tests/browser
TESTS_fields := tests/equivalence
TESTS_strict := tests/interpreter
TESTS_tracing := tests/traces

test-room: $(VENV)/.test ## run the tests of one room: make test-room ROOM=sharding
	@test -n "$(ROOM)" || { echo "Name a folder of tests or of a package: make test-room ROOM=sharding" >&2; exit 2; }
	$(BIN)/python -m pytest -q -n 2 $(or $(TESTS_$(ROOM)),tests/$(ROOM)) $(ARGS)

gallery: $(VENV)/.test ## draw all pictures of the documentation anew
	$(BIN)/python -m examples.gallery

lint: $(VENV)/.test ## check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test ## check the types of the three packages
	$(BIN)/mypy --strict $(PACKAGES)

docs: $(VENV)/.docs ## build the site in build/site; warnings are errors
	$(BIN)/python -m docs.site build/pages
	$(BIN)/python -m sphinx -q -W --keep-going -j 2 -c docs/site build/pages build/site
	$(BIN)/python -m docs.site.links build/site

stubs: $(VENV)/.test ## write the typing stubs of the strict ops anew
	$(BIN)/python -m xbuild.reference.stubs

bench: $(VENV)/.test ## measure; nothing is asserted
	$(BIN)/python -m pytest benchmarks $(ARGS)

bench-quick: $(VENV)/.test ## compare with the commit in benchmarks/baseline; fails where a group of tasks is slower
	@$(BIN)/python -m benchmarks.quick $(ARGS)

bench-eval: $(VENV)/.test ## print the workloads and training steps against NumPy, XLA:CPU and JAX without jit
	@$(BIN)/python -m benchmarks.eval $(ARGS)

campaign: $(VENV)/.test ## random programs and odd texts, at length; ARGS="--seconds 600"
	$(BIN)/python -m tests.campaign $(ARGS)
	$(BIN)/python -m tests.model.campaign $(ARGS)
	$(BIN)/python -m tests.exhaustive.campaign $(ARGS)
	$(BIN)/python -m tests.races.campaign
	$(BIN)/python -m tests.checking.runtimes.campaign $(ARGS)
	$(BIN)/python -m tests.checking.runtimes.independent
	$(BIN)/python -m tests.all_sizes.random_schemes $(ARGS)
	$(BIN)/python -m tests.fuzzing $(ARGS)
	$(BIN)/python -m tests.fuzzing.traces $(ARGS)
	$(BIN)/python -m tests.equivalence.campaign $(ARGS)
	$(BIN)/python -m tests.sharding.propagation.against_shardy
	$(BIN)/python -m tests.sharding.against_xla

attack: $(VENV)/.test ## every command on every file of the attacks in CASES, where they exist; ARGS="--seconds 60"
	$(BIN)/python -m tests.fuzzing.attack "$(CASES)/findings/attack" $(ARGS)

mutants: $(VENV)/.test ## put faults into the shape rules, and list those that no case sees; ARGS="shaping dims"
	$(BIN)/python -m tests.mutation $(ARGS)

conformance: $(VENV)/.test ## run the conformance cases in CASES, where they exist
	$(call conformance,$(RUNNERS))

jax: $(VENV)/.jax ## conformance cases, programs and contracts of JAX; make jax PYTHON=python3.13 JAX=newest
	$(versions)
	$(BIN)/python -m tests.jax_versions.programs
	$(BIN)/python -m tests.jax_versions.contracts
	$(call conformance,$(filter-out $(OF_ONE_JAX),$(RUNNERS)))

bin:
	@echo $(BIN)

wheel: $(VENV)/.test ## build dist/*.whl
	rm -rf dist
	$(BIN)/python -m build --quiet --wheel

release: $(VENV)/.test ## build the sdist and the wheel in dist/ twice, and compare them byte for byte
	rm -rf dist build/again
	$(BIN)/python -m build --quiet
	$(BIN)/python -m build --quiet --outdir build/again
	for file in dist/*; do cmp $$file build/again/$${file##*/} || exit 1; done

oldest-numpy: .venv-oldest/.ready ## run the quick core with the oldest NumPy supported
	$(call quick-core,.venv-oldest)

newest-numpy: .venv-newest/.ready ## run the quick core with the newest NumPy
	$(call quick-core,.venv-newest)

clean: ## remove everything that make and the tools made
	rm -rf .venv .venv-* build dist .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

define new-venv
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(@D)
endef

define versions
@$(BIN)/python -c 'import platform; from importlib.metadata import version; \
	print("Python", platform.python_version(), "JAX", version("jax"))'
endef

define conformance
@status=0; for pair in $(1); do \
	runner=$${pair%%:*}; cases="$(CASES)/$${pair#*:}"; \
	if [ ! -e "$$cases" ]; then echo "$$runner: no $$cases, not run"; continue; fi; \
	if [ ! -e "tests/conformance/$$runner.py" ]; then echo "$$runner: no runner, not run"; continue; fi; \
	echo "$$runner:"; $(BIN)/python -m "tests.conformance.$$runner" "$$cases" || status=1; \
done; exit $$status
endef

define quick-core
@$(1)/bin/python -c 'import numpy; print("NumPy", numpy.__version__)'
$(1)/bin/python -m pytest -x -q -n 2 tests -m "not slow" -k "not oracle" $(ARGS)
endef

$(VENV)/.made:
	$(new-venv)
	@touch $@

$(VENV)/.demo: pyproject.toml | $(VENV)/.made
	$(BIN)/python $(PIP_INSTALL) -e '.[demo]'
	@touch $@

# After .demo, because two pips must not write to one environment at once.
$(VENV)/.test: pyproject.toml $(VENV)/.demo
	$(BIN)/python $(PIP_INSTALL) -e '.[test]' $(WITH_JAX)
	@touch $@

$(VENV)/.docs: pyproject.toml $(VENV)/.test
	$(BIN)/python $(PIP_INSTALL) -e '.[docs]'
	@touch $@

# What programs of JAX and the conformance cases need, and no more.
$(VENV)/.jax: pyproject.toml | $(VENV)/.made
	$(BIN)/python $(PIP_INSTALL) -e '.[xla]' $(WITH_JAX)
	@touch $@

.venv-oldest/.ready: NUMPY = $(OLDEST_NUMPY)
.venv-newest/.ready: NUMPY = numpy
.venv-oldest/.ready .venv-newest/.ready: pyproject.toml
	$(new-venv)
	$(@D)/bin/python $(PIP_INSTALL) --only-binary=numpy -e '.[demo]' hypothesis mpmath pytest pytest-xdist $(NUMPY)
	@touch $@
