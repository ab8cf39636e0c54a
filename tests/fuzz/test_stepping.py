"""Noise of a rounding or two: it leaves the domain and the range of no operator, and shows what peers round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

from tests.draws import generator
from tests.fuzz.compare import explained
from tests.fuzz.stepping import Stepper
from tests.fuzz.tensors import F32, F64, Array


def _noisy_runs(text: str, x: Array, count: int = 24) -> list[Array]:
    kind = {F32: "float", F64: "double"}[x.dtype]
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 18]> g ({kind}[{x.size}] x) => ({kind}[{x.size}] y) {{ {text} }}'
    )
    rng = generator("noise")
    return [Stepper(model).run({"x": x}, rng)["y"] for _ in range(count)]


@pytest.mark.parametrize("inner", ["Sigmoid", "Tanh", "Sin", "Erf", "HardSigmoid"])
def test_a_bounded_result_stays_in_the_domain_of_its_reader(inner: str) -> None:
    x = np.array([30, np.pi / 2], np.float32)[: 1 if inner != "Sin" else 2][-1:]
    runs = _noisy_runs(f"t = {inner} (x) y = Asin (t)", x)
    assert np.isfinite(runs).all()
    assert explained(np.arcsin(1 - np.array([2.0**-26])), runs, F32)
    assert not explained(np.array([1.5]), runs, F32)


def test_an_operand_outside_of_the_domain_stays_there() -> None:
    assert np.isnan(_noisy_runs("y = Acosh (x)", np.array([0.5], np.float32))).all()
    assert np.isfinite(_noisy_runs("y = Acosh (x)", np.array([1.0], np.float32))).all()


def test_whole_powers_of_negative_numbers_are_numbers() -> None:
    assert np.isfinite(
        _noisy_runs("three = Constant <value_float = 3.0> () y = Pow (x, three)", -np.ones(3, np.float32))
    ).all()


@pytest.mark.parametrize(("dtype", "close", "far"), [(F64, 1e-16, 1e-12), (F32, 1e-8, 1e-5)])
def test_onnxruntime_has_the_sigmoid_of_a_low_number_as_a_difference_from_1(
    dtype: Any, close: float, far: float
) -> None:
    runs = _noisy_runs("y = Sigmoid (x)", np.array([-37.25], dtype))
    assert explained(np.exp(np.array([-37.25], dtype)) + close, runs, np.dtype(dtype))
    assert not explained(np.array([far]), runs, np.dtype(dtype))
    assert len({run.shape for run in _noisy_runs("s = Sigmoid (x) y = NonZero (s)", x=np.full(9, -37.25, dtype))}) > 1


def test_a_sum_that_cancels_may_be_nothing() -> None:
    """Its residue is a number in one order of the sum and 0 in another: both truths are right."""
    x = np.array([[0.1, 0.3], [-0.3, 0.1], [1.0, 1.0]], np.float32)
    for reader in ("y = Cast <to = 9> (t)", "y = Ceil (t)", "y = Sign (t)"):
        runs = _noisy_runs(f"w = Constant <value_floats = [0.3, -0.1]> () t = MatMul (x, w) {reader}", x, 80)
        assert {float(run[0]) for run in runs} >= {0.0, 1.0} and {float(run[2]) for run in runs} == {1.0}
    assert len({run.shape for run in _noisy_runs(
        "w = Constant <value_floats = [0.3, -0.1]> () t = MatMul (x, w) y = NonZero (t)", x, 80)}) > 1  # fmt: skip


def test_a_range_and_an_element_may_round_apart() -> None:
    """The zero point of [-5, 5] lies between two numbers, and so does 1: 26 or 25 and 128 or 127."""
    x = np.array([-5, 1, 5, 3, -4], np.float32)
    assert {int(run[1]) for run in _noisy_runs("y, s, z = DynamicQuantizeLinear (x)", x, 200)} >= {153, 154}


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_a_convolution_may_round_as_a_minimal_filter_does(op: str) -> None:
    """More than one that is summed up, and yet by parts of a millionth."""
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 18]> g (float[1,2,8] x, float[2,2,3] w) => (float[1,2,?] y)'
        f" {{ y = {op} (x, w) }}"
    )
    rng = generator("filters")
    feeds: dict[str, Array] = {
        "x": rng.uniform(1, 2, (1, 2, 8)).astype(np.float32),
        "w": rng.uniform(1, 2, (2, 2, 3)).astype(np.float32),
    }
    stepper = Stepper(model)
    exact = stepper.run(feeds)["y"]
    summed, filtered = ([stepper.run(feeds, rng, filtered=way)["y"] for _ in range(24)] for way in (False, True))
    assert np.abs(np.stack(filtered) - exact).max() > 1.3 * np.abs(np.stack(summed) - exact).max()
    assert explained(exact * np.float32(1 + 4e-6), filtered, F32)
    assert not explained(exact * np.float32(1 + 1e-4), filtered, F32)


def test_a_tie_in_a_range_rounds_both_ways_for_all() -> None:
    """4 of [0, 8] is 127.5 of 255: the largest of many numbers near 8 is above it."""
    x = np.tile(np.array([0, 4, 8, 2, 4], np.float32), 80)
    runs = np.stack(_noisy_runs("y, s, z = DynamicQuantizeLinear (x)", x, 60))
    assert (runs.min(0)[x == 4] == 127).all() and (runs.max(0)[x == 4] == 128).all()


def test_numbers_of_a_grid_round_alike() -> None:
    """31 of [0, 34] is 232.5 of 255: a range of numbers that are rounded each on its own is the largest of them."""
    x = np.tile(np.array([34, 31, 33], np.float32), 60)
    grid = "q = Cast <to = 3> (x) c = Constant <value_float = 0.0421> () d = DequantizeLinear (q, c)"
    runs = np.stack(_noisy_runs(f"{grid} y, s, z = DynamicQuantizeLinear (d)", x, 60))[:, x == 31]
    assert (runs.min(0) == 232).all() and (runs.max(0) == 233).all()


LONG_SUM = "e = Shape (x) s = ReduceSum (x) y = Expand (s, e)"


def test_a_long_sum_may_be_off_by_more_than_a_short_one() -> None:
    """Peers add one number behind the other: 6,720 ones of a hundredth are off by 5e-6 of their sum in f32."""
    for count, off in ((6720, 5e-6), (11700, 6e-6)):
        runs = [run[:1] for run in _noisy_runs(LONG_SUM, np.full(count, 0.01, np.float32))]
        assert explained(runs[0] * np.float32(1 + off), runs, F32)
        assert not explained(runs[0] * np.float32(1 + 1e-3), runs, F32)
    short = [run[:1] for run in _noisy_runs(LONG_SUM, np.full(9, 0.01, np.float32))]
    assert not explained(short[0] * np.float32(1 + 5e-6), short, F32)
