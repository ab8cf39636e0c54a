"""Along which dimensions of its largest argument a part steps, and which parts do so together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from fuseline.dispatch.shared_traversal import SHARED_POINTS, SharedTraversal, shared_traversal
from fuseline.ir.build import dims_map, identity_map
from tests.graphs.program import Program

Part = Callable[[Program], SSAValue]
Shapes = Sequence[Sequence[int | str]]


def _members(value: SSAValue) -> list[Operation]:
    """The op behind a result, without what it is sized or filled with."""
    assert isinstance(value.owner, Operation)
    return [value.owner]


def _traversals(shapes: Shapes, *parts: Part) -> tuple[Program, list[SharedTraversal | None]]:
    p = Program(*shapes)
    values = [part(p) for part in parts]
    view = p.dispatch(*values)
    return p, [shared_traversal(view, _members(value), [value]) for value in values]


def _rows(p: Program) -> SSAValue:
    return p.reduce(p.x[0])


def _columns(p: Program) -> SSAValue:
    return p.reduce(p.x[0], axis=0)


def _exp(p: Program) -> SSAValue:
    return p.unary(p.x[0])


def _turned(p: Program) -> SSAValue:
    return p.unary(p.x[0], permutation=(1, 0))


def _both_ways(p: Program) -> SSAValue:
    return p.binary(p.x[0], p.x[0], dims_map(2, [1, 0]))


def _window(p: Program) -> SSAValue:
    return p.depthwise(p.x[0], p.x[1])


def _first_rows(p: Program) -> SSAValue:
    return p.slice(p.x[0], [1, 0], [64, 70])


def _pad(p: Program) -> SSAValue:
    return p.pad(p.x[0], [1, 0], [0, 0])


@pytest.mark.parametrize(
    ("part", "axes"),
    [
        (_exp, {0, 1}),
        (_turned, {0, 1}),
        (_rows, {0}),
        (_columns, {1}),
        (_both_ways, {0, 1}),
        (_first_rows, {1}),
        (_pad, set[int]()),
        (lambda p: p.gathered(p.x[0], p.x[1], 3, 70), set[int]()),
        (lambda p: p.slice(p.x[0], [0, 3], [70, 2]), {0}),
    ],
    ids=["exp", "turned", "rows", "columns", "both ways", "some rows", "pad", "picked", "some columns"],
)
def test_along_what_a_part_steps(part: Part, axes: set[int]):
    p, (found,) = _traversals([(70, 70), (3, 2)], part)
    assert found == SharedTraversal(p.x[0], frozenset(axes))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "part",
    [lambda p: p.matmul(p.x[0], p.x[1]), _window, lambda p: p.matmul(p.x[1], p.x[0])],
    ids=["matmul", "window", "matmul turned"],
)
def test_a_part_with_a_root_traverses_nothing(part: Part):
    _, (found,) = _traversals([(70, 70), (70, 70)], part)
    assert found is None


def test_a_part_that_reads_no_argument_traverses_nothing():
    _, (found,) = _traversals([(70, 70)], lambda p: p.zeros(3, 4))
    assert found is None


def test_the_largest_argument_counts():
    p, found = _traversals(
        [(3, 4), (70, 3, 4)], lambda p: p.over(p.x[1], (p.x[0], dims_map(3, [1, 2])), body=lambda b: b.args[0])
    )
    assert found == [SharedTraversal(p.x[1], frozenset({0, 1, 2}))]  # pyright: ignore[reportArgumentType]


def test_a_part_that_stores_an_argument_reads_it():
    p = Program((70, 70), (2, 2))
    small = p.unary(p.x[1])
    view = p.dispatch(small, p.x[0])
    found = shared_traversal(view, _members(small), [small, p.x[0]])
    assert found == SharedTraversal(p.x[0], frozenset({0, 1}))  # pyright: ignore[reportArgumentType]


def test_all_members_step_together():
    p = Program((70, 70))
    rows, total = p.unary(p.x[0]), p.reduce(p.x[0])
    view = p.dispatch(rows, total)
    found = shared_traversal(view, [*_members(rows), *_members(total)], [rows, total])
    assert found == SharedTraversal(p.x[0], frozenset({0}))  # pyright: ignore[reportArgumentType]


def test_an_op_that_reads_something_else_does_not_count():
    p = Program((70, 70), (2, 2))
    rows, other = p.unary(p.x[0]), p.pad(p.x[1], [1, 1], [0, 0])
    view = p.dispatch(rows, other)
    found = shared_traversal(view, [*_members(rows), *_members(other)], [rows, other])
    assert found == SharedTraversal(p.x[0], frozenset({0, 1}))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("shape", "parts", "common"),
    [
        ((SHARED_POINTS, 70), (_exp, _rows), {0}),
        ((SHARED_POINTS - 1, 70), (_exp, _rows), None),  # too few steps to share out
        ((70, 70), (_rows, _columns), None),
        ((8, 8), (_exp, _turned), {0, 1}),
        ((7, 9), (_exp, _exp), {0, 1}),  # all there are
        ((7, 9), (_exp, _rows), None),
        (("n", 3), (_exp, _rows), {0}),  # nobody knows how many
    ],
)
def test_what_two_parts_have_in_common(shape: Sequence[int | str], parts: tuple[Part, Part], common: set[int] | None):
    p = Program(shape)
    values = [part(p) for part in parts]
    view = p.dispatch(*values)
    one, two = (shared_traversal(view, _members(value), [value]) for value in values)
    assert one is not None and two is not None
    expected = None if common is None else SharedTraversal(p.x[0], frozenset(common))  # pyright: ignore[reportArgumentType]
    assert one.joined(view, two) == two.joined(view, one) == expected


def test_parts_along_other_arguments_have_nothing_in_common():
    p = Program((70, 70), (70, 70))
    values = [p.unary(p.x[0]), p.unary(p.x[1])]
    view = p.dispatch(*values)
    one, two = (shared_traversal(view, _members(value), [value]) for value in values)
    assert one is not None and two is not None and one.joined(view, two) is None


def test_an_argument_read_twice_steps_along_what_both_reads_do():
    p = Program((70, 70))
    row = p.elementwise(
        [p.x[0], p.x[0]],
        p.empty(70, 70),
        lambda b: b.op(arith.AddfOp, *b.args[:2]),
        [identity_map(2), dims_map(2, [0, None]), identity_map(2)],
    )
    view = p.dispatch(row)
    found = shared_traversal(view, _members(row), [row])
    assert found == SharedTraversal(p.x[0], frozenset({0}))  # pyright: ignore[reportArgumentType]
