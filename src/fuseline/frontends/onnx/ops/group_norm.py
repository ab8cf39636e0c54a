"""Norms over groups of channels: sums of each channel first, then of the groups, and what scales a pixel once per
channel.

    [n, c, y, x]   sum over y, x -> [n, g, c / g]   sum over c / g -> [n, g]   mean, 1 / deviation * scale -> [n, c]
            (x - mean) * factor + bias

So an image with its channels last is read in vectors of channels, whatever the size of a group, and so is everything
that is read beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.emission import ElementBody, broadcast_to, elementwise, mapped, reduce, reshape, with_units
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.counts import inverse_count
from fuseline.frontends.onnx.scalars import add_float
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, to_text


def image_of_groups(x: Tensor) -> tuple[Tensor | None, int]:
    """The image of which `x` is a reshape that joins groups of channels with their positions, and the number of groups:
    what exporters make a group norm of is an instance norm of that. None where it is something else."""
    image, groups = x.reshaped, x.dims[1]
    if image is None or image.rank < 3 or image.dims[0] != x.dims[0] or not isinstance(groups, int):
        return None, 0
    channels = image.dims[1]
    return (
        (image, groups) if isinstance(channels, int) and channels > groups > 0 and channels % groups == 0 else (None, 0)
    )


def grouped_norm(node: OnnxNode, x: Tensor, groups: int, weights: tuple[Tensor, Tensor], epsilon: float) -> Tensor:
    """`(x - mean) / sqrt(variance + epsilon) * scale + bias`, moments of each of `groups` groups of the channels of `x`
    (axis 1) over all positions.

    Scale and bias are per channel or per group. Raises NoNativeLowering for a symbolic number of channels.
    """
    channels = x.dims[1]
    if not isinstance(channels, int):
        raise NoNativeLowering("symbolic-window", "groups of a symbolic number of channels")
    if (
        groups < 1
        or channels % groups
        or any(t.rank != 1 or (isinstance(t.dims[0], int) and t.dims[0] not in (groups, channels)) for t in weights)
    ):
        sizes = " and ".join(f"[{', '.join(map(to_text, t.dims))}]" for t in weights)
        raise FuselineError(
            "E0107", f"{groups} groups of {channels} channels with scale and bias of sizes {sizes}", node=node.label
        )
    small, dtype = (x.dims[0], groups, channels // groups), x.dtype
    share = inverse_count(node, [channels // groups, *x.dims[2:]], dtype)
    total = _of_groups(node, _over_positions(node, [x], add_float), small)
    mean = _of_channels(node, [(total, [0, 1])], small, lambda b, t: b.op(arith.MulfOp, t, share(b)))
    squares = _of_groups(node, _over_positions(node, [x, mean], add_square), small)
    scale, bias = weights
    root = inverse_root(share, epsilon)
    factor = _of_channels(
        node,
        [(squares, [0, 1]), _per_group(node, scale, small)],
        small,
        lambda b, t, g: b.op(arith.MulfOp, root(b, t), g),
    )
    return _scaled(node, x, mean, factor, _repeated(node, bias, small))


def channel_norm(node: OnnxNode, x: Tensor, weights: tuple[Tensor, Tensor], epsilon: float) -> Tensor:
    """The same of each channel by itself; scale and bias are per channel."""
    share, dtype = inverse_count(node, x.dims[2:], x.dtype), x.dtype
    mean = elementwise(
        node, [_over_positions(node, [x], add_float)], dtype, lambda b, t: b.op(arith.MulfOp, t, share(b))
    )
    squares, (scale, bias) = _over_positions(node, [x, mean], add_square), weights
    root = inverse_root(share, epsilon)
    factor = mapped(
        node, [(squares, [0, 1]), (scale, [1])], squares.dims, dtype, lambda b, t, g: b.op(arith.MulfOp, root(b, t), g)
    )
    return _scaled(node, x, mean, factor, bias)


def _over_positions(node: OnnxNode, operands: Sequence[Tensor], body: ElementBody) -> Tensor:
    """An image and numbers `[n, c]`, summed up over the positions."""
    image = operands[0]
    positions = list(range(2, image.rank))
    beside = [with_units(t, positions, image.rank) for t in operands[1:]]
    return reduce(node, [image, *beside], positions, 0.0, body, dtype=image.dtype)


def _scaled(node: OnnxNode, x: Tensor, mean: Tensor, factor: Tensor, bias: Tensor) -> Tensor:
    """`(x - mean) * factor + bias` with numbers `[n, c]`, `[n, c]` and `[c]`."""

    def body(b: Body, e: SSAValue, m: SSAValue, f: SSAValue, h: SSAValue) -> SSAValue:
        return b.op(arith.AddfOp, b.op(arith.MulfOp, b.op(arith.SubfOp, e, m), f), h)

    return mapped(
        node, [(x, list(range(x.rank))), (mean, [0, 1]), (factor, [0, 1]), (bias, [1])], x.dims, x.dtype, body
    )


def _of_groups(node: OnnxNode, channels: Tensor, small: tuple[Dim, int, int]) -> Tensor:
    """Sums of channels `[n, c]` as sums of groups `[n, g]`."""
    return reduce(node, [reshape(node, channels, small)], [2], 0.0, add_float, dtype=channels.dtype)


def _of_channels(
    node: OnnxNode,
    operands: Sequence[tuple[Tensor, Sequence[int]]],
    small: tuple[Dim, int, int],
    body: Callable[..., SSAValue],
) -> Tensor:
    """What is computed of operands that follow the loops `[n, g, c / g]`, as `[n, c]`."""
    return reshape(node, mapped(node, operands, small, operands[0][0].dtype, body), (small[0], small[1] * small[2]))


def _per_group(node: OnnxNode, t: Tensor, small: tuple[Dim, int, int]) -> tuple[Tensor, Sequence[int]]:
    """A scale with the loops that it follows in `[n, g, c / g]`."""
    return (t, [1]) if t.dims == small[1:2] else (reshape(node, t, small[1:]), [1, 2])


def _repeated(node: OnnxNode, bias: Tensor, small: tuple[Dim, int, int]) -> Tensor:
    """A bias per channel."""
    if bias.dims != small[1:2]:
        return bias
    return reshape(node, broadcast_to(reshape(node, bias, (*bias.dims, 1)), small[1:]), (small[1] * small[2],))


def add_square(b: Body, e: SSAValue, mean: SSAValue, accumulator: SSAValue) -> SSAValue:
    """Adds the square of an element minus the mean."""
    centred = b.op(arith.SubfOp, e, mean)
    return add_float(b, b.op(arith.MulfOp, centred, centred), accumulator)


def inverse_root(share: Callable[[Body], SSAValue], epsilon: float) -> Callable[[Body, SSAValue], SSAValue]:
    """1 / sqrt(variance + epsilon) of a sum of squares; `share` gives 1 / the number of them."""

    def inverse(b: Body, total: SSAValue) -> SSAValue:
        variance = b.op(arith.MulfOp, total, share(b))
        root = b.op(math.SqrtOp, b.op(arith.AddfOp, variance, b.constant(epsilon, total.type)))
        return b.op(arith.DivfOp, b.constant(1.0, total.type), root)

    return inverse
