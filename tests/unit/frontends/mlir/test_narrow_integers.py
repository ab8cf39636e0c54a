"""Integers of 2 to 7 bits are bytes of which the low bits count, whatever lies above them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG

ONE = "affine_map<(i) -> (i)>"


def _number(values: Any, bits: int, *, signed: bool) -> Any:
    """What the low bits of bytes are."""
    low = np.asarray(values).astype(np.int64) & ((1 << bits) - 1)
    return np.where(low >= 1 << (bits - 1), low - (1 << bits), low) if signed else low


def _text(bits: int, body: str, result: str, count: int | str = "?") -> str:
    """Computes `%r` of `%x` and `%y`, which are so wide."""
    narrow, made = f"tensor<{count}xi{bits}>", f"tensor<{count}x{result}>"
    size = "%n = tensor.dim %a, %c : " + narrow if count == "?" else ""
    return f"""
func.func @main(%a: {narrow}, %b: {narrow}) -> {made} {{
  %c = arith.constant 0 : index
  {size}
  %e = tensor.empty({"%n" if count == "?" else ""}) : {made}
  %g = linalg.generic {{indexing_maps = [{ONE}, {ONE}, {ONE}], iterator_types = ["parallel"]}}
      ins(%a, %b : {narrow}, {narrow}) outs(%e : {made}) {{
  ^bb0(%x: i{bits}, %y: i{bits}, %o: {result}):
    {body}
    linalg.yield %r : {result}
  }} -> {made}
  func.return %g : {made}
}}"""


def _run(path: Path, text: str, feeds: dict[str, Any]) -> Any:
    path.write_text(text)
    (found,) = fuseline.compile(path).run(feeds).values()
    return found


WIDENED = {
    "extsi": ("i32", True),
    "extui": ("i32", False),
    "sitofp": ("f32", True),
    "uitofp": ("f32", False),
}


@pytest.mark.parametrize("count", ["?", 77])
@pytest.mark.parametrize("bits", [2, 3, 4, 7])
@pytest.mark.parametrize("name", WIDENED)
def test_the_low_bits_are_widened(tmp_path: Path, name: str, bits: int, count: int | str):
    result, signed = WIDENED[name]
    feeds = {key: RNG.integers(-128, 128, 77).astype(np.int8) for key in "ab"}
    found = _run(tmp_path / "w.mlir", _text(bits, f"%r = arith.{name} %x : i{bits} to {result}", result, count), feeds)
    np.testing.assert_array_equal(found, _number(feeds["a"], bits, signed=signed))


ARITHMETIC = {
    "addi": lambda x, y: x + y,
    "subi": lambda x, y: x - y,
    "muli": lambda x, y: x * y,
    "andi": lambda x, y: x & y,
    "ori": lambda x, y: x | y,
    "xori": lambda x, y: x ^ y,
}


@pytest.mark.parametrize("bits", [2, 4, 6])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_wraps_around(tmp_path: Path, name: str, signed: bool, bits: int):
    t = f"i{bits}"
    body = f"%s = arith.{name} %x, %y : {t}\n %r = arith.ext{'s' if signed else 'u'}i %s : {t} to i32"
    feeds = {key: RNG.integers(-128, 128, 50).astype(np.int8) for key in "ab"}
    x, y = (_number(feeds[key], bits, signed=signed) for key in "ab")
    expected = _number(ARITHMETIC[name](x, y), bits, signed=signed)
    np.testing.assert_array_equal(_run(tmp_path / "a.mlir", _text(bits, body, "i32"), feeds), expected)


def test_what_is_truncated_keeps_low_bits(tmp_path: Path):
    body = """%w = arith.extsi %x : i4 to i32
    %k = arith.constant 5 : i32
    %m = arith.muli %w, %k : i32
    %t = arith.trunci %m : i32 to i3
    %r = arith.extsi %t : i3 to i32"""
    feeds = {key: RNG.integers(-8, 8, 50).astype(np.int8) for key in "ab"}
    found = _run(tmp_path / "t.mlir", _text(4, body, "i32"), feeds)
    np.testing.assert_array_equal(found, _number(5 * feeds["a"].astype(int), 3, signed=True))


@pytest.mark.parametrize("signed", [False, True])
def test_constants_and_what_moves_them(tmp_path: Path, signed: bool):
    numbers = RNG.integers(-8, 8, (3, 4))
    text = f"""
func.func @main(%x: tensor<12x2xf32>) -> tensor<12x2xf32> {{
  %w = arith.constant dense<{numbers.tolist()}> : tensor<3x4xi4>
  %e = tensor.empty() : tensor<4x3xi4>
  %t = linalg.transpose ins(%w : tensor<3x4xi4>) outs(%e : tensor<4x3xi4>) permutation = [1, 0]
  %f = tensor.collapse_shape %t [[0, 1]] : tensor<4x3xi4> into tensor<12xi4>
  %o = tensor.empty() : tensor<12x2xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %f : tensor<12x2xf32>, tensor<12xi4>) outs(%o : tensor<12x2xf32>) {{
  ^bb0(%a: f32, %b: i4, %c: f32):
    %d = arith.{"s" if signed else "u"}itofp %b : i4 to f32
    %p = arith.mulf %a, %d : f32
    linalg.yield %p : f32
  }} -> tensor<12x2xf32>
  func.return %r : tensor<12x2xf32>
}}"""
    feeds = {"x": RNG.uniform(-1, 1, (12, 2)).astype(np.float32)}
    weights = _number(numbers, 4, signed=signed).T.reshape(12, 1)
    np.testing.assert_allclose(_run(tmp_path / "c.mlir", text, feeds), feeds["x"] * weights, rtol=1e-6)


def test_a_grouped_quantised_product_is_one_dispatch(tmp_path: Path):
    rows, groups, size = 24, 3, 16
    weights, scales = f"tensor<{rows}x{groups}x{size}xi4>", f"tensor<{rows}x{groups}xf32>"
    wide = f"tensor<{rows}x{groups}x{size}xf32>"
    text = f"""
func.func @main(%w: {weights}, %s: {scales}, %z: {scales}, %x: tensor<{groups}x{size}xf32>) -> tensor<{rows}xf32> {{
  %e = tensor.empty() : {wide}
  %d = linalg.generic {{indexing_maps = [affine_map<(r, g, k) -> (r, g, k)>, affine_map<(r, g, k) -> (r, g)>,
      affine_map<(r, g, k) -> (r, g)>, affine_map<(r, g, k) -> (r, g, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%w, %s, %z : {weights}, {scales}, {scales}) outs(%e : {wide}) {{
  ^bb0(%a: i4, %b: f32, %c: f32, %o: f32):
    %i = arith.extui %a : i4 to i32
    %f = arith.uitofp %i : i32 to f32
    %p = arith.subf %f, %c : f32
    %q = arith.mulf %p, %b : f32
    linalg.yield %q : f32
  }} -> {wide}
  %zero = arith.constant 0.0 : f32
  %n = tensor.empty() : tensor<{rows}xf32>
  %h = linalg.fill ins(%zero : f32) outs(%n : tensor<{rows}xf32>) -> tensor<{rows}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(r, g, k) -> (g, k)>, affine_map<(r, g, k) -> (r, g, k)>,
      affine_map<(r, g, k) -> (r)>], iterator_types = ["parallel", "reduction", "reduction"]}}
      ins(%x, %d : tensor<{groups}x{size}xf32>, {wide}) outs(%h : tensor<{rows}xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %p, %o : f32
    linalg.yield %q : f32
  }} -> tensor<{rows}xf32>
  func.return %r : tensor<{rows}xf32>
}}"""
    path = tmp_path / "q.mlir"
    feeds = {
        "w": RNG.integers(-128, 128, (rows, groups, size)).astype(np.int8),
        "s": RNG.uniform(0.1, 1, (rows, groups)).astype(np.float32),
        "z": RNG.uniform(0, 15, (rows, groups)).astype(np.float32),
        "x": RNG.uniform(-1, 1, (groups, size)).astype(np.float32),
    }
    found = _run(path, text, feeds)
    wide = (_number(feeds["w"], 4, signed=False) - feeds["z"][..., None]) * feeds["s"][..., None]
    np.testing.assert_allclose(found, np.einsum("rgk,gk->r", wide, feeds["x"]), rtol=1e-4, atol=1e-4)
    assert fuseline.compile(path, target="null").stats["dispatches"] == 1


@pytest.mark.parametrize(
    "body",
    [
        "%s = arith.divsi %x, %y : i4\n %r = arith.extsi %s : i4 to i32",
        "%s = arith.shrui %x, %y : i4\n %r = arith.extsi %s : i4 to i32",
        "%s = arith.maxsi %x, %y : i4\n %r = arith.extsi %s : i4 to i32",
        "%s = arith.cmpi slt, %x, %y : i4\n %r = arith.extsi %s : i1 to i32",
    ],
)
def test_what_needs_more_than_low_bits_is_refused(tmp_path: Path, body: str):
    path = tmp_path / "refused.mlir"
    path.write_text(_text(4, body, "i32"))
    with pytest.raises(FuselineError, match="integers of 2 to 7 bits") as error:
        fuseline.compile(path, target="null")
    assert error.value.code == "E0306"


def test_a_result_is_refused(tmp_path: Path):
    path = tmp_path / "result.mlir"
    path.write_text("func.func @main(%a: tensor<5xi4>) -> tensor<5xi4> {\n  func.return %a : tensor<5xi4>\n}")
    with pytest.raises(FuselineError, match=r"func\.return: of integers of 2 to 7 bits"):
        fuseline.compile(path, target="null")
