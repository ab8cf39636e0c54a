"""Operators that compute each element by itself, over types and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fuseline.frontends.onnx.ops import activations, elementwise, logic, powers, trigonometry
from tests.unit.frontends.onnx.ops.lowerings import RNG, Array, agree, ints, normal, operators_of, refusal

ACTIVATIONS = "Celu Elu Gelu HardSigmoid HardSwish LeakyRelu Mish Selu Shrink Sigmoid Softplus Softsign ThresholdedRelu"
LOGIC = (
    "And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual "
    "Not Or Where Xor"
)
ONE = "Abs Cast CastLike Ceil Clip Cos Erf Exp Floor Identity Log Neg Reciprocal Relu Round Sign Sin Sqrt Tan Tanh"
MORE = "Add Div Max Mean Min Mod Mul PRelu Sub Sum"
WIDE = np.array([-200.0, -90, -20, -3, -1, -0.5, -1e-4, 0, 1e-4, 0.5, 1, 3, 20, 90, 200], np.float32)


def test_what_is_lowered_here() -> None:
    assert operators_of(elementwise) == set(f"{ONE} {MORE}".split())
    assert operators_of(activations) == set(ACTIVATIONS.split())
    assert operators_of(logic) == set(LOGIC.split()) and operators_of(powers) == {"Pow"}
    assert operators_of(trigonometry) == {"Sinh", "Cosh", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh"}


ANYWHERE = (
    "Abs Asinh Atan Ceil Celu Cos Elu Erf Floor HardSigmoid HardSwish Identity LeakyRelu Mish Neg Relu Round Selu "
    "Shrink Sigmoid Sign Sin Softplus Softsign Tanh ThresholdedRelu"
).split()


@pytest.mark.parametrize("op_type", ANYWHERE)
def test_functions_of_any_number(op_type: str) -> None:
    """Large ones too, where an exponential would overflow; halves stand on their own."""
    x = np.concatenate([WIDE, normal(20), [0.5, 1.5, 2.5, -2.5]]).astype(np.float32)
    agree(op_type, [x], opset=22, rtol=3e-5, atol=3e-6)
    agree(op_type, [normal(3, 5)], opset=22, free=(0,), rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize(
    ("op_type", "low", "high"),
    [
        ("Exp", -20, 20),
        ("Log", 0.01, 50),
        ("Sqrt", 0, 50),
        ("Reciprocal", 0.1, 9),
        ("Tan", -1.3, 1.3),
        ("Sinh", -5, 5),
        ("Cosh", -5, 5),
        ("Asin", -0.99, 0.99),
        ("Acos", -0.99, 0.99),
        ("Acosh", 1.1, 20),
        ("Atanh", -0.95, 0.95),
    ],
)
def test_functions_of_some_numbers(op_type: str, low: float, high: float) -> None:
    x = RNG.uniform(low, high, (4, 6)).astype(np.float32)
    agree(op_type, [x], opset=22, rtol=3e-5)


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("LeakyRelu", {"alpha": 0.3}),
        ("Elu", {"alpha": 0.7}),
        ("Selu", {"alpha": 1.1, "gamma": 2.0}),
        ("Celu", {"alpha": 0.6}),
        ("ThresholdedRelu", {"alpha": 0.4}),
        ("Shrink", {"bias": 0.2, "lambd": 0.6}),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
        ("Gelu", {}),
        ("Gelu", {"approximate": "tanh"}),
        ("Gelu", {"approximate": "none"}),
    ],
)
def test_attributes(op_type: str, attributes: Mapping[str, Any]) -> None:
    agree(op_type, [np.concatenate([normal(40), [0.0]]).astype(np.float32)], attributes, opset=22, atol=2e-5)


SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_integers(dtype: str) -> None:
    low = 0 if dtype in UNSIGNED else -60
    x, y = ints(low, 60, 3, 4, dtype=dtype), ints(1, 9, 4, dtype=dtype)
    agree("Add", [x, y], wanted=[x + y], opset=14)
    agree("Sub", [y, y[:1]], wanted=[y - y[:1]], opset=14)
    agree("Mul", [x, y % 2], wanted=[x * (y % 2)], opset=14)
    agree(
        "Div",
        [x, y],
        wanted=[(np.sign(x.astype(np.int64)) * (np.abs(x.astype(np.int64)) // y)).astype(dtype)],
        opset=14,
    )
    agree("Abs", [x], wanted=[np.abs(x)])
    agree("Sign", [x], wanted=[np.sign(x)])
    agree("Max", [x, y], wanted=[np.maximum(x, y)])
    agree("Min", [x, y, x[:1]], wanted=[np.minimum(np.minimum(x, y), x[:1])])
    agree("Mod", [x, y], wanted=[np.mod(x, y)])
    agree("BitwiseNot", [x], wanted=[~x])
    agree("BitwiseAnd", [x, y], wanted=[x & y])
    agree("BitwiseOr", [x, y], wanted=[x | y])
    agree("BitwiseXor", [x, y], wanted=[x ^ y])
    agree("Clip", [x, np.array(3, dtype), np.array(40, dtype)], wanted=[np.clip(x, 3, 40)])
    agree("Equal", [x, y], wanted=[x == y])
    agree("Less", [x, y], wanted=[x < y])


@pytest.mark.parametrize("dtype", SIGNED)
def test_signed_integers(dtype: str) -> None:
    x, y = ints(-60, 60, 30, dtype=dtype), ints(1, 9, 30, dtype=dtype) * RNG.choice([-1, 1], 30).astype(dtype)
    agree("Neg", [x], wanted=[-x])
    agree("Relu", [x], wanted=[np.maximum(x, 0)])
    agree("Mod", [x, y], wanted=[np.mod(x, y)])
    agree("Mod", [x, y], {"fmod": 1}, wanted=[np.fmod(x, y)])
    if x.itemsize >= 4:
        agree("PRelu", [x, y], wanted=[np.where(x < 0, x * y, x)], opset=16)


def test_remainders_of_floats() -> None:
    x, y = normal(40), RNG.uniform(0.2, 2, 40).astype(np.float32) * RNG.choice([-1, 1], 40).astype(np.float32)
    agree("Mod", [x, y], {"fmod": 1}, wanted=[np.fmod(x, y)])


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts(direction: str, dtype: str) -> None:
    bits = np.dtype(dtype).itemsize * 8
    x, y = ints(0, 200, 40, dtype=dtype), ints(0, bits, 40, dtype=dtype)
    y[:3] = [bits, bits + 1, 0]
    shifted = [int(a) << int(b) if direction == "LEFT" else int(a) >> int(b) for a, b in zip(x, y, strict=True)]
    agree("BitShift", [x, y], {"direction": direction}, wanted=[np.array([v % 2**bits for v in shifted], dtype)])


BOOLS = np.array([[False, True, True, False]]), np.array([[False], [True]])


@pytest.mark.parametrize(
    ("op_type", "wanted"), [("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)]
)
def test_truth(op_type: str, wanted: Any) -> None:
    agree(op_type, BOOLS, wanted=[wanted(*BOOLS)])
    agree("Not", BOOLS[:1], wanted=[~BOOLS[0]])


@pytest.mark.parametrize(("op_type", "wanted"), [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)])
@pytest.mark.parametrize("shapes", [((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 3)), ((2, 1, 3), (5, 1))])
def test_shapes_broadcast(op_type: str, wanted: Any, shapes: tuple[tuple[int, ...], ...]) -> None:
    x, y = (normal(*shape) for shape in shapes)
    agree(op_type, [x, y], wanted=[wanted(x, y)])
    agree(op_type, [x, y], wanted=[wanted(x, y)], constants=(1,))


@pytest.mark.parametrize("op_type", ["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"])
def test_comparisons_of_floats(op_type: str) -> None:
    x, y = ints(0, 3, 4, 5, dtype=np.float32), ints(0, 3, 5, dtype=np.float32)
    x[0, :2] = [np.nan, np.inf]
    agree(op_type, [x, y], opset=16)


def test_several_operands() -> None:
    arrays = [normal(3, 4), normal(4), normal(3, 1)]
    agree("Sum", arrays, wanted=[arrays[0] + arrays[1] + arrays[2]])
    agree("Mean", arrays, wanted=[(arrays[0] + arrays[1] + arrays[2]) / np.float32(3)])
    for op_type in ("Sum", "Mean", "Max", "Min"):
        agree(op_type, arrays[:1], wanted=arrays[:1])


@pytest.mark.parametrize(
    ("exponent", "constant"),
    [(2.0, True), (3.0, True), (1.0, True), (0.5, True), (-1.5, True), (2.0, False), (0.0, True)],
)
def test_powers(exponent: float, constant: bool) -> None:
    x = RNG.uniform(0.2, 3, (3, 4)).astype(np.float32)
    agree("Pow", [x, np.array(exponent, np.float32)], constants=(1,) if constant else (), rtol=1e-5)


def test_powers_of_negative_numbers_and_of_integers() -> None:
    x, whole = normal(3, 8), ints(-3, 4, 8)
    x[x == 0] = 1
    agree("Pow", [x, whole], wanted=[np.power(x, whole.astype(np.float32))], rtol=1e-4)
    agree("Pow", [ints(-5, 6, 4, 8), np.abs(whole)], opset=15)
    base = ints(-5, 6, 9, dtype=np.int32)
    agree("Pow", [base, np.array(2)], wanted=[base**2], constants=(1,))
    reason = refusal("Pow", [base, normal(9)])
    assert reason == "unsupported-dtype: int32 to the power float32"


@pytest.mark.parametrize("signs", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_infinities(signs: tuple[int, int]) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0, 1e38], np.float32)
    agree("IsInf", [x], {"detect_negative": signs[0], "detect_positive": signs[1]})
    agree("IsNaN", [x])


@pytest.mark.parametrize("limits", [(None, None), (-0.5, None), (None, 0.5), (-0.5, 0.5)])
@pytest.mark.parametrize("constant", [True, False])
def test_limits(limits: tuple[float | None, float | None], constant: bool) -> None:
    x = normal(4, 5)
    inputs = [x, *(None if limit is None else np.array(limit, np.float32) for limit in limits)]
    given = [i for i in (1, 2) if inputs[i] is not None]
    low, high = (limit if limit is not None else other for limit, other in zip(limits, (-np.inf, np.inf), strict=True))
    wanted = [np.clip(x, np.float32(low), np.float32(high))]
    agree("Clip", inputs, wanted=wanted, constants=given if constant else ())
    attributes = {name: limit for name, limit in zip(("min", "max"), limits, strict=True) if limit is not None}
    agree("Clip", [x], attributes, wanted=wanted, opset=6)


def test_choices() -> None:
    c, x, y = ints(0, 2, 4, 5).astype(bool), normal(4, 5), normal(5)
    agree("Where", [c, x, y], wanted=[np.where(c, x, y)])
    agree("PRelu", [x, y], wanted=[np.where(x < 0, x * y, x)])


@pytest.mark.parametrize("to", [np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8, np.int8, bool])
def test_other_types(to: Any) -> None:
    x = (10 * np.abs(normal(20))).astype(np.float32)
    number = {np.float32: 1, np.float64: 11, np.float16: 10, np.int32: 6, np.int64: 7, np.uint8: 2, np.int8: 3, bool: 9}
    agree("Cast", [x], {"to": number[to]}, wanted=[x.astype(to)])
    agree("CastLike", [x, np.zeros(1, to)], wanted=[x.astype(to)])


def test_types_that_have_no_tensors() -> None:
    x: Array = normal(4)
    assert refusal("Cast", [x], {"to": 17}, opset=21) == "unsupported-dtype: FLOAT8E4M3FN"
