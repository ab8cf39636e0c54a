"""Which convolutions minimal filtering (Winograd) is for: a figure of the machine says from how many channels on."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import TensorType, f32

from fuseline.analysis.convolution_dims import ConvolutionDims, convolution_dims
from fuseline.analysis.structured import Kind, StructuredOp, kind
from fuseline.ir.costs import MachineCosts, assumed_size
from fuseline.ir.dim import Dim, product, upper_bound

TILE_OUTPUTS = 4
"""Pixels that a tile makes along an axis, as a rule: what the model of kernels takes of most images, or more."""


def tile_overlap(windows: Sequence[Dim]) -> float:
    """How often a pixel is read by tiles that overlap, for windows of these sizes."""
    return prod((TILE_OUTPUTS + size - 1) / TILE_OUTPUTS for size in map(assumed_size, windows))


def filtered_dims(op: StructuredOp, extents: Sequence[Dim], costs: MachineCosts) -> ConvolutionDims | None:
    """The loops of a convolution over `extents` that minimal filtering is for: in f32, unit stride, a window of 3 or
    more, and enough input channels; None for any other op."""
    roles = convolution_dims(op) if kind(op.op) is Kind.CONVOLUTION and _is_f32(op) else None
    if roles is None or not all(expr.stride == expr.dilation == 1 for expr in roles.spatial):
        return None
    channels = upper_bound(product(extents[loop] for loop in roles.input_channel))
    if channels is None or channels < costs.filtering_channels:
        return None
    windows = [extents[loop] for loop in roles.window_loops if extents[loop] != 1]
    wide = bool(windows) and all(isinstance(size, int) and size >= 3 for size in windows)
    return roles if wide else None


def _is_f32(op: StructuredOp) -> bool:
    """Whether what is multiplied and added is f32: transforms of integers would not be exact."""
    types = [value.type for value in (*op.inputs, *op.op.results)]
    return all(isinstance(one, TensorType) and one.element_type == f32 for one in types)
