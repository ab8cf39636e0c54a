"""What an op is taken to cost: operations of its body, of all its points, and bytes."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from fuseline.analysis.cost import TRANSCENDENTAL_OPS, flops, num_bytes, operations
from fuseline.analysis.operations import DEARER, ELEMENTARY, body_operations
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from tests.unit.analysis.generics import generic, op_of


def _elementwise(body: str, element: str = "f32"):
    return op_of(
        generic(
            ["d0, d1", "d0, d1"],
            "pp",
            [f"tensor<3x5x{element}>"],
            [f"tensor<3x5x{element}>"],
            f"{body}\n linalg.yield %r : {element}",
        )
    )


PRODUCT = "%m = arith.mulf %a0, %a1 : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32"
REFLECTED = """%i = linalg.index 0 : index
 %end = arith.constant 2 : index
 %j = arith.subi %end, %i : index
 %c = arith.cmpi slt, %i, %j : index
 %r = arith.addf %a0, %a0 : f32"""
INDEXED = "%i = linalg.index 0 : index\n %j = arith.index_cast %i : index to i32\n %r = arith.addi %a0, %j : i32"


@pytest.mark.parametrize(
    ("body", "element", "count"),
    [
        ("%r = arith.addf %a0, %a0 : f32", "f32", 1),
        ("%r = math.exp %a0 : f32", "f32", TRANSCENDENTAL_OPS),
        ("%r = math.sqrt %a0 : f32", "f32", 1),
        (INDEXED, "i32", 1),
        (REFLECTED, "f32", 1),
        ("%t = math.tanh %a0 : f32\n %r = arith.mulf %t, %a0 : f32", "f32", TRANSCENDENTAL_OPS + 1),
    ],
)
def test_operations_per_point(body: str, element: str, count: int):
    op = _elementwise(body, element)
    assert operations(op) == count
    assert flops(op, ShapeAnalysis()) == 15 * count


def test_a_contraction_has_two_operations_per_product_and_what_moves_data_none():
    product = op_of(
        generic(
            ["d0, d2", "d2, d1", "d0, d1"], "ppr", ["tensor<3x5xf32>", "tensor<5x4xf32>"], ["tensor<3x4xf32>"], PRODUCT
        )
    )
    assert flops(product, ShapeAnalysis()) == 2 * 3 * 5 * 4
    moved = product.parent_op()
    assert moved is not None and flops(moved, ShapeAnalysis()) == 0 == operations(moved)


def test_bytes():
    types = {
        "tensor<3x5xf32>": 60,
        "tensor<3x5xi8>": 15,
        "tensor<7xi1>": 7,
        "tensor<2xindex>": 16,
        "tensor<4xf16>": 8,
        "f32": 0,
    }
    text = f"func.func @main({', '.join(f'%x{i}: {type_}' for i, type_ in enumerate(types))}) {{ return }}"
    (function,) = parse_module(text, new_context()).ops
    assert isinstance(function, FuncOp)
    assert [num_bytes(argument, ShapeAnalysis()) for argument in function.args] == list(types.values())


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("%r = arith.addf %a0, %a0 : f32", 2),
        ("%r = math.exp %a0 : f32", ELEMENTARY + 1),
        ("%r = math.sqrt %a0 : f32", 2),
        ("%r = math.sin %a0 : f32", DEARER["math.sin"] + 1),
        ("%r = arith.remf %a0, %a0 : f32", DEARER["arith.remf"] + 1),
    ],
)
def test_code_of_a_body(body: str, count: int):
    assert body_operations(_elementwise(body)) == count


SCATTER = """%i = linalg.index 0 : index
  %ic = arith.index_cast %i : index to i64
  %hit = arith.cmpi eq, %ic, %a0 : i64
  %n = arith.constant 0.0 : f32
  UPDATE
  %v = arith.select %hit, %u, %n : f32
  %s = arith.addf %a2, %v : f32
  linalg.yield %s : f32"""


@pytest.mark.parametrize(
    ("update", "count"),
    [("%u = arith.negf %a1 : f32", 1), ("%t = math.exp %a1 : f32\n %u = arith.negf %t : f32", TRANSCENDENTAL_OPS + 1)],
)
def test_a_scatter_computes_each_update_once_and_adds_it(update: str, count: int):
    body = SCATTER.replace("UPDATE", update)
    op = op_of(generic(["d1", "d1", "d0"], "pr", ["tensor<9xi64>", "tensor<9xf32>"], ["tensor<5xf32>"], body))
    assert flops(op, ShapeAnalysis()) == 9 * (1 + count)
