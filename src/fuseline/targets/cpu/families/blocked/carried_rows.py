"""Rows that a band has in common with the one before it: they are kept, and only the others are computed.

    bands of 28 rows through a window of 3 need 30 of the image      =>      the first band of a thread makes 30 rows,
                                                                            each further one moves 2 and makes 28

A workgroup is a band, and a thread runs a range of them one after the other (`targets/cpu/link/scheduler.py`): what is
in its scratch behind one is there before the next. That bands overlap is said nowhere: it is read from what their ops
do (`shifted_rows.py`). To the dispatch they stay what they are, each computed from what is outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from fuseline.dispatch.loop_ref import LoopRef
from fuseline.targets.cpu.families.blocked.dispatch import BlockedDispatch
from fuseline.targets.cpu.families.blocked.shifted_rows import shift_of
from fuseline.targets.cpu.families.blocked.sub_kernels import SubKernel, readers
from fuseline.targets.cpu.families.blocked.tiles import Part
from fuseline.targets.target import Refusal


@dataclass(frozen=True, slots=True)
class CarriedRows:
    """The first sub-kernel makes nothing but `value`, of `shape` in a band of the loop `band`; dimension `axis` of it
    are its rows, `row` their loop. The last rows of a band are the first of the next one, all but `step`."""

    value: SSAValue
    band: LoopRef
    row: LoopRef
    axis: int
    shape: tuple[int, ...]
    step: int

    @property
    def rows(self) -> int:
        """Rows of a band."""
        return self.shape[self.axis]

    @property
    def kept(self) -> int:
        """Rows that are kept."""
        return self.rows - self.step

    @property
    def parts(self) -> tuple[Part, Part]:
        """The rows that only the first band makes, and those that each makes."""
        return Part(0, self.kept), Part(self.kept, self.step)

    def offsets(self, part: Part) -> tuple[int, ...]:
        """Where a part of the rows begins in those of a band."""
        return tuple(part.offset if axis == self.axis else 0 for axis in range(len(self.shape)))

    @property
    def lines(self) -> tuple[int, int, int]:
        """What is moved: how many runs of elements, how many elements each, and how many there are in a row."""
        outer, row = prod(self.shape[: self.axis]), prod(self.shape[self.axis + 1 :])
        return outer, self.kept * row, row


def carried_rows(dispatch: BlockedDispatch, sub_kernels: Sequence[SubKernel]) -> CarriedRows | Refusal:
    """What bands have in common, or why nothing is kept."""
    if len(dispatch.grid) != 1:
        return Refusal("grid", f"{len(dispatch.grid)} loops are shared, and not one along bands")
    (band,), first = dispatch.grid, sub_kernels[0]
    made = [value for op in first.members for value in op.results if readers(dispatch, sub_kernels, value)]
    returned = any(value in dispatch.returned for op in first.members for value in op.results)
    if first.root is None or len(made) != 1 or returned:
        return Refusal("maker", "what comes first is no product or window that hands on one value alone")
    axes, dims = dispatch.axes.of_value(made[0]), dispatch.view.shapes.dims(made[0])
    axis = axes.index(band) + 1 if band in axes else len(axes)
    row = axes[axis] if axis < len(axes) else None
    shape = tuple(1 if i == axis - 1 else size for i, size in enumerate(dims))
    known = tuple(size for size in shape if isinstance(size, int))
    if row is None or len(known) != len(shape):
        return Refusal("rows", "the bands of what comes first have no rows, or of no known number")
    step = shift_of(dispatch, first.members, band, row)
    if step is None or not 0 < step < known[axis]:
        return Refusal("overlap", "no rows of a band are those of the next one")
    return CarriedRows(made[0], band, row, axis, known, step)


@dataclass(frozen=True, slots=True)
class CarriedSubKernels:
    """Sub-kernel `first` makes the rows that only the first band makes, the next one those that each makes."""

    rows: CarriedRows
    first: int


def in_bands_of_one(found: CarriedRows | Refusal | None) -> Mapping[LoopRef, int]:
    """The size of a block along the loop over bands."""
    return {found.band: 1} if isinstance(found, CarriedRows) else {}
