"""The loops of a product by what the array does with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.contraction_dims import contraction_dims
from fuseline.analysis.convolution_dims import convolution_dims, linear_terms
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind
from fuseline.ir.costs import assumed_size


@dataclass(frozen=True)
class Roles:
    """Loops: `batch` takes weights of its own, `rows` are streamed, `columns` lie across the array, `channels` along
    its other side, `windows` are walked for each tile of an image. `image` and `weights`: inputs by position."""

    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    channels: tuple[int, ...]
    windows: tuple[int, ...]
    image: int
    weights: int


def roles_of(op: Operation) -> Roles | None:
    """Of a contraction or convolution; None for what runs on the vector unit."""
    if not is_generic(op):
        return None
    view = StructuredOp(op)
    if kind(op) is Kind.CONVOLUTION:
        dims = convolution_dims(view)
        if dims is None or not dims.output_channel:
            return None
        rows = (*dims.batch, *dims.image_loops)
        return Roles(
            dims.depth, rows, dims.output_channel, dims.input_channel, dims.window_loops, dims.image, dims.filter
        )
    product = contraction_dims(view)
    if product is None:
        return None
    turned = not product.n or len(product.n) > 1 >= len(product.m)  # the weights are on the left
    m, n = (product.n, product.m) if turned else (product.m, product.n)
    sides = (product.rhs, product.lhs) if turned else (product.lhs, product.rhs)
    return Roles(product.batch, m, n, product.k, (), *sides)


def extents_of(op: Operation, shapes: ShapeAnalysis) -> tuple[int, ...]:
    """The extents of the loops; what only the run tells is taken at its bound, or as fuseline assumes it."""
    assert is_generic(op)
    return tuple(assumed_size(extent) for extent in StructuredOp(op).loops(shapes))


def box_bytes(value: SSAValue, map_: AffineMap, sizes: Mapping[int, int], shapes: ShapeAnalysis) -> int:
    """Bytes of a tensor that are read through `map_` where each loop takes so many steps."""
    reached: list[int] = []
    for expr, dim in zip(map_.results, sizes_of(value, shapes), strict=True):
        linear = linear_terms(expr)
        steps = [abs(factor) * (sizes[loop] - 1) for loop, factor in linear[0].items()] if linear is not None else [dim]
        reached.append(min(dim, 1 + sum(steps)))
    return prod(reached) * width(value)


def tensor_bytes(value: SSAValue, shapes: ShapeAnalysis) -> int:
    """Bytes of a whole tensor."""
    return prod(sizes_of(value, shapes)) * width(value)


def sizes_of(value: SSAValue, shapes: ShapeAnalysis) -> Sequence[int]:
    """The sizes of a tensor, as in `extents_of`."""
    return [assumed_size(size) for size in shapes.dims(value)]


def width(value: SSAValue) -> int:
    """Bytes of an element."""
    assert isinstance(value.type, TensorType)
    return -(-getattr(value.type.element_type, "bitwidth", 64) // 8)
