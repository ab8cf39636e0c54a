"""Which loops of the members of a body are one, read off the body."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.softmax_roles import SoftmaxRoles
from fuseline.dispatch.fused_loops import FusedLoops, MemberLoops, OnlineReduction, Role
from fuseline.dispatch.loop_claims import require_shared
from fuseline.dispatch.shared_loops import SharedLoops
from fuseline.errors import FuselineError
from fuseline.ir.build import Body, dims_map, identity_map
from fuseline.ir.dim import symbol
from tests.graphs.program import Program


def _op(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner


def _loops(
    placed: Sequence[SSAValue],
    inlined: Sequence[SSAValue] = (),
    views: Sequence[SSAValue] = (),
    arguments: Sequence[SSAValue] | None = None,
) -> SharedLoops:
    return SharedLoops(
        list(map(_op, placed)),
        map(_op, inlined),
        map(_op, views),
        ShapeAnalysis(),
        arguments or (),
        arguments is not None,
    )


def _shared(loops: SharedLoops, class_: tuple[Operation, int]) -> bool:
    return loops.classes.is_shared(class_, loops.placed)


def _classes(loops: SharedLoops, *values: SSAValue) -> list[list[str]]:
    """For each member a letter per loop, the same for loops that are one; upper case where it is shared."""
    letters: dict[object, str] = {}
    found: list[list[str]] = []
    for value in values:
        classes = [loops.classes.of((_op(value), loop)) for loop in range(len(loops.nests[_op(value)].loops))]
        names = [letters.setdefault(class_, "abcdefgh"[len(letters)]) for class_ in classes]
        found.append([n.upper() if _shared(loops, c) else n for n, c in zip(names, classes, strict=True)])
    return found


@pytest.mark.parametrize("shape", [(6, 5), ("r", 5), ("r", "c")])
def test_a_chain_shares_all_loops(shape: tuple[int | str, ...]):
    p = Program(shape)
    first = p.unary(p.x[0])
    second = p.unary(first)
    assert _classes(_loops([first, second]), first, second) == [["A", "B"], ["A", "B"]]


def test_a_transposed_reader_has_them_in_another_order():
    p = Program((6, 5))
    first = p.unary(p.x[0])
    second = p.unary(first, permutation=(1, 0))
    assert _classes(_loops([first, second]), first, second) == [["A", "B"], ["B", "A"]]


def test_a_loop_that_is_summed_along_is_not_shared():
    p = Program((6, 5))
    first = p.unary(p.x[0])
    total = p.reduce(first)
    back = p.by_row(first, total, lambda b: b.op(arith.AddfOp, *b.args[:2]))
    assert _classes(_loops([first, total, back]), first, total, back) == [["A", "b"]] * 3
    assert _classes(_loops([first, total]), first, total) == [["A", "b"]] * 2


def test_members_that_read_nothing_of_each_other_share_nothing():
    p = Program((6, 5), (6, 5))
    first, second = p.unary(p.x[0]), p.unary(p.x[1])
    assert _classes(_loops([first, second]), first, second) == [["a", "b"], ["c", "d"]]


def test_what_is_read_both_ways_is_out_of_step():
    p = Program((6, 6))
    first = p.unary(p.x[0])
    second = p.binary(first, first, dims_map(2, [1, 0]))
    assert _classes(_loops([first, second]), first, second) == [["a", "a"], ["a", "a"]]


def test_a_loop_read_backwards_and_one_that_a_sum_in_place_wants_whole():
    """Each breaks its own class, whatever breaks the other."""
    p = Program((6, 5))
    first = p.unary(p.x[0])
    total = p.reduce(first)
    d0, d1 = AffineExpr.dimension(0), AffineExpr.dimension(1)
    backwards = AffineMap(2, 0, (AffineExpr.constant(5) - d0, d1))

    def add(b: Body) -> SSAValue:
        return b.op(arith.AddfOp, b.op(arith.AddfOp, b.args[0], b.args[1]), b.args[2])

    maps = [identity_map(2), backwards, dims_map(2, [0]), identity_map(2)]
    last = p.elementwise([first, first, total], p.empty(6, 5), add, maps)
    assert _classes(_loops([first, last], [total]), first, last) == [["a", "b"], ["a", "b"]]
    plain = p.elementwise([first, first, total], p.empty(6, 5), add, [maps[0], maps[0], maps[2], maps[0]])
    assert _classes(_loops([first, plain], [total]), first, plain) == [["A", "b"], ["A", "b"]]


def test_a_window_is_read_out_of_step():
    p = Program((8, 3), (3, 3))
    first = p.unary(p.x[0])
    window = p.depthwise(first, p.x[1])
    found = _classes(_loops([first, window]), first, window)
    assert found[0][1] == found[1][1] == "B" and found[0][0] == "a" and found[1][0] not in "AB"


def test_a_loop_of_one_step_joins_nothing():
    p = Program((1, 5))
    first = p.unary(p.x[0])
    second = p.unary(first)
    assert _classes(_loops([first, second]), first, second) == [["a", "B"], ["c", "B"]]


def test_a_reshape_is_looked_through_where_it_keeps_loops():
    p = Program((6, 5))
    first = p.unary(p.x[0])
    wide = p.unary(p.expand(first, 6, 1, 5, groups=[[0], [1, 2]]))
    (rows, columns), (again, _, last) = _classes(_loops([first, wide]), first, wide)
    assert (rows, columns) == (again, last) == ("A", "B")
    flat = p.unary(p.collapse(first))
    found = _classes(_loops([first, flat]), first, flat)
    assert not any(letter.isupper() for letters in found for letter in letters)


@pytest.mark.parametrize(("offsets", "sizes", "shared"), [([0, 0], [6, 5], True), ([2, 0], [4, 5], False)])
def test_a_slice_is_looked_through_as_a_view_alone(offsets: list[int], sizes: list[int], shared: bool):
    p = Program((6, 5))
    first = p.unary(p.x[0])
    part = p.slice(first, offsets, sizes)
    second = p.unary(part)
    as_view = _classes(_loops([first, second], views=[part]), first, second)
    assert (as_view[0][0] == as_view[1][0] == "A") == shared and as_view[0][1] == as_view[1][1] == "B"
    between = _classes(_loops([first, second], inlined=[part]), first, second)
    assert between[0][1] == between[1][1] == "B"
    opaque = _classes(_loops([first, second]), first, second)
    assert not any(letter.isupper() for letter in opaque[0])


def test_an_inlined_sum_wants_all_of_what_it_reads():
    p = Program((6, 5))
    first = p.unary(p.x[0])
    total = p.reduce(first)
    back = p.by_row(first, total, lambda b: b.op(arith.AddfOp, *b.args[:2]))
    assert _classes(_loops([first, back], inlined=[total]), first, back) == [["A", "b"]] * 2
    before = p.unary(p.reduce(p.x[0]))
    assert _classes(_loops([before], inlined=[_op(before).operands[0]]), before) == [["A"]]


def test_what_a_body_picks_from_may_be_read_anywhere_but_along_columns_of_its_own():
    p = Program((6, 5), (4, 3))
    table = p.unary(p.x[0])
    picked = p.gathered(table, p.x[1], 4, 5)
    assert _classes(_loops([table, picked]), table, picked) == [["a", "B"], ["c", "B"]]


def test_an_init_counts_only_where_the_body_reads_it():
    p = Program((6, 5))
    first = p.unary(p.x[0])
    over = p.elementwise([p.x[0]], first, lambda b: b.args[0])
    assert _classes(_loops([first, over]), first, over) == [["a", "b"], ["c", "d"]]
    added = p.elementwise([p.x[0]], first, lambda b: b.op(arith.AddfOp, *b.args))
    assert _classes(_loops([first, added]), first, added) == [["A", "B"]] * 2


def test_loops_along_an_argument_are_one():
    p = Program((6, 5))
    first, second = p.unary(p.x[0]), p.unary(p.x[0], permutation=(1, 0))
    total = p.reduce(p.expand(p.x[0], 6, 1, 5, groups=[[0], [1, 2]]), axis=-1)
    part = p.unary(p.slice(p.x[0], [0, 1], [6, 2]))
    loops = _loops([first, second, total, part], inlined=[_op(part).operands[0]], arguments=[p.x[0]])
    assert _classes(loops, first, second, total) == [["A", "b"], ["b", "A"], ["A", "c", "b"]]
    assert _classes(loops, first, part) == [["A", "b"], ["A", "c"]]
    assert _classes(_loops([first, second]), first, second) == [["a", "b"], ["c", "d"]]


def test_an_inlined_value_of_arguments_alone_joins_its_readers_where_arguments_are_asked_for():
    p = Program((6, 6))
    value = p.unary(p.x[0])
    first, second, window = p.unary(value), p.unary(value), p.unary(p.slice(value, [1, 0], [5, 6]))
    placed, moved = [first, second, window], _op(window).operands[0]
    assert _classes(_loops(placed[:2], inlined=[value]), first, second) == [["a", "b"], ["c", "d"]]
    found = _classes(_loops(placed, inlined=[value, moved], arguments=[]), *placed)
    assert found == [["a", "B"], ["a", "B"], ["c", "B"]]


def test_loops_along_a_class():
    p = Program((6, 6))
    first = p.unary(p.x[0])
    second = p.unary(first, permutation=(1, 0))
    loops = _loops([first, second])
    rows = loops.classes.of((_op(first), 0))
    assert [loops.classes.along(_op(value), rows) for value in (first, second)] == [[0], [1]]


def test_iterators_of_members():
    p = Program((6, 5))
    total, pad = p.reduce(p.x[0], axis=0), p.pad(p.x[0], [1, 0], [0, 0])
    nests = _loops([total, pad]).nests
    assert [(nest.loops, list(nest.iterators)) for nest in (nests[_op(total)], nests[_op(pad)])] == [
        ((6, 5), ["reduction", "parallel"]),
        ((7, 5), ["parallel", "parallel"]),
    ]


def test_parts_are_what_hangs_together_through_values():
    p = Program((6, 5), (6, 5))
    first, other = p.unary(p.x[0]), p.unary(p.x[1])
    second = p.unary(p.collapse(first))
    loops = _loops([first, other, second])
    assert loops.components() == [[_op(first), _op(second)], [_op(other)]]


# what is claimed ------------------------------------------------------------------------------------------------------

ROW = MemberLoops((0, None))


def _rows() -> Block:
    p = Program((6, 5))
    first = p.unary(p.x[0])
    p.done(p.by_row(first, p.reduce(first), lambda b: b.op(arith.AddfOp, *b.args[:2])))
    return p.block


def _arms() -> Block:
    p = Program((6, 3), (3, 8), (3, 4))
    p.done(p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2]))
    return p.block


def _require(loops: FusedLoops, body: Block) -> None:
    require_shared(loops, body, ShapeAnalysis(), "dispatch_3", "E0302")


ARM_LOOPS = FusedLoops(((6, 8), (6, 4)), (MemberLoops((0, 1, None)), MemberLoops((0, 1, None), arm=1)))


def test_what_is_so_is_taken():
    _require(FusedLoops(((6,),), (ROW, ROW, ROW)), _rows())
    _require(FusedLoops(((None,),), (ROW, ROW, ROW)), _rows())
    _require(FusedLoops(((),), (MemberLoops((None, None)),) * 3), _rows())
    _require(FusedLoops(((6,),), (ROW, MemberLoops((), Role.INLINED), ROW)), _rows())
    _require(ARM_LOOPS, _arms())


@pytest.mark.parametrize(
    ("loops", "body", "why"),
    [
        (FusedLoops(((7,),), (ROW, ROW, ROW)), _rows, "grid loop 0 of arm 0 runs to 7, a loop of linalg.generic to 6"),
        (FusedLoops(((symbol("n"),),), (ROW, ROW, ROW)), _rows, "grid loop 0 of arm 0 runs to n"),
        (FusedLoops(((6,),), (ROW, ROW, MemberLoops((None, None)))), _rows, "is a loop of 2 of 3 members"),
        (FusedLoops(((6,),), (ROW, ROW, MemberLoops((), Role.INLINED))), _rows, "is inlined, and a result"),
        (FusedLoops(((5,),), (MemberLoops((None, 0)),) * 3), _rows, "is no loop that all members share"),
        (
            FusedLoops(ARM_LOOPS.grids, (ARM_LOOPS.members[0], MemberLoops((1, 0, None), arm=1))),
            _arms,
            "grid loop 0 of arm 1 runs to 6, a loop of linalg.generic to 4",
        ),
        (
            FusedLoops(
                ((6,),), (ROW, ROW, ROW), (OnlineReduction(((0, 1), (1, 1), (2, 1)), SoftmaxRoles(1, (0,), 1, 2), 64),)
            ),
            _rows,
            "the loop of an online reduction is not what the members have along it",
        ),
    ],
)
def test_what_is_not_so_is_refused(loops: FusedLoops, body: object, why: str):
    with pytest.raises(FuselineError, match="fusion and the body of the dispatch disagree") as caught:
        _require(loops, body())  # pyright: ignore
    assert why in caught.value.message and (caught.value.code, caught.value.node) == ("E0302", "dispatch_3")


def test_an_online_reduction_that_ends_in_its_product():
    p = Program((6, 5))
    first = p.unary(p.x[0])
    total = p.reduce(first)
    p.done(total)
    online = OnlineReduction(((0, 1), (1, 1)), SoftmaxRoles(1, (0,), 1, 1), 64)
    loops = FusedLoops(((6,),), (ROW, ROW), (online,))
    _require(loops, p.block)
    with pytest.raises(FuselineError, match="online reduction"):
        _require(
            FusedLoops(loops.grids, loops.members, (OnlineReduction(((1, 1),), SoftmaxRoles(1, (0,), 1, 1), 64),)),
            p.block,
        )


def test_the_order_of_operands_does_not_count():
    p = Program((6, 5), (6, 5))
    first = p.unary(p.x[0])
    for inputs in ([first, p.x[1]], [p.x[1], first]):
        second = p.elementwise(inputs, p.empty(6, 5), lambda b: b.op(arith.AddfOp, *b.args[:2]))
        assert _classes(_loops([first, second]), first, second) == [["A", "B"]] * 2
