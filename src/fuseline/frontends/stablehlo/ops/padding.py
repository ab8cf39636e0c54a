"""Padding: around, between elements, and negative, which cuts."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import reshape, result
from fuseline.frontends.onnx.ops.slicing import Cut, taken
from fuseline.frontends.onnx.ops.windows import pad
from fuseline.frontends.onnx.tensors import Tensor, static_size
from fuseline.frontends.stablehlo.hlo import Hlo, scalar_number
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.ir.build import tensor_type
from fuseline.ir.dim import Dim, add, lower_bound, maximum, minimum, mul, sub, upper_bound
from fuseline.ir.fast.create import create_pad


@hlo_op("pad")
def pad_op(hlo: Hlo) -> Tensor:
    """With the second operand around and between the elements."""
    low, high = hlo.integers("edge_padding_low"), hlo.integers("edge_padding_high")
    return padded(hlo, hlo[0], hlo[1], low, high, hlo.integers("interior_padding"))


@hlo_op("dynamic_pad")
def dynamic_pad(hlo: Hlo) -> Tensor:
    """The same, by numbers that are computed from sizes."""
    low, high, between = (t.sizes() for t in hlo.inputs[2:5])
    return padded(hlo, hlo[0], hlo[1], low, high, [static_size(step) for step in between])


def padded(
    hlo: Hlo, x: Tensor, value: Tensor, low: Sequence[Dim], high: Sequence[Dim], between: Sequence[int]
) -> Tensor:
    """`x` with `value` in `low` elements before, `high` behind and `between` each two elements, per axis; negative
    numbers cut off."""
    number = scalar_number(value)
    spread = spread_out(hlo, x, value, between) if any(between) else x
    sides = [_sides(*axis) for axis in zip(spread.dims, low, high, strict=True)]
    cut = taken(hlo.node, spread, [Cut(first, count, 1) for first, count, _, _ in sides])
    before, after = [side[2] for side in sides], [side[3] for side in sides]
    if number is not None:
        return pad(hlo.node, cut, before, after, number)
    return _padded_with_computed(hlo, cut, value, before, after)


def _sides(size: Dim, low: Dim, high: Dim) -> tuple[Dim, Dim, Dim, Dim]:
    """From where how many elements are kept, and how many come before and after."""
    if (
        (lower_bound(low) or 0) >= 0
        and (lower_bound(high) or 0) >= 0
        and None
        not in (
            lower_bound(low),
            lower_bound(high),
        )
    ):
        return 0, size, low, high
    first = minimum(maximum(mul(low, -1), 0), size)
    last = minimum(maximum(add(size, high), first), size) if (upper_bound(high) or 0) < 0 or high != 0 else size
    return first, sub(last, first), maximum(low, 0), maximum(high, 0)


def _padded_with_computed(hlo: Hlo, x: Tensor, value: Tensor, low: Sequence[Dim], high: Sequence[Dim]) -> Tensor:
    """Padded by a number that only the run knows."""
    if all(size == 0 for size in (*low, *high)):
        return x
    from xdsl.dialects import tensor

    node = hlo.node
    dims = tuple(add(size, add(a, b)) for size, a, b in zip(x.dims, low, high, strict=True))
    scalar = node.emit.add(tensor.ExtractOp(node.ssa(value), [], mlir_element(x.dtype))).result
    before, after = ([size if isinstance(size, int) else node.index(size) for size in sizes] for sizes in (low, high))
    type_ = tensor_type(mlir_element(x.dtype), dims)
    op = create_pad(node.ssa(x), before, after, scalar, type_, node.emit.location)
    return result(node.emit.add(op).result, dims, x.dtype)


def spread_out(hlo: Hlo, x: Tensor, value: Tensor, between: Sequence[int]) -> Tensor:
    """`x` with `between` times `value` after each element but the last, per axis."""
    opened = reshape(hlo.node, x, [size for d in x.dims for size in (d, 1)])
    after: list[Dim] = [size for step in between for size in (0, step)]
    number = scalar_number(value)
    filled = (
        pad(hlo.node, opened, [0] * len(after), after, number)
        if number is not None
        else _padded_with_computed(hlo, opened, value, [0] * len(after), after)
    )
    whole = reshape(hlo.node, filled, [mul(d, 1 + step) for d, step in zip(x.dims, between, strict=True)])
    cuts = [Cut(0, maximum(sub(d, step), 0), 1) for d, step in zip(whole.dims, between, strict=True)]
    return taken(hlo.node, whole, cuts)
