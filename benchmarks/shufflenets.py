"""ShuffleNet v1 and v2 whose channel shuffles are spelt out as exporters spell them, with generated weights.

`transposed`: Reshape -> Transpose -> Reshape; `sliced`: Slices, Unsqueezes, a Concat and a Reshape. v2 splits the
channels by a Split or by two Slices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from benchmarks.layer_models import LayerWriter

V1_CHANNELS = {1: 144, 2: 200, 3: 240, 4: 272, 8: 384}
V2_CHANNELS = {
    0.5: (48, 96, 192, 1024),
    1.0: (116, 232, 464, 1024),
    1.5: (176, 352, 704, 1024),
    2.0: (244, 488, 976, 2048),
}
REPEATS = (3, 7, 3)


class ShuffleNet:
    """Writes the nodes of either network; `size` is the image's height and width as it goes."""

    def __init__(self, size: int, spelling: str, normalized: bool, seed: int) -> None:
        self.writer, self.image, self.size = LayerWriter(seed), size, size
        self.spelling, self.normalized = spelling, normalized

    def convolution(
        self, x: str, inputs: int, outputs: int, *, kernel: int = 1, stride: int = 1, group: int = 1, relu: bool = True
    ) -> str:
        """A convolution, its batch normalisation and, where asked for, its Relu."""
        writer = self.writer
        filter_ = writer.random(
            outputs, inputs // group, kernel, kernel, scale=(inputs // group * kernel**2 / 2) ** -0.5
        )
        own = [] if self.normalized else [writer.weight(0.1 * writer.random(outputs))]
        kind: dict[str, Any] = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "group": group}
        y = writer.node("Conv", x, writer.weight(filter_), *own, pads=[kernel // 2] * 4, **kind)
        if self.normalized:
            statistics = [
                1 + 0.1 * writer.random(outputs),
                0.1 * writer.random(outputs),
                0.1 * writer.random(outputs),
                1 + 0.1 * np.abs(writer.random(outputs)),
            ]
            y = writer.node("BatchNormalization", y, *map(writer.weight, statistics))
        return writer.node("Relu", y) if relu else y

    def constant(self, *values: int) -> str:
        return self.writer.weight(np.array(values, np.int64))

    def shuffle(self, x: str, channels: int, groups: int, size: int) -> str:
        """Channel j of group i becomes channel j * groups + i."""
        writer = self.writer
        if self.spelling == "sliced":
            part = channels // groups
            halves = [self.slice(x, part * i, part * (i + 1)) for i in range(groups)]
            parts = [writer.node("Unsqueeze", half, self.constant(2)) for half in halves]
            return writer.node(
                "Reshape", writer.node("Concat", *parts, axis=2), self.constant(-1, channels, size, size)
            )
        y = writer.node("Reshape", x, self.constant(-1, groups, channels // groups, size, size))
        y = writer.node("Transpose", y, perm=[0, 2, 1, 3, 4])
        return writer.node("Reshape", y, self.constant(-1, channels, size, size))

    def slice(self, x: str, start: int, end: int) -> str:
        return self.writer.node("Slice", x, self.constant(start), self.constant(end), self.constant(1))

    def stem(self) -> str:
        y = self.convolution("image", 3, 24, kernel=3, stride=2)
        self.size = self.image // 4
        return self.writer.node("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])

    def v1_unit(self, x: str, inputs: int, outputs: int, groups: int, stride: int, first: bool) -> str:
        middle, own = outputs // 4, outputs - inputs if stride == 2 else outputs
        y = self.convolution(x, inputs, middle, group=1 if first else groups)
        y = self.shuffle(y, middle, groups, self.size)
        y = self.convolution(y, middle, middle, kernel=3, stride=stride, group=middle, relu=False)
        y = self.convolution(y, middle, own, group=groups, relu=False)
        if stride == 1:
            return self.writer.node("Relu", self.writer.node("Add", x, y))
        pooled = self.writer.node("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        self.size //= 2
        return self.writer.node("Relu", self.writer.node("Concat", pooled, y, axis=1))

    def v2_branch(self, x: str, inputs: int, half: int, stride: int) -> str:
        y = self.convolution(x, inputs, half)
        y = self.convolution(y, half, half, kernel=3, stride=stride, group=half, relu=False)
        return self.convolution(y, half, half)

    def v2_unit(self, x: str, inputs: int, outputs: int, stride: int) -> str:
        half = outputs // 2
        if stride == 1:
            left, right = self.halves(x, half)
        else:
            left = self.convolution(x, inputs, inputs, kernel=3, stride=2, group=inputs, relu=False)
            left, right = self.convolution(left, inputs, half), x
        right = self.v2_branch(right, half if stride == 1 else inputs, half, stride)
        self.size //= stride
        return self.shuffle(self.writer.node("Concat", left, right, axis=1), outputs, 2, self.size)

    def halves(self, x: str, half: int) -> tuple[str, str]:
        if self.spelling == "sliced":
            return self.slice(x, 0, half), self.slice(x, half, 2 * half)
        left = self.writer.node("Split", x, self.constant(half, half), outputs=2, axis=1)
        return left, f"{left}_1"

    def model(self, x: str, channels: int, classes: int, name: str) -> onnx.ModelProto:
        """The classifier behind `x`."""
        writer = self.writer
        x = writer.node("Flatten", writer.node("GlobalAveragePool", x))
        weight = writer.weight(writer.random(classes, channels, scale=channels**-0.5))
        out = writer.node("Gemm", x, weight, writer.weight(writer.random(classes)), transB=1)
        image = helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 3, self.image, self.image])
        result = helper.make_tensor_value_info(out, onnx.TensorProto.FLOAT, [1, classes])
        graph = helper.make_graph(writer.nodes, name, [image], [result], writer.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def shufflenet_v1(
    size: int = 224, groups: int = 3, spelling: str = "transposed", *, normalized: bool = True, seed: int = 0
) -> onnx.ModelProto:
    """ShuffleNet v1 for images of `size` pixels (a multiple of 32), its 1x1 convolutions in `groups`."""
    net = ShuffleNet(size, spelling, normalized, seed)
    x, channels = net.stem(), 24
    for stage, repeats in enumerate(REPEATS):
        outputs = V1_CHANNELS[groups] << stage
        x = net.v1_unit(x, channels, outputs, groups, 2, stage == 0)
        for _ in range(repeats):
            x = net.v1_unit(x, outputs, outputs, groups, 1, False)
        channels = outputs
    return net.model(x, channels, 1000, "shufflenet_v1")


def shufflenet_v2(
    size: int = 224, width: float = 1.0, spelling: str = "transposed", *, normalized: bool = False, seed: int = 0
) -> onnx.ModelProto:
    """ShuffleNet v2 for images of `size` pixels (a multiple of 32)."""
    net = ShuffleNet(size, spelling, normalized, seed)
    x, channels = net.stem(), 24
    *stages, last = V2_CHANNELS[width]
    for outputs, repeats in zip(stages, REPEATS, strict=True):
        x = net.v2_unit(x, channels, outputs, 2)
        for _ in range(repeats):
            x = net.v2_unit(x, outputs, outputs, 1)
        channels = outputs
    return net.model(net.convolution(x, channels, last), last, 1000, "shufflenet_v2")
