"""The loops of a dispatch as a value: text and back, and what does not match a body is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.ir import Block
from xdsl.parser import Parser

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.softmax_roles import SoftmaxRoles
from fuseline.dispatch.fused_loops import FusedLoops, MemberLoops, OnlineReduction, Role, members_of, require_match
from fuseline.dispatch.loops_attribute import from_attribute, to_attribute
from fuseline.errors import FuselineError
from fuseline.ir.build import dims_map
from fuseline.ir.context import new_context
from fuseline.ir.dim import add, mul, symbol
from tests.unit.passes.fusion.programs import Program

N = symbol("n", 1, 64)

ROLES = SoftmaxRoles(1, (0,), 1, 2)

ROWS = FusedLoops(((6,),), (MemberLoops((0, None)), MemberLoops((0, None)), MemberLoops((0, None))))

VALUES = {
    "rows": ROWS,
    "no-loops": FusedLoops(((),), (MemberLoops(()), MemberLoops((), Role.INLINED), MemberLoops((), Role.VIEW))),
    "sizes": FusedLoops(((N, add(mul(N, 2), 1), None, 7),), (MemberLoops((3, None, 2, 1, 0)),)),
    "arms": FusedLoops(
        ((4,), (N,)), (MemberLoops((0,), arm=1), MemberLoops((), Role.INLINED, 1), MemberLoops((0, None)))
    ),
    "online": replace(ROWS, online=(OnlineReduction(((0, 1), (1, 1)), ROLES, 32),)),
    "along": replace(ROWS, along=((2, 0), (0, 1))),
    "classes": replace(ROWS, classes=((0, 1), (0, None), ())),
}


def _parsed(text: str):
    return Parser(new_context(), text).parse_attribute()


_LOOPS, _POINTS = "loops = [array<i64: 1, 1>]", "points = 1 : i64"
_ROLES = "maximum = 1 : i64, exponentials = array<i64: 0>, total = 1 : i64, product = 2 : i64"
NO_ONLINE = (
    f"loops = [array<i64: 1>], {_ROLES}, {_POINTS}",
    f"{_LOOPS}, {_ROLES}",
    f"{_LOOPS}, product = 2 : i64, {_POINTS}",
    f"{_LOOPS}, {_ROLES.replace('array<i64: 0>', '0 : i64')}, {_POINTS}",
    f"{_LOOPS}, {_ROLES.replace('total = 1 : i64', 'total = array<i64: 1>')}, {_POINTS}",
)


def test_the_text_of_an_online_reduction_names_the_softmax():
    text = f"{{grids = [[]], members = [], online = [{{{_LOOPS}, {_ROLES}, {_POINTS}}}]}}"
    (online,) = from_attribute(_parsed(text), {}).online
    assert online == OnlineReduction(((1, 1),), ROLES, 1)


@pytest.mark.parametrize("loops", VALUES.values(), ids=VALUES)
def test_what_is_printed_reads_back(loops: FusedLoops):
    assert from_attribute(_parsed(str(to_attribute(loops))), {"n": N}) == loops


def test_the_text_is_readable():
    assert (
        str(to_attribute(ROWS))
        == '{grids = [["6"]], members = [array<i64: 0, -1>, array<i64: 0, -1>, array<i64: 0, -1>]}'
    )
    assert 'members = [array<i64>, "inlined", "view"]' in str(to_attribute(VALUES["no-loops"]))
    assert "arms = array<i64: 1, 1, 0>" in str(to_attribute(VALUES["arms"]))
    assert "along = [array<i64: 2, 0>, array<i64: 0, 1>]" in str(to_attribute(VALUES["along"]))
    assert "classes = [array<i64: 0, 1>, array<i64: 0, -1>, array<i64>]" in str(to_attribute(VALUES["classes"]))


def test_a_renamed_size_keeps_its_place_and_one_without_a_name_loses_it():
    loops = VALUES["sizes"].renamed({"n": symbol("s0")})
    assert loops.grids[0][:2] == (symbol("s0"), add(mul(symbol("s0"), 2), 1))
    assert VALUES["sizes"].renamed({}).grids == ((None, None, None, 7),)


@pytest.mark.parametrize(
    "text",
    [
        "unit",
        "{}",
        "{members = []}",
        "{grids = [[]]}",
        "{grids = [[]], members = [1 : i64]}",
        '{grids = [[]], members = ["placed"]}',
        '{grids = [[]], members = ["somewhere"]}',
        '{grids = [[""]], members = []}',
        '{grids = [["["]], members = []}',
        '{grids = [["' + "[" * 100_000 + '"]], members = []}',
        '{grids = [["[3]"]], members = []}',
        "{grids = [[7 : i64]], members = []}",
        "{grids = [[]], members = [array<f32: 0.0>]}",
        '{grids = [[]], members = ["view"], arms = array<i64>}',
        '{grids = [[]], members = ["view"], more = unit}',
        *(f"{{grids = [[]], members = [], online = [{{{one}}}]}}" for one in NO_ONLINE),
        "{grids = [[]], members = [], along = [array<i64: 0>]}",
        "{grids = [[]], members = [], along = array<i64: 0, 1>}",
    ],
)
def test_text_that_is_no_loops_is_refused(text: str):
    with pytest.raises(FuselineError) as caught:
        from_attribute(_parsed(text), {}, "main_dispatch_0")
    assert (caught.value.code, caught.value.node) == ("E0302", "main_dispatch_0")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{grids = [[]], members = ["placed"]}', "a placed member has loops"),
        ('{grids = [[""]], members = []}', "a size has no name"),
        ('{grids = [[]], members = ["view"], more = unit}', "unknown entry more"),
        ("{grids = [[7 : i64]], members = []}", "7 : i64 is no StringAttr"),
        ("{grids = [[]], members = [array<f32: 0.0>]}", "is no array of i64"),
    ],
)
def test_a_refusal_says_what_does_not_read_and_what_to_do(text: str, reason: str):
    with pytest.raises(FuselineError, match=f"does not read as loops .*{reason}") as caught:
        from_attribute(_parsed(text), {})
    assert (caught.value.node, caught.value.hint) == (None, "remove the attribute, or form the region again")


# against a body -------------------------------------------------------------------------------------------------------


def _softmax_like() -> tuple[Block, ShapeAnalysis]:
    """exp, its sums along the rows, the quotient: [6, 5], [6], [6, 5]."""
    p = Program((6, 5))
    e = p.unary(p.x[0])
    p.done(p.binary(e, p.reduce(e), dims_map(2, [0])))
    function = next(iter(p.module.ops))
    return function.regions[0].block, ShapeAnalysis()


def test_loops_that_match_pass():
    body, shapes = _softmax_like()
    assert len(members_of(body)) == 3
    require_match(ROWS, body, shapes)
    require_match(VALUES["online"], body, shapes)
    require_match(replace(ROWS, along=((0, 0),)), body, shapes)
    require_match(replace(ROWS, grids=((None,),)), body, shapes)


FIRST, *REST = ROWS.members

WRONG = {
    "members": replace(ROWS, members=ROWS.members[:2]),
    "rank": replace(ROWS, members=(MemberLoops((0,)), *REST)),
    "range": replace(ROWS, members=(MemberLoops((1, None)), *REST)),
    "negative": replace(ROWS, members=(MemberLoops((-2, None)), *REST)),
    "twice": FusedLoops(((6,),), (MemberLoops((0, 0)), *REST)),
    "extent": replace(ROWS, grids=((5,),)),
    "view": replace(ROWS, members=(MemberLoops((), Role.VIEW), *REST)),
    "arm": replace(ROWS, members=(replace(FIRST, arm=1), *REST)),
    "online-member": replace(ROWS, online=(OnlineReduction(((3, 1),), ROLES, 8),)),
    "online-loop": replace(ROWS, online=(OnlineReduction(((0, 2),), ROLES, 8),)),
    "online-grid": replace(ROWS, online=(OnlineReduction(((0, 0),), ROLES, 8),)),
    "online-maximum": replace(ROWS, online=(OnlineReduction(((0, 1),), replace(ROLES, maximum=3), 8),)),
    "online-exponential": replace(ROWS, online=(OnlineReduction(((0, 1),), replace(ROLES, exponentials=(0, -1)), 8),)),
    "online-total": replace(ROWS, online=(OnlineReduction(((0, 1),), replace(ROLES, total=3), 8),)),
    "online-product": replace(ROWS, online=(OnlineReduction(((0, 1),), replace(ROLES, product=5), 8),)),
    "online-arms": FusedLoops(
        ((6,), (6,)),
        (*ROWS.members[:2], replace(ROWS.members[2], arm=1)),
        (OnlineReduction(((0, 1),), ROLES, 8),),
    ),
    "online-points": replace(ROWS, online=(OnlineReduction(((0, 1),), ROLES, 0),)),
    "along-member": replace(ROWS, along=((3, 0),)),
    "along-negative": replace(ROWS, along=((-1, 0),)),
    "along-operand": replace(ROWS, along=((0, 2),)),
    "along-inside": replace(ROWS, along=((1, 0),)),
}


@pytest.mark.parametrize("loops", WRONG.values(), ids=WRONG)
def test_loops_that_cannot_be_those_of_the_body_are_refused(loops: FusedLoops):
    body, shapes = _softmax_like()
    with pytest.raises(FuselineError, match="E0302") as caught:
        require_match(loops, body, shapes, "main_dispatch_0")
    assert caught.value.node == "main_dispatch_0"


def test_a_reduction_may_meet_its_loop_point_by_point():
    body, shapes = _softmax_like()
    require_match(
        replace(ROWS, online=(OnlineReduction(((0, 1),), ROLES, 1),)),
        body,
        shapes,
        "main_dispatch_0",
    )


def test_arms_and_grid_loops_have_one_order_whatever_order_they_were_decided_in():
    one = FusedLoops(
        ((4, 3), (6, 5)), (MemberLoops((0, 1), arm=1), MemberLoops((1, None, 0), arm=0), MemberLoops((1, 0), arm=1))
    )
    assert one.canonical() == FusedLoops(
        ((5, 6), (3, 4)), (MemberLoops((1, 0)), MemberLoops((0, None, 1), arm=1), MemberLoops((0, 1)))
    )
    assert one.canonical().canonical() == one.canonical()


def test_an_arm_has_its_own_members_in_the_order_of_its_code():
    rows, columns, last = MemberLoops((0, None)), MemberLoops((0, 1), arm=1), MemberLoops((0,))
    two = FusedLoops(
        ((4,), (6, 5)), (rows, columns, last), (OnlineReduction(((0, 1),), SoftmaxRoles(0, (0,), 0, 2), 64),)
    )
    view = MemberLoops((), Role.VIEW)
    assert two.of_arm((2, None, 0)) == FusedLoops(
        ((4,),), (last, view, rows), (OnlineReduction(((2, 1),), SoftmaxRoles(2, (2,), 2, 0), 64),)
    )
    numbered = replace(two, classes=((0, 1), (2, 3), (0, None)))
    assert [one.classes for at in ((2, None, 0), (1,)) if (one := numbered.of_arm(at))] == [
        ((0, None), (), (0, 1)),
        ((0, 1),),
    ]
    assert two.of_arm((1,)) == FusedLoops(((6, 5),), (MemberLoops((0, 1)),))
    along = replace(two, along=((2, 1), (1, 0)))
    assert [one.along for numbers in ((2, 0), (1,)) if (one := along.of_arm(numbers))] == [((0, 1),), ((0, 0),)]


@pytest.mark.parametrize("numbers", [(), (None,), (0,), (0, 1), (0, 1, 2)])
def test_some_members_of_arms_are_no_arm(numbers: tuple[int | None, ...]):
    one, other = MemberLoops((0,)), MemberLoops((0,), arm=1)
    assert FusedLoops(((4,), (6,)), (one, other, one)).of_arm(numbers) is None
