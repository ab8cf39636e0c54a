"""Fusion in rounds: whatever rules each has and whatever runs between, outputs are those of the interpreter after every
round, and a later round never comes to more dispatches."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuseline
from fuseline.passes.fusion.rule_choice import known_names
from tests.properties.random_models import RandomModel
from tests.small_models import SMALL_MODELS

NAMES = known_names(())
BEFORE = "cleanup,layout,padding,materialize-fills,clone-reads"
BETWEEN = ("", "bubble-expand-shapes", "canonicalize,cse", "sink-collapse-shapes,fold-unit-dims", "dead-code")
OPTIONS = ("level=none", "level=default", "level=aggressive")


def _round(option: str) -> str:
    return f"form-dispatch-regions{{{option}}}"


def _passes(rounds: list[tuple[str, str]]) -> str:
    return ",".join(
        step for step in (BEFORE, *(one for option, after in rounds for one in (_round(option), after))) if step
    )


def _check(model: onnx.ModelProto, rounds: list[tuple[str, str]], seed: int) -> None:
    reference = fuseline.compile(model, target="interpreter", fusion="none")
    rng = np.random.default_rng(seed)
    feeds = {
        item.name: rng.integers(0, 40, shape).astype(item.dtype)
        if item.dtype.kind == "i"
        else rng.standard_normal(shape).astype(item.dtype)
        for item in reference.inputs
        for shape in [[size if isinstance(size, int) else 5 for size in item.shape]]
    }
    wanted, before = reference.run(feeds), None
    for count in range(1, len(rounds) + 1):
        program = fuseline.compile(model, threads=2, passes=_passes(rounds[:count]), cache=False)
        for name, values in program.run(feeds).items():
            largest = max(float(np.abs(wanted[name]).max(initial=0)), 1e-30)
            what = f"{name} after {_passes(rounds[:count])}"
            np.testing.assert_allclose(values, wanted[name], rtol=0, atol=1e-4 * largest, err_msg=what)
        groups = len(program.record.groups)
        assert before is None or groups <= before, rounds[:count]
        before = groups


numbers = st.integers(0, 40)
programs = st.lists(st.tuples(numbers, numbers, numbers), min_size=3, max_size=12)
options = st.one_of(
    st.sampled_from(OPTIONS),
    st.sampled_from([f"{which}={name}" for which in ("rules", "without") for name in NAMES]),
)
schedules = st.lists(st.tuples(options, st.sampled_from(BETWEEN)), min_size=2, max_size=3)


@given(program=programs, seed=st.integers(0, 1 << 16), rounds=schedules)
@settings(max_examples=6)
def test_generated_models(program: list[tuple[int, int, int]], seed: int, rounds: list[tuple[str, str]]):
    _check(RandomModel(seed).build(program), rounds, seed)


@given(name=st.sampled_from(sorted(SMALL_MODELS)), rounds=schedules)
@settings(max_examples=4)
def test_small_models(name: str, rounds: list[tuple[str, str]]):
    _check(SMALL_MODELS[name](), rounds, 5)


@pytest.mark.slow
@pytest.mark.parametrize("level", OPTIONS)
@pytest.mark.parametrize("without", NAMES)
@pytest.mark.parametrize("name", SMALL_MODELS)
def test_every_rule_left_out_in_turn(name: str, without: str, level: str):
    _check(SMALL_MODELS[name](), [(f"without={without}", ""), (level, ""), (f"without={without}", "")], 3)
