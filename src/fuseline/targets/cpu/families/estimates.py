"""What a dispatch costs: operations and bytes, as sizes."""

from __future__ import annotations

from collections.abc import Mapping

from fuseline.analysis import cost
from fuseline.dispatch.result_boxes import box_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir.dim import Dim, add, mul, product, sum_of
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.weight_layouts import PackedLayout


def flops(view: DispatchView) -> Dim:
    """Arithmetic operations of all members."""
    return sum_of(cost.flops(op, view.shapes) for op in view.members)


def bytes_read(view: DispatchView, layouts: Mapping[int, PackedLayout] | None = None) -> Dim:
    """Bytes of the arguments, each counted once; of those with a layout (by position), as they are laid out."""
    total: Dim = 0
    for position, value in enumerate(view.tensors):
        if value.uses:
            layout = (layouts or {}).get(position)
            total = add(
                total,
                mul(
                    product(layout.pad_to if layout is not None else view.shapes.dims(value)),
                    BYTES[dtype_of(value.type)],
                ),
            )
    return total


def bytes_written(view: DispatchView) -> Dim:
    """Bytes of the results, of the parts that are written where they are boxes of something larger."""
    values = (box_of(view.shapes, result).value for result in view.results)
    return sum_of(mul(product(view.shapes.dims(value)), BYTES[dtype_of(value.type)]) for value in values)
