"""The classes of loops of members: what a region and an entry say of them, and how code generation names values by
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.softmax_roles import SoftmaxRoles
from fuseline.dispatch.body_classes import BodyClasses
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, MemberLoops, OnlineReduction, Role
from fuseline.dispatch.loop_claims import require_shared
from fuseline.dispatch.loops_attribute import to_attribute
from fuseline.dispatch.member_classes import with_classes
from fuseline.dispatch.view import DispatchView
from fuseline.errors import FuselineError
from fuseline.ir.build import dims_map
from tests.graphs.program import Program

INLINED = MemberLoops((), Role.INLINED)
CROSSED = dims_map(2, [1, 0])


def _inner(*ranks: int) -> tuple[MemberLoops, ...]:
    """Placed members without a loop in the grid; of rank -1 inlined."""
    return tuple(MemberLoops((None,) * rank) if rank >= 0 else INLINED for rank in ranks)


def _classes(p: Program, loops: FusedLoops, carried: Sequence[SSAValue] = ()) -> tuple[tuple[int | None, ...], ...]:
    return with_classes(loops, p.block, ShapeAnalysis(), carried=carried).classes


def _named(p: Program, loops: FusedLoops, value: SSAValue) -> list[object]:
    """The classes of a value's dimensions; those that are no member's by their number."""
    found = BodyClasses(with_classes(loops, p.block, ShapeAnalysis()), p.block, ShapeAnalysis()).of_value(value)
    return [class_ if class_ is None or isinstance(class_, int) else f"own {class_[1]}" for class_ in found]


def test_inner_loops_and_those_of_what_is_inlined_have_classes_and_units_have_none():
    p = Program((6, 1, 5))
    e = p.unary(p.x[0])
    p.binary(e, p.reduce(e), dims_map(3, [0, 1]))
    loops = FusedLoops(((6,),), (INLINED, *(MemberLoops((0, None, None)),) * 2))
    assert _classes(p, loops) == ((0, None, 1),) * 3


def test_what_is_read_both_ways_joins_nothing():
    p = Program((6, 6), (6, 6))
    m = p.matmul(p.x[0], p.x[1])
    p.binary(m, m, CROSSED)
    assert _classes(p, FusedLoops(((),), _inner(3, 2))) == ((0, 1, 2), (3, 4))


def test_a_value_that_is_inlined_and_read_both_ways_leaves_the_others_joined():
    p = Program((6, 6), (6, 6))
    e, f = p.unary(p.x[0]), p.unary(p.x[1])
    both = p.binary(e, e, CROSSED)
    p.binary(both, f)
    assert _classes(p, FusedLoops(((),), _inner(-1, -1, 2, 2))) == ((0, 1), (2, 3), (2, 3), (2, 3))


def test_classes_are_the_same_in_whatever_order_an_op_reads() -> None:
    """`e` is read through `f` as it lies, and crossed: not all can be joined."""

    def classes(swapped: bool) -> tuple[tuple[int | None, ...], ...]:
        p = Program((6, 6))
        e = p.unary(p.x[0])
        reads = [(p.unary(e), dims_map(2, [0, 1])), (e, CROSSED)]
        values, maps = zip(*(reads[::-1] if swapped else reads), strict=True)
        p.elementwise(values, p.empty(6, 6), lambda b: b.op(arith.AddfOp, *b.args[:2]), [*maps, dims_map(2, [0, 1])])
        return _classes(p, FusedLoops(((6, 6),), (INLINED, INLINED, MemberLoops((0, 1)))))

    assert classes(swapped=False) == classes(swapped=True)


def test_parts_have_the_loops_of_their_grid_in_common_and_those_along_their_argument():
    p = Program((70, 5, 4))
    p.unary(p.x[0])
    p.reduce(p.x[0])
    row = MemberLoops((0, None, None))
    assert _classes(p, FusedLoops(((70,),), (row, row))) == ((0, 1, 2), (0, 3, 4))
    assert _classes(p, FusedLoops(((70,),), (row, row), along=((0, 0),))) == ((0, 1, 2), (0, 1, 2))


def test_the_loops_of_an_online_reduction_are_one():
    p = Program((6, 5), (6, 5))
    p.unary(p.x[0])
    p.reduce(p.x[1])
    online = OnlineReduction(((0, 1), (1, 1)), SoftmaxRoles(0, (0,), 0, 1), 1)
    assert _classes(p, FusedLoops(((),), _inner(2, 2), (online,))) == ((0, 1), (2, 1))


def test_readers_of_a_value_that_another_run_fills_go_along_it():
    p = Program((6,), (6,))
    state = p.empty(6)
    p.binary(p.x[0], state)
    p.binary(p.x[1], state)
    loops = FusedLoops(((),), _inner(1, 1))
    assert _classes(p, loops) == ((0,), (1,))
    assert _classes(p, loops, [state]) == ((0,), (0,))


def test_a_grid_loop_of_two_loops_of_one_member_is_refused():
    p = Program((6, 6))
    m = p.reduce(p.unary(p.x[0]))
    p.binary(p.over(p.x[0], (m, dims_map(2, [0])), body=lambda b: b.args[0]), m, dims_map(2, [1]))
    row, column = MemberLoops((0, None)), MemberLoops((None, 0))
    with pytest.raises(FuselineError, match="is no class of loops of the body") as caught:
        with_classes(FusedLoops(((6,),), (row, row, row, column)), p.block, ShapeAnalysis(), "main_dispatch_0")
    assert (caught.value.code, caught.value.node) == ("E0901", "main_dispatch_0")


WRONG = {
    "crossed": ((0, 1), (1, 0), (0, 1)),
    "apart": ((0, 1), (0, 1), (0, 2)),
    "one": ((0, 0), (0, 0), (0, 0)),
    "order": ((1, 0), (1, 0), (1, 0)),
    "alone": ((0, None), (0, None), (0, None)),
    "rank": ((0, 1), (0, 1), (0,)),
    "members": ((0, 1), (0, 1)),
    "negative": ((0, -3), (0, -3), (0, -3)),
}


@pytest.mark.parametrize("classes", WRONG.values(), ids=WRONG)
def test_other_classes_than_the_bodys_are_refused(classes: tuple[tuple[int | None, ...], ...]):
    p = Program((6, 5))
    e = p.unary(p.x[0])
    p.binary(e, p.reduce(e), dims_map(2, [0]))
    loops = with_classes(FusedLoops(((6,),), (MemberLoops((0, None)),) * 3), p.block, ShapeAnalysis())
    assert loops.classes == ((0, 1),) * 3
    require_shared(loops, p.block, ShapeAnalysis(), "main_dispatch_0")
    with pytest.raises(FuselineError, match="in other classes than") as caught:
        require_shared(replace(loops, classes=classes), p.block, ShapeAnalysis(), "main_dispatch_0", "E0302")
    assert (caught.value.code, caught.value.node) == ("E0302", "main_dispatch_0")


def test_an_entry_that_says_other_classes_is_no_code():
    p = Program((6, 5))
    view = p.dispatch(p.unary(p.unary(p.x[0])))
    said = replace(view.loops, classes=((0, 1), (1, 0)))
    view.entry.attributes[LOOPS_ATTRIBUTE] = to_attribute(said)
    with pytest.raises(FuselineError, match="in other classes than") as caught:
        _ = DispatchView(view.entry).classes
    assert (caught.value.code, caught.value.node) == ("E0302", view.entry.sym_name.data)


# values ---------------------------------------------------------------------------------------------------------------


def test_a_dimension_is_named_by_the_loop_that_writes_it():
    p = Program((6, 5), (5, 1))
    m = p.matmul(p.x[0], p.x[1])
    assert _named(p, FusedLoops(((),), _inner(3)), m) == [0, None]


def test_a_view_is_named_by_what_it_is_moved_from_and_else_by_what_reads_it():
    p = Program((6, 20))
    e = p.unary(p.x[0])
    wide = p.expand(e, 6, 4, 5, groups=[[0], [1, 2]])
    loops = FusedLoops(((),), _inner(2, 3))
    assert _named(p, loops, p.unary(wide)) == [0, 2, 3]
    assert _named(p, loops, wide) == [0, 2, 3]


def test_an_argument_is_named_by_its_readers_where_they_agree():
    p = Program((6, 5))
    p.unary(p.x[0])
    p.unary(p.x[0], permutation=(1, 0))
    loops = FusedLoops(((),), _inner(2, 2))
    assert _named(p, loops, p.x[0]) == ["own 0", "own 1"]
    assert _named(p, replace(loops, along=((0, 0),)), p.x[0]) == [0, 1]
