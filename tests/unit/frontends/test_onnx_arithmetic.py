"""`Mod` of every sign, native on floats and integers, computed and folded; `Pow` of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.evaluation import evaluate_module
from fuseline.frontends.onnx import read_onnx
from fuseline.ir.context import new_context
from fuseline.runtime.dtypes import dtype_named
from tests.graphs.onnx_text import element_of, onnx_model

DTYPES = {"float16": 5.0, "float32": 1e30, "float64": 1e300, "int32": 2e9, "int8": 100.0}


def _model(dtype: Any, fmod: int, constants: dict[str, Any] | None = None) -> Any:
    kind, given = element_of(dtype), constants or {}
    inputs = ", ".join(f"{kind}[n] {name}" for name in "xy" if name not in given)
    text = f"({inputs}) => ({kind}[m] z) {{ r = Mod<fmod = {fmod}>(x, y) z = Identity(r) }}"
    return onnx_model(text, given, opset=24, ir_version=10)


def _operands(dtype: str, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x, y = (rng.uniform(-1, 1, 1003) * DTYPES[dtype], rng.uniform(-1, 1, 1003) * 7)
    if dtype.startswith("int"):
        y = np.where(np.abs(y) < 1, 3, y)
    else:
        x[:8], y[:8] = [0.0, -0.0, 4, -4, np.inf, 1, -1, np.nan], [2, 2, -2, 2, 3, np.inf, np.inf, 1]
    return x.astype(dtype), y.astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "fmod"), [*((dtype, 1) for dtype in DTYPES), *((dtype, 0) for dtype in DTYPES if dtype != "float16")]
)
def test_the_sign_is_the_divisors_or_the_dividends(dtype: str, fmod: int):
    x, y = _operands(dtype, 3)
    with np.errstate(all="ignore"):
        wanted = np.fmod(x, y) if fmod else np.mod(x, y)
    program = fuseline.compile(_model(dtype, fmod), threads=1)
    assert program.stats["host_ops"] == 0
    found = program(x, y)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, wanted)
    if not dtype.startswith("int"):
        kept = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[kept]), np.signbit(wanted[kept]))


@pytest.mark.parametrize("fmod", [0, 1])
def test_folding_agrees(fmod: int):
    x, y = np.array([-7, 7, -7, 7, 0]), np.array([3, 3, -3, -3, 5])
    ctx = new_context()
    module = read_onnx(_model(np.int64, fmod, {"x": x, "y": y}), ctx)
    (found,) = evaluate_module(module, [], ctx.resources)
    np.testing.assert_array_equal(found, np.fmod(x, y) if fmod else np.mod(x, y))


@pytest.mark.parametrize(("base", "exponent"), [("int32", "int64"), ("int64", "int32"), ("int32", "int32")])
def test_powers_of_integers_wrap(base: str, exponent: str):
    rng = np.random.default_rng(9)
    x, y = rng.integers(-9, 10, 1003).astype(base), rng.integers(0, 40, 1003).astype(exponent)
    kind = element_of(base)
    text = f"({kind}[1003] x, {element_of(exponent)}[1003] y) => ({kind}[1003] z) {{ z = Pow(x, y) }}"
    program = fuseline.compile(onnx_model(text, opset=21, ir_version=10), threads=1)
    assert program.stats["host_ops"] == 0
    np.testing.assert_array_equal(program.run({"x": x, "y": y})["z"], (x.astype(np.int64) ** y).astype(base))


@pytest.mark.parametrize("op_type", ["Div", "Mod"])
@pytest.mark.parametrize("divisor", [2, 5])
def test_sizes_less_a_number_are_divided_towards_zero(op_type: str, divisor: int):
    """(n - 7) / 2, as exporters count the windows of a signal: negative for short ones."""
    text = f"(float[n] x) => (int64[1] y) {{ n = Shape(x) rest = Sub(n, seven) y = {op_type}(rest, divisor) }}"
    model = onnx_model(text, opset=21, ir_version=10, seven=np.array([7]), divisor=np.array([divisor]))
    program = fuseline.compile(model, threads=1)
    for size in range(1, 20):
        (found,) = program.run({"x": np.ones(size, np.float32)}).values()
        assert int(found[0]) == (int((size - 7) / divisor) if op_type == "Div" else (size - 7) % divisor)


WHOLE = {
    "ReduceMean": lambda x: np.trunc(x.sum() / x.size),
    "ReduceL2": lambda x: np.trunc(np.sqrt((x * x).sum())),
    "ReduceLogSum": lambda x: np.trunc(np.log(x.sum())),
    "ReduceLogSumExp": lambda x: np.trunc(x.max() + np.log(np.exp(x - x.max()).sum())),
}


@pytest.mark.parametrize("sizes", [[7], ["n"]])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("op_type", WHOLE)
def test_sums_of_integers_may_leave_the_type_of_what_is_computed_from_them(
    op_type: str, dtype: Any, sizes: list[int | str]
):
    top = 2**31 if dtype == np.int32 or op_type == "ReduceMean" else 2**52
    x = np.random.default_rng().integers(top // 4, top // 3, 7).astype(dtype)
    kind = element_of(dtype)
    text = f"({kind}[{sizes[0]}] x) => ({kind}[1] y) {{ y = {op_type}<axes = [0]>(x) }}"
    model = onnx_model(text, opset=16, ir_version=8)
    for target in ("cpu", "interpreter"):
        found = fuseline.compile(model, threads=1, target=target).run({"x": x})["y"]
        # A root of a sum may be one float64 away where the sum is made in another order: 2^52 has no smaller digits.
        np.testing.assert_allclose(found, [WHOLE[op_type](x.astype(np.float64))], rtol=2 * np.finfo(np.float64).eps)
        assert found.dtype == dtype


def test_a_norm_over_no_axes_is_the_magnitude():
    x = np.array([-70000, 3, 2**30], np.int32)
    model = onnx_model("(int32[3] x) => (int32[3] y) { y = ReduceL2<noop_with_empty_axes = 1>(x) }", ir_version=8)
    np.testing.assert_array_equal(fuseline.compile(model, threads=1).run({"x": x})["y"], [70000, 3, 2**30])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_quotients_of_constants_keep_their_digits_in_every_float(dtype: str):
    numbers = [np.array(values, dtype_named(dtype)) for values in ([-1.875, 0.5, 7.0], [0.5])]
    text = f"() => ({element_of(dtype_named(dtype))}[3] y) {{ y = Div(a, b) }}"
    model = onnx_model(text, dict(zip("ab", numbers, strict=True)), opset=17)
    for target in ("cpu", "interpreter"):
        y = fuseline.compile(model, threads=1, target=target).run({})["y"]
        np.testing.assert_array_equal(y.astype(np.float64), [-3.75, 1.0, 14.0])
