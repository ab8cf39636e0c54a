"""A node whose transpose cancels is recorded as eliminated by the pass; one that stays is not."""

from __future__ import annotations

from xdsl.dialects import func, linalg
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, TensorType, f32, i64
from xdsl.ir import Block, Region, SSAValue

from fuseline.ir.build import Emitter
from fuseline.ir.context import new_context
from fuseline.passes.layout.propagate_transposes import PropagateTransposesPass


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


def test_a_node_that_stays_is_not() -> None:
    ctx = new_context()
    PropagateTransposesPass().apply(ctx, program(1))
    assert ctx.records.eliminated == {}
