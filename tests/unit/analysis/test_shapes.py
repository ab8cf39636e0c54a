"""Sizes of index values: arithmetic as polynomials, unknown ones by name, each asked for once."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp, ReturnOp

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir import dim as d
from fuseline.ir.context import new_context
from fuseline.ir.dim import Dim
from fuseline.ir.dim_json import to_name
from fuseline.ir.text import parse_module

MAIN = """func.func @main(%n: index {{fuseline.name = "n"}}, %m: index {{fuseline.name = "m"}},
    %t: tensor<?x4xf32> {{fuseline.dims = ["p", "4"]}},
    %i: tensor<2xindex>) -> (index, index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  {}
  return %r, %r : index, index
}}"""
N, M, P = d.symbol("n"), d.symbol("m"), d.symbol("p")


def _index(body: str) -> tuple[ShapeAnalysis, list[Dim]]:
    shapes = ShapeAnalysis({"n": N, "m": M, "p": P})
    (function,) = parse_module(MAIN.format(body), new_context()).ops
    assert isinstance(function, FuncOp)
    end = function.body.block.last_op
    assert isinstance(end, ReturnOp)
    return shapes, [shapes.index(value) for value in end.operands]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%r = arith.remsi %n, %c3 : index", d.sub(N, d.mul(3, d.floor_div(N, 3)))),
        ("%r = arith.remui %n, %c3 : index", d.sub(N, d.mul(3, d.floor_div(N, 3)))),
        ("%r = arith.remsi %c3, %n : index", d.sub(3, d.mul(N, d.floor_div(3, N)))),
        ("%r = arith.ceildivsi %n, %c3 : index", d.ceil_div(N, 3)),
        ("%r = arith.ceildivui %n, %c3 : index", d.ceil_div(N, 3)),
        ("%r = arith.divui %n, %c3 : index", d.floor_div(N, 3)),
        ("%r = arith.subi %n, %m : index", d.sub(N, M)),
        ("%r = arith.muli %n, %m : index", d.mul(N, M)),
        ("%r = arith.minsi %n, %c3 : index", d.minimum(N, 3)),
        ("%r = arith.maxsi %n, %c3 : index", d.maximum(N, 3)),
        ("%r = tensor.dim %t, %c0 : tensor<?x4xf32>", P),
        ("%r = tensor.dim %t, %c1 : tensor<?x4xf32>", 4),
        ("%a = arith.index_cast %m : index to i64\n %r = arith.index_cast %a : i64 to index", M),
        ("%r = arith.constant 7 : index", 7),
    ],
)
def test_arithmetic_on_sizes(body: str, expected: Dim) -> None:
    assert _index(body)[1] == [expected, expected]


@pytest.mark.parametrize(
    "body", ["%r = tensor.extract %i[%c0] : tensor<2xindex>", "%r = tensor.dim %t, %n : tensor<?x4xf32>"]
)
def test_what_nobody_knows_is_one_size_with_its_origin(body: str) -> None:
    shapes, (first, second) = _index(body)
    assert first == second
    assert not isinstance(first, int)
    assert to_name(first) in shapes.origins


TENSORS = """func.func @main(%n: index {{fuseline.name = "n"}}, %t: tensor<?x4xf32> {{fuseline.dims = ["p", "4"]}},
    %u: tensor<3x?xf32> {{fuseline.dims = ["3", "n"]}}) {{
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  {}
  return
}}
func.func private @host(tensor<?x4xf32>) -> (tensor<2x?xf32>, tensor<?x?xf32>, index)"""
ALL = "affine_map<(i, j) -> (i, j)>"


def _tensor(body: str) -> tuple[ShapeAnalysis, list[tuple[Dim, ...]]]:
    """The sizes of the results of the last op."""
    shapes = ShapeAnalysis({"n": N, "p": P})
    function = next(iter(parse_module(TENSORS.format(body), new_context()).ops))
    assert (
        isinstance(function, FuncOp)
        and function.body.block.last_op is not None
        and function.body.block.last_op.prev_op is not None
    )
    return shapes, [shapes.dims(value) for value in function.body.block.last_op.prev_op.results]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%r = tensor.empty(%n) : tensor<?x2xf32>", (N, 2)),
        ("%r = tensor.empty(%n, %c2) : tensor<5x?x?xf32>", (5, N, 2)),
        (
            (
                "%r = tensor.expand_shape %t [[0], [1, 2]] output_shape [%n, 2, 2] : tensor<?x4xf32> into "
                "tensor<?x2x2xf32>"
            ),
            (N, 2, 2),
        ),
        ("%r = tensor.collapse_shape %t [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>", (d.mul(P, 4),)),
        (
            (
                "%r = tensor.pad %t low[1, %n] high[2, 3] {\n^bb0(%a: index, %b: index):\n  tensor.yield %zero : "
                "f32\n} : "
                "tensor<?x4xf32> to tensor<?x?xf32>"
            ),
            (d.add(P, 3), d.add(N, 7)),
        ),
        (
            (
                "%r = tensor.pad %t low[0, 1] high[%n, %c2] {\n^bb0(%a: index, %b: index):\n  tensor.yield %zero "
                ": f32\n} "
                ": tensor<?x4xf32> to tensor<?x?xf32>"
            ),
            (d.add(P, N), 7),
        ),
        ("%r = tensor.extract_slice %t[%c2, 0] [%n, 3] [1, 1] : tensor<?x4xf32> to tensor<?x3xf32>", (N, 3)),
        ("%r = tensor.extract_slice %u[0, 0] [1, %n] [1, 1] : tensor<3x?xf32> to tensor<?xf32>", (N,)),
        ("%r = tensor.insert_slice %u into %t[0, 0] [3, %n] [1, 1] : tensor<3x?xf32> into tensor<?x4xf32>", (P, 4)),
        (
            (
                "%r = tensor.concat dim(0) %t, %t, %t : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) -> "
                "tensor<?x4xf32>"
            ),
            (d.mul(P, 3), 4),
        ),
        ("%r = tensor.concat dim(1) %u, %u : (tensor<3x?xf32>, tensor<3x?xf32>) -> tensor<3x?xf32>", (3, d.mul(N, 2))),
        ("%r = tensor.concat dim(1) %t, %t : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>", (P, 8)),
        ("%r = tensor.cast %t : tensor<?x4xf32> to tensor<?x?xf32>", (P, 4)),
        (
            (
                "%x = tensor.cast %u : tensor<3x?xf32> to tensor<?x?xf32>\n %r = tensor.cast %x : tensor<?x?xf32> to "
                "tensor<?x5xf32>"
            ),
            (3, 5),
        ),
        ("%r = linalg.fill ins(%zero : f32) outs(%t : tensor<?x4xf32>) -> tensor<?x4xf32>", (P, 4)),
        (
            f"""%e = tensor.empty(%n) : tensor<?xf32>
            %r = linalg.generic {{indexing_maps = [{ALL}, affine_map<(i, j) -> (j)>],
                iterator_types = ["reduction", "parallel"]}}
                ins(%u : tensor<3x?xf32>) outs(%e : tensor<?xf32>) {{
            ^bb0(%x: f32, %o: f32):
              linalg.yield %x : f32
            }} -> tensor<?xf32>""",
            (N,),
        ),
        ("%r = flow.dispatch.region -> (tensor<?x4xf32>{%n}) {\n  flow.return %t : tensor<?x4xf32>\n}", (N, 4)),
    ],
)
def test_sizes_of_a_result(body: str, expected: tuple[Dim, ...]) -> None:
    assert _tensor(body)[1] == [expected]


def test_sizes_of_several_results() -> None:
    region = (
        "%r, %s = flow.dispatch.region -> (tensor<?x4xf32>{%n}, tensor<3x?xf32>{%c2}) {\n  flow.return %t, %u : "
        "tensor<?x4xf32>, tensor<3x?xf32>\n}"
    )
    assert _tensor(region)[1] == [(N, 4), (3, 2)]


def test_sizes_that_a_call_names() -> None:
    call = '%r, %s, %i = func.call @host(%t) {fuseline.dims = [["2", "q"], ["n", "p"], ["k"]]} '
    shapes, found = _tensor(call + ": (tensor<?x4xf32>) -> (tensor<2x?xf32>, tensor<?x?xf32>, index)")
    assert found == [(2, d.symbol("q")), (N, P), ()]
    assert [shapes.origins[name][1] for name in ("q", "n", "p")] == [1, 0, 1]


def test_a_size_that_a_call_returns_and_names() -> None:
    call = '%r, %s, %i = func.call @host(%t) {fuseline.dims = [["2", "q"], ["n", "p"], ["k"]]} '
    call += ": (tensor<?x4xf32>) -> (tensor<2x?xf32>, tensor<?x?xf32>, index)"
    shapes, found = _tensor(f"{call}\n  %z = tensor.empty(%i) : tensor<?xf32>")
    assert found == [(d.symbol("k"),)] and shapes.origins["k"][1] is None


def test_sizes_that_a_call_does_not_name() -> None:
    shapes, (first, second, _) = _tensor(
        "%r, %s, %i = func.call @host(%t) : (tensor<?x4xf32>) -> (tensor<2x?xf32>, tensor<?x?xf32>, index)"
    )
    names = [to_name(size) for size in (first[1], *second)]
    assert first[0] == 2 and len(set(names)) == 3 and shapes.unnamed >= set(names)
    assert [shapes.origins[name][1] for name in names] == [1, 0, 1]


def test_an_argument_without_names_lends_its_own() -> None:
    text = "func.func @main(%image: tensor<?x3x?xf32>) {\n  return\n}"
    (function,) = parse_module(text, new_context()).ops
    assert isinstance(function, FuncOp)
    assert ShapeAnalysis().dims(function.body.block.args[0]) == (d.symbol("image_0"), 3, d.symbol("image_2"))
