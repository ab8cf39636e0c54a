"""DeepLabV3 on MobileNetV2 as tf2onnx writes it before it optimizes: a graph in NHWC, and generated weights.

Each convolution stands between two Transposes, paddings are Pad nodes, batch normalisation is a Mul and an Add of
constants, Relu6 a Min and a Max (or a Clip), and a convolution with dilation is what TensorFlow makes of it:
SpaceToBatchND -> convolution -> BatchToSpaceND, in the two spellings of tf2onnx (SpaceToDepth of a tensor whose batch
and channels are exchanged for square blocks, else Reshape -> Transpose -> Reshape).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from benchmarks.layer_models import LayerWriter

TO_NCHW, TO_NHWC, SWAP = [0, 3, 1, 2], [0, 2, 3, 1], [1, 0, 2, 3]
BLOCKS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
"""Expansion, channels, repeats and stride of MobileNetV2's blocks."""


@dataclass(frozen=True)
class Spelling:
    """How the graph is written: `depth`: blocks by SpaceToDepth; `clip`: Relu6 as Clip; `merged`: batch normalisation
    as one BatchNormalization in NCHW."""

    depth: bool = False
    clip: bool = False
    merged: bool = False


class DeepLab:
    """Writes the nodes; a tensor is its name, height, width (both equal) and channels."""

    def __init__(self, size: int, width: float, spelling: Spelling, seed: int) -> None:
        self.writer, self.size, self.width, self.spelling = LayerWriter(seed), size, width, spelling

    def channels(self, count: float) -> int:
        return max(8, int(count * self.width + 4) // 8 * 8)

    def constant(self, *values: int) -> str:
        return self.writer.weight(np.array(values, np.int64))

    def transpose(self, x: str, perm: list[int]) -> str:
        return self.writer.node("Transpose", x, perm=perm)

    def pad(self, x: str, before: int, after: int) -> str:
        return self.writer.node("Pad", x, self.constant(0, before, before, 0, 0, after, after, 0)) if after else x

    def relu6(self, x: str) -> str:
        zero, six = (self.writer.weight(np.array(value, np.float32)) for value in (0.0, 6.0))
        if self.spelling.clip:
            return self.writer.node("Clip", x, zero, six)
        return self.writer.node("Min", self.writer.node("Max", x, zero), six)

    def normalized(self, x: str, channels: int) -> str:
        scale = self.writer.weight(1 + 0.1 * self.writer.random(channels))
        shift = self.writer.weight(0.1 * self.writer.random(channels))
        if self.spelling.merged:
            mean = self.writer.weight(0.1 * self.writer.random(channels))
            var = self.writer.weight(1 + 0.1 * np.abs(self.writer.random(channels)))
            inner = self.writer.node("BatchNormalization", self.transpose(x, TO_NCHW), scale, shift, mean, var)
            return self.transpose(inner, TO_NHWC)
        return self.writer.node("Add", self.writer.node("Mul", x, scale), shift)

    def to_batch(self, x: str, block: int, size: int, channels: int) -> str:
        """SpaceToBatchND of an image that is `size` (a multiple of the block) high and wide."""
        if self.spelling.depth:
            swapped = self.transpose(self.transpose(x, TO_NCHW), SWAP)
            deep = self.writer.node("SpaceToDepth", swapped, blocksize=block)
            return self.transpose(self.transpose(deep, SWAP), TO_NHWC)
        part = size // block
        split = self.writer.node("Reshape", x, self.constant(-1, part, block, part, block, channels))
        moved = self.transpose(split, [2, 4, 0, 1, 3, 5])
        return self.writer.node("Reshape", moved, self.constant(-1, part, part, channels))

    def to_space(self, x: str, block: int, size: int, channels: int, crop: int) -> str:
        """BatchToSpaceND of images `size` high and wide, with `crop` taken off the ends."""
        if self.spelling.depth:
            swapped = self.transpose(self.transpose(x, TO_NCHW), SWAP)
            deep = self.writer.node("DepthToSpace", swapped, blocksize=block)
            cut = self.slice(deep, crop, (2, 3))
            return self.transpose(self.transpose(cut, SWAP), TO_NHWC)
        split = self.writer.node("Reshape", x, self.constant(block, block, -1, size, size, channels))
        moved = self.transpose(split, [2, 3, 0, 4, 1, 5])
        whole = self.writer.node("Reshape", moved, self.constant(-1, size * block, size * block, channels))
        return self.slice(whole, crop, (1, 2))

    def slice(self, x: str, crop: int, axes: tuple[int, int]) -> str:
        if not crop:
            return x
        ends = self.constant(-crop, -crop)
        return self.writer.node("Slice", x, self.constant(0, 0), ends, self.constant(*axes))

    def convolution(
        self, x: str, size: int, inputs: int, outputs: int, *, kernel: int = 1, stride: int = 1, block: int = 1
    ) -> tuple[str, int]:
        """A convolution ("SAME") of an NHWC image; depthwise where the kernel is not 1x1 and the channels are equal."""
        group = inputs if kernel > 1 and inputs == outputs else 1
        window = (kernel - 1) * block + 1
        out = -(-size // stride)
        total = max((out - 1) * stride + window - size, 0)
        before, after = total // 2, total - total // 2
        part, crop = size, 0
        if block > 1:
            crop = -(size + total) % block
            part = (size + total + crop) // block
            x = self.to_batch(self.pad(x, before, after + crop), block, part * block, inputs)
        else:
            x = self.pad(x, before, after)
        filter_ = self.writer.random(
            outputs, inputs // group, kernel, kernel, scale=(inputs // group * kernel**2) ** -0.5
        )
        inner = self.writer.node(
            "Conv",
            self.transpose(x, TO_NCHW),
            self.writer.weight(filter_),
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            group=group,
        )
        x = self.transpose(inner, TO_NHWC)
        if block > 1:
            x = self.to_space(x, block, part - kernel + 1, outputs, crop)
        return x, out

    def block(
        self, x: str, size: int, inputs: int, outputs: int, expand: int, stride: int, rate: int
    ) -> tuple[str, int]:
        """An inverted bottleneck."""
        inner, y = inputs * expand, x
        if expand > 1:
            y = self.relu6(self.normalized(self.convolution(y, size, inputs, inner)[0], inner))
        y, out = self.convolution(y, size, inner, inner, kernel=3, stride=stride, block=rate)
        y = self.relu6(self.normalized(y, inner))
        y = self.normalized(self.convolution(y, out, inner, outputs)[0], outputs)
        return (self.writer.node("Add", x, y) if stride == 1 and inputs == outputs else y), out

    def backbone(self, x: str) -> tuple[str, int, int]:
        """MobileNetV2 at an output stride of 16."""
        channels = self.channels(32)
        x, size = self.convolution(x, self.size, 3, channels, kernel=3, stride=2)
        x, total, rate = self.relu6(self.normalized(x, channels)), 2, 1
        for expand, count, repeats, stride in BLOCKS:
            for index in range(repeats):
                step, block = (stride if index == 0 else 1), rate
                if step > 1 and total == 16:
                    rate, step = rate * step, 1
                total *= step
                outputs = self.channels(count)
                x, size = self.block(x, size, channels, outputs, expand, step, block)
                channels = outputs
        return x, size, channels

    def resized(self, x: str, size: int) -> str:
        """A bilinear Resize of an NHWC image to `size` square."""
        sizes = self.constant(size, size)
        kind: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "align_corners", "axes": [2, 3]}
        return self.transpose(self.writer.node("Resize", self.transpose(x, TO_NCHW), "", "", sizes, **kind), TO_NHWC)

    def model(self, classes: int) -> onnx.ModelProto:
        """The whole network, from bytes of an image to a class per pixel."""
        writer = self.writer
        image = writer.node("Cast", "image", to=onnx.TensorProto.FLOAT)
        x = writer.node("Mul", image, writer.weight(np.array(2 / 255, np.float32)))
        x = writer.node("Sub", x, writer.weight(np.array(1, np.float32)))
        x, size, channels = self.backbone(x)
        deep = self.channels(256)
        pooled = writer.node("ReduceMean", x, self.constant(1, 2), keepdims=1)
        pooled = self.normalized(self.convolution(pooled, 1, channels, deep)[0], deep)
        pooled = self.resized(writer.node("Relu", pooled), size)
        near = writer.node("Relu", self.normalized(self.convolution(x, size, channels, deep)[0], deep))
        x = writer.node("Concat", pooled, near, axis=3)
        x = writer.node("Relu", self.normalized(self.convolution(x, size, 2 * deep, deep)[0], deep))
        logits = self.convolution(x, size, deep, classes)[0]
        logits = writer.node("Add", logits, writer.weight(writer.random(classes)))
        found = writer.node("ArgMax", self.resized(logits, self.size), axis=3, keepdims=0)
        shape = [1, self.size, self.size]
        graph = helper.make_graph(
            writer.nodes,
            "tf_deeplab",
            [helper.make_tensor_value_info("image", onnx.TensorProto.UINT8, [*shape, 3])],
            [
                helper.make_tensor_value_info(logits, onnx.TensorProto.FLOAT, [1, size, size, classes]),
                helper.make_tensor_value_info(found, onnx.TensorProto.INT64, shape),
            ],
            writer.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def tf_deeplab(
    size: int = 257, width: float = 1.0, spelling: Spelling = Spelling(), *, classes: int = 21, seed: int = 0
) -> onnx.ModelProto:
    """The model for square images of `size` pixels; `width` scales the channels. Results: the logits (NHWC) and the
    class per pixel."""
    return DeepLab(size, width, spelling, seed).model(classes)
