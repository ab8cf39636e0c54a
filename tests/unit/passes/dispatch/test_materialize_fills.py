"""A fill that is itself a result is computed like any other op."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, f32
from xdsl.ir import SSAValue

from fuseline.ir.context import new_context
from fuseline.passes.dispatch.materialize_fills import MOST_ELEMENTS, MaterializeFillsPass
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import same_results


def _filled(p: Program) -> list[linalg.ops.GenericOp]:
    """What computes one number everywhere, afterwards."""
    with same_results(p):
        MaterializeFillsPass().apply(new_context(), p.module)
    return [op for op in p.function.walk() if isinstance(op, linalg.ops.GenericOp) and not op.inputs]


def _returned(p: Program) -> SSAValue:
    end = p.block.last_op
    assert end is not None
    return end.operands[0]


def test_a_fill_of_unknown_size() -> None:
    p = Program(("n", 3))
    (made,) = _filled(p.done(p.zeros("n", 3, value=2.5)))
    assert _returned(p) is made.results[0]


def test_a_fill_with_a_number_of_the_run() -> None:
    p = Program((1,))
    emit = p.emit
    number = emit.add(tensor.ExtractOp(p.x[0], [emit.index(0)], f32)).result
    into = p.empty(4, emit=emit)
    filled = emit.add(linalg.ops.FillOp([number], [into], [TensorType(f32, [4])])).results[0]
    (made,) = _filled(p.done(filled))
    assert _returned(p) is made.results[0]


def test_a_small_known_fill_is_a_constant_and_stays() -> None:
    p = Program((3,))
    assert _filled(p.done(p.zeros(4, 2, value=1.0))) == []


@pytest.mark.parametrize(("more", "made"), [(0, 0), (1, 1)])
def test_a_large_one_is_filled_by_the_run(more: int, made: int) -> None:
    p = Program((3,))
    assert len(_filled(p.done(p.zeros(MOST_ELEMENTS + more)))) == made


def test_a_large_constant_too() -> None:
    p = Program((3,))
    type_ = TensorType(f32, [MOST_ELEMENTS + 1])
    splat = p.emit.add(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(type_, [0.5]))).result
    (made,) = _filled(p.done(splat, p.unary(splat)))
    assert _returned(p) is made.results[0]
    assert [use.operation.name for use in splat.uses] == ["linalg.generic"]  # what only reads it reads the constant


def test_a_result_under_another_shape() -> None:
    p = Program(("n",))
    filled = p.zeros("n", 2, 3, value=4.0)
    (made,) = _filled(p.done(p.collapse(filled, [[0], [1, 2]])))
    assert isinstance(made.outputs[0].owner, tensor.EmptyOp)


def test_what_ops_start_from_and_read_stays() -> None:
    p = Program(("n", 3))
    filled = p.zeros("n", 3, value=2.0)
    assert _filled(p.done(p.add(p.x[0], filled), p.reduce(p.x[0]))) == []
