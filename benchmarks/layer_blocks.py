"""Further layers that `benchmarks.layers` times, by group: signals and volumes, activations inside a network, and
blocks of several nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.layer_models import LayerWriter, Make, alone, convolution, framed, transposed, unary

Build = Callable[..., str]


def _ints(w: LayerWriter, *values: int) -> str:
    return w.weight(np.array(values, np.int64))


def _number(w: LayerWriter, value: float) -> str:
    return w.weight(np.array(value, np.float32))


def _unary(kind: str, **attributes: Any) -> Build:
    return lambda w, x: w.node(kind, x, **attributes)


def _transposed(channels: int, window: Sequence[int], stride: int, pad: int) -> Build:
    """Of any rank; `transposed` is that of images."""

    def build(w: LayerWriter, x: str) -> str:
        inputs = int(w.weights[-1].dims[0])  # those that the frame's convolution makes: its bias was written last
        filter_ = w.weight(
            w.random(inputs, channels, *window, scale=(inputs * np.prod(window) / stride ** len(window)) ** -0.5)
        )
        rank = len(window)
        attributes: dict[str, Any] = {
            "kernel_shape": list(window),
            "strides": [stride] * rank,
            "pads": [pad] * 2 * rank,
        }
        return w.node("ConvTranspose", x, filter_, w.weight(w.random(channels)), **attributes)

    return build


# activations ----------------------------------------------------------------------------------------------------------


def _prelu(channels: int) -> Build:
    return lambda w, x: w.node("PRelu", x, w.weight(np.abs(w.random(channels, 1, 1))))


def _gelu(w: LayerWriter, x: str) -> str:
    half = w.node("Mul", x, _number(w, 0.5))
    return w.node("Mul", half, w.node("Add", w.node("Erf", w.node("Div", x, _number(w, 2**0.5))), _number(w, 1)))


def _silu(w: LayerWriter, x: str) -> str:
    return w.node("Mul", x, w.node("Sigmoid", x))


def _mish(w: LayerWriter, x: str) -> str:
    return w.node("Mul", x, w.node("Tanh", w.node("Softplus", x)))


# norms ----------------------------------------------------------------------------------------------------------------


def _batch_norm(channels: int) -> Build:
    def build(w: LayerWriter, x: str) -> str:
        scale, bias, mean = (w.weight(w.random(channels)) for _ in range(3))
        return w.node(
            "Relu", w.node("BatchNormalization", x, scale, bias, mean, w.weight(np.abs(w.random(channels)) + 1))
        )

    return build


def _instance_norm(channels: int, activation: str = "Relu") -> Build:
    def build(w: LayerWriter, x: str) -> str:
        y = w.node("InstanceNormalization", x, w.weight(w.random(channels)), w.weight(w.random(channels)))
        return w.node(activation, y)

    return build


def _group_norm(channels: int, groups: int, size: int) -> Build:
    """As exporters write it: an instance norm of the groups, then scale and bias."""

    def build(w: LayerWriter, x: str) -> str:
        flat = w.node("Reshape", x, _ints(w, 0, groups, -1))
        y = w.node(
            "InstanceNormalization", flat, w.weight(np.ones(groups, np.float32)), w.weight(np.zeros(groups, np.float32))
        )
        y = w.node("Reshape", y, _ints(w, 1, channels, size, size))
        return w.node("Add", w.node("Mul", y, w.weight(w.random(channels, 1, 1))), w.weight(w.random(channels, 1, 1)))

    return build


def _channel_norm(channels: int) -> Build:
    """A layer norm over the channels of an image, as in ConvNeXt: transposed for it, and back."""

    def build(w: LayerWriter, x: str) -> str:
        y = w.node("Transpose", x, perm=[0, 2, 3, 1])
        y = w.node("LayerNormalization", y, w.weight(w.random(channels)), w.weight(w.random(channels)), axis=-1)
        return w.node("Transpose", y, perm=[0, 3, 1, 2])

    return build


def _unit_length(axis: int) -> Build:
    """What lies along `axis`, divided by its length."""

    def build(w: LayerWriter, x: str) -> str:
        length = w.node("ReduceL2", x, _ints(w, axis), keepdims=1)
        return w.node("Div", x, w.node("Max", length, _number(w, 1e-6)))

    return build


# blocks ---------------------------------------------------------------------------------------------------------------


def _excitation(channels: int, squeezed: int) -> Build:
    """Squeeze and excite (Hu et al. 2018)."""

    def build(w: LayerWriter, x: str) -> str:
        y = w.node("Relu", w.convolution(w.node("GlobalAveragePool", x), (squeezed, channels, 1, 1)))
        return w.node("Mul", x, w.node("Sigmoid", w.convolution(y, (channels, squeezed, 1, 1))))

    return build


def _spatial_attention(w: LayerWriter, x: str) -> str:
    """The mean and the maximum over the channels, and a window over both (Woo et al. 2018)."""
    both = w.node(
        "Concat",
        w.node("ReduceMean", x, _ints(w, 1), keepdims=1),
        w.node("ReduceMax", x, _ints(w, 1), keepdims=1),
        axis=1,
    )
    return w.node("Mul", x, w.node("Sigmoid", w.convolution(both, (1, 2, 7, 7), pads=[3] * 4)))


def _pyramid(w: LayerWriter, x: str) -> str:
    """Three poolings, one of the other, beside their operand (as in YOLO's fast spatial pyramid)."""
    parts = [x]
    for _ in range(3):
        parts.append(w.node("MaxPool", parts[-1], kernel_shape=[5, 5], pads=[2] * 4))
    return w.node("Concat", *parts, axis=1)


def _focus(w: LayerWriter, x: str) -> str:
    """Every second pixel of every second line, four times, beside each other."""
    starts = [(0, 0), (1, 0), (0, 1), (1, 1)]
    end = _ints(w, 1 << 30, 1 << 30)
    return w.node(
        "Concat", *(w.node("Slice", x, _ints(w, *s), end, _ints(w, 2, 3), _ints(w, 2, 2)) for s in starts), axis=1
    )


def _reflected(channels: int, window: int) -> Build:
    """A convolution of a reflected border, as in style transfer."""

    def build(w: LayerWriter, x: str) -> str:
        half = window // 2
        y = w.node("Pad", x, _ints(w, 0, 0, half, half, 0, 0, half, half), mode="reflect")
        return w.convolution(y, (channels, channels, window, window))

    return build


def _enlarged(channels: int, outputs: int, mode: str = "nearest") -> Build:
    """A convolution of twice as large an image."""

    def build(w: LayerWriter, x: str) -> str:
        scales = w.weight(np.array([1, 1, 2, 2], np.float32))
        places = "asymmetric" if mode == "nearest" else "half_pixel"
        y = w.node("Resize", x, "", scales, mode=mode, coordinate_transformation_mode=places, nearest_mode="floor")
        return w.convolution(y, (outputs, channels, 3, 3), pads=[1] * 4)

    return build


def _beside(channels: int, others: int, outputs: int, window: int) -> Build:
    """A convolution of two images beside each other."""

    def build(w: LayerWriter, x: str) -> str:
        other = w.node("Relu", w.convolution(x, (others, channels, 1, 1)))
        return w.convolution(
            w.node("Concat", x, other, axis=1), (outputs, channels + others, window, window), pads=[window // 2] * 4
        )

    return build


def _pixel_shuffle(channels: int, factor: int) -> Build:
    def build(w: LayerWriter, x: str) -> str:
        y = w.convolution(x, (channels * factor**2, channels, 3, 3), pads=[1] * 4)
        return w.node("DepthToSpace", y, blocksize=factor, mode="CRD")

    return build


def _shuffled(groups: int, channels: int, size: int) -> Build:
    """Two halves, one through a depthwise convolution, shuffled (ShuffleNet's unit)."""

    def build(w: LayerWriter, x: str) -> str:
        first = w.node("Split", x, outputs=2, axis=1, num_outputs=2)
        half = channels // 2
        y = w.convolution(f"{first}_1", (half, 1, 3, 3), pads=[1] * 4, group=half)
        y = w.node("Reshape", w.node("Concat", first, y, axis=1), _ints(w, 1, groups, channels // groups, size, size))
        return w.node("Reshape", w.node("Transpose", y, perm=[0, 2, 1, 3, 4]), _ints(w, 1, channels, size, size))

    return build


def _residual(w: LayerWriter, x: str) -> str:
    return w.node("Relu", w.node("Add", x, w.node("Sigmoid", x)))


# rows, masks, products ------------------------------------------------------------------------------------------------


def _masked_softmax(w: LayerWriter, x: str, mask: str) -> str:
    seen = w.node("Cast", mask, to=9)
    return w.node("Softmax", w.node("Where", seen, w.node("Mul", x, _number(w, 0.125)), _number(w, -1e9)), axis=-1)


def _embeddings(w: LayerWriter, x: str) -> str:
    """Words and places, summed and normalised."""
    words = w.node("Gather", w.weight(w.random(5000, 256)), w.input(w.rng.integers(0, 5000, (1, 128))))
    places = w.node("Gather", w.weight(w.random(512, 256)), w.input(w.rng.integers(0, 512, (1, 128))))
    y = w.node("Add", w.node("Add", words, places), x)
    return w.node("LayerNormalization", y, w.weight(w.random(256)), w.weight(w.random(256)), axis=-1)


def _einsum(equation: str, *shapes: Sequence[int], flops: int = 0) -> Make:
    return alone(f"einsum {equation}", shapes, lambda w, *x: w.node("Einsum", *x, equation=equation), flops)


def _rms_norm(w: LayerWriter, x: str) -> str:
    mean = w.node("ReduceMean", w.node("Pow", x, _number(w, 2)), _ints(w, -1), keepdims=1)
    y = w.node("Div", x, w.node("Sqrt", w.node("Add", mean, _number(w, 1e-6))))
    return w.node("Mul", y, w.weight(w.random(512)))


def _rotary(w: LayerWriter, x: str, cos: str, sin: str) -> str:
    first = w.node("Split", x, outputs=2, axis=-1, num_outputs=2)
    turned = w.node("Concat", w.node("Neg", f"{first}_1"), first, axis=-1)
    return w.node("Add", w.node("Mul", x, cos), w.node("Mul", turned, sin))


def _gather_elements(w: LayerWriter, x: str) -> str:
    return w.node("GatherElements", x, w.input(w.rng.integers(0, 64, (1, 300, 64))), axis=2)


def _reduced(kind: str, *axes: int) -> Build:
    return lambda w, x: w.node(kind, x, _ints(w, *axes), keepdims=0)


BLOCKS: dict[str, list[Make]] = {
    "signals": [
        convolution((1, 1, 16000), 512, (10,), 5, pad=0),
        convolution((1, 512, 1599), 512, (3,), 2, pad=0),
        convolution((1, 384, 1500), 384, (3,), 2),
        convolution((1, 128, 2000), 128, (7,), 1, 1, 3),
        convolution((1, 32, 8000), 32, (11,), 1, 1, 5),
        convolution((1, 256, 400), 256, (31,), 1, 256),
        convolution((1, 512, 300), 512, (5,), 1, 512, 4),
        convolution((1, 768, 49), 768, (128,), 1, 16),
        framed("convT ->128 16/8", (1, 256, 200), _transposed(128, (16,), 8, 4), 128),
        framed("convT ->32 4/2", (1, 64, 2000), _transposed(32, (4,), 2, 1), 32),
        framed("MaxPool 3/2", (1, 128, 4000), _unary("MaxPool", kernel_shape=[3], strides=[2], pads=[1, 1])),
        framed("AveragePool 4/4", (1, 128, 4000), _unary("AveragePool", kernel_shape=[4], strides=[4])),
    ],
    "volumes": [
        convolution((1, 32, 8, 28, 28), 32, (3, 3, 3)),
        convolution((1, 3, 8, 112, 112), 32, (3, 7, 7), 2),
        convolution((1, 64, 8, 14, 14), 128, (1, 1, 1)),
        convolution((1, 64, 8, 28, 28), 64, (3, 1, 1)),
        convolution((1, 64, 8, 28, 28), 64, (3, 3, 3), 1, 64),
        framed("convT ->32 2x2x2/2", (1, 64, 8, 14, 14), _transposed(32, (2, 2, 2), 2, 0), 32),
        framed("MaxPool 2/2", (1, 64, 8, 28, 28), _unary("MaxPool", kernel_shape=[2] * 3, strides=[2] * 3)),
        framed("MaxPool 3/1", (1, 64, 8, 28, 28), _unary("MaxPool", kernel_shape=[3] * 3, pads=[1] * 6)),
        framed("InstanceNorm", (1, 32, 16, 28, 28), _instance_norm(32, "LeakyRelu")),
    ],
    "transposed": [
        transposed(64, 28, 128, 4, 2, 1, 32),
        transposed(256, 16, 128, 3, 2, 1),
        transposed(128, 28, 128, 2, 2, 0),
        transposed(21, 33, 21, 16, 8, 4, 21),
        transposed(64, 64, 1, 9, 3, 4),
        transposed(512, 4, 512, 4, 1, 0),
    ],
    "activations": [
        framed("PRelu", (1, 64, 56, 56), _prelu(64)),
        framed("HardSwish", (1, 64, 56, 56), _unary("HardSwish")),
        framed("Mish", (1, 64, 56, 56), _mish),
        framed("silu", (1, 64, 56, 56), _silu),
        framed("gelu", (1, 64, 56, 56), _gelu),
        framed("LeakyRelu", (1, 64, 56, 56), _unary("LeakyRelu", alpha=0.1)),
        unary("Gelu", 128, 1537, approximate="tanh"),
        unary("Sigmoid", 1, 64, 63, 65),
        unary("Selu", 1, 64, 63, 65),
        unary("HardSigmoid", 1, 64, 63, 65),
        unary("Softsign", 1, 64, 63, 65),
        unary("Sqrt", 1, 64, 63, 65),
        unary("LeakyRelu", 1, 64, 63, 65),
        alone("PRelu", [(1, 64, 63, 65)], _prelu(64)),
        alone("BatchNorm+relu", [(1, 64, 63, 65)], _batch_norm(64)),
    ],
    "blocks": [
        framed("BatchNorm+relu", (1, 128, 28, 28), _batch_norm(128)),
        framed("InstanceNorm+relu", (1, 64, 64, 64), _instance_norm(64)),
        framed("GroupNorm", (1, 128, 32, 32), _group_norm(128, 32, 32)),
        framed("channel norm", (1, 96, 28, 28), _channel_norm(96)),
        framed("unit length of channels", (1, 256, 28, 28), _unit_length(1)),
        framed("excitation", (1, 96, 28, 28), _excitation(96, 24)),
        framed("excitation", (1, 672, 14, 14), _excitation(672, 168)),
        framed("spatial attention", (1, 64, 32, 32), _spatial_attention),
        framed("pyramid", (1, 128, 20, 20), _pyramid, 512),
        framed("reflected conv 3", (1, 64, 64, 64), _reflected(64, 3)),
        framed("reflected conv 9", (1, 16, 64, 64), _reflected(16, 9)),
        framed("nearest+conv", (1, 64, 32, 32), _enlarged(64, 32), 32),
        framed("linear+conv", (1, 64, 32, 32), _enlarged(64, 32, "linear"), 32),
        framed("concat+conv 1", (1, 128, 28, 28), _beside(128, 64, 128, 1)),
        framed("concat+conv 3", (1, 64, 56, 56), _beside(64, 32, 64, 3), 64),
        framed("conv+pixel shuffle", (1, 32, 48, 48), _pixel_shuffle(32, 2)),
        framed("shuffle unit", (1, 116, 28, 28), _shuffled(2, 116, 28)),
        framed("residual", (1, 128, 28, 28), _residual),
        alone("focus", [(1, 3, 320, 320)], _focus),
        alone("concat 1 of 5", [(1, 32, 40, 40)] * 5, lambda w, *x: w.node("Concat", *x, axis=1)),
    ],
    "sequences": [
        alone("masked softmax", [(1, 8, 128, 128), (1, 1, 128, 128)], _masked_softmax),
        alone("embeddings+norm", [(1, 128, 256)], _embeddings),
        alone("rms norm", [(128, 512)], _rms_norm),
        alone("rotary", [(1, 8, 128, 64), (128, 64), (128, 64)], _rotary),
        alone("gather elements", [(1, 300, 64)], _gather_elements),
        alone("unit length of rows", [(200, 257)], _unit_length(-1)),
        alone("max of -1", [(500, 129)], _reduced("ReduceMax", -1)),
        alone("sum of 1", [(16, 256, 65)], _reduced("ReduceSum", 1)),
        alone("logsumexp of -1", [(100, 1000)], _reduced("ReduceLogSumExp", -1)),
        unary("Softmax", 1, 150, 64, 64, axis=1),
        unary("LogSoftmax", 1, 21, 65, 65, axis=1),
        unary("Softmax", 12, 197, 197, axis=-1),
        unary("ArgMax", 1, 150, 64, 64, axis=1),
        unary("Transpose", 8, 197, 3, 64, perm=[2, 0, 1, 3]),
        _einsum("bhid,bhjd->bhij", (1, 8, 128, 64), (1, 8, 128, 64), flops=2 * 8 * 128 * 128 * 64),
        _einsum("bhij,bhjd->bhid", (1, 8, 128, 128), (1, 8, 128, 64), flops=2 * 8 * 128 * 128 * 64),
        _einsum("bhwc,hkc->bhwk", (1, 14, 14, 64), (14, 14, 64), flops=2 * 14**3 * 64),
        _einsum("nctv,vw->nctw", (1, 64, 100, 25), (25, 25), flops=2 * 64 * 100 * 25 * 25),
        _einsum("bid,ijd->bij", (8, 64, 32), (64, 100, 32), flops=2 * 8 * 64 * 100 * 32),
    ],
}
