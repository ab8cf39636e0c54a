"""Ranks: how many elements come before each in an order; and positions, which are ranks turned around.

rank      out[.., i, ..] = sum over j of (x[.., j, ..] comes before x[.., i, ..] ? 1 : 0)
          (or no more than a limit)
position  out[.., r, ..] = sum over i of (rank[.., i, ..] == r ? i : 0)

One element comes before another where its first key is less, or equal and its second key is less, .., or all are equal
and it stands before it. Keys are integers, each a tensor of its own. So no two elements have one rank, and both are
made in one walk: by sorting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.structured import StructuredOp, splat_value, yielded
from fuseline.analysis.walks import Scatter, loop_of, term_of
from fuseline.ir.dim import Dim, upper_bound

_EQUAL, _LESS, _NO_MORE = 0, 2, 3
"""`arith.cmpi` predicates, signed."""


@dataclass(frozen=True, slots=True)
class Rank:
    """`root` counts along its loop `ranked` how many elements come before each; inputs `keys` are the keys of the
    element itself, the most significant first. It counts up to `limit` (None: all)."""

    root: StructuredOp
    keys: tuple[int, ...]
    ranked: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Positions:
    """`root` turns the ranks of `rank` around: along its loop `ordered` it says which element has each rank, of as many
    as it has room for."""

    root: StructuredOp
    rank: Rank
    ordered: int

    def all_ranked(self, extents: Sequence[Dim]) -> bool:
        """Whether ranks are counted as far as there is room for positions, with the loops of `root` of these
        extents."""
        room = upper_bound(extents[self.ordered])
        return self.rank.limit is None or (room is not None and room <= self.rank.limit)


def rank_of(view: StructuredOp) -> Rank | None:
    """The rank that `view` is, None for any other reduction."""
    total, limit = _limited(yielded(view.op)[0])
    term = term_of(view, total)
    widened = term.owner if term is not None else None
    if not isinstance(widened, arith.ExtUIOp) or len(view.reduction) != 1:
        return None
    pairs = _pairs(widened.input)
    if pairs is None:
        return None
    reduced, ranked = (loop_of(value) for value in pairs[-1])
    if reduced is None or reduced != view.reduction[0] or ranked not in view.parallel:
        return None
    keys = [_key(view, pair, reduced, ranked) for pair in pairs[:-1]]
    found = tuple(key for key in keys if key is not None)
    return Rank(view, found, ranked, limit) if len(found) == len(keys) else None


def positions_of(scatter: Scatter, rank: Rank) -> Positions | None:
    """The positions that `scatter` makes of the ranks of `rank`, None where it does something else."""
    view, ranks = scatter.root, rank.root.op.results[0]
    place = _behind_casts(scatter.position)
    if not isinstance(place, BlockArgument) or place.owner is not view.body or place.index >= len(view.inputs):
        return None
    if view.inputs[place.index] is not ranks or loop_of(scatter.element) != view.reduction[0]:
        return None
    if scatter.neutral is None or not isinstance(yielded(view.op)[0].owner, arith.AddiOp):
        return None
    if splat_value(scatter.neutral) != 0 or splat_value(view.outputs[0]) != 0:
        return None
    if splat_value(rank.root.outputs[0]) != 0:
        return None
    walked, written = view.input_maps[place.index].results, rank.root.output_maps[0].results
    alike = all(
        isinstance(at, AffineDimExpr)
        and isinstance(loop, AffineDimExpr)
        and (at.position == view.reduction[0]) == (loop.position == rank.ranked)
        for at, loop in zip(walked, written, strict=True)
    )
    return Positions(view, rank, scatter.scattered) if alike else None


def _behind_casts(value: SSAValue) -> SSAValue:
    while isinstance(value, OpResult) and isinstance(value.op, arith.IndexCastOp):
        value = value.op.input
    return value


def _pairs(first: SSAValue) -> list[tuple[SSAValue, SSAValue]] | None:
    """What is compared, in turn: the keys of two elements, the most significant first, and where they stand."""
    found: list[tuple[SSAValue, SSAValue]] = []
    while isinstance(first.owner, arith.OrIOp):
        less, rest = _comparison(first.owner.lhs), first.owner.rhs.owner
        equal = _comparison(rest.lhs) if isinstance(rest, arith.AndIOp) else None
        if less is None or equal is None or (less[0], equal[0]) != (_LESS, _EQUAL) or less[1:] != equal[1:]:
            return None
        assert isinstance(rest, arith.AndIOp)
        found.append((less[1], less[2]))
        first = rest.rhs
    choice = first.owner
    if not isinstance(choice, arith.SelectOp):
        return None
    order, equals, differs = (_comparison(value) for value in (choice.cond, choice.lhs, choice.rhs))
    if order is None or equals is None or differs is None or equals[1:] != differs[1:]:
        return None
    if (order[0], equals[0], differs[0]) != (_LESS, _NO_MORE, _LESS):
        return None
    return [*found, (differs[1], differs[2]), (order[1], order[2])]


def _key(view: StructuredOp, pair: tuple[SSAValue, SSAValue], reduced: int, ranked: int) -> int | None:
    """The input that is the key of the element itself, where the two are one tensor at both elements."""
    there, here = pair
    if not _is_input(view, there) or not _is_input(view, here):
        return None
    assert isinstance(there, BlockArgument) and isinstance(here, BlockArgument)
    same = view.inputs[there.index] is view.inputs[here.index]
    return here.index if same and _moved(view, there.index, here.index, reduced, ranked) else None


def _is_input(view: StructuredOp, value: SSAValue) -> bool:
    return isinstance(value, BlockArgument) and value.owner is view.body and value.index < len(view.inputs)


def _limited(total: SSAValue) -> tuple[SSAValue, int | None]:
    """`min(value, limit)` as both, anything else without a limit."""
    op = total.owner
    if isinstance(op, arith.MinSIOp):
        for value, most in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            limit = splat_value(most)
            if isinstance(limit, int) and limit > 0:
                return value, limit
    return total, None


def _comparison(value: SSAValue) -> tuple[int, SSAValue, SSAValue] | None:
    op: Operation | None = value.owner if isinstance(value, OpResult) else None
    return (op.predicate.value.data, op.lhs, op.rhs) if isinstance(op, arith.CmpiOp) else None


def _moved(view: StructuredOp, before: int, here: int, reduced: int, ranked: int) -> bool:
    """Whether two inputs are read at the same place but for loop `reduced` in the stead of `ranked`."""
    if before == here or ranked in used_dims(view.maps[before]) or reduced in used_dims(view.maps[here]):
        return False
    at = AffineDimExpr(ranked)
    return all(
        a == b or (a == AffineDimExpr(reduced) and b == at)
        for a, b in zip(view.maps[before].results, view.maps[here].results, strict=True)
    )
