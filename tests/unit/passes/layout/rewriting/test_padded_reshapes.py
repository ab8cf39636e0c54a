"""An expand and the pad below it change places."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IndexType, TensorType, f32, i64
from xdsl.ir import Block, Region, SSAValue

from fuseline.ir.provenance import provenance
from fuseline.passes.layout.rewriting.padded_reshapes import expand_above_pad
from fuseline.passes.layout.rewriting.scope import Scope
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import refuses, same_results


def _rewritten(scope: Scope, p: Program) -> tensor.ExpandShapeOp | None:
    (op,) = [op for op in p.function.walk() if isinstance(op, tensor.ExpandShapeOp)]
    assert isinstance(op.src.owner, tensor.PadOp)
    return expand_above_pad(scope, op, op.src.owner)


def _padded_rows(low: Sequence[int], high: Sequence[int], value: float = 0.5) -> Program:
    """`6` columns split in two dimensions, below which there is a pad."""
    p = Program((4, 6))
    padded = p.pad(p.x[0], low, high, value)
    return p.done(p.expand(padded, 4 + low[0] + high[0], 2, (6 + low[1] + high[1]) // 2, groups=[[0], [1, 2]]))


@pytest.mark.parametrize(("low", "high"), [((1, 0), (2, 0)), ((0, 0), (3, 0)), ((0, 0), (0, 0))])
def test_the_pad_follows(low: tuple[int, int], high: tuple[int, int]) -> None:
    p = _padded_rows(low, high)
    with same_results(p) as scope:
        made = _rewritten(scope, p)
    assert made is not None and made.src is p.x[0]
    (padded,) = [use.operation for use in made.result.uses]
    assert isinstance(padded, tensor.PadOp) and provenance(padded)
    assert padded.static_low.get_values() == (low[0], 0, 0)
    assert padded.static_high.get_values() == (high[0], 0, 0)


@pytest.mark.parametrize(("low", "high"), [((0, 2), (0, 0)), ((0, 0), (0, 2)), ((1, 2), (1, 0))])
def test_a_padded_dimension_is_not_split(low: tuple[int, int], high: tuple[int, int]) -> None:
    p = _padded_rows(low, high)
    assert refuses(p, lambda scope: _rewritten(scope, p))


def test_a_value_of_the_position_keeps_its_positions() -> None:
    p = Program((4, 6))
    p.done(p.expand(_ramp(p, p.x[0]), 6, 2, 3, groups=[[0], [1, 2]]))
    assert refuses(p, lambda scope: _rewritten(scope, p))


def _ramp(p: Program, x: SSAValue) -> SSAValue:
    """Two more rows, each element of which is the number of its row."""
    block = Block(arg_types=[IndexType()] * 2)
    whole = arith.IndexCastOp(block.args[0], i64)
    number = arith.SIToFPOp(whole.result, f32)
    block.add_ops([whole, number, tensor.YieldOp(number.result)])
    return p.emit.add(tensor.PadOp(x, [], [], Region(block), [0, 0], [2, 0], TensorType(f32, [6, 6]))).result


def test_a_value_that_is_passed_in() -> None:
    p = Program((4, 6), ())
    emit = p.emit
    number = emit.add(tensor.ExtractOp(p.x[1], [], f32)).result
    block = Block(arg_types=[IndexType()] * 2)
    block.add_op(tensor.YieldOp(number))
    padded = emit.add(tensor.PadOp(p.x[0], [], [], Region(block), [0, 0], [2, 0], TensorType(f32, [6, 6]))).result
    p.done(p.expand(padded, 6, 2, 3, groups=[[0], [1, 2]]))
    with same_results(p) as scope:
        assert _rewritten(scope, p) is not None
