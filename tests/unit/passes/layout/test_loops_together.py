"""Runs of loops that several generics can have as one loop, and how few transposes of a value are left."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from fuseline.analysis.structured import is_generic
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.layout.rewriting.loops_together import LoopsTogether
from fuseline.passes.layout.rewriting.permutation import merge_equal_transposes
from fuseline.passes.layout.rewriting.scope import Scope

GENERIC = """%{name} = linalg.generic {{indexing_maps = [affine_map<(a, b, c, d) -> ({read})>,
    affine_map<(a, b, c, d) -> (a, b, c, d)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}} ins(%{source} : {type})
        outs(%e : tensor<2x3x4x5xf32>) {{
  ^bb0(%i: f32, %o: f32):
    %v = math.exp %i : f32
    linalg.yield %v : f32
  }} -> tensor<2x3x4x5xf32>
"""
WHOLE = "tensor<2x3x4x5xf32>"


def _groups(*generics: tuple[str, str, str, str]) -> list[list[list[int]]]:
    body = "".join(
        GENERIC.format(name=name, source=source, read=read, type=type_) for name, source, read, type_ in generics
    )
    ctx, last = new_context(), generics[-1][0]
    text = (
        f"func.func @main(%x: {WHOLE}, %z: tensor<4x5xf32>, %e: {WHOLE}) -> {WHOLE} {{ {body} return %{last} : "
        f"{WHOLE} }}"
    )
    (function,) = parse_module(text, ctx).ops
    assert isinstance(function, FuncOp)
    ops = [op for op in function.body.block.ops if is_generic(op)]
    together = LoopsTogether(Scope(function, ctx), ops)
    return [together.groups(op) for op in ops]


def test_all_loops_of_elementwise_ops_are_one():
    assert _groups(("a", "x", "a, b, c, d", WHOLE), ("b", "a", "a, b, c, d", WHOLE)) == [[[0, 1, 2, 3]]] * 2


def test_a_broadcast_parts_the_loops_of_what_reads_its_neighbour_too():
    assert _groups(("a", "x", "a, b, c, d", WHOLE), ("b", "z", "c, d", "tensor<4x5xf32>"))[1] == [[0, 1], [2, 3]]


def test_a_broadcast_parts_the_loops_of_all_that_follows():
    first = ("a", "z", "c, d", "tensor<4x5xf32>")
    rest = [("b", "a", "a, b, c, d", WHOLE), ("c", "b", "a, b, c, d", WHOLE)]
    assert _groups(first, *rest) == [[[0, 1], [2, 3]]] * 3


TRANSPOSES = """func.func @main(%x: tensor<2x3xf32>, %e: tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %a = linalg.transpose ins(%x : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
  %b = linalg.transpose ins(%x : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
  return %b, %a : tensor<3x2xf32>, tensor<3x2xf32>
}"""


def test_of_two_equal_transposes_the_first_stays():
    (function,) = parse_module(TRANSPOSES, new_context()).ops
    assert isinstance(function, FuncOp)
    block = function.body.block
    merge_equal_transposes(block.args[0])
    first, end = block.first_op, block.last_op
    assert first is not None and end is not None
    assert list(end.operands) == [first.results[0], first.results[0]]
