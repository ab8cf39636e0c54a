"""Experimental operators of ONNX's first versions, which the standard dropped and other runtimes still run.

Source: onnxruntime's schemas of deprecated operators.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import mapped, require_rank
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.activations import softplus
from fuseline.frontends.onnx.ops.elementwise import DType, constant, unary
from fuseline.frontends.onnx.ops.normalization import normalized_to_moments, root_mean_square_norm
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.ops.slicing import slice_op
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import Tensor, known
from fuseline.ir.build import Body
from fuseline.ir.dim import sub

onnx_op("DynamicSlice")(slice_op)


@onnx_op("Affine", in_f32=True)
def affine(node: OnnxNode) -> Tensor:
    """alpha * x + beta."""
    return _line(node, node.number("alpha", 1.0), node.number("beta", 0.0))


@onnx_op("Scale", in_f32=True)
def scale(node: OnnxNode) -> Tensor:
    """x * scale."""
    return _line(node, node.number("scale", 1.0), 0.0)


def _line(node: OnnxNode, factor: float, offset: float) -> Tensor:
    def body(b: Body, t: DType, x: SSAValue) -> SSAValue:
        return b.op(arith.AddfOp, b.op(arith.MulfOp, x, constant(b, t, factor)), constant(b, t, offset))

    return unary(node, body, float_only=True)


@onnx_op("ParametricSoftplus", in_f32=True)
def parametric_softplus(node: OnnxNode) -> Tensor:
    """alpha * log(1 + exp(beta * x)). Raises FuselineError: E0105 without alpha or beta."""
    alpha, beta = _required(node, "alpha"), _required(node, "beta")

    def body(b: Body, t: DType, x: SSAValue) -> SSAValue:
        return b.op(arith.MulfOp, constant(b, t, alpha), softplus(b, t, b.op(arith.MulfOp, x, constant(b, t, beta))))

    return unary(node, body, float_only=True)


@onnx_op("ScaledTanh", in_f32=True)
def scaled_tanh(node: OnnxNode) -> Tensor:
    """alpha * tanh(beta * x). Raises FuselineError: E0105 without alpha or beta."""
    alpha, beta = _required(node, "alpha"), _required(node, "beta")

    def body(b: Body, t: DType, x: SSAValue) -> SSAValue:
        return b.op(arith.MulfOp, constant(b, t, alpha), b.op(math.TanhOp, b.op(arith.MulfOp, x, constant(b, t, beta))))

    return unary(node, body, float_only=True)


def _required(node: OnnxNode, name: str) -> float:
    if not node.has(name):
        raise FuselineError("E0105", f"{node.op_type} has no {name}, which it cannot do without", node=node.label)
    return node.number(name)


@onnx_op("ImageScaler", in_f32=True)
def image_scaler(node: OnnxNode) -> Tensor:
    """scale * x + bias of the channel, for images [batch, channels, height, width]. Raises FuselineError: E0105 for
    other than one bias per channel."""
    x, factor = node[0], node.number("scale", 1.0)
    require_rank(x, 4, 4)
    bias = known(np.asarray(node.numbers("bias"), x.dtype))
    if x.dims[1] != bias.dims[0]:
        raise FuselineError("E0105", f"{bias.dims[0]} biases for {x.dims[1]} channels", node=node.label)
    element = mlir_element(x.dtype)

    def body(b: Body, e: SSAValue, offset: SSAValue) -> SSAValue:
        return b.op(arith.AddfOp, b.op(arith.MulfOp, e, b.constant(factor, element)), offset)

    return mapped(node, [(x, list(range(4))), (bias, [1])], x.dims, x.dtype, body)


@onnx_op("Crop")
def crop(node: OnnxNode) -> Tensor:
    """Images without their border (left, top, right, bottom), or of size `scale` (height, width) from the border on.
    Raises FuselineError: E0105 for other than four borders, other than two sizes, and negative ones."""
    x, border, size = node[0], node.integers("border"), node.integers("scale")
    require_rank(x, 4, 4)
    if len(border) != 4 or min([*border, *size]) < 0 or len(size) not in (0, 2):
        raise FuselineError("E0105", f"border {border} and scale {size} are no four and two sizes", node=node.label)
    left, top, right, bottom = border
    counts = size or [sub(x.dims[2], top + bottom), sub(x.dims[3], left + right)]
    for axis, first, count in zip((2, 3), (top, left), counts, strict=True):
        node.program.require_at_least(sub(sub(x.dims[axis], first), count), 0, node.label)
        node.program.require_at_least(count, 0, node.label)
    return slice_of(node, x, [0, 0, top, left], [*x.dims[:2], *counts], [1] * 4)


@onnx_op("MeanVarianceNormalization")
def mean_variance_norm(node: OnnxNode) -> Tensor:
    """x minus its mean, over its deviation if `normalize_variance`; over images and positions, and `across_channels` if
    asked."""
    x = node[0]
    require_rank(x, 4, 4)
    axes = [0, 1, 2, 3] if node.integer("across_channels") else [0, 2, 3]
    return normalized_to_moments(node, x, axes, deviation=bool(node.integer("normalize_variance", 1)))


@onnx_op("SimplifiedLayerNormalization")
def simplified_layer_norm(node: OnnxNode) -> Tensor | list[Tensor]:
    """x / sqrt(mean of squares + epsilon) * scale over the axes from `axis` on; the second output is what x is
    multiplied by."""
    return root_mean_square_norm(node)
