"""Rows of a computed table that elements are picked of lie in scratch; where none are made, each is evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

TABLE = (2, 24, 5, 7)


def _text(element: str, sizes: tuple[int, int, int, int], axis: int, *, twice: bool = False) -> str:
    """A sum is picked of at four places, that along `axis` by the innermost loop; `twice`: two elements of it."""
    order = [0, 1, 2]
    order.insert(axis, 3)
    table, result = "x".join(map(str, TABLE)), "x".join(map(str, sizes))
    vectors = [f"tensor<{sizes[loop]}xi64>" for loop in order]
    maps = ", ".join(f"affine_map<(a, b, c, d) -> ({'abcd'[loop]})>" for loop in order)
    four = "affine_map<(a, b, c, d) -> (a, b, c, d)>"
    turned = "affine_map<(a, b, c, d) -> (a, c, d, b)>" if axis == 1 else four
    laid = "x".join(map(str, (TABLE[0], TABLE[2], TABLE[3], TABLE[1]))) if axis == 1 else table
    kinds = 'iterator_types = ["parallel", "parallel", "parallel", "parallel"]'
    add, zero = ("addf", "0.0") if element.startswith("f") else ("addi", "0")
    second = f"%u = tensor.extract %t[%i0, %i1, %i2, %i3] : tensor<{table}x{element}>"
    if twice:
        second = second.replace(f"%i{axis}", "%z")
    casts = "\n".join(f"    %i{n} = arith.index_cast %p{n} : i64 to index" for n in range(4))
    arguments = ", ".join(f"%v{n}: {type_}" for n, type_ in enumerate(vectors))
    tables = f"%x: tensor<{laid}x{element}>, %y: tensor<{laid}x{element}>"
    return f"""
func.func @main({tables}, {arguments}) -> tensor<{result}x{element}> {{
  %z = arith.constant 0 : index
  %zero = arith.constant {zero} : {element}
  %e = tensor.empty() : tensor<{table}x{element}>
  %t = linalg.generic {{indexing_maps = [{turned}, {turned}, {four}], {kinds}}}
      ins(%x, %y : tensor<{laid}x{element}>, tensor<{laid}x{element}>) outs(%e : tensor<{table}x{element}>) {{
  ^bb0(%l: {element}, %r: {element}, %o: {element}):
    %s = arith.{add} %l, %r : {element}
    linalg.yield %s : {element}
  }} -> tensor<{table}x{element}>
  %f = tensor.empty() : tensor<{result}x{element}>
  %g = linalg.generic {{indexing_maps = [{maps}, {four}], {kinds}}}
      ins(%v0, %v1, %v2, %v3 : {", ".join(vectors)}) outs(%f : tensor<{result}x{element}>) {{
  ^bb0(%p0: i64, %p1: i64, %p2: i64, %p3: i64, %o: {element}):
{casts}
    %w = tensor.extract %t[%i0, %i1, %i2, %i3] : tensor<{table}x{element}>
    {second}
    %k = arith.{add} %w, %{"u" if twice else "zero"} : {element}
    linalg.yield %k : {element}
  }} -> tensor<{result}x{element}>
  func.return %g : tensor<{result}x{element}>
}}"""


def _kernel(tmp_path: Path, text: str, element: str, sizes: tuple[int, ...], axis: int, threads: int, twice: bool):
    """The kernel of the one dispatch, whose result is compared."""
    path = tmp_path / "rows.mlir"
    path.write_text(text)
    dtype = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i32": np.int32, "i8": np.int8}[element]
    laid = [TABLE[0], TABLE[2], TABLE[3], TABLE[1]] if axis == 1 else list(TABLE)
    feeds: dict[str, Any] = {name: RNG.integers(-9, 9, laid).astype(dtype) for name in "xy"}
    order = [0, 1, 2]
    order.insert(axis, 3)
    places = [RNG.integers(0, size, sizes[loop]) for size, loop in zip(TABLE, order, strict=True)]
    feeds |= {f"v{n}": place for n, place in enumerate(places)}
    program = fuseline.compile(path, threads=threads, fusion="aggressive")
    (found,) = program.run(feeds).values()
    table = feeds["x"] + feeds["y"]
    table = table.transpose(0, 3, 1, 2) if axis == 1 else table
    at = np.ix_(*places)
    expected = table[at].transpose([order.index(loop) for loop in range(4)])
    if twice:
        other = list(places)
        other[axis] = np.zeros_like(places[axis])
        expected = expected + table[np.ix_(*other)].transpose([order.index(loop) for loop in range(4)])
    np.testing.assert_array_equal(found, expected)
    return fuseline.api.emit(path, "kernel", threads=threads, fusion="aggressive")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("element", ["f32", "f16", "f64"])
@pytest.mark.parametrize(("sizes", "axis"), [((2, 9, 9, 40), 1), ((3, 6, 5, 24), 1), ((2, 5, 24, 7), 3)])
def test_a_row_lies_in_scratch(tmp_path: Path, element: str, sizes: tuple[int, int, int, int], axis: int, threads: int):
    kernel = _kernel(tmp_path, _text(element, sizes, axis), element, sizes, axis, threads, False)
    assert f"scratch at 0: s0 {'f32' if element == 'f16' else element}[{TABLE[axis]}]" in kernel


@pytest.mark.parametrize(("sizes", "axis", "twice"), [((2, 9, 9, 20), 1, False), ((1, 1, 3, 40), 1, False)])
def test_no_row_is_made_for_a_few_elements_or_for_few_rows(
    tmp_path: Path, sizes: tuple[int, int, int, int], axis: int, twice: bool
):
    kernel = _kernel(tmp_path, _text("f32", sizes, axis, twice=twice), "f32", sizes, axis, 1, twice)
    assert "scratch" not in kernel


@pytest.mark.parametrize("axis", [0, 2])
def test_no_row_is_made_across_memory(tmp_path: Path, axis: int):
    sizes = (9, 9, 6, 40)
    assert "scratch" not in _kernel(tmp_path, _text("f32", sizes, axis), "f32", sizes, axis, 1, False)


def test_two_elements_of_a_row(tmp_path: Path):
    _kernel(tmp_path, _text("f32", (2, 9, 9, 40), 1, twice=True), "f32", (2, 9, 9, 40), 1, 1, True)


@pytest.mark.parametrize("rows", ["p", "p, p"])
@pytest.mark.parametrize("computed", [True, False])
def test_rows_that_are_taken_themselves(computed: bool, rows: str):
    """Two gathers, one of the other; of what lies in memory nothing is copied."""
    table = "t = Add(a, b)" if computed else "t = Identity(a)"
    again = "u = Gather<axis = 0>(t, p)" if rows == "p" else "v = Gather<axis = 0>(t, p)  u = Gather<axis = 0>(v, p)"
    model = onnx_model(
        f"(float[30,40] a, float[30,40] b, int64[30] p, int64[55] q) => (float[30,55] y) {{ {table} {again} "
        "y = Gather<axis = 1>(u, q) }"
    )
    feeds: dict[str, Any] = {name: RNG.uniform(-1, 1, (30, 40)).astype(np.float32) for name in "ab"}
    feeds |= {"p": RNG.integers(0, 30, 30), "q": RNG.integers(0, 40, 55)}
    made = feeds["a"] + feeds["b"] if computed else feeds["a"]
    places = feeds["p"] if rows == "p" else feeds["p"][feeds["p"]]
    program = fuseline.compile(model)
    np.testing.assert_array_equal(program.run(feeds)["y"], made[places][:, feeds["q"]])
    kernel = fuseline.api.emit(model, "kernel")
    assert (program.stats["dispatches"], "s0 f32[40]" in kernel) == (1, computed)
