"""Repeated pixels beside what a window makes are read at computed places."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, linalg, tensor
from xdsl.ir import SSAValue

from fuseline.ir.build import dims_map, identity_map
from fuseline.passes.layout.rewriting.repeated_images import read_repeated_images
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import constant, refuses, same_results


def _repeated(p: Program, x: SSAValue, times: int, *, before: bool = False) -> SSAValue:
    """Each row of `x` so many times in turn, or (`before`) all of them so many times."""
    rows, columns = p.shape(x)
    assert isinstance(rows, int) and isinstance(columns, int)
    shape, read = ((times, rows), [1, 2]) if before else ((rows, times), [0, 2])
    wide = p.empty(*shape, columns)
    image = p.elementwise([x], wide, lambda b: b.args[0], [dims_map(3, read), identity_map(3)])
    return p.collapse(image, [[0, 1], [2]])


def _last(p: Program) -> linalg.ops.GenericOp:
    return [op for op in p.function.walk() if isinstance(op, linalg.ops.GenericOp)][-1]


def _divisors(p: Program) -> int:
    return sum(isinstance(op, arith.DivUIOp) for op in p.function.walk())


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("ops", [0, 3])
def test_beside_a_window_and_what_follows_it(times: int, ops: int) -> None:
    p = Program((4 * times + 2, 3), (4, 5))
    image = p.convolution(p.x[0], constant(p, 3, 3, 5))
    for _ in range(ops):
        image = p.relu(image)
    p.done(p.add(image, _repeated(p, p.x[1], times)))
    with same_results(p) as scope:
        assert read_repeated_images(scope, _last(p))
        scope.sweep()
    assert _divisors(p) == 1 and not any(isinstance(op, tensor.CollapseShapeOp) for op in p.function.walk())


def test_all_rows_one_after_the_other_stay() -> None:
    p = Program((10, 3), (4, 5))
    p.done(p.add(p.convolution(p.x[0], constant(p, 3, 3, 5)), _repeated(p, p.x[1], 2, before=True)))
    assert refuses(p, lambda scope: read_repeated_images(scope, _last(p)))


def test_beside_a_product_loops_are_split_instead() -> None:
    p = Program((8, 3), (4, 5))
    p.done(p.add(p.matmul(p.x[0], constant(p, 3, 5)), _repeated(p, p.x[1], 2)))
    assert refuses(p, lambda scope: read_repeated_images(scope, _last(p)))


def test_a_window_that_is_read_elsewhere_is_stored_anyway() -> None:
    p = Program((10, 3), (4, 5))
    image = p.convolution(p.x[0], constant(p, 3, 3, 5))
    p.done(p.unary(image), p.add(image, _repeated(p, p.x[1], 2)))
    assert refuses(p, lambda scope: read_repeated_images(scope, _last(p)))


@pytest.mark.parametrize("computed", [False, True])
def test_a_large_argument_stays_beside_a_convolution(computed: bool) -> None:
    """What is computed gets the order of its readers; an argument keeps that of the caller."""
    p = Program((2002, 3), (1000, 16))
    source = p.unary(p.x[1]) if computed else p.x[1]
    p.done(p.add(p.convolution(p.x[0], constant(p, 3, 3, 16)), _repeated(p, source, 2)))
    with same_results(p) as scope:
        assert read_repeated_images(scope, _last(p)) == computed
