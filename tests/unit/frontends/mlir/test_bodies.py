"""Results per iteration beside a reduction, reads at places of data, and what a program may hold."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from fuseline.frontends.mlir.mixed_results import separate_results
from fuseline.frontends.mlir.readable import keep_reads_inside
from fuseline.frontends.mlir.support import check_supported
from tests.unit.frontends.mlir.steps import after, computed, function, normal, ops_after, refused


def _separate(module: ModuleOp, main: FuncOp) -> None:
    separate_results(main)


def _inside(module: ModuleOp, main: FuncOp) -> None:
    keep_reads_inside(main)


def _supported(module: ModuleOp, main: FuncOp) -> None:
    check_supported(main)


# -- results -----------------------------------------------------------------------------------------------------------


def _mixed(yields: str, first: str = "(i, j)", inside: str = "") -> str:
    m, v = "tensor<3x4xf32>", "tensor<3xf32>"
    maps = f"affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> {first}>, affine_map<(i, j) -> (i)>"
    kind = m if first == "(i, j)" else "tensor<4xf32>"
    lines = f"""%r:2 = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "reduction"]}}
  ins(%x : {m}) outs(%o, %z : {kind}, {v}) {{
^bb0(%a: f32, %b: f32, %acc: f32):
  %e = math.exp %a : f32
  %s = arith.addf %acc, %e : f32
  {inside}
  linalg.yield {yields} : f32, f32
}} -> ({kind}, {v})"""
    return function(f"%x: {m}, %o: {kind}, %z: {v}", lines, [kind, v], "%r#0, %r#1")


def test_results_are_taken_apart() -> None:
    x, z = normal(3, 4), normal(3)
    assert ops_after(_mixed("%e, %s"), _separate) == ["linalg.generic"] * 2 + ["func.return"]
    found = computed(_mixed("%e, %s"), _separate, x, normal(3, 4), z)
    np.testing.assert_allclose(found[0], np.exp(x), rtol=1e-5)
    np.testing.assert_allclose(found[1], z + np.exp(x).sum(1), rtol=1e-4)


@pytest.mark.parametrize(
    ("yields", "first", "inside"),
    [
        ("%s, %s", "(i, j)", ""),
        ("%acc, %s", "(i, j)", ""),
        ("%t, %s", "(i, j)", "%t = arith.mulf %e, %b : f32"),
    ],
)
def test_results_that_read_what_was_there(yields: str, first: str, inside: str) -> None:
    refused(_mixed(yields, first, inside), _separate, "a result names a loop of the reduction")


# -- places ------------------------------------------------------------------------------------------------------------

X = "%x: tensor<4xf32>, %d: tensor<?xf32>, %i: index, %n: tensor<1xi64>"
ZERO = """%k0 = arith.constant 0 : index
%m = tensor.extract %n[%k0] : tensor<1xi64>
%at = arith.index_cast %m : i64 to index"""
KNOWN = "%k = arith.constant 0 : index\n%s = tensor.dim %d, %k : tensor<?xf32>\n"


@pytest.mark.parametrize("position", [-7, -1, 0, 2, 3, 4, 99])
@pytest.mark.parametrize("of", ["%x : tensor<4xf32>", "%d : tensor<?xf32>"])
def test_places_of_data_are_moved_to_the_nearest_end(position: int, of: str) -> None:
    x = normal(4)
    name, type_ = of.split(" : ")
    text = function(X, f"{ZERO}\n%r = tensor.extract {name}[%at] : {type_}", ["f32"])
    found = computed(text, _inside, x, x, np.array(0), np.array([position]))[0]
    assert found == x[min(max(position, 0), 3)]


@pytest.mark.parametrize(
    "lines",
    [
        "%r = tensor.extract %x[%i] : tensor<4xf32>",
        "%k = arith.constant 1 : index\n%j = arith.addi %i, %k : index\n%r = tensor.extract %x[%j] : tensor<4xf32>",
        KNOWN + "%r = tensor.extract %x[%s] : tensor<4xf32>",
    ],
)
def test_places_that_the_caller_gives_stay(lines: str) -> None:
    text = function(X, lines, ["f32"])
    assert ops_after(text, _inside) == ops_after(text, lambda *_: None)


# -- what a program may hold -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "type_",
    [
        "tensor<2xf32>",
        "tensor<?xf16>",
        "tensor<2xbf16>",
        "f64",
        "i1",
        "i8",
        "tensor<2xi16>",
        "i32",
        "i64",
        "index",
        "!flow.host",
    ],
)
def test_types_that_there_are(type_: str) -> None:
    after(function(f"%x: {type_}", "", [type_], "%x"), _supported)


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        ("i4", "values of type i4"),
        ("tensor<2xi128>", "values of type i128"),
        ("tensor<2xui8>", "values of type ui8"),
        ("complex<f32>", "values of type complex<f32>"),
        ("tensor<2xf80>", "values of type f80"),
        ("vector<4xf32>", "values of type vector"),
        ("tensor<2xf32, 7 : i32>", "has an encoding"),
    ],
)
def test_types_that_there_are_not(type_: str, words: str) -> None:
    refused(function(f"%x: {type_}", "", [type_], "%x"), _supported, words)


def test_an_index_divided_by_zero() -> None:
    zero = "%k = arith.constant 0 : index\n%r = arith.{} %i, %k : index"
    for op in ("divui", "remsi", "floordivsi", "ceildivui"):
        refused(function("%i: index", zero.format(op), ["index"]), _supported, f"arith.{op}: divides by zero", "E0302")
    after(function("%i: index", zero.format("divui").replace("constant 0", "constant 2"), ["index"]), _supported)


def _written(map_: str, kinds: str, out: str = "tensor<3x4xf32>") -> str:
    lines = f"""%r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> {map_}>],
  iterator_types = [{kinds}]}} ins(%x : tensor<3x4xf32>) outs(%o : {out}) {{
^bb0(%a: f32, %b: f32):
  linalg.yield %a : f32
}} -> {out}"""
    return function(f"%x: tensor<3x4xf32>, %o: {out}", lines, [out])


BOTH, ONE = '"parallel", "parallel"', '"parallel", "reduction"'


@pytest.mark.parametrize(
    ("map_", "kinds", "out"),
    [
        ("(i, j)", BOTH, "tensor<3x4xf32>"),
        ("(j, i)", BOTH, "tensor<4x3xf32>"),
        ("(i)", ONE, "tensor<3xf32>"),
        ("(i, 0)", ONE, "tensor<3x1xf32>"),
    ],
)
def test_results_that_are_written_as_a_whole(map_: str, kinds: str, out: str) -> None:
    after(_written(map_, kinds, out), _supported)


def test_results_that_are_written_in_part() -> None:
    refused(_written("(i, j + 1)", BOTH, "tensor<3x5xf32>"), _supported, "a result is written at")
    refused(_written("(i, 0)", ONE, "tensor<3x2xf32>"), _supported, "a result is written at")
    refused(_written("(i)", BOTH, "tensor<3xf32>"), _supported, "parallel loop d1 does not say where", "E0302")
