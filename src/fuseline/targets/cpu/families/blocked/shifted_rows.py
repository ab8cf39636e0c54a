"""How many rows further a band is than the one before it: whether what some ops make of row `r` of band `b` is made of
nothing but `step * b + r`.

    image(b, r) = sum over k of x[56 b + 2 r + k]     =>      28: row 28 of a band is row 0 of the next one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from xdsl.dialects import linalg
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.moves import MOVES, Coordinate, affine_sources
from fuseline.analysis.operand_reads import Coordinates, operand_reads
from fuseline.analysis.structured import StructuredOp, is_generic, splat_value
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.targets.cpu.families.blocked.band_numbers import row_numbers
from fuseline.targets.cpu.families.blocked.dispatch import BlockedDispatch, starts_empty


class _NotShiftedError(Exception):
    """Something depends on bands and rows in another way."""


def shift_of(
    dispatch: BlockedDispatch, members: Sequence[linalg.ops.GenericOp], band: LoopRef, row: LoopRef
) -> int | None:
    """`step`, where all that `members` read, each other aside, and know of their loops along `band` and `row` is
    `step * band + row`; None where it is not so, or cannot be told."""
    steps = set[int]()
    try:
        for op in members:
            loops = dispatch.axes.of_op(op)
            if loops.count(band) != 1 or loops.count(row) != 1:
                return None
            _Reads(dispatch, members, loops.index(band), loops.index(row), steps).follow(op, (band, row))
    except _NotShiftedError:
        return None
    return steps.pop() if len(steps) == 1 else None


@dataclass
class _Reads:
    """Follows what one op reads over its loops `band` and `row`, and collects the steps."""

    dispatch: BlockedDispatch
    members: Sequence[Operation]
    band: int
    row: int
    steps: set[int] = field(default_factory=set[int])

    def follow(self, op: linalg.ops.GenericOp, axes: tuple[LoopRef, LoopRef]) -> None:
        """All that `op` reads, and the numbers of its loops."""
        numbers = row_numbers(op, self.band, self.row)
        if not numbers.alone:
            raise _NotShiftedError
        self.steps.update(numbers.steps.values())
        for value, at in operand_reads(op, self.dispatch.view.shapes):
            if self.dispatch.is_inside(value):
                self._in_step(value, at, axes)
            elif _is_known(at) and not starts_empty(value):
                self._behind(value, at)

    def _in_step(self, value: SSAValue, at: Coordinates, axes: tuple[LoopRef, LoopRef]) -> None:
        """What another of the ops made is read at the same band and row."""
        if at is None or not isinstance(value, OpResult) or value.op not in self.members:
            raise _NotShiftedError
        known = {axes[0]: self.band, axes[1]: self.row}
        for axis, expr in zip(self.dispatch.axes.of_value(value), _known(at), strict=True):
            loop = known.get(axis) if axis is not None else None
            alone = isinstance(expr, AffineDimExpr) and expr.position == loop
            if not alone and (loop is not None or dims_of(expr) & {self.band, self.row}):
                raise _NotShiftedError

    def _behind(self, value: SSAValue, at: Sequence[Coordinate]) -> None:
        """A tensor from outside, through what is read in place."""
        if isinstance(value, BlockArgument) or splat_value(value) is not None:
            self._coordinates(at)
        elif isinstance(value, OpResult) and type(value.op) in MOVES:
            self._moved(value.op, at)
        elif isinstance(value, OpResult) and is_generic(value.op):
            self._computed(value.op, value.index, at)
        else:
            self._coordinates(at)

    def _moved(self, op: Operation, at: Sequence[Coordinate]) -> None:
        found = affine_sources(op, self.dispatch.view.shapes)
        if found is None:
            raise _NotShiftedError
        for one in found:
            self._coordinates(_composed([guard.coordinate for guard in one.guards], at))
            self._behind(one.value, _composed(one.at, at))

    def _computed(self, op: linalg.ops.GenericOp, result: int, at: Sequence[Coordinate]) -> None:
        """What an op that is computed where it is read makes of each element."""
        view = StructuredOp(op)
        steps = view.output_maps[result].results
        loops = {expr.position: place for expr, place in zip(steps, at, strict=True) if isinstance(expr, AffineDimExpr)}
        if len(loops) != len(view.iterators) or any(isinstance(inner, linalg.ops.IndexOp) for inner in op.body.walk()):
            raise _NotShiftedError
        places = [loops[loop] for loop in range(len(loops))]
        for value, read in operand_reads(op, self.dispatch.view.shapes):
            if _is_known(read) and not starts_empty(value):
                self._behind(value, _composed(read, places))

    def _coordinates(self, at: Sequence[Coordinate]) -> None:
        for expr in _known(at):
            found = linear_terms(expr)
            if found is not None:
                self._step(found[0].get(self.band, 0), found[0].get(self.row, 0))
            elif dims_of(expr) & {self.band, self.row}:
                raise _NotShiftedError

    def _step(self, of_band: int, of_row: int) -> None:
        """A coordinate that moves so far with the band, so far with the row."""
        if not of_band and not of_row:
            return
        if not of_row or of_band % of_row:
            raise _NotShiftedError
        self.steps.add(of_band // of_row)


def _composed(exprs: Sequence[Coordinate], at: Sequence[Coordinate]) -> list[AffineExpr]:
    return [expr.replace_dims_and_symbols(_known(at), []) for expr in _known(exprs)]


def _is_known(at: Coordinates) -> TypeGuard[Sequence[Coordinate]]:
    """Whether a read goes along loops alone: where a body picks elements is in `row_numbers`."""
    return at is not None and None not in at


def _known(at: Sequence[Coordinate]) -> list[AffineExpr]:
    known = [expr for expr in at if expr is not None]
    if len(known) != len(list(at)):
        raise _NotShiftedError
    return known
