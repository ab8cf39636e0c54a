"""Where an element lies in a constant that is laid out as another kernel asked: the row-major index of its digits, in
the order in which the layout has them."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.errors import FuselineError
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.weight_layouts import SharedLayout, digits_of


def shared_index(buffers: DispatchBuffers, shared: SharedLayout, index: Sequence[AnyIndex], lanes: int) -> Index:
    """The linear index of element `index` (the reader's coordinates). Raises E0901 for a layout that transforms."""
    layout, groups = shared.key.layout, digits_of(shared.key.layout)
    if groups is None:
        raise FuselineError("E0901", f"elements have no place in {layout}", node=buffers.view.entry.sym_name.data)
    digits: list[AnyIndex] = [Index(0)] * len(layout.reshape)
    for axis, group in zip(shared.axes, groups, strict=True):
        quotients = buffers.delinearize(index[axis], tuple(layout.reshape[i] for i in group))
        for i, quotient in zip(group, quotients, strict=True):
            digits[i] = quotient
    order = layout.permutation
    return buffers.linear([digits[i] for i in order], [layout.reshape[i] for i in order], lanes)
