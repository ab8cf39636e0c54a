"""What a dispatch costs, counted from its IR: the kernel record of a target without code."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from fuseline.analysis.cost import flops, num_bytes
from fuseline.dispatch.result_boxes import box_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir.dim import sum_of
from fuseline.targets.compiled_kernel import CompiledKernel


def counted_kernel(entry: FuncOp, family: str, symbol: str) -> CompiledKernel:
    """A kernel without code for `entry`, called `symbol`: floating-point operations, bytes read (each argument once)
    and written per launch."""
    view = DispatchView(entry)
    return CompiledKernel(
        symbol=symbol,
        object_code=b"",
        family=family,
        workgroups=1,
        flops=sum_of(flops(op, view.shapes) for op in view.members),
        bytes_read=sum_of(num_bytes(value, view.shapes) for value in view.tensors if value.uses),
        bytes_written=sum_of(num_bytes(box_of(view.shapes, result).value, view.shapes) for result in view.results),
    )
