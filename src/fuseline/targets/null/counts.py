"""What a dispatch costs, counted from its IR: the kernel record of a target without code."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.func import FuncOp

from fuseline.analysis.cost import flops, num_bytes
from fuseline.dispatch.result_places import place_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir.dim import Dim, add
from fuseline.targets.target import CompiledKernel


def _total(parts: Iterable[Dim]) -> Dim:
    total: Dim = 0
    for part in parts:
        total = add(total, part)
    return total


def counted_kernel(entry: FuncOp, family: str, symbol: str) -> CompiledKernel:
    """A kernel without code for `entry`, called `symbol`: floating-point operations, bytes read (each argument once)
    and written per launch."""
    view = DispatchView(entry)
    return CompiledKernel(
        symbol=symbol,
        object_code=b"",
        family=family,
        workgroups=1,
        flops=_total(flops(op, view.shapes) for op in view.members),
        bytes_read=_total(num_bytes(value, view.shapes) for value in view.tensors if value.uses),
        bytes_written=_total(num_bytes(place_of(view.shapes, result).value, view.shapes) for result in view.results),
    )
