"""Ops of `iree_linalg_ext`: each gives the numbers of its definition, native code and the interpreter alike; what does
not fit is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module, print_module
from tests.draws import RNG, generator

_HELD = generator(__name__)
X = _HELD.integers(-4, 4, (3, 7)).astype(np.float32)
N = _HELD.integers(-9, 9, (3, 7)).astype(np.int32)
W = _HELD.standard_normal((6, 4), dtype=np.float32)
AT = np.array([[5], [0], [5]], np.int32)
U = _HELD.standard_normal((3, 4), dtype=np.float32)


def _run(text: str, feeds: dict[str, Any], tmp_path: Path) -> list[Any]:
    path = tmp_path / "p.mlir"
    path.write_text(text)
    native, reference = (
        list(fuseline.compile(path, target=target, threads=1).run(feeds).values()) for target in ("cpu", "interpreter")
    )
    for got, want in zip(native, reference, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    return native


def _function(arguments: str, results: str, lines: str) -> str:
    names = ", ".join(f"%r#{i}" for i in range(results.count("tensor<"))) if ", tensor" in results else "%r"
    return f"func.func @main({arguments}) -> ({results}) {{\n{lines}\n  return {names} : {results}\n}}"


def _sort(kind: str, sizes: str, compare: str) -> str:
    body = (
        f"^bb0(%a: {kind}, %b: {kind}, %c: i32, %d: i32):\n  %k = {compare} %a, %b : {kind}\n  "
        f"iree_linalg_ext.yield %k : i1"
    )
    types = f"tensor<{sizes}x{kind}>, tensor<{sizes}xi32>"
    lines = f"%r:2 = iree_linalg_ext.sort dimension(1) outs(%x, %n : {types}) {{\n{body}\n}} -> {types}"
    return _function(f"%x: tensor<{sizes}x{kind}>, %n: tensor<{sizes}xi32>", types, lines)


@pytest.mark.parametrize("sizes", ["3x7", "?x?"])
@pytest.mark.parametrize(("compare", "sign"), [("arith.cmpf olt,", 1), ("arith.cmpf oge,", -1)])
def test_sort_is_stable_and_takes_others_along(sizes: str, compare: str, sign: int, tmp_path: Path):
    order = np.argsort(sign * X, axis=1, kind="stable")
    first, second = _run(_sort("f32", sizes, compare), {"x": X, "n": N}, tmp_path)
    np.testing.assert_array_equal(first, np.take_along_axis(X, order, 1))
    np.testing.assert_array_equal(second, np.take_along_axis(N, order, 1))


def test_a_comparison_that_contradicts_itself_reads_nothing_outside(tmp_path: Path):
    broken = np.where(X > 1, np.nan, X).astype(np.float32)
    assert _run(_sort("f32", "3x7", "arith.cmpf ogt,"), {"x": broken, "n": N}, tmp_path)[0].shape == X.shape


def _top(name: str, given: bool, sizes: str, room: str, compare: str) -> str:
    body = f"^bb0(%a: f32, %b: f32):\n  %k = arith.cmpf {compare}, %a, %b : f32\n  iree_linalg_ext.yield %k : i1"
    ins = f"%x, %n : tensor<{sizes}xf32>, tensor<{sizes}xi32>" if given else f"%x : tensor<{sizes}xf32>"
    types = f"tensor<{room}xf32>, tensor<{room}xi32>"
    lines = f"%r:2 = iree_linalg_ext.{name} dimension(1) ins({ins}) outs(%v, %i : {types}) {{\n{body}\n}} -> {types}"
    return _function(
        f"%x: tensor<{sizes}xf32>, %n: tensor<{sizes}xi32>, %v: tensor<{room}xf32>, %i: tensor<{room}xi32>",
        types,
        lines,
    )


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("sizes", ["3x7", "3x?"])
def test_top_k_takes_the_output_as_candidates(given: bool, sizes: str, tmp_path: Path):
    start, positions = np.array([[2.5, -9], [-9, -9], [9, 8]], np.float32), np.full((3, 2), 100, np.int32)
    values, indices = _run(
        _top("topk", given, sizes, "3x2", "ogt"), {"x": X, "n": N, "v": start, "i": positions}, tmp_path
    )
    whole, where = (
        np.concatenate([start, X], 1),
        np.concatenate([positions, N if given else np.tile(np.arange(7, dtype=np.int32), (3, 1))], 1),
    )
    order = np.argsort(-whole, axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(values, np.take_along_axis(whole, order, 1))
    np.testing.assert_array_equal(indices, np.take_along_axis(where, order, 1))


def test_top_k_of_the_second_version_looks_at_the_input_alone(tmp_path: Path):
    feeds = {"x": X, "n": N, "v": np.full((3, 4), 99, np.float32), "i": np.zeros((3, 4), np.int32)}
    values, indices = _run(_top("topk_v2", False, "3x7", "3x4", "olt"), feeds, tmp_path)
    np.testing.assert_array_equal(values, np.sort(X, 1)[:, :4])
    np.testing.assert_array_equal(indices, np.argsort(X, axis=1, kind="stable")[:, :4])


def _scan(sizes: str, inclusive: bool, combine: str) -> str:
    types = f"tensor<{sizes}xf32>, tensor<7xf32>" if sizes == "3x7" else f"tensor<{sizes}xf32>, tensor<?xf32>"
    body = f"^bb0(%a: f32, %b: f32):\n  %k = {combine} %a, %b : f32\n  iree_linalg_ext.yield %k : f32"
    words = f"dimension(0) inclusive({str(inclusive).lower()}) ins(%x : tensor<{sizes}xf32>) outs(%o, %s : {types})"
    arguments = f"%x: tensor<{sizes}xf32>, %o: tensor<{sizes}xf32>, %s: {types.split(', ')[1]}"
    return _function(arguments, types, f"%r:2 = iree_linalg_ext.scan {words} {{\n{body}\n}} -> {types}")


@pytest.mark.parametrize("sizes", ["3x7", "?x?"])
@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("combine", ["arith.addf", "arith.subf", "arith.maximumf"])
def test_a_scan_takes_elements_in_order(sizes: str, inclusive: bool, combine: str, tmp_path: Path):
    start = RNG.standard_normal(7, dtype=np.float32)
    out, last = _run(_scan(sizes, inclusive, combine), {"x": X, "o": np.zeros_like(X), "s": start}, tmp_path)
    function = {"arith.addf": np.add, "arith.subf": np.subtract, "arith.maximumf": np.maximum}[combine]
    expected = [X[0] if inclusive else start]
    for row in X[1:] if inclusive else X[:-1]:
        expected.append(function(expected[-1], row))
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    np.testing.assert_allclose(last, expected[-1], rtol=1e-5)


@pytest.mark.parametrize("kind", ["index", "i64", "i32"])
@pytest.mark.parametrize("base", [True, False])
def test_the_best_element_is_the_first_of_equals(kind: str, base: bool, tmp_path: Path):
    body = "^bb0(%a: f32, %b: f32):\n  %k = arith.cmpf ogt, %a, %b : f32\n  iree_linalg_ext.yield %k : i1"
    types = f"tensor<3xf32>, tensor<3x{kind}>"
    offset = " index_base(%c : index)" if base else ""
    lines = f"""%c = arith.constant 40 : index
%r:2 = iree_linalg_ext.arg_compare dimension(1) ins(%x : tensor<3x?xf32>) outs(%v, %i : {types}){offset} {{\n{body}\n}}
    -> {types}"""
    text = _function(f"%x: tensor<3x?xf32>, %v: tensor<3xf32>, %i: tensor<3x{kind}>", types, lines)
    dtype = np.int32 if kind == "i32" else np.int64
    start = np.array([-99, 50, -99], np.float32)
    best, at = _run(text, {"x": X, "v": start, "i": np.full(3, 7, dtype)}, tmp_path)
    np.testing.assert_array_equal(best, np.maximum(X.max(1), start))
    np.testing.assert_array_equal(at, np.where(start > X.max(1), 7, X.argmax(1) + 40 * base))


def _scatter(combine: str, indices: str, mask: bool, sizes: tuple[str, str] = ("6x4", "3x4")) -> str:
    whole, part = (f"tensor<{size}xf32>" for size in sizes)
    made = "" if combine == "" else f"  %k = {combine} %a, %b : f32\n"
    body = f"^bb0(%a: f32, %b: f32):\n{made}  iree_linalg_ext.yield {'%k' if combine else '%a'} : f32"
    ins = (
        f"%u, %at, %m : {part}, tensor<{indices}xi32>, tensor<3xi1>"
        if mask
        else f"%u, %at : {part}, tensor<{indices}xi32>"
    )
    words = "dimension_map = [0] unique_indices(false)"
    lines = f"%r = iree_linalg_ext.scatter {words} ins({ins}) outs(%w : {whole}) {{\n{body}\n}} -> {whole}"
    return _function(f"%w: {whole}, %u: {part}, %at: tensor<{indices}xi32>, %m: tensor<3xi1>", whole, lines)


@pytest.mark.parametrize("sizes", [("6x4", "3x4"), ("?x?", "?x?")])
@pytest.mark.parametrize("combine", ["", "arith.addf", "arith.mulf", "arith.subf"])
@pytest.mark.parametrize(("indices", "mask"), [("3x1", False), ("3", True)])
def test_updates_come_one_after_the_other(
    sizes: tuple[str, str], combine: str, indices: str, mask: bool, tmp_path: Path
):
    at, masked = AT.reshape(3) if indices == "3" else AT, np.array([True, True, False])
    (got,) = _run(_scatter(combine, indices, mask, sizes), {"w": W, "u": U, "at": at, "m": masked}, tmp_path)
    function = {"": lambda a, b: a, "arith.addf": np.add, "arith.mulf": np.multiply, "arith.subf": np.subtract}[combine]
    expected = W.copy()
    for update, position, taken in zip(U, AT[:, 0], masked, strict=True):
        expected[position] = function(update, expected[position]) if taken or not mask else expected[position]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_updates_outside_go_nowhere(tmp_path: Path):
    feeds = {"w": W, "u": U, "at": np.array([[-1], [6], [2]], np.int32), "m": np.ones(3, bool)}
    expected = W.copy()
    expected[2] = U[2]
    np.testing.assert_array_equal(_run(_scatter("", "3x1", False), feeds, tmp_path)[0], expected)


@pytest.mark.parametrize(("order", "positions"), [("[0, 1]", [(0, 3), (5, 1)]), ("[1, 0]", [(3, 0), (1, 5)])])
def test_gather_names_dimensions_in_the_order_of_its_map(order: str, positions: list[tuple[int, int]], tmp_path: Path):
    source = RNG.standard_normal((6, 4, 5), dtype=np.float32)
    types = "ins(%s, %at : tensor<6x4x5xf32>, tensor<2x2xi64>) outs(%o : tensor<2x5xf32>) -> tensor<2x5xf32>"
    lines = f"%r = iree_linalg_ext.gather dimension_map = {order} {types}"
    text = _function("%s: tensor<6x4x5xf32>, %at: tensor<2x2xi64>, %o: tensor<2x5xf32>", "tensor<2x5xf32>", lines)
    feeds = {"s": source, "at": np.array(positions, np.int64), "o": np.zeros((2, 5), np.float32)}
    np.testing.assert_array_equal(_run(text, feeds, tmp_path)[0], source[[0, 5], [3, 1]])
    feeds["at"] = np.array([(99, 99), (-5, -5)], np.int64)
    np.testing.assert_array_equal(_run(text, feeds, tmp_path)[0], source[[5, 0], [3, 0]])


def test_gather_leaves_what_is_masked(tmp_path: Path):
    lines = """%r = iree_linalg_ext.gather dimension_map = [0]
        ins(%s, %at, %m : tensor<6x4xf32>, tensor<3xi32>, tensor<3xi1>)
  outs(%o : tensor<3x4xf32>) -> tensor<3x4xf32>"""
    arguments = "%s: tensor<6x4xf32>, %at: tensor<3xi32>, %m: tensor<3xi1>, %o: tensor<3x4xf32>"
    masked = np.array([True, False, True])
    (got,) = _run(
        _function(arguments, "tensor<3x4xf32>", lines), {"s": W, "at": AT[:, 0], "m": masked, "o": U}, tmp_path
    )
    np.testing.assert_array_equal(got, np.where(masked[:, None], W[AT[:, 0]], U))


def test_elements_from_where_a_body_says(tmp_path: Path):
    lines = """%r = iree_linalg_ext.map_load %s into %o {
^bb0(%i: index, %j: index):
  %c = arith.constant 2 : index
  %k = arith.subi %i, %c : index
  %p = arith.constant 0.5 : f32
  iree_linalg_ext.yield %j, %k, %p : index, index, f32
} : tensor<6x4xf32> into tensor<8x?xf32> -> tensor<8x?xf32>"""
    (got,) = _run(
        _function("%s: tensor<6x4xf32>, %o: tensor<8x?xf32>", "tensor<8x?xf32>", lines),
        {"s": W, "o": np.zeros((8, 7), np.float32)},
        tmp_path,
    )
    np.testing.assert_array_equal(got, np.pad(W.T, ((2, 2), (0, 1)), constant_values=0.5))


def test_elements_to_where_a_body_says(tmp_path: Path):
    lines = """%r = iree_linalg_ext.map_store %s into %o {
^bb0(%i: index, %j: index):
  %c = arith.constant 2 : index
  %k = arith.addi %i, %c : index
  %m = arith.cmpi ult, %j, %c : index
  iree_linalg_ext.yield %j, %k, %m : index, index, i1
} : tensor<3x4xf32> into tensor<4x6xf32> -> tensor<4x6xf32>"""
    into = W.T.copy()
    expected = into.copy()
    expected[:2, 2:5] = U[:, :2].T
    (got,) = _run(
        _function("%s: tensor<3x4xf32>, %o: tensor<4x6xf32>", "tensor<4x6xf32>", lines), {"s": U, "o": into}, tmp_path
    )
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("given", [True, False])
def test_the_stages_of_a_fourier_transform(given: bool, tmp_path: Path):
    types, lines = "tensor<2x8xf32>, tensor<2x8xf32>", ""
    real, imaginary = "%x", "%y"
    for stage in (1, 2, 3):
        turns = -2 * np.pi * np.arange(1 << stage - 1) / (1 << stage)
        size = len(turns)
        for name, numbers in (("c", np.cos(turns)), ("s", np.sin(turns))):
            lines += (
                f"%{name}{stage} = arith.constant dense<[{', '.join(f'{number:.8e}' for number in numbers)}]> : "
                f"tensor<{size}xf32>\n"
            )
        lines += f"%n{stage} = arith.constant {stage} : index\n"
        ins = (
            f"%n{stage}, %c{stage}, %s{stage} : index, tensor<{size}xf32>, tensor<{size}xf32>"
            if given
            else f"%n{stage} : index"
        )
        result = "r" if stage == 3 else f"r{stage}"
        lines += f"%{result}:2 = iree_linalg_ext.fft ins({ins}) outs({real}, {imaginary} : {types}) : {types}\n"
        real, imaginary = f"%{result}#0", f"%{result}#1"
    x = RNG.standard_normal((2, 8)) + 1j * RNG.standard_normal((2, 8))
    turned = x[:, [0, 4, 2, 6, 1, 5, 3, 7]]
    feeds = {"x": turned.real.astype(np.float32), "y": turned.imag.astype(np.float32)}
    got = _run(_function("%x: tensor<2x8xf32>, %y: tensor<2x8xf32>", types, lines), feeds, tmp_path)
    np.testing.assert_allclose(got[0] + 1j * got[1], np.fft.fft(x), rtol=1e-4, atol=1e-4)


def _custom(sizes: str, tile: str) -> str:
    whole, part = f"tensor<{sizes}xf32>", f"tensor<{tile}xf32>"
    return _function(
        f"%x: {whole}, %y: {whole}, %s: f32",
        whole,
        f"""%r = iree_linalg_ext.custom_op {{indexing_maps = [affine_map<(i)[j] -> (i, j)>, affine_map<(i)[j] -> ()>,
            affine_map<(i)[j] -> (i, j)>],
    iterator_types = [#iree_linalg_ext.iterator_type<parallel>]}} ins(%x, %s : {whole}, f32) outs(%y : {whole}) {{
^bb0(%a: {part}, %t: f32, %b: {part}):
  %m = linalg.map ins(%a : {part}) outs(%b : {part})
    (%e: f32, %f: f32) {{
      %p = arith.mulf %e, %t : f32
      linalg.yield %p : f32
    }}
  %d = arith.addf %m, %b : {part}
  iree_linalg_ext.yield %d : {part}
}} -> {whole}""",
    )


@pytest.mark.parametrize(("sizes", "tile"), [("3x7", "?x?"), ("?x7", "?x?"), ("3x7", "3x7")])
def test_a_custom_op_is_its_body(sizes: str, tile: str, tmp_path: Path):
    other = RNG.standard_normal((3, 7), dtype=np.float32)
    (got,) = _run(_custom(sizes, tile), {"x": X, "y": other, "s": 1.5}, tmp_path)
    np.testing.assert_allclose(got, X * np.float32(1.5) + other, rtol=1e-6)


WRITTEN = {
    "custom_op": _custom("3x7", "?x?"),
    "sort": _sort("f32", "3x7", "arith.cmpf olt,"),
    "topk": _top("topk", True, "3x7", "3x2", "ogt"),
    "scan": _scan("?x?", False, "arith.addf"),
    "scatter": _scatter("arith.addf", "3x1", True),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_printed_is_read_again(name: str):
    printed = print_module(parse_module(WRITTEN[name], new_context()))
    assert print_module(parse_module(printed, new_context())) == printed


BROKEN = {
    "dimension out of rank": (WRITTEN["sort"].replace("dimension(1)", "dimension(7)"), "E0302"),
    "sizes that differ": (WRITTEN["sort"].replace("tensor<3x7xi32>", "tensor<3x6xi32>"), "E0302"),
    "body of another type": (WRITTEN["scan"].replace("%a: f32", "%a: i32"), "E0301"),
    "no body": (
        "\n".join(line for line in WRITTEN["sort"].split("\n") if "^bb0" not in line and "%k" not in line),
        "E0302",
    ),
    "a word missing": (WRITTEN["scan"].replace("inclusive(false)", ""), "E0302"),
    "a word without a value": (WRITTEN["scan"].replace("inclusive(false)", "inclusive"), "E0301"),
    "a map that is no list": (WRITTEN["scatter"].replace("[0]", "0"), "E0301"),
    "a map of another dimension": (WRITTEN["scatter"].replace("[0]", "[1]"), "E0302"),
    "a map of too many": (WRITTEN["scatter"].replace("[0]", "[0, 1, 2]"), "E0302"),
    "one output": (
        WRITTEN["topk"].replace("%v, %i : tensor<3x2xf32>, tensor<3x2xi32>", "%v : tensor<3x2xf32>"),
        "E0302",
    ),
    "a tile of another rank": (_custom("3x7", "?"), "E0302"),
    "a tile of another size": (_custom("3x7", "4x7"), "E0302"),
    "no kinds": (_custom("3x7", "3x7").replace("iterator_types", "kinds"), "E0301"),
    "memref": (WRITTEN["scan"].replace("tensor<", "memref<"), "E0302"),
    "more than there are": (_top("topk_v2", False, "3x7", "3x9", "ogt"), "E0306"),
    "too many to compare": (_sort("i1", "3x99999", "arith.xori"), "E0306"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_fit_is_refused_by_line(name: str, tmp_path: Path):
    text, code = BROKEN[name]
    path = tmp_path / "p.mlir"
    path.write_text(text)
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(path, target="null")
    assert caught.value.code == code, caught.value
    assert str(caught.value.node).startswith("p.mlir:") and str(caught.value.node).count(":") == 2


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0, 2)])
@pytest.mark.parametrize("known", [True, False])
def test_every_element_to_a_place_of_its_own(order: tuple[int, ...], known: bool, tmp_path: Path):
    """Dimensions in another order: no search for the element that goes there; in the same order nothing at all."""
    sizes = RNG.permutation([3, 4, 5])[list(np.argsort(order))]
    into = [sizes[axis] for axis in order]
    source, dest = (f"tensor<{'x'.join(map(str, each)) if known else '?x?x?'}xf32>" for each in (sizes, into))
    lines = f"""%r = iree_linalg_ext.map_store %s into %o {{
^bb0(%i0: index, %i1: index, %i2: index):
  %m = arith.constant true
  iree_linalg_ext.yield {", ".join(f"%i{axis}" for axis in order)}, %m : index, index, index, i1
}} : {source} into {dest} -> {dest}"""
    text = _function(f"%s: {source}, %o: {dest}", dest, lines)
    feeds = {"s": RNG.standard_normal(sizes, dtype=np.float32), "o": np.zeros(into, np.float32)}
    (got,) = _run(text, feeds, tmp_path)
    np.testing.assert_array_equal(got, feeds["s"].transpose(order))
    (tmp_path / "q.mlir").write_text(text)
    assert fuseline.compile(tmp_path / "q.mlir").stats["dispatches"] == (order != (0, 1, 2))


def test_elements_that_reach_a_part_of_the_result(tmp_path: Path):
    """The same places, and a result that is larger: what no element goes to stays."""
    lines = """%r = iree_linalg_ext.map_store %s into %o {
^bb0(%i: index, %j: index):
  %m = arith.constant true
  iree_linalg_ext.yield %i, %j, %m : index, index, i1
} : tensor<3x4xf32> into tensor<6x4xf32> -> tensor<6x4xf32>"""
    (got,) = _run(
        _function("%s: tensor<3x4xf32>, %o: tensor<6x4xf32>", "tensor<6x4xf32>", lines), {"s": U, "o": W}, tmp_path
    )
    np.testing.assert_array_equal(got, np.concatenate([U, W[3:]]))


def test_every_element_from_a_place_of_its_own(tmp_path: Path):
    lines = """%r = iree_linalg_ext.map_load %s into %o {
^bb0(%i: index, %j: index):
  %p = arith.constant 0.5 : f32
  iree_linalg_ext.yield %j, %i, %p : index, index, f32
} : tensor<6x4xf32> into tensor<3x5xf32> -> tensor<3x5xf32>"""
    (got,) = _run(
        _function("%s: tensor<6x4xf32>, %o: tensor<3x5xf32>", "tensor<3x5xf32>", lines),
        {"s": W, "o": np.zeros((3, 5), np.float32)},
        tmp_path,
    )
    np.testing.assert_array_equal(got, W.T[:3, :5])


def _compared(kind: str, lines: str, sizes: str = "3x7") -> str:
    """A sort of `x` and `n` by a comparator whose last value is `%k`."""
    types = f"tensor<{sizes}x{kind}>, tensor<{sizes}xi32>"
    body = f"^bb0(%a: {kind}, %b: {kind}, %c: i32, %d: i32):\n{lines}\n  iree_linalg_ext.yield %k : i1"
    text = f"%r:2 = iree_linalg_ext.sort dimension(1) outs(%x, %n : {types}) {{\n{body}\n}} -> {types}"
    return _function(f"%x: tensor<{sizes}x{kind}>, %n: tensor<{sizes}xi32>", types, text)


TWO = "%f = arith.cmpf ogt, %a, %b : f32\n%s = arith.cmpi slt, %c, %d : i32\n%e = arith.cmpf oeq, %a, %b : f32\n"
KEYS: dict[str, tuple[str, Callable[[Any, Any], Sequence[Any]]]] = {
    "an or": (TWO + "%w = arith.andi %e, %s : i1\n%k = arith.ori %f, %w : i1", lambda x, n: (n, -x)),
    "an or, turned": (TWO + "%w = arith.andi %s, %e : i1\n%k = arith.ori %w, %f : i1", lambda x, n: (n, -x)),
    "a choice": (TWO + "%k = arith.select %e, %s, %f : i1", lambda x, n: (n, -x)),
    "unsigned": ("%k = arith.cmpi ult, %c, %d : i32", lambda x, n: (n.astype(np.uint32),)),
    "sides exchanged": ("%k = arith.cmpi sgt, %d, %c : i32", lambda x, n: (n,)),
    "a function": (
        "%p = math.absf %a : f32\n%q = math.absf %b : f32\n%k = arith.cmpf olt, %p, %q : f32",
        lambda x, n: (np.abs(x),),
    ),
    "a function of two": (
        """%i = arith.sitofp %c : i32 to f32
%j = arith.sitofp %d : i32 to f32
%p = arith.addf %a, %i : f32
%q = arith.addf %b, %j : f32
%k = arith.cmpf oge, %p, %q : f32""",
        lambda x, n: (-(x + n),),
    ),
}


@pytest.mark.parametrize("sizes", ["3x7", "?x?"])
@pytest.mark.parametrize("name", KEYS)
def test_comparators_of_keys_are_one_dispatch(name: str, sizes: str, tmp_path: Path):
    lines, keys = KEYS[name]
    text = _compared("f32", lines, sizes)
    first, second = _run(text, {"x": X, "n": N}, tmp_path)
    order = np.stack([np.lexsort([*keys(x, n)]) for x, n in zip(X, N, strict=True)])
    np.testing.assert_array_equal(first, np.take_along_axis(X, order, 1))
    np.testing.assert_array_equal(second, np.take_along_axis(N, order, 1))
    program = fuseline.compile(tmp_path / "p.mlir", threads=1)
    assert program.stats["dispatches"] == 1 and program.stats["families"] == {"order": 1}


NO_KEYS = {
    "another function": "%p = math.absf %b : f32\n%k = arith.cmpf olt, %a, %p : f32",
    "of both places": "%p = arith.addf %a, %b : f32\n%q = arith.addf %b, %a : f32\n%k = arith.cmpf olt, %p, %q : f32",
    "no order": "%k = arith.cmpi ne, %c, %d : i32",
    "equal elements of something else": (
        "%f = arith.cmpf ogt, %a, %b : f32\n%s = arith.cmpi slt, %c, %d : i32\n%e = arith.cmpi eq, %c, %d : i32\n"
        "%k = arith.select %e, %s, %f : i1"
    ),
}


@pytest.mark.parametrize("name", NO_KEYS)
def test_other_comparators_are_asked_of_each_two(name: str, tmp_path: Path):
    first, _ = _run(_compared("f32", NO_KEYS[name]), {"x": X, "n": N}, tmp_path)
    assert first.shape == X.shape


@pytest.mark.parametrize("name", ["topk", "topk_v2"])
@pytest.mark.parametrize("sizes", ["3x7", "3x?"])
def test_the_first_alone(name: str, sizes: str, tmp_path: Path):
    start, positions = np.array([[2.5], [-9], [9]], np.float32), np.full((3, 1), 100, np.int32)
    feeds = {"x": X, "n": N, "v": start, "i": positions}
    values, indices = _run(_top(name, given=True, sizes=sizes, room="3x1", compare="ogt"), feeds, tmp_path)
    joined = name == "topk"
    whole, where = (np.concatenate([start, X], 1), np.concatenate([positions, N], 1)) if joined else (X, N)
    first = np.argmax(whole, axis=1)[:, None]
    np.testing.assert_array_equal(values, np.take_along_axis(whole, first, 1))
    np.testing.assert_array_equal(indices, np.take_along_axis(where, first, 1))


@pytest.mark.parametrize("name", ["topk", "topk_v2"])
@pytest.mark.parametrize("sizes", ["3x7", "3x?", "?x?"])
def test_selections_are_one_dispatch(name: str, sizes: str, tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(_top(name, given=True, sizes=sizes, room="3x2", compare="ogt").replace("3x2", sizes[0] + "x2"))
    assert fuseline.compile(path, threads=2).stats["dispatches"] == 1
