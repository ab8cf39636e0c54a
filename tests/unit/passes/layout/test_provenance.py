"""A node whose transpose cancels is recorded as eliminated by the pass; one that stays is not."""

from __future__ import annotations

from xdsl.dialects import func, linalg
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, TensorType, f32, i64
from xdsl.ir import Block, Region, SSAValue

from fuseline.ir.build import Emitter
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.layout.propagate_transposes import PropagateTransposesPass
from fuseline.passes.layout.sink_expand_shapes import SinkExpandShapesPass


def transposed(block: Block, value: SSAValue, node: str) -> SSAValue:
    at = Emitter.at_end(block, [node])
    return at.add(
        linalg.ops.TransposeOp(value, at.empty_from(value, [1, 0]), DenseArrayBase.from_list(i64, [1, 0]))
    ).res[0]


def program(count: int) -> ModuleOp:
    block = Block(arg_types=[TensorType(f32, [3, 4])])
    value: SSAValue = block.args[0]
    for i in range(count):
        value = transposed(block, value, f"transpose_{i}")
    block.add_op(func.ReturnOp(value))
    return ModuleOp([func.FuncOp("main", ([block.args[0].type], [value.type]), Region(block))])


def test_cancelled_nodes_are_recorded() -> None:
    ctx = new_context()
    PropagateTransposesPass().apply(ctx, program(2))
    assert ctx.records.eliminated == {"transpose_0": "propagate-transposes", "transpose_1": "propagate-transposes"}


def test_reshapes_that_cancel_are_recorded() -> None:
    """The one is behind the other; what is returned in their place is the argument."""
    text = """func.func @main(%x: tensor<12xf32>) -> tensor<12xf32> {
      %e = tensor.expand_shape %x [[0, 1]] output_shape [3, 4] : tensor<12xf32> into tensor<3x4xf32> loc("wide")
      %c = tensor.collapse_shape %e [[0, 1]] : tensor<3x4xf32> into tensor<12xf32> loc("flat")
      return %c : tensor<12xf32>
    }"""
    ctx = new_context()
    SinkExpandShapesPass().apply(ctx, parse_module(text, ctx))
    assert ctx.records.eliminated == {"wide": "sink-expand-shapes", "flat": "sink-expand-shapes"}


def test_a_node_that_stays_is_not() -> None:
    ctx = new_context()
    PropagateTransposesPass().apply(ctx, program(1))
    assert ctx.records.eliminated == {}
