"""The image of a band: what the first sub-kernel hands on to a window, and how its rows are made.

    bands of 28 rows through a window of 3 need 30 of the image      =>      the first band of a thread makes 30 rows,
                                                                            each further one moves 2 and makes 28

A workgroup is a band, and a thread runs a range of them one after the other (`targets/cpu/link/scheduler.py`): what is
in its scratch behind one is there before the next. That bands overlap is said nowhere: it is read from what their ops
do (`shifted_rows.py`). To the dispatch they stay what they are, each computed from what is outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar

from xdsl.ir import SSAValue

from fuseline.dispatch.loop_ref import LoopRef
from fuseline.targets.cpu.families.blocked.band_edges import Edge, edge_of
from fuseline.targets.cpu.families.blocked.dispatch import BlockedDispatch
from fuseline.targets.cpu.families.blocked.shifted_rows import shift_of
from fuseline.targets.cpu.families.blocked.sub_kernels import LiveRange, SubKernel, readers
from fuseline.targets.cpu.families.blocked.tiles import Part, Tile

_Of = TypeVar("_Of")


@dataclass(frozen=True, slots=True)
class BandImage:
    """The first sub-kernel makes nothing but `value`, of `shape` in a band of the loop `band`; dimension `axis` of it
    are its rows, `row` their loop.

    Its last `kept` rows are the first of the next band. `edge`: the rows that are no rows of the whole image.
    """

    value: SSAValue
    band: LoopRef
    row: LoopRef
    axis: int
    shape: tuple[int, ...]
    kept: int = 0
    edge: Edge | None = None

    @property
    def rows(self) -> int:
        """Rows of a band."""
        return self.shape[self.axis]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The rows that each band makes; before them, where some are kept, those that only the first one makes."""
        each = Part(self.kept, self.rows - self.kept)
        return (Part(0, self.kept), each) if self.kept else (each,)

    def offsets(self, part: Part) -> tuple[int, ...]:
        """Where a part of the rows begins in those of a band."""
        return tuple(part.offset if axis == self.axis else 0 for axis in range(len(self.shape)))

    @property
    def outer(self) -> int:
        """Runs of rows that lie one behind the other."""
        return prod(self.shape[: self.axis])

    @property
    def row_elements(self) -> int:
        """Elements of a row in a run."""
        return prod(self.shape[self.axis + 1 :])


def band_image(dispatch: BlockedDispatch, sub_kernels: Sequence[SubKernel], *, keeps: bool) -> BandImage | None:
    """The image, where its rows are made in a way of their own: some are kept (where it `keeps` any), or there are
    edges."""
    found = _image(dispatch, sub_kernels)
    if found is None:
        return None
    step = shift_of(dispatch, sub_kernels[0].members, found.band, found.row) if keeps else None
    kept = max(0, found.rows - step) if step is not None and step > 0 else 0
    edge = edge_of(dispatch, found.value, found.band, found.row)
    return replace(found, kept=kept, edge=edge) if kept or edge is not None else None


def _image(dispatch: BlockedDispatch, sub_kernels: Sequence[SubKernel]) -> BandImage | None:
    """What the first sub-kernel alone hands on, in bands of a number of rows that is known."""
    first, returned = sub_kernels[0], dispatch.returned
    made = [value for op in first.members for value in op.results if readers(dispatch, sub_kernels, value)]
    if len(dispatch.grid) != 1 or first.root is None or len(made) != 1:
        return None
    (band,), (value,) = dispatch.grid, made
    axes, dims = dispatch.axes.of_value(value), dispatch.view.shapes.dims(value)
    axis = axes.index(band) + 1 if band in axes else len(axes)
    row = axes[axis] if axis < len(axes) else None
    shape = tuple(1 if i == axis - 1 else size for i, size in enumerate(dims))
    known = tuple(size for size in shape if isinstance(size, int))
    if row is None or len(known) != len(shape) or any(one in returned for op in first.members for one in op.results):
        return None
    return BandImage(value, band, row, axis, known)


def with_kept_rows(image: BandImage | None) -> BandImage | None:
    """The image where rows of it go from band to band; else None."""
    return image if image is not None and image.kept else None


def makers_of_rows(image: BandImage | None, sub_kernels: Sequence[_Of]) -> Sequence[_Of]:
    """What of the sub-kernels, as many as there are yet, makes the rows of an image some of which are kept: the first
    ones."""
    kept = with_kept_rows(image)
    return sub_kernels[: len(kept.parts)] if kept is not None else ()


def in_bands_of_one(image: BandImage | None) -> Mapping[LoopRef, int]:
    """The size of a block along the loop over bands, where rows are kept."""
    kept = with_kept_rows(image)
    return {kept.band: 1} if kept is not None else {}


def live_throughout(image: BandImage | None, live: Sequence[LiveRange], last: int) -> list[LiveRange]:
    """`live`, where a kept image is there until sub-kernel `last`: the next band finds it."""
    kept = with_kept_rows(image)
    return [replace(one, last=last) if kept is not None and one.value is kept.value else one for one in live]


def is_one_band(image: BandImage, tiles: Mapping[LoopRef, Tile]) -> bool:
    """Whether each block is a band."""
    return image.band in tiles and tiles[image.band].size == 1
