"""The steps of a box that is put into a fill.

    one stretch of bytes     a fill before it, a fill behind it, a copy: side by side, each byte is written once
    rows                     a fill of the whole, then the rows

Fills of nothing are left out where that is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fuseline.buffers import Operand
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.program.box_rows import box_distance, box_rows
from fuseline.program.schedule import element_bytes, moved
from fuseline.program.steps import CopyStep, FillStep, InsertStep, Step


def insert_steps(source: Operand, element: Operand, target: Operand, offsets: Sequence[Dim]) -> Iterator[Step]:
    """What makes `target` the one `element` everywhere, but `source` from the element `offsets` on; what was put there
    is last."""
    if box_rows(source.dims, target.dims, 1).loops:
        yield FillStep(element, target, 0)
        yield InsertStep(source, target, 0, offsets=tuple(offsets))
        return
    begin = box_distance(offsets, target.dims, 1)
    end = d.add(begin, d.product(source.dims))
    for first, last in ((0, begin), (end, d.product(target.dims))):
        if first != last:
            yield FillStep(element, _stretch(target, first, (d.sub(last, first),)), 0)
    yield CopyStep(source, _stretch(target, begin, source.dims), 0)


def _stretch(target: Operand, first: Dim, dims: tuple[Dim, ...]) -> Operand:
    """Neighbouring elements of `target`, from number `first` on."""
    return moved(target, d.mul(first, element_bytes(target.dtype)))._replace(dims=dims)
