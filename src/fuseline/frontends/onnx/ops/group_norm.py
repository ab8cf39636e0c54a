"""Norms over groups of channels: the moments of each channel first, then of the groups, and what scales a pixel once
per channel.

    [n, c, y, x]   mean and squares over y, x -> [n, g, c / g]   of all c / g -> [n, g]   mean, 1 / deviation * scale
            (x - mean) * factor + bias                                                            -> [n, c]

    variance of a group = mean over its channels of  variance + (mean - mean of the group)^2

So an image with its channels last is read in vectors of channels, whatever the size of a group, and so is everything
that is read beside it; both moments of a channel are made where its pixels are at hand (T. F. Chan et al., Algorithms
for Computing the Sample Variance, 1983).
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

Moments = tuple[Tensor, Tensor, Callable[[Body], SSAValue]]
"""Means, sums of squares around them, and what gives 1 / the number of elements of each."""


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
    if groups == channels:
        return channel_norm(node, x, weights, epsilon)
    small = (x.dims[0], groups, channels // groups)
    mean, variance = _of_groups(node, _of_channels(node, x), small)
    scale, bias = weights
    root = inverse_root(None, epsilon)
    operands = [(variance, [0, 1]), _per_group(node, scale, small)]
    factor = _spread(node, operands, small, lambda b, v, g: b.op(arith.MulfOp, root(b, v), g))
    mean = _spread(node, [(mean, [0, 1])], small, lambda b, m: m)
    return _scaled(node, x, mean, factor, _repeated(node, bias, small))


def channel_norm(node: OnnxNode, x: Tensor, weights: tuple[Tensor, Tensor], epsilon: float) -> Tensor:
    """The same of each channel by itself; scale and bias are per channel."""
    (mean, squares, share), (scale, bias) = _of_channels(node, x), weights
    root = inverse_root(share, epsilon)
    factor = mapped(
        node,
        [(squares, [0, 1]), (scale, [1])],
        squares.dims,
        x.dtype,
        lambda b, t, g: b.op(arith.MulfOp, root(b, t), g),
    )
    return _scaled(node, x, mean, factor, bias)


def _of_channels(node: OnnxNode, x: Tensor) -> Moments:
    """The moments of each channel `[n, c]` over its positions."""
    share = inverse_count(node, x.dims[2:], x.dtype)
    total = _over_positions(node, [x], add_float)
    mean = elementwise(node, [total], x.dtype, lambda b, t: b.op(arith.MulfOp, t, share(b)))
    return mean, _over_positions(node, [x, mean], add_square), share


def _of_groups(node: OnnxNode, channels: Moments, small: tuple[Dim, int, int]) -> tuple[Tensor, Tensor]:
    """Mean and variance `[n, g]` of groups of channels."""
    means, squares = (reshape(node, t, small) for t in channels[:2])
    of_positions, share, dtype = channels[2], inverse_count(node, small[2:], means.dtype), means.dtype
    total = reduce(node, [means], [2], 0.0, add_float, dtype=dtype)
    mean = elementwise(node, [total], dtype, lambda b, t: b.op(arith.MulfOp, t, share(b)))

    def add_channel(b: Body, m: SSAValue, s: SSAValue, middle: SSAValue, accumulator: SSAValue) -> SSAValue:
        inside = add_float(b, b.op(arith.MulfOp, s, of_positions(b)), accumulator)
        return add_square(b, m, middle, inside)

    spread = reduce(node, [means, squares, with_units(mean, [2], 3)], [2], 0.0, add_channel, dtype=dtype)
    return mean, elementwise(node, [spread], dtype, lambda b, t: b.op(arith.MulfOp, t, share(b)))


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


def _spread(
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


def inverse_root(share: Callable[[Body], SSAValue] | None, epsilon: float) -> Callable[[Body, SSAValue], SSAValue]:
    """1 / sqrt(variance + epsilon) of a sum of squares, of which `share` gives 1 / their number; None: of a
    variance."""

    def inverse(b: Body, total: SSAValue) -> SSAValue:
        variance = b.op(arith.MulfOp, total, share(b)) if share is not None else total
        root = b.op(math.SqrtOp, b.op(arith.AddfOp, variance, b.constant(epsilon, total.type)))
        return b.op(arith.DivfOp, b.constant(1.0, total.type), root)

    return inverse
