# Everything runs from here; `make` builds .venv by itself and needs Python >= 3.11, a C++20 compiler, make and pip.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2

BIN := $(VENV)/bin
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip --quiet
RUN_EXTRAS := workflow,report
TEST_EXTRAS := $(RUN_EXTRAS),slurm,test,dev,docs,parquet,ncu,baselines,sass

PACKAGE := $(shell find src instrument translate simulate analytical measure report data/measured \
    -type f -not -path '*/__pycache__/*' -not -name '.*')
CPP := $(shell find simulate instrument benchmarks -name '*.?pp' -o -name '*.cu' -o -name '*.cuh')

.PHONY: all test fast gates core-test instruction-count sanitize format stub results-table docs docs-output wheels skips gpu-check clean

all: $(VENV)/.run  ## logs -> traces -> simulation -> comparison with measurements -> results/report.html
	$(BIN)/snakemake all
	@cat results/logs/validate.log

test: gates core-test instruction-count $(VENV)/.test  ## every gate and every test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations=10 --junitxml=build/test/junit.xml

fast: $(VENV)/.test  ## tests without those marked slow
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow"

gates: $(VENV)/.test  ## format, lint and types of the installed package
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(BIN)/snakefmt --check workflow
	$(BIN)/mypy -p simfa

core-test: $(VENV)/.test  ## C++ tests of the engine
	$(BIN)/cmake -S . -B build/core-tests -DSIMFA_CORE_TESTS=ON -DCMAKE_RULE_MESSAGES=OFF
	env -u MAKEFLAGS $(BIN)/cmake --build build/core-tests --parallel $(JOBS)
	$(BIN)/ctest --test-dir build/core-tests --output-on-failure

instruction-count: core-test  ## instructions of a fixed run of the engine, against the recorded count
	$(BIN)/python benchmarks/instruction_count.py build/core-tests/simfa_fixed_kernel

sanitize: $(VENV)/.test  ## C++ tests under the sanitizers
	env -u MAKEFLAGS CMAKE=$(abspath $(BIN)/cmake) JOBS=$(JOBS) tests/sanitize.sh

format: $(VENV)/.test  ## rewrite all sources in house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(CPP)
	$(BIN)/snakefmt workflow

stub: $(VENV)/.test  ## regenerate the committed type stub of the engine
	$(BIN)/python -m nanobind.stubgen -m simfa.simulate._core -o simulate/_core.pyi

results-table: all  ## write the accuracy table of the last run into README.md
	$(BIN)/snakemake readme

docs: $(VENV)/.test  ## the documentation as a site that needs no network: build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

docs-output: $(VENV)/.test  ## write what the commands in README and docs print now into the pages
	$(BIN)/python -m tests.docs.refresh

wheels: $(VENV)/.test  ## sdist and wheel in dist/, tried in a fresh environment of every Python that is here
	$(BIN)/python scripts/wheels.py

skips: $(VENV)/.test  ## what the last `make test` skipped and why
	$(BIN)/python tests/skip_table.py build/test/junit.xml

gpu-check: $(VENV)/.test  ## tests that need a Hopper GPU
	$(BIN)/simfa doctor
	$(BIN)/python -m pytest -m gpu --junitxml=build/test/junit.xml
	$(BIN)/python tests/skip_table.py build/test/junit.xml

clean:  ## remove the virtual environment, builds and results
	rm -rf $(VENV) build results .snakemake .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Build requirements go into the virtual environment, so that the package is rebuilt in place in seconds.
$(VENV)/.build: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python >= 3.11 is needed: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install $$($(PYTHON) -c 'import tomllib; \
	    print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')
	$(PIP) install $$($(BIN)/python -c 'from scikit_build_core.build import get_requires_for_build_wheel as needs; \
	    print("pip", *needs())')
	touch $@

# Packages come from the index while the engine compiles. Their byte code is written where a module is first imported: most
# never are.
define install
	$(BIN)/python -c 'import sys, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	    extras = (project["optional-dependencies"][name] for name in sys.argv[1].split(",")); \
	    print(*project["dependencies"], *(each for extra in extras for each in extra), sep="\n")' \
	    $(1) > $(VENV)/requirements.txt
	$(PIP) install --no-build-isolation --no-deps . & \
	    $(PIP) install --no-compile --requirement $(VENV)/requirements.txt; packages=$$?; wait $$! && exit $$packages
endef

$(VENV)/.run: $(VENV)/.build CMakeLists.txt $(PACKAGE)
	$(call install,$(RUN_EXTRAS))
	touch $@

$(VENV)/.test: $(VENV)/.build CMakeLists.txt $(PACKAGE)
	$(call install,$(TEST_EXTRAS))
	touch $(VENV)/.run $@
