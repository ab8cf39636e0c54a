"""Loop classes of a dispatch whose softmax was put in place of its members: the same loops are still the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.arith import NegfOp

from fuseline.analysis.softmax_roles import SoftmaxRoles
from fuseline.analysis.structured import is_generic
from fuseline.dispatch.fused_loops import FusedLoops, MemberLoops, OnlineReduction, member_loops, members_of
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.dispatch.view import DispatchView
from fuseline.errors import FuselineError
from fuseline.targets.cpu.families.blocked.rewritten_classes import rewritten_classes
from fuseline.targets.cpu.families.blocked.streaming import Streamed, streamed
from tests.graphs.program import Program

from .programs import attention
from .streams import head


def _streamed(view: DispatchView) -> Streamed:
    (found,) = streamed(view)
    return found


@pytest.mark.parametrize("queries", [37, "q"])
@pytest.mark.parametrize("keys", [301, "k"])
def test_the_loop_that_streams_is_one_class(queries: int | str, keys: int | str) -> None:
    found = _streamed(head(queries, keys, 24))
    classes = {found.classes.of_op(op)[loop] for op, loop in found.loops}
    assert len(classes) == 1 and None not in classes
    assert not classes & set(found.classes.grid), "blocks of keys are no part of the grid"


def test_the_grid_is_that_of_the_dispatch() -> None:
    view = attention(["h"], "q", "k", 16, heads_last=False, masked=True)
    found = _streamed(view)
    rows = [tuple(found.classes.of_value(value)[:2]) for value in found.view.results]
    assert found.classes.grid == rows[0] and len(view.loops.grids[0]) == len(found.classes.grid)


def test_what_is_carried_has_the_classes_of_its_rows() -> None:
    found = _streamed(head("q", "k", 24))
    (grid,) = found.classes.grid
    for one in found.carried:
        assert found.classes.of_value(one.state)[0] == grid


def test_members_that_are_gone_are_no_part_of_the_loops() -> None:
    """The division of the weights is put behind the product: it is there once, and no loop says what it was."""
    view = head("q", "k", 24)
    found = _streamed(view)
    left = members_of(found.view.entry.body.block)
    assert {op for op, _ in found.loops} <= set(left)
    assert all(found.classes.of_op(op) for op in left if is_generic(op))


def test_a_loop_of_the_grid_that_is_two_is_a_defect() -> None:
    """Each member placed along the loop behind: rows of the queries and of the keys are no one loop."""
    view = head(24, 24, 24)
    (one,) = view.loops.online
    moved = [replace(m, grid_loops=(*m.grid_loops[1:], *m.grid_loops[:1])) for m in view.loops.members[:1]]
    strangers = replace(view.loops, members=(*moved, *view.loops.members[1:]))
    with pytest.raises(FuselineError) as raised:
        rewritten_classes(strangers, one, members_of(view.entry.body.block), view, ())
    assert raised.value.code == "E0901"


def _two_rows(
    online: tuple[tuple[int, int], ...] = ((1, 1),), along: tuple[tuple[int, int], ...] = ()
) -> tuple[LoopRef | None, LoopRef | None]:
    """The classes of the columns of two members that no value joins, behind one that is gone; each has a loop for them
    in a grid of rows. `online` and `along` number all three."""
    p = Program(("r", "c"))
    view = p.dispatch(p.unary(p.x[0]), p.unary(p.x[0], NegfOp))
    left = members_of(view.entry.body.block)
    gone = members_of(head("r", "c", 24).entry.body.block)[0]
    rows = member_loops(left[0], view.shapes)[0]
    loops = FusedLoops(((rows,),), (MemberLoops((0, None)),) * 3, along=along)
    found = rewritten_classes(loops, OnlineReduction(online, SoftmaxRoles(1, (1,), 2, 2), 8), [gone, *left], view, ())
    (first, mine), (second, its) = (found.of_op(op) for op in left)
    assert first == second, "the loop of the grid is one"
    return mine, its


def test_members_have_other_numbers_behind_one_that_is_gone() -> None:
    mine, its = _two_rows()
    assert mine != its
    mine, its = _two_rows(online=((0, 1), (1, 1), (2, 1)))
    assert mine == its
    mine, its = _two_rows(along=((0, 0), (1, 0), (2, 0)))
    assert mine == its
