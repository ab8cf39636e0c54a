"""Which grid loops of two groups are one: every read between them has its say."""

from __future__ import annotations

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.ir.build import Body, identity_map
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import Alignment, align

from .programs import Program
from .test_group import nodes_of

D0, D1 = AffineExpr.dimension(0), AffineExpr.dimension(1)


def _aligned(
    maps: list[AffineMap],
    places: tuple[int | None, ...] = (0, 1),
    out: tuple[int, ...] = (6, 6),
    *,
    whole: bool = False,
) -> Alignment:
    """exp of a square (of a vector, where the first map has one coordinate), and what reads it by `maps`, and by
    `whole` at places of its own, which may be all of it; `places` are the grid loops of the former."""
    rank = len(maps[0].results)
    p = Program((6,) * rank)
    made = p.unary(p.x[0])

    def body(b: Body) -> SSAValue:
        total = b.args[0]
        for other in b.args[1 : len(maps)]:
            total = b.op(arith.AddfOp, total, other)
        if whole:
            last = b.add(arith.ConstantOp.from_int_and_width(5, IndexType())).result
            place = [b.add(arith.SubiOp(last, b.add(linalg.ops.IndexOp(0)).result)).result] * rank
            total = b.op(arith.AddfOp, total, b.add(tensor.ExtractOp(made, place, p.element)).result)
        return total

    y = p.elementwise([made] * len(maps), p.empty(*out), body, [*maps, identity_map(len(out))])
    producer, consumer = nodes_of(p.done(y))
    grid = tuple(6 for place in places if place is not None)
    return align(Group([producer], grid, {producer: places}), Group.of(consumer))


PLAIN, TURNED = AffineMap(2, 0, (D0, D1)), AffineMap(2, 0, (D1, D0))
BACKWARDS = AffineMap(2, 0, (AffineExpr.constant(5) - D0, D1))


def _demoted(found: Alignment) -> tuple[set[int], set[int]]:
    return set(found.demoted_producer), set(found.demoted_consumer)


def test_plain_reads_pair_every_loop() -> None:
    found = _aligned([PLAIN, PLAIN])
    assert found.pairs == ((0, 0), (1, 1)) and found.exact
    assert _aligned([TURNED]).pairs == ((0, 1), (1, 0))


def test_a_loop_that_is_also_read_otherwise_is_no_pair() -> None:
    found = _aligned([PLAIN, BACKWARDS])
    assert found.pairs == ((1, 1),) and _demoted(found) == ({0}, {0}) and not found.exact


def test_reads_that_contradict_each_other_pair_nothing() -> None:
    assert _aligned([PLAIN, TURNED]).pairs == ()
    one = [AffineMap(2, 0, (D0,)), AffineMap(2, 0, (D1,))]
    found = _aligned(one, (0,))
    assert found.pairs == () and _demoted(found) == ({0}, {0, 1})


def test_the_diagonal_follows_two_loops_with_one() -> None:
    found = _aligned([AffineMap(1, 0, (D0, D0))], out=(6,))
    assert found.pairs == () and _demoted(found) == ({0, 1}, {0})


def test_a_dimension_that_each_workgroup_has_whole_is_no_grid_loop_of_its_reader() -> None:
    """The producer keeps its first dimension inside; a reader whose grid walks along it would read others' work."""
    assert _aligned([PLAIN], (None, 0)).pairs == ((0, 1),)
    assert _aligned([AffineMap(1, 0, (D0, D0))], (None, 0), (6,)).pairs == ()


def test_what_is_read_as_a_whole_leaves_no_pair() -> None:
    vector = [AffineMap(1, 0, (D0,))]
    assert _aligned(vector, (0,), (6,)).pairs == ((0, 0),)
    assert _aligned(vector, (0,), (6,), whole=True).pairs == ()
    assert _aligned([PLAIN], (None, 0)).pairs == ((0, 1),)
    assert _aligned([PLAIN], (None, 0), whole=True).pairs == ()
