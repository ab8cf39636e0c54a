"""Products whose operands are widened on the way: f16, bf16 and i8, any orientation, in one dispatch where it takes no
longer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fuseline
from fuseline.compiled_model import CompiledModel
from tests.draws import RNG

DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8}
ROWS = {False: "(i, l)", True: "(l, i)"}
COLUMNS = {False: "(l, j)", True: "(j, l)"}


def _text(shapes: list[list[str]], turned: tuple[bool, bool], dtype: str, epilogue: bool) -> str:
    """`a @ b` summed in f32 (i32), each operand turned or not; `epilogue`: the absolute value of it."""
    a, b, c = ("x".join(shape) for shape in shapes)
    wide, widen = ("i32", "arith.extsi") if dtype == "i8" else ("f32", "arith.extf")
    multiply, add = ("arith.muli", "arith.addi") if dtype == "i8" else ("arith.mulf", "arith.addf")
    zero = "0 : i32" if dtype == "i8" else "0.0 : f32"
    sizes = [
        f"%n{i} = tensor.dim %{name}, %c{axis} : tensor<{shape}x{dtype}>"
        for i, (name, axis, shape) in enumerate((("a", int(turned[0]), a), ("b", int(not turned[1]), b)))
    ]
    known = "?" not in c
    after = f"""
    %z = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}} ins(%y : tensor<{c}x{wide}>) outs(%e : tensor<{c}x{wide}>) {{
    ^bb0(%v: {wide}, %o: {wide}):
      %w = {"arith.muli %v, %v : i32" if dtype == "i8" else "math.absf %v : f32"}
      linalg.yield %w : {wide}
    }} -> tensor<{c}x{wide}>"""
    return f"""func.func @main(%a: tensor<{a}x{dtype}>, %b: tensor<{b}x{dtype}>) -> tensor<{c}x{wide}> {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    {"" if known else chr(10).join(sizes)}
    %zero = arith.constant {zero}
    %e = tensor.empty({"" if known else "%n0, %n1"}) : tensor<{c}x{wide}>
    %f = linalg.fill ins(%zero : {wide}) outs(%e : tensor<{c}x{wide}>) -> tensor<{c}x{wide}>
    %y = linalg.generic {{indexing_maps = [affine_map<(i, j, l) -> {ROWS[turned[0]]}>,
        affine_map<(i, j, l) -> {COLUMNS[turned[1]]}>, affine_map<(i, j, l) -> (i, j)>],
        iterator_types = ["parallel", "parallel", "reduction"]}}
        ins(%a, %b : tensor<{a}x{dtype}>, tensor<{b}x{dtype}>) outs(%f : tensor<{c}x{wide}>) {{
    ^bb0(%p: {dtype}, %q: {dtype}, %s: {wide}):
      %u = {widen} %p : {dtype} to {wide}
      %v = {widen} %q : {dtype} to {wide}
      %t = {multiply} %u, %v : {wide}
      %r = {add} %s, %t : {wide}
      linalg.yield %r : {wide}
    }} -> tensor<{c}x{wide}>{after if epilogue else ""}
    func.return {"%z" if epilogue else "%y"} : tensor<{c}x{wide}>
    }}"""


def _compiled(
    folder: Path, sizes: tuple[int, int, int], turned: tuple[bool, bool], dtype: str, *, symbolic: bool, epilogue: bool
) -> CompiledModel:
    m, k, n = ("?" if symbolic else str(size) for size in sizes)
    shapes = [[k, m] if turned[0] else [m, k], [n, k] if turned[1] else [k, n], [m, n]]
    path = folder / "product.mlir"
    path.write_text(_text(shapes, turned, dtype, epilogue), encoding="utf-8")
    return fuseline.compile(path, target="cpu")


def _drawn(shape: tuple[int, int], dtype: str) -> Any:
    if dtype == "i8":
        return RNG.integers(-128, 128, shape).astype(np.int8)
    return RNG.standard_normal(shape).astype(np.float32).astype(DTYPES[dtype])


def _check(model: CompiledModel, sizes: tuple[int, int, int], turned: tuple[bool, bool], dtype: str, epilogue: bool):
    m, k, n = sizes
    a, b = _drawn((k, m) if turned[0] else (m, k), dtype), _drawn((n, k) if turned[1] else (k, n), dtype)
    found = np.asarray(model(a, b))
    wide = np.int64 if dtype == "i8" else np.float64
    x, y = (a.T if turned[0] else a).astype(wide), (b.T if turned[1] else b).astype(wide)
    expected = x @ y
    if dtype == "i8":
        assert np.array_equal(found, (expected * expected if epilogue else expected).astype(np.int32))
        return
    bound = np.abs(x) @ np.abs(y) * k * np.finfo(np.float32).eps + 1e-30
    assert np.all(np.abs(found - (np.abs(expected) if epilogue else expected)) <= bound)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_operands_of_any_orientation(tmp_path: Path, turned: tuple[bool, bool], dtype: str):
    m, k, n = (int(size) for size in RNG.integers(3, 150, 3))
    model = _compiled(tmp_path, (m, k, n), turned, dtype, symbolic=False, epilogue=True)
    _check(model, (m, k, n), turned, dtype, True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_symbolic_sizes(tmp_path: Path, dtype: str):
    model = _compiled(tmp_path, (1, 1, 1), (False, False), dtype, symbolic=True, epilogue=False)
    for _ in range(3):
        m, k, n = (int(size) for size in RNG.integers(2, 90, 3))
        _check(model, (m, k, n), (False, False), dtype, False)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_both_operands_are_widened_in_one_dispatch(tmp_path: Path, dtype: str):
    """Few blocks: neither is evaluated more than twice."""
    m, k, n = int(RNG.integers(20, 120)), int(RNG.integers(100, 300)), int(RNG.integers(20, 120))
    model = _compiled(tmp_path, (m, k, n), (False, False), dtype, symbolic=False, epilogue=True)
    assert model.stats["dispatches"] == 1
    _check(model, (m, k, n), (False, False), dtype, True)
