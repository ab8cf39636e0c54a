"""A collapse below a concat: only where it cancels more than it makes."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from fuseline.passes.layout.rewriting.collapsed_parts import sink_below_concat
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import refuses, same_results


def _joined(p: Program) -> tensor.ConcatOp:
    return next(op for op in p.function.walk() if isinstance(op, tensor.ConcatOp))


def _upsampled(p: Program, x: SSAValue) -> SSAValue:
    """(2, 3, 4) with every element twice along both last dimensions: (2, 6, 8)."""
    return p.repeated(x, (1, 2, 2))


def test_an_upsampled_image_is_joined_as_it_is_made() -> None:
    p = Program((2, 3, 4), (5, 6, 8))
    p.done(p.relu(p.concat(_upsampled(p, p.x[0]), p.x[1], axis=0)))
    with same_results(p) as scope:
        sink_below_concat(scope, _joined(p))
    assert p.shape(_joined(p).result) == (7, 3, 2, 4, 2)


def test_the_joined_dimension_moves_behind_those_that_split() -> None:
    p = Program((3, 4, 2), (6, 4, 5))
    image = p.repeated(p.x[0], (2, 1, 1))
    p.done(p.concat(p.x[1], image, axis=2))
    with same_results(p) as scope:
        sink_below_concat(scope, _joined(p))
    assert p.shape(_joined(p).result) == (3, 2, 4, 7) and _joined(p).dim.value.data == 3


def test_the_joined_dimension_is_the_outermost_that_was_collapsed() -> None:
    p = Program((2, 3, 4), (6, 4))
    p.done(p.concat(p.collapse(p.relu(p.x[0]), [[0, 1], [2]]), p.x[1], axis=0))
    with same_results(p) as scope:
        sink_below_concat(scope, _joined(p))
    assert p.shape(_joined(p).result) == (4, 3, 4) and _joined(p).dim.value.data == 0


def test_the_joined_dimension_and_one_behind_it_are_split() -> None:
    p = Program((5, 2, 3, 4, 2), (5, 9, 8))
    p.done(p.concat(p.x[1], p.collapse(p.relu(p.x[0]), [[0], [1, 2], [3, 4]]), axis=1))
    with same_results(p) as scope:
        sink_below_concat(scope, _joined(p))
    assert p.shape(_joined(p).result) == (5, 5, 3, 4, 2) and _joined(p).dim.value.data == 1


def test_a_part_without_whole_rows_is_joined_as_it_is() -> None:
    p = Program((2, 3, 4), (5, 4))
    p.done(p.concat(p.collapse(p.relu(p.x[0]), [[0, 1], [2]]), p.x[1], axis=0))
    assert refuses(p, lambda scope: sink_below_concat(scope, _joined(p)))


def test_another_part_would_get_a_reshape() -> None:
    p = Program((2, 3, 4), (4, 4))
    made = p.collapse(p.relu(p.x[0]), [[0, 1], [2]])
    p.done(p.concat(made, p.pad(p.x[1], (1, 0), (1, 0)), axis=1))
    assert refuses(p, lambda scope: sink_below_concat(scope, _joined(p)))


def test_a_part_that_is_an_argument_is_split_for_free() -> None:
    p = Program((2, 3, 4), (6, 5))
    p.done(p.concat(p.collapse(p.relu(p.x[0]), [[0, 1], [2]]), p.x[1], axis=1))
    with same_results(p) as scope:
        sink_below_concat(scope, _joined(p))
    assert p.shape(_joined(p).result) == (2, 3, 9)
