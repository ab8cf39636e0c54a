"""What a scatter reads through its producers, and what that costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from xdsl.dialects import arith, linalg, math
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import Body, dims_map
from fuseline.passes.fusion.decision import Legal, WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import align, inline_into, merged
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.profit import EVALUATION_NS
from fuseline.passes.fusion.rule import Merge, Shape
from fuseline.passes.fusion.rules.read_in_place import ReadInPlace
from fuseline.passes.fusion.walk_epilogue import walk_refusal, walk_takes
from fuseline.passes.fusion.walk_prologue import LANES, SCALAR, made_before, walk_multiplicity

from .programs import TARGET, Program, nodes_of

Size = int | str
UPDATES, ROWS, COLUMNS = 9, 16, 40


def _program(columns: Size = COLUMNS, places: Attribute = i64, updates: Size = UPDATES) -> Program:
    """Arguments: places, rows to add, what is there already."""
    return Program((updates,), (updates, columns), (ROWS, columns), arguments=[places, f32, f32])


def _scatter(
    p: Program, places: SSAValue | None = None, updates: SSAValue | None = None, start: SSAValue | None = None
) -> SSAValue:
    """Adds each row of the updates to the one at its place."""

    def body(b: Body) -> list[SSAValue]:
        here = b.op(arith.IndexCastOp, b.add(linalg.ops.IndexOp(0)).result, i64)
        hit = b.op(arith.CmpiOp, here, b.args[0], "eq")
        return [b.op(arith.AddfOp, b.args[2], b.op(arith.SelectOp, hit, b.args[1], b.constant(0.0, f32)))]

    maps = [dims_map(3, axes) for axes in ([2], [2, 1], [0, 1])]
    return p.generic([places or p.x[0], updates or p.x[1]], [start or p.x[2]], maps, "ppr", body)[0]


def _elements(p: Program, x: SSAValue, op: Callable[[Body], SSAValue], element: Attribute) -> SSAValue:
    return p.elementwise([x], p.empty(*p.shape(x), element=element), op)


def _doubled(p: Program, x: SSAValue) -> SSAValue:
    return _elements(p, x, lambda b: b.op(arith.AddiOp, b.args[0], b.args[0]), i64)


def _widened(p: Program, x: SSAValue) -> SSAValue:
    return _elements(p, x, lambda b: b.op(arith.ExtSIOp, b.args[0], i64), i64)


def _merge(p: Program, threads: int = 2) -> Merge:
    """Of a producer and the scatter behind it."""
    first, second = nodes_of(p)
    return Merge(Group.of(first), Group.of(second), replace(TARGET, threads=threads))


def _answer(merge: Merge, p: Program) -> dict[str, float] | WhyNot:
    answer = ReadInPlace().matches(merge, FusionGraph(p.function.body.block, ShapeAnalysis()))
    assert isinstance(answer, Legal | WhyNot)
    return dict(answer.numbers) if isinstance(answer, Legal) else answer


def test_updates_are_evaluated_once() -> None:
    p = _program()
    merge = _merge(p.done(_scatter(p, updates=p.unary(p.x[1]))))
    assert walk_refusal(merge) is None and _answer(merge, p) == {"recompute": 1.0, EVALUATION_NS: 0.0}


def test_so_is_what_is_there_already() -> None:
    p = _program()
    merge = _merge(p.done(_scatter(p, start=p.unary(p.x[2]))))
    assert walk_refusal(merge) is None and _answer(merge, p) == {"recompute": 1.0, EVALUATION_NS: 0.0}


@pytest.mark.parametrize("columns", [1, 3, 8, 40, 1000])
def test_a_row_shares_its_place_a_vector_at_a_time(columns: int) -> None:
    p = _program(columns)
    merge = _merge(p.done(_scatter(p, places=_doubled(p, p.x[0]))))
    again = max(1.0, columns / LANES) if columns > 1 else 1.0
    evaluations = again if columns > 1 else again * SCALAR
    work = 2 * UPDATES * TARGET.costs.operation_ns
    assert walk_refusal(merge) is None
    assert _answer(merge, p) == {"recompute": again, EVALUATION_NS: pytest.approx((evaluations - 1) * work)}


@pytest.mark.parametrize("columns", [1, 40, "n"])
def test_places_are_converted_as_they_are_loaded(columns: Size) -> None:
    p = _program(columns, places=i32)
    merge = _merge(p.done(_scatter(p, places=_widened(p, p.x[0]))))
    assert walk_refusal(merge) is None and _answer(merge, p) == {}


def test_columns_of_places_are_read_where_they_lie() -> None:
    p = Program((2 * UPDATES,), (UPDATES, COLUMNS), (ROWS, COLUMNS), arguments=[i64, f32, f32])
    every_other = p.slice(p.x[0], [1], [UPDATES], [2])
    merge = _merge(p.done(_scatter(p, places=every_other)))
    assert walk_refusal(merge) is None and _answer(merge, p) == {}


def test_what_is_converted_and_cut_is_a_load_as_well() -> None:
    p = Program((2 * UPDATES,), (UPDATES, COLUMNS), (ROWS, COLUMNS), arguments=[i32, f32, f32])
    p.done(_scatter(p, places=p.slice(_widened(p, p.x[0]), [1], [UPDATES], [2])))
    wide, cut, walk = nodes_of(p)
    merge = Merge(inline_into(Group.of(wide), Group.of(cut)), Group.of(walk), TARGET)
    assert _answer(merge, p) == {}
    behind = inline_into(Group.of(cut), Group.of(walk))
    assert made_before(behind, walk) == {cut, walk}
    assert _answer(Merge(Group.of(wide), behind, TARGET), p) == {}


def test_arithmetic_behind_what_is_cut_is_evaluated_for_what_is_left() -> None:
    p = Program((2 * UPDATES,), (UPDATES, COLUMNS), (ROWS, COLUMNS), arguments=[i64, f32, f32])
    p.done(_scatter(p, places=p.slice(_doubled(p, p.x[0]), [1], [UPDATES], [2])))
    twice, cut, walk = nodes_of(p)
    found = _answer(Merge(Group.of(twice), inline_into(Group.of(cut), Group.of(walk)), TARGET), p)
    assert isinstance(found, dict) and found["recompute"] == COLUMNS / LANES / 2


@pytest.mark.parametrize("kind", ["reduction", "transpose", "pad", "concat"])
def test_what_else_a_walk_reads_is_stored(kind: str) -> None:
    p = Program((UPDATES,), (COLUMNS, UPDATES), (ROWS, COLUMNS), arguments=[i64, f32, f32])
    if kind == "reduction":
        p = Program((UPDATES,), (UPDATES, COLUMNS, 5), (ROWS, COLUMNS), arguments=[i64, f32, f32])
        p.done(_scatter(p, updates=p.reduce(p.x[1])))
    elif kind == "transpose":
        p.done(_scatter(p, updates=p.moved(p.x[1], (1, 0), UPDATES, COLUMNS)))
    elif kind == "pad":
        p = Program((UPDATES,), (UPDATES, COLUMNS - 3), (ROWS, COLUMNS), arguments=[i64, f32, f32])
        p.done(_scatter(p, updates=p.pad(p.x[1], [0, 1], [0, 2])))
    else:
        p = Program((UPDATES,), (4, COLUMNS), (ROWS, COLUMNS), arguments=[i64, f32, f32])
        p.done(_scatter(p, updates=p.concat(p.x[1], p.x[1], p.slice(p.x[1], [3, 0], [1, COLUMNS]), axis=0)))
    *_, first, second = nodes_of(p)
    refusal = walk_refusal(Merge(Group.of(first), Group.of(second), TARGET))
    assert refusal is not None and refusal.code == "walk"


def test_nothing_that_a_walk_reads_has_loops_of_its_own() -> None:
    p = _program()
    merge = _merge(p.done(_scatter(p, updates=p.unary(p.x[1]))))
    assert [shape for shape in Shape if walk_takes(merge, shape)] == [Shape.INLINE_PRODUCER]
    q = _program()
    behind = _merge(q.done(q.unary(_scatter(q))))
    assert all(walk_takes(behind, shape) for shape in Shape)


def test_what_follows_may_have_what_the_walk_does_not_read() -> None:
    p = _program()
    beside, total = p.unary(p.x[2]), _scatter(p)
    nodes = nodes_of(p.done(p.add(total, beside)))
    walk, other, last = (next(n for n in nodes if test(n)) for test in (_walks, _reads_only_arguments, _is_last))
    behind = merged(Group.of(walk), Group.of(last), align(Group.of(walk), Group.of(last)))
    merge = Merge(Group.of(other), behind, TARGET)
    assert walk_refusal(merge) is None and walk_takes(merge, Shape.SHARED)


def _walks(node: Node) -> bool:
    return node.is_sequential


def _reads_only_arguments(node: Node) -> bool:
    return not node.is_sequential and all(read.producer is None for read in node.reads)


def _is_last(node: Node) -> bool:
    return node.escapes


@pytest.mark.parametrize(("converts", "refused"), [(False, True), (True, False)])
def test_many_updates_of_few_lines_keep_their_threads(converts: bool, refused: bool) -> None:
    many = 2 * TARGET.costs.serial_elements
    p = _program(8, places=i32 if converts else i64, updates=many)
    places = _widened(p, p.x[0]) if converts else _doubled(p, p.x[0])
    refusal = walk_refusal(_merge(p.done(_scatter(p, places=places))))
    assert (refusal is not None and refusal.code == "parallelism") == refused


def _read(node: Node, number: int) -> Read:
    assert node.structured is not None
    return next(read for read in node.reads if read.value is node.structured.operands[number])


def test_how_often_a_walk_looks() -> None:
    p = _program()
    (node,) = nodes_of(p.done(_scatter(p)))
    assert [walk_multiplicity(_read(node, i)) for i in range(3)] == [COLUMNS / LANES, 1.0, 1.0]


def test_an_update_for_all_columns_is_looked_at_for_each_vector() -> None:
    p = Program((UPDATES,), (UPDATES,), (ROWS, COLUMNS), arguments=[i64, f32, f32])
    spread = _elements_of_rows(p)
    (node,) = (node for node in nodes_of(p.done(spread)) if node.is_sequential)
    assert walk_multiplicity(_read(node, 1)) == COLUMNS / LANES


def _elements_of_rows(p: Program) -> SSAValue:
    def body(b: Body) -> list[SSAValue]:
        here = b.op(arith.IndexCastOp, b.add(linalg.ops.IndexOp(0)).result, i64)
        hit = b.op(arith.CmpiOp, here, b.args[0], "eq")
        return [b.op(arith.SelectOp, hit, b.args[1], b.args[2])]

    maps = [dims_map(3, axes) for axes in ([2], [2], [0, 1])]
    return p.generic([p.x[0], p.x[1]], [p.x[2]], maps, "ppr", body)[0]


def test_a_walk_along_the_innermost_axis_has_no_vectors() -> None:
    """Elements are evaluated one by one: an exponential costs more than it saves, a sum does not."""
    for op, most in ((math.ExpOp, False), (arith.NegfOp, True)):
        p = Program((500, UPDATES), (500, UPDATES), (500, ROWS), arguments=[i64, f32, f32])
        updates = _elements(p, p.x[1], lambda b, op=op: b.op(op, b.args[0]), f32)

        def body(b: Body) -> list[SSAValue]:
            here = b.op(arith.IndexCastOp, b.add(linalg.ops.IndexOp(1)).result, i64)
            hit = b.op(arith.CmpiOp, here, b.args[0], "eq")
            return [b.op(arith.SelectOp, hit, b.args[1], b.args[2])]

        maps = [dims_map(3, axes) for axes in ([0, 2], [0, 2], [0, 1])]
        p.done(p.generic([p.x[0], updates], [p.x[2]], maps, "ppr", body)[0])
        decisions = p.partition().decisions
        assert [d.verdict == "fused" for d in decisions] == [most]
        assert most or decisions[0].code == "unprofitable"
