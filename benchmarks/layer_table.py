"""The layers that `benchmarks.layers` times, by group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.layer_models import LayerWriter, Make, alone, convolution, depthwise, framed, transposed, unary

Build = Callable[..., str]
"""What makes a layer's nodes of a writer and the names of its operands; answers the name of the result."""


def _ints(w: LayerWriter, *values: int) -> str:
    return w.weight(np.array(values, np.int64))


def _resize(mode: str, scale: float, places: str = "half_pixel") -> Build:
    def build(w: LayerWriter, x: str) -> str:
        scales = w.weight(np.array([1, 1, scale, scale], np.float32))
        return w.node("Resize", x, "", scales, mode=mode, coordinate_transformation_mode=places)

    return build


def _norm(kind: str, channels: int, **attributes: Any) -> Build:
    def build(w: LayerWriter, x: str) -> str:
        return w.node(kind, x, w.weight(w.random(channels)), w.weight(w.random(channels)), **attributes)

    return build


def _shuffle(groups: int, channels: int, size: int) -> Build:
    def build(w: LayerWriter, x: str) -> str:
        y = w.node("Reshape", x, _ints(w, 1, groups, channels // groups, size, size))
        y = w.node("Transpose", y, perm=[0, 2, 1, 3, 4])
        return w.node("Reshape", y, _ints(w, 1, channels, size, size))

    return build


def _unary(kind: str, **attributes: Any) -> Build:
    return lambda w, x: w.node(kind, x, **attributes)


def _silu(w: LayerWriter, x: str) -> str:
    return w.node("Mul", x, w.node("Sigmoid", x))


def _gelu(w: LayerWriter, x: str) -> str:
    half, one, root = (w.weight(np.array(v, np.float32)) for v in (0.5, 1.0, 2**0.5))
    return w.node("Mul", w.node("Mul", x, half), w.node("Add", w.node("Erf", w.node("Div", x, root)), one))


def _embedding(w: LayerWriter, rows: int, width: int, count: int) -> str:
    return w.node("Gather", w.weight(w.random(rows, width)), w.input(w.rng.integers(0, rows, (1, count))))


def _gather(rows: int, width: int, count: int) -> Make:
    return lambda: (w := LayerWriter()).layer(f"gather {rows}x{width} {count}", [_embedding(w, rows, width, count)])


def _product(m: int, n: int, k: int, *batch: int) -> Make:
    flops = 2 * m * n * k * int(np.prod(batch))
    return alone("matmul", [(*batch, m, k), (*batch, k, n)], lambda w, a, b: w.node("MatMul", a, b), flops)


def _linear(m: int, n: int, k: int) -> Make:
    def build(w: LayerWriter, a: str) -> str:
        y = w.node("MatMul", a, w.weight(w.random(k, n, scale=k**-0.5)))
        return w.node("Add", y, w.weight(w.random(n)))

    return alone(f"linear ->{n}", [(m, k)], build, 2 * m * n * k)


def _gemm(m: int, n: int, k: int, a: int, b: int) -> Make:
    shapes = [(k, m) if a else (m, k), (n, k) if b else (k, n)]
    return alone(
        f"gemm transA={a} transB={b}", shapes, lambda w, x, y: w.node("Gemm", x, y, transA=a, transB=b), 2 * m * n * k
    )


def _split(w: LayerWriter, x: str) -> list[str]:
    first = w.node("Split", x, outputs=3, axis=1, num_outputs=3)
    return [first, f"{first}_1", f"{first}_2"]


def _concat(axis: int) -> Build:
    return lambda w, *parts: w.node("Concat", *parts, axis=axis)


def _tile(*repeats: int) -> Build:
    return lambda w, x: w.node("Tile", x, _ints(w, *repeats))


def _expand(*shape: int) -> Build:
    return lambda w, x: w.node("Expand", x, _ints(w, *shape))


def _cumsum(axis: int) -> Build:
    return lambda w, x: w.node("CumSum", x, w.weight(np.array(axis, np.int64)))


def _topk(k: int, axis: int) -> Callable[..., list[str]]:
    def build(w: LayerWriter, x: str) -> list[str]:
        first = w.node("TopK", x, _ints(w, k), outputs=2, axis=axis)
        return [first, f"{first}_1"]

    return build


def _mean(*axes: int) -> Build:
    return lambda w, x: w.node("ReduceMean", x, _ints(w, *axes))


GROUPS: dict[str, list[Make]] = {
    "grouped": [
        convolution((1, 128, 56, 56), 128, (3, 3), 1, 32),
        convolution((1, 256, 56, 56), 256, (3, 3), 2, 32),
        convolution((1, 256, 28, 28), 256, (3, 3), 1, 32),
        convolution((1, 512, 14, 14), 512, (3, 3), 1, 32),
        convolution((1, 1024, 7, 7), 1024, (3, 3), 1, 32),
        convolution((1, 48, 56, 56), 48, (3, 3), 2, 6),
        convolution((1, 104, 28, 28), 104, (3, 3), 1, 13),
        convolution((1, 240, 28, 28), 240, (3, 3), 1, 15),
        convolution((1, 168, 27, 27), 168, (3, 3), 1, 7),
        convolution((1, 96, 27, 27), 256, (5, 5), 1, 2),
        convolution((1, 64, 56, 56), 128, (3, 3), 1, 32),
        convolution((1, 240, 28, 28), 60, (1, 1), 1, 3),
    ],
    "depthwise": [
        depthwise(32, 112, 3),
        depthwise(96, 112, 3, 2),
        depthwise(144, 56, 3),
        depthwise(144, 56, 5, 2),
        depthwise(240, 28, 5),
        depthwise(672, 14, 5),
        depthwise(960, 7, 3),
        depthwise(96, 56, 7),
        depthwise(384, 14, 7),
        depthwise(768, 7, 7),
        depthwise(256, 32, 3, 1, 2),
        depthwise(61, 33, 5, 2),
    ],
    "pooling": [
        framed("LRN", (1, 192, 55, 55), _unary("LRN", size=5)),
        framed("LRN", (1, 96, 27, 27), _unary("LRN", size=5)),
        framed("MaxPool 3/2", (1, 64, 112, 112), _unary("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)),
        framed("MaxPool 5/1", (1, 256, 13, 13), _unary("MaxPool", kernel_shape=[5, 5], pads=[2] * 4)),
        framed("MaxPool 2 dilated", (1, 64, 57, 57), _unary("MaxPool", kernel_shape=[2, 2], dilations=[3, 3])),
        framed("AveragePool 3/1", (1, 192, 35, 35), _unary("AveragePool", kernel_shape=[3, 3], pads=[1] * 4)),
        framed(
            "AveragePool 3/1 padded",
            (1, 192, 35, 35),
            _unary("AveragePool", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1),
        ),
        framed("AveragePool 2/2", (1, 128, 56, 56), _unary("AveragePool", kernel_shape=[2, 2], strides=[2, 2])),
        framed("LpPool 3/2", (1, 64, 57, 57), _unary("LpPool", kernel_shape=[3, 3], strides=[2, 2])),
        framed("GlobalMaxPool", (1, 320, 13, 13), _unary("GlobalMaxPool")),
        framed("GlobalAveragePool", (1, 1281, 7, 7), _unary("GlobalAveragePool")),
    ],
    "resize": [
        framed("linear x2", (1, 64, 32, 32), _resize("linear", 2)),
        framed("linear x4", (1, 21, 33, 33), _resize("linear", 4)),
        framed("linear aligned x2", (1, 48, 28, 28), _resize("linear", 2, "align_corners")),
        framed("linear /2", (1, 32, 64, 64), _resize("linear", 0.5)),
        framed("cubic x2", (1, 32, 32, 32), _resize("cubic", 2)),
        framed("nearest x2", (1, 128, 26, 26), _resize("nearest", 2, "asymmetric")),
        framed("nearest x1.5", (1, 64, 30, 30), _resize("nearest", 1.5)),
        alone("linear x2", [(1, 3, 128, 128)], _resize("linear", 2)),
        alone("linear x2", [(1, 64, 32, 32)], _resize("linear", 2)),
    ],
    "moves": [
        framed("shuffle 2", (1, 116, 28, 28), _shuffle(2, 116, 28)),
        framed("shuffle 3", (1, 240, 28, 28), _shuffle(3, 240, 28)),
        framed("DepthToSpace 2", (1, 256, 32, 32), _unary("DepthToSpace", blocksize=2, mode="CRD"), 64),
        framed("DepthToSpace 2 DCR", (1, 64, 64, 64), _unary("DepthToSpace", blocksize=2), 16),
        framed("SpaceToDepth 2", (1, 32, 64, 64), _unary("SpaceToDepth", blocksize=2), 128),
        unary("DepthToSpace", 1, 256, 64, 64, blocksize=2),
        _gather(30522, 384, 128),
        _gather(5000, 63, 200),
        unary("Transpose", 1, 128, 12, 64, perm=[0, 2, 1, 3]),
        unary("Transpose", 1, 64, 56, 56, perm=[0, 2, 3, 1]),
        unary("Transpose", 1, 56, 56, 64, perm=[0, 3, 1, 2]),
        unary("Transpose", 511, 513, perm=[1, 0]),
        unary("Transpose", 1, 12, 128, 64, perm=[0, 1, 3, 2]),
        unary("Transpose", 1, 3, 224, 224, perm=[0, 2, 3, 1]),
        alone("concat 1", [(1, 65, 40, 40), (1, 63, 40, 40)], _concat(1)),
        alone("concat -1", [(4096, 24), (4096, 40), (4096, 7)], _concat(-1)),
        alone("split 1", [(1, 96, 40, 40)], _split),
        alone("tile", [(1, 64, 31, 31)], _tile(1, 2, 1, 3)),
        alone("expand", [(64, 1, 257)], _expand(64, 33, 257)),
        alone(
            "pad reflect",
            [(1, 32, 64, 64)],
            lambda w, x: w.node("Pad", x, _ints(w, 0, 0, 3, 3, 0, 0, 3, 3), mode="reflect"),
        ),
        alone(
            "slice steps",
            [(1, 64, 128, 128)],
            lambda w, x: w.node("Slice", x, _ints(w, 0, 0), _ints(w, 128, 128), _ints(w, 2, 3), _ints(w, 2, 2)),
        ),
    ],
    "rows": [
        alone("mean of 1", [(8, 128, 384)], _mean(1)),
        alone("mean of 2,3", [(1, 256, 28, 28)], _mean(2, 3)),
        alone("mean of 0", [(513, 1025)], _mean(0)),
        alone("argmax of 1", [(1, 21, 129, 129)], lambda w, x: w.node("ArgMax", x, axis=1, keepdims=0)),
        alone("argmax of -1", [(128, 3001)], lambda w, x: w.node("ArgMax", x, axis=-1, keepdims=0)),
        alone("topk 5", [(16, 1000)], _topk(5, -1)),
        alone("topk 100", [(1, 8400)], _topk(100, -1)),
        alone("topk 3 of 1", [(4, 100, 65)], _topk(3, 1)),
        alone("cumsum -1", [(64, 1023)], _cumsum(-1)),
        alone("cumsum 1", [(4, 512, 65)], _cumsum(1)),
        unary("Softmax", 1, 21, 65, 65, axis=1),
        unary("Softmax", 12, 128, 128, axis=-1),
        unary("Softmax", 8, 8400, axis=-1),
        unary("Softmax", 3000, 17, axis=-1),
        unary("LogSoftmax", 64, 1001, axis=-1),
        alone("ReduceL2", [(128, 769)], lambda w, x: w.node("ReduceL2", x, _ints(w, 1))),
        alone("LayerNorm", [(128, 768)], _norm("LayerNormalization", 768, axis=-1)),
        alone("LayerNorm", [(197, 193)], _norm("LayerNormalization", 193, axis=-1)),
        framed("InstanceNorm", (1, 64, 64, 64), _norm("InstanceNormalization", 64)),
        alone("InstanceNorm", [(1, 64, 64, 64)], _norm("InstanceNormalization", 64)),
    ],
    "elementwise": [
        alone("gelu", [(128, 3072)], _gelu),
        alone("silu", [(1, 64, 63, 65)], _silu),
        unary("HardSwish", 1, 64, 63, 65),
        unary("Mish", 1, 64, 63, 65),
        unary("Softplus", 1, 64, 63, 65),
        unary("Elu", 1, 64, 63, 65),
        unary("Tanh", 1, 64, 63, 65),
        unary("Erf", 1, 64, 63, 65),
        unary("Exp", 1, 64, 63, 65),
        alone("Log", [(1, 64, 63, 65)], lambda w, x: w.node("Log", w.node("Abs", x))),
        unary("Sin", 1, 64, 63, 65),
        alone(
            "pow 2.5", [(64, 4095)], lambda w, x: w.node("Pow", w.node("Abs", x), w.weight(np.array(2.5, np.float32)))
        ),
        alone("add broadcast", [(1, 96, 28, 28), (1, 96, 1, 1)], lambda w, x, y: w.node("Add", x, y)),
        alone("where", [(64, 4095), (64, 4095)], lambda w, x, y: w.node("Where", w.node("Greater", x, y), x, y)),
        alone("cast i32", [(64, 4095)], lambda w, x: w.node("Cast", x, to=6)),
        unary("Clip", 64, 4095),
    ],
    "products": [
        _product(1, 1024, 768),
        _product(5, 333, 257),
        _product(7, 96, 1000),
        _product(128, 64, 128, 12),
        _product(128, 128, 64, 12),
        _product(49, 49, 32, 64),
        _product(1, 64, 200, 12),
        _product(100, 3, 100),
        _product(3, 3, 3, 4096),
        _product(333, 1, 777),
        _product(1000, 7, 33),
        _linear(1, 4096, 1024),
        _linear(4, 1000, 2048),
        _linear(7, 384, 383),
        _linear(128, 30, 770),
        _linear(1000, 17, 9),
        _gemm(64, 300, 500, 0, 1),
        _gemm(64, 300, 500, 1, 0),
        _gemm(65, 301, 127, 1, 1),
        _gemm(3, 1000, 512, 0, 1),
        _gemm(250, 250, 250, 0, 1),
    ],
    "convolutions": [
        convolution((1, 80, 3000), 384, (3,)),
        convolution((1, 256, 1000), 256, (9,)),
        convolution((1, 64, 4001), 64, (7,), 2),
        convolution((1, 512, 200), 512, (1,)),
        convolution((1, 16, 16, 28, 28), 32, (3, 3, 3)),
        convolution((1, 3, 16, 56, 56), 32, (3, 3, 3), 2),
        convolution((1, 64, 8, 14, 14), 64, (1, 3, 3)),
        convolution((1, 64, 57, 57), 64, (3, 3), 2),
        convolution((1, 128, 33, 33), 128, (3, 3), 1, 1, 6),
        convolution((1, 192, 17, 17), 192, (1, 7)),
        convolution((1, 32, 256, 256), 3, (9, 9)),
        convolution((1, 3, 224, 224), 96, (11, 11), 4, 1, 1, 2),
        convolution((1, 256, 14, 14), 512, (1, 1), 2, 1, 1, 0),
        convolution((4, 512, 4, 4), 512, (3, 3)),
        transposed(512, 4, 256, 4, 2, 1),
        transposed(128, 16, 64, 4, 2, 1),
        transposed(64, 32, 3, 4, 2, 1),
        transposed(64, 64, 32, 2, 2, 0),
        transposed(32, 56, 32, 3, 1, 1),
        transposed(64, 28, 64, 4, 2, 1, 64),
    ],
}
