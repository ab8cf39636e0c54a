"""Ops of StableHLO on single elements, in both forms, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.draws import RNG
from tests.unit.frontends.stablehlo.programs import program, refused, run, type_of

Array = NDArray[Any]


def _draw(dtype: str, *shape: int) -> Array:
    if dtype == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        return (RNG.standard_normal(shape) * 3).astype(dtype)
    info = np.iinfo(dtype)
    return RNG.integers(max(info.min, -100), min(info.max, 100), shape).astype(dtype)


def _one(op: str, arrays: list[Array], out: str, *, generic: bool) -> str:
    types, names = ", ".join(map(type_of, arrays)), ", ".join(f"%a{i}" for i in range(len(arrays)))
    arguments = ", ".join(f"%a{i}: {type_of(array)}" for i, array in enumerate(arrays))
    word = f'"stablehlo.{op}"({names})' if generic else f"stablehlo.{op} {names}"
    return program(f"    %r = {word} : ({types}) -> {out}", arguments, out, "%r")


_FLOAT_UNARY: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cosine": np.cos,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "floor": np.floor,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "negate": np.negative,
    "round_nearest_even": np.rint,
    "round_nearest_afz": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "sign": np.sign,
    "sine": np.sin,
    "tan": np.tan,
    "tanh": np.tanh,
}
_INTEGER_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _all(ops: list[str], arrays: list[Array], *, generic: bool) -> str:
    """A program that answers what each op makes of the same operands."""
    type_ = type_of(arrays[0])
    names = ", ".join(f"%a{i}" for i in range(len(arrays)))
    word = '"stablehlo.{op}"({names})' if generic else "stablehlo.{op} {names}"
    types = f"({', '.join([type_] * len(arrays))}) -> {type_}" if generic else type_
    lines = [f"    %r{i} = {word.format(op=op, names=names)} : {types}" for i, op in enumerate(ops)]
    arguments = ", ".join(f"%a{i}: {type_}" for i in range(len(arrays)))
    return program(
        "\n".join(lines), arguments, ", ".join([type_] * len(ops)), ", ".join(f"%r{i}" for i in range(len(ops)))
    )


@pytest.mark.parametrize("generic", [False, True])
def test_functions_of_floats(generic: bool, tmp_path: Path):
    x, ops = _draw("float32", 3, 7), sorted(_FLOAT_UNARY)
    for op, found in zip(ops, run(_all(ops, [x], generic=generic), tmp_path, x), strict=True):
        np.testing.assert_allclose(found, _FLOAT_UNARY[op](x), rtol=1e-4, atol=1e-5, err_msg=op)


def test_functions_of_numbers_above_zero(tmp_path: Path):
    x = np.abs(_draw("float32", 3, 7)) + np.float32(0.1)
    text = _all(["log", "log_plus_one", "sqrt", "rsqrt"], [x], generic=False)
    want = [np.log(x), np.log1p(x), np.sqrt(x), 1 / np.sqrt(x)]
    for found, expected in zip(run(text, tmp_path, x), want, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_functions_of_two_floats(tmp_path: Path):
    x, y = np.abs(_draw("float32", 30)), _draw("float32", 30)
    text = _all(["atan2", "divide", "maximum", "minimum", "power", "remainder", "subtract"], [x, y], generic=False)
    functions = (np.arctan2, np.divide, np.maximum, np.minimum, np.power, np.fmod, np.subtract)
    for function, found in zip(functions, run(text, tmp_path, x, y), strict=True):
        np.testing.assert_allclose(found, function(x, y), rtol=1e-4, atol=1e-5, err_msg=function.__name__)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_functions_of_integers(dtype: str, tmp_path: Path):
    x, y, ops = _draw(dtype, 11), _draw(dtype, 11), sorted(_INTEGER_BINARY)
    for op, found in zip(ops, run(_all(ops, [x, y], generic=False), tmp_path, x, y), strict=True):
        np.testing.assert_array_equal(found, _INTEGER_BINARY[op](x, y), err_msg=op)
        assert found.dtype == x.dtype


def test_functions_of_flags_and_of_bits(tmp_path: Path):
    x, n = _draw("bool", 9), _draw("uint32", 9)
    lines = """    %a = stablehlo.not %x : tensor<9xi1>
    %b = stablehlo.add %x, %a : tensor<9xi1>
    %c = stablehlo.multiply %x, %x : tensor<9xi1>
    %d = stablehlo.popcnt %n : tensor<9xui32>
    %e = stablehlo.count_leading_zeros %n : tensor<9xui32>
    %f = stablehlo.not %n : tensor<9xui32>"""
    types = ", ".join(["tensor<9xi1>"] * 3 + ["tensor<9xui32>"] * 3)
    found = run(program(lines, "%x: tensor<9xi1>, %n: tensor<9xui32>", types, "%a, %b, %c, %d, %e, %f"), tmp_path, x, n)
    zeros = [32 - int(number).bit_length() for number in n]
    want = [~x, np.ones(9, bool), x, np.bitwise_count(n), np.array(zeros), ~n]
    for got, expected in zip(found, want, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_division_of_integers_by_zero_and_at_the_end_of_the_range(dtype: str, tmp_path: Path):
    info = np.iinfo(dtype)
    x = np.array([7, 7, 0, info.min, info.max, 9], dtype)
    y = np.array([0, 2, 0, -1 if info.min else 1, 3, 4], dtype)
    lines = f"    %q = stablehlo.divide %x, %y : {type_of(x)}\n    %r = stablehlo.remainder %x, %y : {type_of(x)}"
    text = program(lines, f"%x: {type_of(x)}, %y: {type_of(x)}", f"{type_of(x)}, {type_of(x)}", "%q, %r")
    quotient, rest = run(text, tmp_path, x, y)
    ones = np.array(-1, np.int64).astype(dtype)
    np.testing.assert_array_equal(quotient, np.array([ones, 3, ones, info.min, info.max // 3, 2], dtype))
    np.testing.assert_array_equal(rest, np.array([7, 1, 0, 0, info.max % 3, 1], dtype))


@pytest.mark.parametrize("op", ["shift_left", "shift_right_logical", "shift_right_arithmetic"])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8"])
def test_a_shift_over_the_end(op: str, dtype: str, tmp_path: Path):
    bits = 8 * np.dtype(dtype).itemsize
    x, y = _draw(dtype, 9), np.array([0, 1, 2, bits - 1, bits, bits + 1, 3, 4, 100], dtype)
    (found,) = run(_one(op, [x, y], type_of(x), generic=False), tmp_path, x, y)

    def shifted(number: int, by: int) -> int:
        if op == "shift_left":
            return number << by if by < bits else 0
        if op == "shift_right_arithmetic":
            signed = number - (1 << bits) if number >> (bits - 1) else number
            return signed >> min(by, bits - 1)
        return number >> by if by < bits else 0

    unsigned = x.view(f"uint{bits}")
    want = [shifted(int(a), int(b)) & ((1 << bits) - 1) for a, b in zip(unsigned, y, strict=True)]
    np.testing.assert_array_equal(found.view(f"uint{bits}"), np.array(want, f"uint{bits}"))


@pytest.mark.parametrize(("dtype", "kind"), [("float32", "FLOAT"), ("int32", "SIGNED"), ("uint8", "UNSIGNED")])
def test_comparisons(dtype: str, kind: str, tmp_path: Path):
    x, y = _draw(dtype, 40) // np.array(20, dtype), _draw(dtype, 40) // np.array(20, dtype)
    if kind == "FLOAT":
        x[3] = np.nan
    words = {"EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal"}
    types = f"({type_of(x)}, {type_of(x)}) -> tensor<40xi1>"
    lines = [f"    %{word} = stablehlo.compare  {word}, %x, %y,  {kind} : {types}" for word in words]
    names, results = ", ".join(f"%{word}" for word in words), ", ".join(["tensor<40xi1>"] * len(words))
    found = run(program("\n".join(lines), f"%x: {type_of(x)}, %y: {type_of(x)}", results, names), tmp_path, x, y)
    for word, got in zip(words.values(), found, strict=True):
        np.testing.assert_array_equal(got, getattr(np, word)(x, y), err_msg=word)


def test_total_order_puts_negative_zero_and_nan_apart(tmp_path: Path):
    x = np.array([-0.0, 0.0, np.nan, np.inf, -np.inf], np.float32)
    y = np.array([0.0, -0.0, np.inf, np.nan, np.float32(-np.nan)], np.float32)
    line = "    %r = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xi1>"
    (found,) = run(program(line, "%x: tensor<5xf32>, %y: tensor<5xf32>", "tensor<5xi1>", "%r"), tmp_path, x, y)
    assert found.tolist() == [True, False, False, True, False]


@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "uint32", "int64"])
def test_floats_become_integers_within_the_range(target: str, tmp_path: Path):
    info = np.iinfo(target)
    x = np.array([1.5, -1.5, np.nan, np.inf, -np.inf, 1e30, -1e30, 3.99, 100.0], np.float32)
    out = f"tensor<9x{target.replace('uint', 'ui').replace('int', 'i')}>"
    (found,) = run(_one("convert", [x], out, generic=False), tmp_path, x)
    lowest = max(info.min, -1)
    want = [1, lowest, 0, info.max, info.min, info.max, info.min, 3, 100]
    np.testing.assert_array_equal(found, np.array(want, target))


def test_select_and_clamp_take_one_number_for_all(tmp_path: Path):
    x, y = _draw("float32", 4, 3), _draw("float32", 4, 3)
    lines = """    %lo = stablehlo.constant dense<-1.0> : tensor<f32>
    %hi = stablehlo.constant dense<0x3F800000> : tensor<f32>
    %c = stablehlo.clamp %lo, %x, %hi : (tensor<f32>, tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
    %s = stablehlo.select %p, %x, %y : tensor<i1>, tensor<4x3xf32>"""
    arguments = "%x: tensor<4x3xf32>, %y: tensor<4x3xf32>, %p: tensor<i1>"
    text = program(lines, arguments, "tensor<4x3xf32>, tensor<4x3xf32>", "%c, %s")
    clamped, chosen = run(text, tmp_path, x, y, np.array(False))
    np.testing.assert_array_equal(clamped, np.clip(x, -1, 1))
    np.testing.assert_array_equal(chosen, y)


def test_bits_of_the_same_width(tmp_path: Path):
    x = _draw("float32", 5)
    (found,) = run(_one("bitcast_convert", [x], "tensor<5xui32>", generic=False), tmp_path, x)
    np.testing.assert_array_equal(found, x.view(np.uint32))


def test_bits_of_another_width_are_refused(tmp_path: Path):
    x = _draw("float32", 5)
    refused(_one("bitcast_convert", [x], "tensor<5x4xui8>", generic=False), tmp_path, "another width")


@pytest.mark.parametrize("form", ["e5m10", "e8m7"])
def test_precision_is_reduced(form: str, tmp_path: Path):
    import ml_dtypes

    x = _draw("float32", 50)
    line = f"    %r = stablehlo.reduce_precision %x, format = {form} : tensor<50xf32>"
    (found,) = run(program(line, "%x: tensor<50xf32>", "tensor<50xf32>", "%r"), tmp_path, x)
    small = np.float16 if form == "e5m10" else ml_dtypes.bfloat16
    np.testing.assert_array_equal(found, x.astype(small).astype(np.float32))


def test_a_format_that_no_type_has_is_refused(tmp_path: Path):
    line = "    %r = stablehlo.reduce_precision %x, format = e4m3 : tensor<5xf32>"
    refused(program(line, "%x: tensor<5xf32>", "tensor<5xf32>", "%r"), tmp_path, "4 bits of exponent")


@pytest.mark.parametrize("element", ["complex<f32>", "i4", "f8E4M3FN", "!quant.uniform<i8:f32, 0.1>"])
def test_types_that_are_not_read(element: str, tmp_path: Path):
    text = program(
        f"    %r = stablehlo.add %x, %x : tensor<2x{element}>", f"%x: tensor<2x{element}>", "tensor<2xf32>", "%x"
    )
    text = text.replace("return %x : tensor<2xf32>", f"return %r : tensor<2x{element}>")
    text = text.replace("-> (tensor<2xf32>)", f"-> (tensor<2x{element}>)")
    path = tmp_path / "p.mlir"
    path.write_text(text)
    import fuseline

    with pytest.raises(fuseline.FuselineError) as caught:
        fuseline.compile(path, target="null")
    assert caught.value.code in ("E0306", "E0301")
