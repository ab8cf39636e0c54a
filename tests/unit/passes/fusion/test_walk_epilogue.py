"""What may follow a scatter in its dispatch, and why anything else may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import f32, i1, i64
from xdsl.dialects.math import TanhOp
from xdsl.ir import SSAValue

from fuseline.ir.build import Body, dims_map, identity_map
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import align, merged
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.rule import Merge
from fuseline.passes.fusion.walk_epilogue import LINES_PER_WORKGROUP, walk_refusal

from .programs import TARGET, Program, nodes_of

SERIAL = TARGET.costs.serial_elements
Size = int | str


def _scattering(rows: Size = 16, columns: Size = 8) -> Program:
    """Arguments: nine places, nine rows to add, what is there already."""
    return Program((9,), (9, columns), (rows, columns), arguments=[i64, f32, f32])


def _scatter(p: Program, updates: SSAValue | None = None, start: SSAValue | None = None) -> SSAValue:
    """Adds each row of the updates to the one at its place."""

    def body(b: Body) -> list[SSAValue]:
        here = b.op(arith.IndexCastOp, b.add(linalg.ops.IndexOp(0)).result, i64)
        hit = b.op(arith.CmpiOp, here, b.args[0], "eq")
        return [b.op(arith.AddfOp, b.args[2], b.op(arith.SelectOp, hit, b.args[1], b.constant(0.0, f32)))]

    maps = [dims_map(3, axes) for axes in ([2], [2, 1], [0, 1])]
    return p.generic([p.x[0], updates or p.x[1]], [start or p.x[2]], maps, "ppr", body)[0]


def _rank(p: Program, x: SSAValue) -> SSAValue:
    """How many elements come before each."""

    def body(b: Body) -> list[SSAValue]:
        i, j = (b.add(linalg.ops.IndexOp(loop)).result for loop in (0, 1))
        less = [b.op(arith.CmpiOp, *b.args[:2], kind) for kind in ("sle", "slt")]
        before = b.op(arith.SelectOp, b.op(arith.CmpiOp, j, i, "slt"), *less)
        return [b.op(arith.AddiOp, b.args[2], b.op(arith.ExtUIOp, before, i64))]

    maps = [dims_map(2, axes) for axes in ([1], [0], [0])]
    return p.generic([x, x], [p.zeros(9, value=0, element=i64)], maps, "pr", body)[0]


def _compared(p: Program, x: SSAValue) -> SSAValue:
    """Whether elements are above zero."""
    out = p.empty(*p.shape(x), element=i1)
    return p.elementwise([x], out, lambda b: b.op(arith.CmpfOp, b.args[0], b.constant(0.0, f32), "ogt"))


def _walked(nodes: Sequence[Node]) -> Node:
    return next(node for node in nodes if node.is_sequential)


def _pair(p: Program, threads: int = 2) -> tuple[WhyNot | None, Node]:
    """What is said of the only two ops of a program, and the first that walks."""
    first, second = nodes_of(p)
    merge = Merge(Group.of(first), Group.of(second), replace(TARGET, threads=threads))
    return walk_refusal(merge), _walked([first, second])


def _own_kernel(node: Node) -> WhyNot:
    words = f"{node.name} is made in one walk over what it combines, by a kernel of its own"
    return WhyNot("walk", words, node.name)


def test_without_a_walk_there_is_nothing_to_say():
    p = Program((16, 8))
    first, second = nodes_of(p.done(p.reduce(p.unary(p.x[0]))))
    assert walk_refusal(Merge(Group.of(first), Group.of(second), TARGET)) is None


def test_elementwise_ops_may_follow_a_scatter():
    for columns in (8, "n"):
        p = _scattering(columns=columns)
        assert _pair(p.done(p.unary(_scatter(p))))[0] is None


def test_two_walks_are_two_dispatches():
    p = _scattering()
    refusal, first = _pair(p.done(_scatter(p, start=_scatter(p))))
    assert refusal == _own_kernel(first)


@pytest.mark.parametrize("follower", ["reduces", "moves", "regroups", "repeats"])
def test_nothing_follows_but_elementwise_work_point_by_point(follower: str):
    p = _scattering()
    total = _scatter(p)
    if follower == "reduces":
        p.done(p.reduce(total))
    elif follower == "moves":
        p.done(p.moved(total, (1, 0), 8, 16))
    elif follower == "regroups":
        p.done(p.unary(p.collapse(total)))
    else:
        maps = [dims_map(3, [1, 2]), identity_map(3)]
        p.done(p.elementwise([total], p.empty(5, 16, 8), lambda b: b.op(TanhOp, b.args[0]), maps))
    refusal, node = _pair(p)
    assert refusal == _own_kernel(node)


def test_a_rank_takes_nothing():
    p = Program((9,), element=i64)
    out = p.done(p.unary(_rank(p, p.x[0]), lambda x: arith.MuliOp(x, x)))
    refusal, node = _pair(out)
    assert refusal == _own_kernel(node)


def test_totals_lie_in_a_result_of_their_type():
    p = _scattering()
    refusal, node = _pair(p.done(_compared(p, _scatter(p))))
    words = f"no result has the type of the totals of {node.name}, which lie there meanwhile"
    assert refusal == WhyNot("walk", words, node.name)
    q = _scattering()
    total = _scatter(q)
    assert _pair(q.done(_compared(q, total), total))[0] is None


@pytest.mark.parametrize("kept", [False, True])
def test_every_result_follows_from_the_totals(kept: bool):
    p = _scattering()
    beside, total = p.unary(p.x[2]), _scatter(p)
    last = p.add(total, beside)
    nodes = nodes_of(p.done(last, beside) if kept else p.done(last))
    node = _walked(nodes)
    first, second = (Group.of(one) for one in nodes if one is not node)
    refusal = walk_refusal(Merge(Group.of(node), merged(first, second, align(first, second)), TARGET))
    expected = WhyNot("walk", f"a result does not follow from the totals of {node.name}", node.name)
    assert refusal == (expected if kept else None)


@pytest.mark.parametrize(
    ("blocks", "threads", "refused"), [(1, 1, True), (1, 2, True), (2, 2, False), (2, 3, True), (3, 3, False)]
)
def test_the_walk_leaves_work_for_all_threads(blocks: int, threads: int, refused: bool):
    """Of few blocks of lines the last has one line."""
    p = _scattering(SERIAL, (blocks - 1) * LINES_PER_WORKGROUP + 1 if blocks > 1 else LINES_PER_WORKGROUP)
    refusal, node = _pair(p.done(p.unary(_scatter(p))), threads)
    assert (refusal is not None) == refused
    if refusal is not None:
        words = f"{blocks} parallel iterations would be left for {threads} threads"
        numbers = {"parallel_iterations": float(blocks), "threads": float(threads)}
        assert refusal == WhyNot("parallelism", words, node.name, numbers)


def test_little_work_needs_no_threads():
    for more in (0, 1):
        p = _scattering(SERIAL // LINES_PER_WORKGROUP + more, LINES_PER_WORKGROUP)
        assert (_pair(p.done(p.unary(_scatter(p))))[0] is not None) == bool(more)
