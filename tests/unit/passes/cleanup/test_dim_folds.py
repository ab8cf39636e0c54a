"""Sizes that `tensor.dim` asks of computed tensors: what is asked instead, and that it is the same number."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects import arith, tensor
from xdsl.ir import BlockArgument

from fuseline.passes.cleanup.folds.dims import asked, fold_dim_of_result, fold_static_dim, size_value
from fuseline.passes.cleanup.folds.worklist import Fold
from tests.unit.passes.cleanup.test_folds import parsed
from tests.unit.passes.cleanup.test_slice_folds import same

ARGUMENTS = (
    "%x: tensor<?x4x?xf32>, %y: tensor<?x1x?xf32>, %n: index, %m: index, %v: f32, %z: tensor<2x4x2xf32>, %k: index,"
    " %x2: tensor<?x4x?xf32>"
)
MAP = "affine_map<(a, b, c) -> (a, b, c)>"
EXP = f"""linalg.generic
  {{indexing_maps = [{MAP}, {MAP}, {MAP}], iterator_types = ["parallel", "parallel", "parallel"]}}
  ins(%x : tensor<?x4x?xf32>) outs(%x, %e : tensor<?x4x?xf32>, tensor<?x4x?xf32>) {{
  ^bb0(%p: f32, %o: f32, %q: f32):
    linalg.yield %p, %p : f32, f32
  }} -> (tensor<?x4x?xf32>, tensor<?x4x?xf32>)"""


def dim(fold: Fold, made: str, type_: str, axis: int | str) -> Any:
    """What is asked instead of the size of `%t` along an axis: an argument, an op, or None for no change."""
    position = f"%axis = arith.constant {axis} : index\n" if isinstance(axis, int) else ""
    body = f"{made}\n{position}%r = tensor.dim %t, {'%axis' if position else axis} : {type_}"
    return same(fold, body, ARGUMENTS, "index")


EMPTY = "%t = tensor.empty(%n, %m) : tensor<?x4x?xf32>"


@pytest.mark.parametrize(
    ("made", "type_", "axis"),
    [
        (EMPTY.replace("%m", "%k"), "tensor<?x4x?xf32>", 0),
        ("%t = tensor.splat %v[%n] : tensor<3x?xf32>", "tensor<3x?xf32>", 1),
        (
            """%t = tensor.expand_shape %x [[0, 1], [2], [3]] output_shape [1, %n, 4, %k]
               : tensor<?x4x?xf32> into tensor<1x?x4x?xf32>""",
            "tensor<1x?x4x?xf32>",
            1,
        ),
        (
            "%t = tensor.extract_slice %x[0, 1, 0] [%n, 2, %k] [1, 1, 1] : tensor<?x4x?xf32> to tensor<?x2x?xf32>",
            "tensor<?x2x?xf32>",
            0,
        ),
    ],
    ids=["empty", "splat", "expand", "slice"],
)
def test_a_size_that_an_op_is_given(made: str, type_: str, axis: int):
    """The one of that dimension, among others."""
    value = dim(fold_dim_of_result, made, type_, axis)
    assert isinstance(value, BlockArgument) and value.name_hint == "n"


@pytest.mark.parametrize(
    ("made", "type_", "axis", "source"),
    [
        (f"%e = tensor.empty(%n, %m) : tensor<?x4x?xf32>\n%s, %t = {EXP}", "tensor<?x4x?xf32>", 2, "e"),
        (f"%e = tensor.empty(%n, %m) : tensor<?x4x?xf32>\n%t, %s = {EXP}", "tensor<?x4x?xf32>", 2, "x"),
        ("%t = tensor.cast %x : tensor<?x4x?xf32> to tensor<?x?x?xf32>", "tensor<?x?x?xf32>", 2, "x"),
        (
            """%t = tensor.insert_slice %z into %x[0, 0, 0] [2, 4, 2] [1, 1, 1]
               : tensor<2x4x2xf32> into tensor<?x4x?xf32>""",
            "tensor<?x4x?xf32>",
            0,
            "x",
        ),
        (
            "%c0 = arith.constant 0 : index\n%t = tensor.insert %v into %x[%c0, %c0, %c0] : tensor<?x4x?xf32>",
            "tensor<?x4x?xf32>",
            2,
            "x",
        ),
        (
            "%t = tensor.concat dim(1) %x, %x : (tensor<?x4x?xf32>, tensor<?x4x?xf32>) -> tensor<?x8x?xf32>",
            "tensor<?x8x?xf32>",
            2,
            "x",
        ),
        (
            "%t = tensor.collapse_shape %y [[0, 1], [2]] : tensor<?x1x?xf32> into tensor<?x?xf32>",
            "tensor<?x?xf32>",
            0,
            "y",
        ),
        (
            "%t = tensor.collapse_shape %y [[0], [1, 2]] : tensor<?x1x?xf32> into tensor<?x?xf32>",
            "tensor<?x?xf32>",
            1,
            "y",
        ),
        (
            """%t = tensor.pad %x low[0, 1, 0] high[0, 0, 2] {
               ^bb0(%i: index, %j: index, %l: index):
                 tensor.yield %v : f32
               } : tensor<?x4x?xf32> to tensor<?x5x?xf32>""",
            "tensor<?x5x?xf32>",
            0,
            "x",
        ),
    ],
    ids=["second result", "first result", "cast", "insert slice", "insert", "concat", "collapse", "collapse", "pad"],
)
def test_a_size_that_another_tensor_has(made: str, type_: str, axis: int, source: str):
    found = dim(fold_dim_of_result, made, type_, axis)
    assert isinstance(found, tensor.DimOp) and found.source.name_hint == source


PAD = "{\n^bb0(%i: index, %j: index, %l: index):\n tensor.yield %v : f32\n} : tensor<?x4x?xf32> to tensor<?x4x?xf32>"


@pytest.mark.parametrize(
    ("made", "type_", "axis", "kind"),
    [
        (f"%t = tensor.pad %x low[1, 0, 0] high[2, 0, 0] {PAD}", "tensor<?x4x?xf32>", 0, arith.AddiOp),
        (f"%t = tensor.pad %x low[0, 0, 1] high[0, 0, 0] {PAD}", "tensor<?x4x?xf32>", 2, arith.AddiOp),
        (f"%t = tensor.pad %x low[0, 0, 0] high[0, 0, 1] {PAD}", "tensor<?x4x?xf32>", 2, arith.AddiOp),
        (f"%t = tensor.pad %x low[%n, 0, 0] high[0, 0, 1] {PAD}", "tensor<?x4x?xf32>", 0, arith.AddiOp),
        (f"%t = tensor.pad %x low[1, 0, 2] high[%k, 0, %n] {PAD}", "tensor<?x4x?xf32>", 2, arith.AddiOp),
        (
            """%t = tensor.concat dim(0) %x, %x2, %x
               : (tensor<?x4x?xf32>, tensor<?x4x?xf32>, tensor<?x4x?xf32>) -> tensor<?x4x?xf32>""",
            "tensor<?x4x?xf32>",
            0,
            arith.AddiOp,
        ),
        (
            "%t = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x4x?xf32> into tensor<?x?xf32>",
            "tensor<?x?xf32>",
            0,
            arith.MuliOp,
        ),
        (
            "%t = tensor.collapse_shape %x [[0, 1, 2]] : tensor<?x4x?xf32> into tensor<?xf32>",
            "tensor<?xf32>",
            0,
            arith.MuliOp,
        ),
    ],
)
def test_a_size_that_is_computed(made: str, type_: str, axis: int, kind: type[Any]):
    assert isinstance(dim(fold_dim_of_result, made, type_, axis), kind)


def test_sizes_that_stay():
    anywhere = "%t = tensor.empty(%n, %n, %n, %n) : tensor<?x?x?x?xf32>"
    assert dim(fold_dim_of_result, anywhere, "tensor<?x?x?x?xf32>", "%n") is None
    narrow = "%t = tensor.extract_slice %x[0, 1, 0] [%n, 1, %k] [1, 1, 1] : tensor<?x4x?xf32> to tensor<?x?xf32>"
    assert dim(fold_dim_of_result, narrow, "tensor<?x?xf32>", 1) is None


def test_sizes_of_types():
    assert isinstance(
        dim(fold_static_dim, "%t = tensor.cast %x : tensor<?x4x?xf32> to tensor<?x4x?xf32>", "tensor<?x4x?xf32>", 1),
        arith.ConstantOp,
    )
    assert (
        dim(fold_static_dim, "%t = tensor.cast %x : tensor<?x4x?xf32> to tensor<?x4x?xf32>", "tensor<?x4x?xf32>", 2)
        is None
    )
    first = dim(fold_static_dim, "%t = tensor.cast %z : tensor<2x4x2xf32> to tensor<2x4x2xf32>", "tensor<2x4x2xf32>", 0)
    assert isinstance(first, arith.ConstantOp)


def test_sizes_are_asked_in_the_end_of_what_has_them():
    text = """%c2 = arith.constant 2 : index
      %a = tensor.cast %x : tensor<?x4x?xf32> to tensor<?x?x?xf32>
      %b = tensor.cast %a : tensor<?x?x?xf32> to tensor<?x4x?xf32>
      %s = tensor.dim %b, %c2 : tensor<?x4x?xf32>
      %e = tensor.empty(%n, %s) : tensor<?x4x?xf32>
      %f = tensor.cast %e : tensor<?x4x?xf32> to tensor<?x?x?xf32>
      %r = tensor.dim %f, %c2 : tensor<?x?x?xf32>"""
    _, block = parsed(text, ARGUMENTS, "index")
    x, n = block.args[0], block.args[2]
    named = {result.name_hint: result for op in block.ops for result in op.results}
    assert size_value(named["b"], 2) == (x, 2)
    assert size_value(named["f"], 2) == size_value(named["e"], 2) == asked(named["r"]) == asked(named["s"]) == (x, 2)
    assert size_value(named["f"], 0) is asked(n) is n
    assert size_value(x, 0) == (x, 0)
