"""Which convolutions minimal filtering (Winograd) is for: a figure of the machine says from how many channels on."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.analysis.convolution_dims import ConvolutionDims, convolution_dims
from fuseline.analysis.structured import Kind, StructuredOp, kind
from fuseline.ir.costs import MachineCosts
from fuseline.ir.dim import Dim, product, upper_bound


def filtered_dims(op: StructuredOp, extents: Sequence[Dim], costs: MachineCosts) -> ConvolutionDims | None:
    """The loops of a convolution over `extents` that minimal filtering is for: unit stride, a window of 3 or more, and
    enough input channels; None for any other op."""
    roles = convolution_dims(op) if kind(op.op) is Kind.CONVOLUTION else None
    if roles is None or not all(expr.stride == expr.dilation == 1 for expr in roles.spatial):
        return None
    channels = upper_bound(product(extents[loop] for loop in roles.input_channel))
    if channels is None or channels < costs.filtering_channels:
        return None
    windows = [extents[loop] for loop in roles.window_loops if extents[loop] != 1]
    wide = bool(windows) and all(isinstance(size, int) and size >= 3 for size in windows)
    return roles if wide else None
