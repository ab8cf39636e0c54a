"""What an element costs through concats: the operations of the part that holds it, and of no other."""

from __future__ import annotations

from math import prod

import pytest
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.cost import operations
from fuseline.analysis.element_operations import operations_of_element
from fuseline.analysis.producers import producers_of
from fuseline.analysis.shapes import ShapeAnalysis
from tests.draws import RNG
from tests.graphs.program import Program

LANES = 8


def _evaluated(p: Program, value: SSAValue) -> float:
    ops = {op for op in p.function.body.block.ops if op.results}
    return operations_of_element(value, list(producers_of(value, ops)), ShapeAnalysis(), LANES)


def _tree(p: Program, shape: tuple[int, ...], axes: list[int], depth: int) -> tuple[SSAValue, int]:
    """A value that is made of parts along `axes`, each in a way of its own, and the operations of all its elements."""
    if depth == 0:
        value = p.slice(p.x[0], [0] * len(shape), shape)
        total = 0
    else:
        axis = axes[int(RNG.integers(len(axes)))]
        step = LANES if axis == len(shape) - 1 else 1
        units = shape[axis] // step
        cut = step * int(RNG.integers(1, units)) if units > 1 else shape[axis]
        sizes = [cut, shape[axis] - cut] if cut < shape[axis] else [cut]
        parts = [_tree(p, (*shape[:axis], size, *shape[axis + 1 :]), axes, depth - 1) for size in sizes]
        value = p.concat(*[part for part, _ in parts], axis=axis) if len(parts) > 1 else parts[0][0]
        total = sum(count for _, count in parts)
    for _ in range(int(RNG.integers(0, 4))):
        value = p.unary(value)
        assert isinstance(value, OpResult)
        total += prod(shape) * operations(value.op)
    return value, total


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("draw", range(4))
def test_each_element_takes_the_operations_of_its_part(rank: int, draw: int):
    shape = (*(int(size) for size in RNG.integers(2, 9, rank - 1)), LANES * int(RNG.integers(2, 9)))
    p = Program(shape)
    value, total = _tree(p, shape, list(range(rank)), 3)
    p.done(value)
    assert _evaluated(p, value) == pytest.approx(total / prod(shape))


def test_without_a_concat_each_takes_all():
    p = Program((4, 16), (4, 16))
    value = p.binary(p.unary(p.x[0]), p.unary(p.x[1]))
    p.done(value)
    assert _evaluated(p, value) == sum(operations(op) for op in p.function.body.block.ops)


def test_what_several_parts_read_is_evaluated_once_at_most():
    """The halves of a row, turned over, beside the row itself."""
    half = LANES * int(RNG.integers(1, 5))
    p = Program((4, 2 * half))
    row = p.unary(p.x[0])
    turned = p.concat(p.unary(p.columns(row, half, half)), p.columns(row, 0, half))
    value = p.binary(row, turned)
    p.done(value)
    exp, addition = (
        max(operations(op) for op in p.function.body.block.ops if op.results[:1] == (one,)) for one in (row, value)
    )
    assert _evaluated(p, turned) == exp + exp / 2
    assert _evaluated(p, value) == exp + exp / 2 + addition


def test_vectors_that_reach_over_a_border_evaluate_both_parts():
    p = Program((4, 3), (4, 5))
    value = p.concat(p.unary(p.x[0]), p.unary(p.x[1]))
    p.done(value)
    assert _evaluated(p, value) == 2 * operations(next(op for op in p.function.body.block.ops if operations(op)))


def test_of_what_is_stored_nothing_is_evaluated():
    p = Program((4, 16))
    value = p.concat(p.unary(p.x[0]), p.x[0], axis=0)
    p.done(value)
    nothing: list[Operation] = []
    assert operations_of_element(value, nothing, ShapeAnalysis(), LANES) == 0
