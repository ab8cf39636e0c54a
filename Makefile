# `make` lists the targets. Everything runs in .venv, which the first target that needs it creates: Python 3.11 or later is all a machine needs.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
TESTS ?= tests
WORKERS ?= 2
SECONDS ?= 60
FUZZ ?= .fuzz

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all cpu-seconds conformance fuzz fuzz-files lint types jax bench packing mutants replay clean

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The stamps record what is installed; a change of pyproject.toml installs again.
$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found; give another: make PYTHON=python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

$(VENV)/.dev: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

setup: $(VENV)/.dev ## make .venv with everything a developer needs

demo: $(VENV)/.test ## compile ResNet-50, show what was fused and why, compare with onnxruntime
	$(BIN)/python -m fuseline.cli.demo

test: $(VENV)/.test ## run the default tests (TESTS=path, WORKERS=n)
	$(BIN)/python -m pytest -n $(WORKERS) $(TESTS)

test-all: $(VENV)/.dev ## run the slow tests too
	$(BIN)/python -m pytest -n $(WORKERS) -m "not bench and not torch and not jax and not iree and not ortools and not packages" $(TESTS)

cpu-seconds: $(VENV)/.dev ## measure what each test takes, of which a default run draws a share (tests/cpu_seconds.json)
	$(BIN)/python -m pytest -n $(WORKERS) --keep-cpu-seconds $(TESTS)

conformance: $(VENV)/.test ## run every official ONNX node test on both targets, with and without ranks, and generated calls of every operator
	$(BIN)/python -m pytest -n $(WORKERS) -m "slow or not slow" tests/conformance

fuzz: $(VENV)/.test ## random graphs against onnxruntime and the interpreter (SECONDS=n, or COUNT=n and SEED=n; PAIRS=1: every operator behind every other; THEME=name: models of one kind, at their sizes; findings in .fuzz)
	$(BIN)/python -m tests.fuzz --folder $(FUZZ) $(if $(SEED),--seed $(SEED)) $(if $(PAIRS),--pairs --drawn,) $(if $(THEME),--theme $(THEME)) $(if $(COUNT),--count $(COUNT),$(if $(PAIRS),,--seconds $(SECONDS)))

fuzz-files: $(VENV)/.test ## mutated .onnx, .fuse, plans and MLIR text: each is right or refused with a code (COUNT=n of each, SEED=n, KIND=onnx)
	$(BIN)/python -m tests.fuzz.mutants --count $(or $(COUNT),1000) $(if $(SEED),--seed $(SEED)) $(if $(KIND),--kind $(KIND))

jax: $(VENV)/.test ## compare with jitted JAX: functions, models and a table of array functions (extra jax)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[jax]'
	$(BIN)/python -m pytest -n $(WORKERS) -m jax tests

lint: $(VENV)/.dev ## ruff (with C901) and the import layers
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -q tests/unit/test_import_layers.py

types: $(VENV)/.dev ## pyright, strict
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(VENV)/.dev ## measure against onnxruntime and OpenVINO (MODELS=files)
	$(BIN)/python benchmarks/models.py $(MODELS)

packing: $(VENV)/.test ## how far the arenas of MODELS are from the smallest there can be, by a solver (extra ortools)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[ortools]'
	$(BIN)/python -m pytest -m ortools tests/unit/passes/schedule
	$(if $(MODELS),$(BIN)/python -m benchmarks.packing $(MODELS))

mutants: $(VENV)/.dev ## change the compiler's code in small ways and see whether tests notice (SAMPLE=n, SEED=n, MODULES=globs)
	$(BIN)/python -m tools.mutants --sample $(or $(SAMPLE),300) --seed $(or $(SEED),0) $(if $(MODULES),--modules $(MODULES))

replay: $(VENV)/.test ## diff the generated IR of all test models against main (BASE=commit)
	$(BIN)/python tools/replay.py --base $(or $(BASE),main)

clean: ## remove .venv and caches
	rm -rf $(VENV) mutants .pytest_cache .ruff_cache .hypothesis .replay build dist
