"""Softmax and the normalisations, written as reductions over rows and elementwise ops, so that fusion sees all of
it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import accumulator, from_onnx, mlir_element
from fuseline.frontends.onnx.emission import (
    cast,
    elementwise,
    filled,
    mapped,
    reduce,
    require_rank,
    reshape,
    result,
    with_units,
)
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.counts import inverse_count
from fuseline.frontends.onnx.ops.group_norm import add_square, channel_norm, grouped_norm, image_of_groups, inverse_root
from fuseline.frontends.onnx.ops.windows import pad
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.scalars import add_float
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import PARALLEL, REDUCTION, Body, dims_map
from fuseline.ir.dim import to_text


def moments(node: OnnxNode, x: Tensor, axes: Sequence[int], epsilon: float) -> tuple[Tensor, Tensor]:
    """The mean of `x` over `axes`, and 1 / sqrt(variance + epsilon); both keep unit dimensions.

    Who needs `x` minus its mean subtracts where it is read: to read that difference from memory takes as long as to
    read `x`.
    """
    dtype = x.dtype
    share = inverse_count(node, [x.dims[axis] for axis in axes], dtype)
    mean = elementwise(
        node,
        [reduce(node, [x], axes, 0.0, add_float, dtype=dtype)],
        dtype,
        lambda b, t: b.op(arith.MulfOp, t, share(b)),
    )
    kept = with_units(mean, axes, x.rank)
    squares = reduce(node, [x, kept], axes, 0.0, add_square, dtype=dtype)
    return kept, with_units(elementwise(node, [squares], dtype, inverse_root(share, epsilon)), axes, x.rank)


@onnx_op("MeanVarianceNormalization", since=9)
def mean_variance_norm(node: OnnxNode) -> Tensor:
    """(x - mean) / (deviation + 1e-9) over `axes`."""
    x = node[0]
    return normalized_to_moments(
        node, x, sorted({normal_axis(axis, x.rank) for axis in node.integers("axes", (0, 2, 3))})
    )


def normalized_to_moments(node: OnnxNode, x: Tensor, axes: Sequence[int], *, deviation: bool = True) -> Tensor:
    """`x` minus its mean over `axes`, divided by its deviation plus 1e-9 if `deviation`."""
    dtype = accumulator(x.dtype)
    wide, share = cast(node, x, dtype), inverse_count(node, [x.dims[axis] for axis in axes], dtype)
    total = reduce(node, [wide], axes, 0.0, add_float, dtype=dtype, keep=True)
    mean = elementwise(node, [total], dtype, lambda b, t: b.op(arith.MulfOp, t, share(b)))
    if not deviation:
        return cast(node, elementwise(node, [wide, mean], dtype, lambda b, e, m: b.op(arith.SubfOp, e, m)), x.dtype)
    squares = reduce(node, [wide, mean], axes, 0.0, add_square, dtype=dtype, keep=True)

    def body(b: Body, e: SSAValue, m: SSAValue, t: SSAValue) -> SSAValue:
        root = b.op(math.SqrtOp, b.op(arith.MulfOp, t, share(b)))
        return b.op(arith.DivfOp, b.op(arith.SubfOp, e, m), b.op(arith.AddfOp, root, b.constant(1e-9, root.type)))

    return cast(node, elementwise(node, [wide, mean, squares], dtype, body), x.dtype)


@onnx_op("LayerNormalization", since=17)
def layer_norm(node: OnnxNode) -> Tensor | Sequence[Tensor | None]:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on."""
    x, scale, bias = node[0], node[1], node.get(2)
    axis = node.axis("axis", -1, x.rank)
    axes = list(range(axis, x.rank))
    dtype = accumulator(x.dtype)
    wide = cast(node, x, dtype)
    mean, inverse = moments(node, wide, axes, node.number("epsilon", 1e-5))
    weights = [cast(node, t, dtype) for t in (scale, bias) if t is not None]

    def body(b: Body, e: SSAValue, m: SSAValue, r: SSAValue, *rest: SSAValue) -> SSAValue:
        out = b.op(arith.MulfOp, b.op(arith.MulfOp, b.op(arith.SubfOp, e, m), r), rest[0])
        return b.op(arith.AddfOp, out, rest[1]) if len(rest) > 1 else out

    out = cast(node, elementwise(node, [wide, mean, inverse, *weights], dtype, body), scale.dtype)
    if node.output_count == 1:
        return out
    stash = from_onnx(ir.DataType(node.integer("stash_type", 1)))
    return [out, cast(node, mean, stash), cast(node, inverse, stash)]


@onnx_op("RMSNormalization", since=23)
def rms_norm(node: OnnxNode) -> Tensor:
    """x / sqrt(mean of squares + epsilon) * scale over the axes from `axis` on."""
    return root_mean_square_norm(node)[0]


def root_mean_square_norm(node: OnnxNode) -> list[Tensor]:
    """The operator's result in the dtype of its scale; where a second output is asked for, 1 / sqrt(mean of squares +
    epsilon), too."""
    x, scale = node[0], node[1]
    axes = list(range(node.axis("axis", -1, x.rank), x.rank))
    dtype = accumulator(x.dtype)
    share = inverse_count(node, [x.dims[axis] for axis in axes], dtype)
    element, epsilon, wide = mlir_element(dtype), node.number("epsilon", 1e-5), cast(node, x, dtype)
    squares = reduce(
        node, [wide], axes, 0.0, lambda b, e, acc: add_float(b, b.op(arith.MulfOp, e, e), acc), dtype=dtype, keep=True
    )

    def root(b: Body, t: SSAValue) -> SSAValue:
        return b.op(math.SqrtOp, b.op(arith.AddfOp, b.op(arith.MulfOp, t, share(b)), b.constant(epsilon, element)))

    def body(b: Body, e: SSAValue, t: SSAValue, g: SSAValue) -> SSAValue:
        return b.op(arith.MulfOp, b.op(arith.DivfOp, e, root(b, t)), g)

    out = cast(node, elementwise(node, [wide, squares, cast(node, scale, dtype)], dtype, body), scale.dtype)
    if not node.wants_output(1):
        return [out]
    return [
        out,
        elementwise(node, [squares], dtype, lambda b, t: b.op(arith.DivfOp, b.constant(1.0, element), root(b, t))),
    ]


@onnx_op("BatchNormalization", since=7, in_f32=True)
def batch_norm(node: OnnxNode) -> Tensor:
    """Inference: x * a + b per channel, where a and b come from scale, bias, mean and variance."""
    if node.integer("training_mode") or node.wants_output(1):
        raise NoNativeLowering("training", "running statistics are updated")
    x, scale, bias, mean, variance = node[0], node[1], node[2], node[3], node[4]
    epsilon = node.number("epsilon", 1e-5)
    for name, t in zip(("scale", "bias", "mean", "variance"), (scale, bias, mean, variance), strict=True):
        require_per_channel(node, t, x, name)
    if all(t.is_constant for t in (scale, bias, mean, variance)):
        return _affine(node, x, *_folded(x, scale, bias, mean, variance, epsilon))
    return _batch_norm_of(node, x, (scale, bias, mean, variance), epsilon)


def require_per_channel(node: OnnxNode, t: Tensor, x: Tensor, name: str) -> None:
    """Refuse what has not one number for each channel of `x` [batch, channels, ...].

    Raises:
        FuselineError: E0107, with the sizes at fault.
    """
    require_rank(x, 2)
    channels = x.dims[1]
    if t.rank != 1 or (isinstance(channels, int) and isinstance(t.dims[0], int) and channels != t.dims[0]):
        found = ", ".join(map(to_text, t.dims))
        raise FuselineError(
            "E0107", f"{name} has sizes [{found}], the input has {to_text(channels)} channels", node=node.label
        )


def _folded(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    wide = [t.numbers().astype(np.float64) for t in (scale, bias, mean, variance)]
    a = wide[0] / np.sqrt(wide[3] + epsilon)
    c = wide[1] - wide[2] * a
    return tuple(Tensor(x.dtype, t.dims, array=v.astype(x.dtype), name=t.name) for t, v in ((scale, a), (bias, c)))  # pyright: ignore[reportReturnType]


def _affine(node: OnnxNode, x: Tensor, a: Tensor, c: Tensor) -> Tensor:
    def body(b: Body, e: SSAValue, f: SSAValue, g: SSAValue) -> SSAValue:
        return b.op(arith.AddfOp, b.op(arith.MulfOp, e, f), g)

    return mapped(node, [(x, list(range(x.rank))), (a, [1]), (c, [1])], x.dims, x.dtype, body)


def _batch_norm_of(node: OnnxNode, x: Tensor, parameters: Sequence[Tensor], epsilon: float) -> Tensor:
    element = mlir_element(x.dtype)

    def body(b: Body, e: SSAValue, g: SSAValue, h: SSAValue, m: SSAValue, v: SSAValue) -> SSAValue:
        root = b.op(math.SqrtOp, b.op(arith.AddfOp, v, b.constant(epsilon, element)))
        return b.op(arith.AddfOp, b.op(arith.MulfOp, b.op(arith.DivfOp, b.op(arith.SubfOp, e, m), root), g), h)

    operands = [(cast(node, t, x.dtype), [1]) for t in parameters]
    return mapped(node, [(x, list(range(x.rank))), *operands], x.dims, x.dtype, body)


@onnx_op("InstanceNormalization", in_f32=True)
def instance_norm(node: OnnxNode) -> Tensor:
    """Each channel of each image normalised over its positions. Of groups of channels that a reshape has joined it is a
    group norm."""
    x, scale, bias = node[0], node[1], node[2]
    require_per_channel(node, scale, x, "scale")
    require_per_channel(node, bias, x, "bias")
    epsilon = node.number("epsilon", 1e-5)
    image, groups = image_of_groups(x)
    if image is not None:
        return reshape(node, grouped_norm(node, image, groups, (scale, bias), epsilon), x.dims)
    return channel_norm(node, x, (scale, bias), epsilon)


@onnx_op("GroupNormalization", since=18, in_f32=True)
def group_norm(node: OnnxNode) -> Tensor:
    """Channels in groups, each group normalised over its channels and positions; scale and bias per channel."""
    return grouped_norm(node, node[0], node.integer("num_groups"), (node[1], node[2]), node.number("epsilon", 1e-5))


@onnx_op("LRN", in_f32=True)
def local_response_norm(node: OnnxNode) -> Tensor:
    """x / (bias + alpha / size * sum of squares over neighbouring channels) ** beta."""
    x, size = node[0], node.integer("size")
    low = (size - 1) // 2
    lead, rest = [0] * x.rank, [0] * x.rank
    lead[1], rest[1] = low, size - 1 - low
    padded = pad(node, x, lead, rest, 0.0)
    rank = x.rank + 1
    dims = [AffineExpr.dimension(i) for i in range(rank)]
    image = AffineMap(rank, 0, tuple(dims[i] + dims[x.rank] if i == 1 else dims[i] for i in range(x.rank)))
    window = node.emit.empty(mlir_element(x.dtype), [size])
    maps = [image, dims_map(rank, [x.rank]), dims_map(rank, list(range(x.rank)))]

    def square(b: Body) -> list[SSAValue]:
        return [add_float(b, b.op(arith.MulfOp, b.args[0], b.args[0]), b.args[2])]

    iterators = [PARALLEL] * x.rank + [REDUCTION]
    op = node.emit.generic([node.ssa(padded), window], [filled(node, 0.0, x.dims, x.dtype)], maps, iterators, square)
    total, element = result(op.results[0], x.dims, x.dtype), mlir_element(x.dtype)
    alpha, beta, bias = node.number("alpha", 1e-4), node.number("beta", 0.75), node.number("bias", 1.0)

    def scale(b: Body, e: SSAValue, t: SSAValue) -> SSAValue:
        base = b.op(arith.AddfOp, b.constant(bias, element), b.op(arith.MulfOp, t, b.constant(alpha / size, element)))
        return b.op(
            arith.DivfOp,
            e,
            _power(b, base, beta) if bias > 0 and alpha >= 0 else b.op(math.PowFOp, base, b.constant(beta, element)),
        )

    return elementwise(node, [x, total], x.dtype, scale)


def _power(b: Body, base: SSAValue, exponent: float) -> SSAValue:
    """`base ** exponent` of a positive base (or NaN): by square roots for 1/4, 1/2 and 3/4, within 1.5 ulp and in a
    tenth of the time."""
    if exponent not in (0.25, 0.5, 0.75):
        return b.op(math.PowFOp, base, b.constant(exponent, base.type))
    half = b.op(math.SqrtOp, base)
    if exponent == 0.5:
        return half
    quarter = b.op(math.SqrtOp, half)
    return quarter if exponent == 0.25 else b.op(arith.MulfOp, half, quarter)
