"""Operators that the standard has too, under this name or another, perhaps with channels last."""

from __future__ import annotations

from fuseline.frontends.onnx.contrib_bodies.body import ContribBody, contrib_op


@contrib_op("Trilu", "GatherND", "Range", wide=False)
def same(b: ContribBody) -> list[str | None]:
    """The operator of the same name."""
    return [b.op(b.node.op_type, *b.node.input, **b.attributes)]


@contrib_op("GridSample", wide=False)
def grid_sample(b: ContribBody) -> list[str | None]:
    """The standard's, with the modes by their later names."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(b.text("mode", "bilinear"), b.text("mode"))
    return [b.op("GridSample", b.input(0), b.input(1), mode=mode, **b.kept("align_corners", "padding_mode"))]


@contrib_op("Pad", wide=False)
def pad(b: ContribBody) -> list[str | None]:
    """pads [2 * rank] or [1, 2 * rank], value of one element."""
    value = b.op("Reshape", b.input(2), b.ints()) if b.input(2) else ""
    return [b.op("Pad", b.input(0), b.op("Reshape", b.input(1), b.ints(-1)), value, **b.kept("mode"))]


@contrib_op("ExpandDims", wide=False)
def expand_dims(b: ContribBody) -> list[str | None]:
    """A unit dimension at a constant axis."""
    axis = int(b.tensor(1).numbers().reshape(-1)[0])
    return [b.op("Unsqueeze", b.input(0), b.ints(axis))]


@contrib_op("NhwcMaxPool")
def channels_last_max_pool(b: ContribBody) -> list[str | None]:
    """MaxPool of [batch, .., channels]."""
    window = b.kept("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")
    return [_channels_last(b, b.op("MaxPool", _channels_first(b, b.input(0)), **window))]


@contrib_op("QLinearGlobalAveragePool", "QLinearAveragePool")
def channels_last_average_pool(b: ContribBody) -> list[str | None]:
    """Of [batch, .., channels]; with channels first it is spelled out before the model is read."""
    window = b.kept("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
    op_type = b.node.op_type.removeprefix("QLinear")
    pooled = b.op(op_type, _channels_first(b, b.real(0)), **(window if op_type == "AveragePool" else {}))
    return [_channels_last(b, b.quantized(pooled, 3))]


@contrib_op("QLinearConv")
def channels_last_convolution(b: ContribBody) -> list[str | None]:
    """The standard's, with images [batch, .., channels] where `channels_last`."""
    window = b.kept("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    if not b.integer("channels_last"):
        return [b.op("QLinearConv", *b.node.input, **window)]
    return [_channels_last(b, b.op("QLinearConv", _channels_first(b, b.input(0)), *b.node.input[1:], **window))]


def _channels_first(b: ContribBody, value: str) -> str:
    rank = b.tensor(0).rank
    return b.op("Transpose", value, perm=[0, rank - 1, *range(1, rank - 1)])


def _channels_last(b: ContribBody, value: str) -> str:
    rank = b.tensor(0).rank
    return b.op("Transpose", value, perm=[0, *range(2, rank), 1])


@contrib_op("QLinearSoftmax")
def flat_softmax(b: ContribBody) -> list[str | None]:
    """Over all axes from `axis` on, as before operator set 13."""
    flat = b.op("Flatten", b.real(0), axis=b.integer("axis", 1))
    shares = b.op("Reshape", b.op("Softmax", flat, axis=1), b.op("Shape", b.input(0)))
    return [b.quantized(shares, 3)]


@contrib_op("QLinearWhere")
def quantized_where(b: ContribBody) -> list[str | None]:
    """condition, then X and Y, each with scale and zero point, and those of the result."""
    return [b.quantized(b.op("Where", b.input(0), b.real(1), b.real(4)), 7)]


@contrib_op("CDist")
def distances(b: ContribBody) -> list[str | None]:
    """Between the rows of [M, N] and [K, N]: [M, K], squared or not."""
    metric = b.text("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        b.refuse("unsupported-attribute", f"the metric {metric}")
    difference = b.op("Sub", b.op("Unsqueeze", b.input(0), b.ints(1)), b.op("Unsqueeze", b.input(1), b.ints(0)))
    squares = b.op("ReduceSum", b.op("Mul", difference, difference), b.ints(2), keepdims=0)
    return [squares if metric == "sqeuclidean" else b.op("Sqrt", squares)]
