"""Single layers as ONNX models with seeded weights: what a network is made of, in sizes that networks have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]
FRAME = 16
"""Channels outside of a layer that is timed inside a network, between two convolutions."""


@dataclass(frozen=True)
class Layer:
    """A model of one layer (in a frame or alone), its feeds, and the operations the layer needs. `nodes`: the names of
    the layer's own nodes."""

    name: str
    model: onnx.ModelProto
    feeds: dict[str, Array]
    flops: int
    nodes: frozenset[str]


class LayerWriter:
    """Collects the nodes, weights and feeds of one model."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.feeds: dict[str, Array] = {}
        self.framed: list[str] = []

    def random(self, *shape: int, scale: float = 1.0) -> Array:
        return (self.rng.standard_normal(shape) * scale).astype(np.float32)

    def input(self, array: Array) -> str:
        name = f"x{len(self.feeds)}"
        self.feeds[name] = array
        return name

    def weight(self, array: Array) -> str:
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """The name of the node's first output; the further ones end in _1, _2 ..."""
        name = f"{kind}_{len(self.nodes)}"
        names = [name, *(f"{name}_{i}" for i in range(1, outputs))]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=name, **attributes))
        return name

    def convolution(self, x: str, shape: Sequence[int], **attributes: Any) -> str:
        """With a bias; `shape` is that of the filter."""
        w = self.weight(self.random(*shape, scale=float(np.prod(shape[1:])) ** -0.5))
        return self.node("Conv", x, w, self.weight(self.random(shape[0])), kernel_shape=list(shape[2:]), **attributes)

    def framed_input(self, shape: Sequence[int]) -> str:
        """An image that convolutions have made, as inside a network: the first takes the layout of the model's
        input."""
        rank = len(shape) - 2
        x = self.input(self.random(shape[0], FRAME, *shape[2:]))
        return self._framed(self._framed(x, FRAME, FRAME, [3] * rank), shape[1], FRAME, [1] * rank)

    def framed_output(self, x: str, channels: int, rank: int = 2) -> str:
        """What convolutions make of an image: the last one makes the layout of the model's output."""
        return self._framed(self._framed(x, FRAME, channels, [1] * rank), FRAME, FRAME, [3] * rank)

    def _framed(self, x: str, outputs: int, inputs: int, window: Sequence[int]) -> str:
        pads = [size // 2 for size in window] * 2
        self.framed.append(self.convolution(x, (outputs, inputs, *window), pads=pads))
        return self.framed[-1]

    def layer(self, name: str, outputs: Sequence[str], flops: int = 0) -> Layer:
        """The model whose results are `outputs`."""
        inputs = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), list(a.shape))
            for n, a in self.feeds.items()
        ]
        graph = helper.make_graph(
            self.nodes, "layer", inputs, [onnx.ValueInfoProto(name=o) for o in outputs], self.weights
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        nodes = frozenset(n.name for n in self.nodes if n.output[0] not in self.framed)
        return Layer(name, model, self.feeds, flops, nodes)


Make = Callable[[], Layer]


def convolution(
    shape: Sequence[int],
    channels: int,
    window: Sequence[int],
    stride: int = 1,
    group: int = 1,
    dilation: int = 1,
    pad: int = -1,
) -> Make:
    """A convolution with bias and relu inside a network; `shape` is the image's, batch and channels first."""

    def make() -> Layer:
        w, rank = LayerWriter(), len(window)
        pads = [dilation * (k // 2) if pad < 0 else pad for k in window] * 2
        attributes = {"strides": [stride] * rank, "pads": pads, "group": group, "dilations": [dilation] * rank}
        y = w.node("Relu", w.convolution(w.framed_input(shape), (channels, shape[1] // group, *window), **attributes))
        out = [
            (n + 2 * p - dilation * (k - 1) - 1) // stride + 1 for n, p, k in zip(shape[2:], pads, window, strict=False)
        ]
        flops = 2 * shape[0] * int(np.prod(out)) * channels * shape[1] // group * int(np.prod(window))
        kind = "depthwise" if group == shape[1] == channels else f"conv g{group}" if group > 1 else "conv"
        sizes = f"{'x'.join(map(str, shape[1:]))}->{channels} {'x'.join(map(str, window))}/{stride}"
        name = f"{kind} {sizes}{f' dilated {dilation}' if dilation > 1 else ''}"
        return w.layer(name, [w.framed_output(y, channels, rank)], flops)

    return make


def depthwise(channels: int, size: int, window: int, stride: int = 1, dilation: int = 1) -> Make:
    """A depthwise convolution of a square image."""
    return convolution((1, channels, size, size), channels, (window, window), stride, channels, dilation)


def transposed(channels: int, size: int, outputs: int, window: int, stride: int, pad: int, group: int = 1) -> Make:
    """A transposed convolution with bias and relu inside a network."""

    def make() -> Layer:
        w = LayerWriter()
        x = w.framed_input((1, channels, size, size))
        filter_ = w.weight(
            w.random(channels, outputs // group, window, window, scale=(channels * window * window / stride**2) ** -0.5)
        )
        y = w.node(
            "ConvTranspose",
            x,
            filter_,
            w.weight(w.random(outputs)),
            kernel_shape=[window] * 2,
            strides=[stride] * 2,
            pads=[pad] * 4,
            group=group,
        )
        y = w.node("Relu", y)
        flops = 2 * size * size * channels * outputs // group * window * window
        return w.layer(
            f"convT {channels}x{size}x{size}->{outputs} {window}x{window}/{stride}",
            [w.framed_output(y, outputs)],
            flops,
        )

    return make


def framed(name: str, shape: Sequence[int], build: Callable[[LayerWriter, str], str], channels: int = 0) -> Make:
    """Any layer of one image inside a network; `channels` is how many it makes, 0: as many as it takes."""

    def make() -> Layer:
        w = LayerWriter()
        y = build(w, w.framed_input(shape))
        return w.layer(
            f"{name} {'x'.join(map(str, shape[1:]))}", [w.framed_output(y, channels or shape[1], len(shape) - 2)]
        )

    return make


def alone(name: str, shapes: Sequence[Sequence[int]], build: Callable[..., str | list[str]], flops: int = 0) -> Make:
    """Any layer by itself, its operands as inputs."""

    def make() -> Layer:
        w = LayerWriter()
        outputs = build(w, *(w.input(w.random(*shape)) for shape in shapes))
        sizes = " ".join("x".join(map(str, shape)) for shape in shapes)
        return w.layer(f"{name} {sizes}", [outputs] if isinstance(outputs, str) else outputs, flops)

    return make


def unary(kind: str, *shape: int, **attributes: Any) -> Make:
    """One node with one input, by itself."""
    return alone(
        " ".join([kind, *(f"{k}={v}".replace(" ", "") for k, v in attributes.items())]),
        [shape],
        lambda w, x: w.node(kind, x, **attributes),
    )
