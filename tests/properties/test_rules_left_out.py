"""Whichever rule or join of the tree is left out, outputs are those of the interpreter, under every level."""

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
LEVELS = ("none", "default", "aggressive")


def _check(model: onnx.ModelProto, without: str, level: str, seed: int) -> None:
    reference = fuseline.compile(model, target="interpreter", fusion="none")
    rng = np.random.default_rng(seed)
    feeds = {
        item.name: rng.integers(0, 40, shape).astype(item.dtype)
        if item.dtype.kind == "i"
        else rng.standard_normal(shape).astype(item.dtype)
        for item in reference.inputs
        for shape in [[size if isinstance(size, int) else 5 for size in item.shape]]
    }
    program = fuseline.compile(model, threads=2, without_rules=[without], fusion=level, cache=False)
    assert without not in {decision.rule for decision in program.record.decisions}
    got = program.run(feeds)
    for name, values in reference.run(feeds).items():
        largest = max(float(np.abs(values).max(initial=0)), 1e-30)
        np.testing.assert_allclose(got[name], values, rtol=0, atol=1e-4 * largest, err_msg=f"{name}, {without} off")


numbers = st.integers(0, 40)
programs = st.lists(st.tuples(numbers, numbers, numbers), min_size=3, max_size=14)


@given(program=programs, seed=st.integers(0, 1 << 16), without=st.sampled_from(NAMES), level=st.sampled_from(LEVELS))
@settings(max_examples=10)
def test_generated_models(program: list[tuple[int, int, int]], seed: int, without: str, level: str):
    _check(RandomModel(seed).build(program), without, level, seed)


@pytest.mark.slow
@pytest.mark.parametrize("without", NAMES)
@pytest.mark.parametrize("name", SMALL_MODELS)
def test_small_models(name: str, without: str):
    _check(SMALL_MODELS[name](), without, "default", 11)


@pytest.mark.parametrize("without", NAMES)
def test_attention(without: str):
    _check(SMALL_MODELS["attention"](), without, "aggressive", 13)
