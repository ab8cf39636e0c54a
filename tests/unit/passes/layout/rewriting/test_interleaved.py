"""Parts of a concat that take turns become a concat along an inner dimension."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects import linalg, tensor
from xdsl.ir import SSAValue

from fuseline.ir.build import shape_of
from fuseline.passes.layout.rewriting.interleaved import interleave
from tests.graphs.program import Program, Size
from tests.unit.passes.layout.rewriting.programs import constant, refuses, same_results, transposed


def _opened(p: Program) -> tensor.ExpandShapeOp:
    (op,) = [op for op in p.function.walk() if isinstance(op, tensor.ExpandShapeOp)]
    return op


def _concats(p: Program) -> list[tensor.ConcatOp]:
    """Those whose result is read."""
    return [op for op in p.function.walk() if isinstance(op, tensor.ConcatOp) and op.result.first_use]


def _shuffled(parts: Sequence[Sequence[Size]], split: Sequence[int], *order: int) -> Program:
    """The columns of all parts, split in two dimensions, in another order."""
    p = Program(*parts)
    joined = p.concat(*p.x, axis=1)
    return p.done(transposed(p, _split(p, joined, *split), *order))


def _split(p: Program, joined: SSAValue, *split: int) -> SSAValue:
    rows = shape_of(joined)[0]
    return p.expand(joined, rows, *split, groups=[[0], [1, 2]])


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(("order", "axis"), [((0, 2, 1), 2), ((1, 0, 2), 0)])
def test_parts_that_only_take_turns(count: int, order: tuple[int, ...], axis: int) -> None:
    p = _shuffled([(4, 5)] * count, (count, 5), *order)
    with same_results(p) as scope:
        assert interleave(scope, _opened(p))
        scope.sweep()
    assert not any(isinstance(op, linalg.ops.TransposeOp) for op in p.function.walk())
    (made,) = _concats(p)
    assert made.dim.value.data == axis
    assert [shape_of(part)[axis] for part in made.inputs] == [1] * count


def test_each_reader_has_its_own_order() -> None:
    p = Program((4, 5), (4, 5))
    opened = _split(p, p.concat(*p.x, axis=1), 2, 5)
    p.done(transposed(p, opened, 0, 2, 1), transposed(p, opened, 1, 0, 2), opened)
    with same_results(p) as scope:
        assert interleave(scope, _opened(p))
        scope.sweep()
    assert sorted(op.dim.value.data for op in _concats(p)) == [0, 1, 2]


def test_a_dimension_of_one_element_may_move_with_the_parts() -> None:
    p = _shuffled([(1, 5), (1, 5)], (2, 5), 2, 0, 1)
    with same_results(p) as scope:
        assert interleave(scope, _opened(p))


@pytest.mark.parametrize(
    ("parts", "split", "order", "why"),
    [
        ([(4, 5), (4, 5)], (2, 5), (2, 1, 0), "the rows of each part move too"),
        ([(4, 6), (4, 6)], (3, 4), (0, 2, 1), "there are not as many parts"),
        ([(4, 2), (4, 4)], (2, 3), (0, 2, 1), "the parts are not alike"),
    ],
)
def test_what_moves_within_a_part_stays(
    parts: list[tuple[int, int]], split: tuple[int, int], order: tuple[int, ...], why: str
) -> None:
    p = _shuffled(parts, split, *order)
    assert refuses(p, lambda scope: interleave(scope, _opened(p))), why


def test_what_nobody_transposes_stays() -> None:
    p = Program((4, 5), (4, 5))
    p.done(_split(p, p.concat(*p.x, axis=1), 2, 5))
    assert refuses(p, lambda scope: interleave(scope, _opened(p)))


def test_what_is_no_concat_stays() -> None:
    p = Program((4, 10))
    p.done(transposed(p, _split(p, p.x[0], 2, 5), 0, 2, 1))
    assert refuses(p, lambda scope: interleave(scope, _opened(p)))


@pytest.mark.parametrize("known", [False, True])
def test_an_order_that_weights_can_take_stays(known: bool) -> None:
    p = Program((4, 5), (4, 5), (10, 3))
    flat = p.collapse(transposed(p, _split(p, p.concat(*p.x[:2], axis=1), 2, 5), 0, 2, 1), [[0], [1, 2]])
    p.done(p.matmul(flat, constant(p, 10, 3) if known else p.x[2]))
    if known:
        assert refuses(p, lambda scope: interleave(scope, _opened(p)))
    else:
        with same_results(p) as scope:
            assert interleave(scope, _opened(p))
