"""Random convolutional networks with images as large as real ones: what bands of rows, boxes, blocks and the arena are
chosen by is size, which small graphs never reach."""

from __future__ import annotations

import random
from typing import NamedTuple

import onnx

from tests.graphs.onnx_builder import FLOAT, Builder


class Image(NamedTuple):
    """A value: its name, channels and pixels."""

    name: str
    channels: int
    rows: int
    columns: int


class SizedNetwork:
    """Adds layers behind the last image, some of them read by later ones as well."""

    def __init__(self, seed: int) -> None:
        self.rng, self.builder = random.Random(seed), Builder(seed)
        self.images = [Image("x", self.rng.choice([1, 3, 4]), self.rng.randint(40, 130), self.rng.randint(40, 130))]

    def model(self) -> onnx.ModelProto:
        """Five to fourteen layers; what nobody reads is a result."""
        first = self.images[0]
        for _ in range(self.rng.randint(5, 14)):
            self.images.append(self.rng.choice(LAYERS)(self, self.images[-1]))
        unread = {one.name: _shape(one) for one in self.images[1:] if one.name not in self.builder.read}
        return self.builder.model({"x": (FLOAT, _shape(first))}, unread)

    def convolution(self, image: Image) -> Image:
        """With a window, stride, dilation and groups of any usual kind, and what follows it."""
        window, wide = self.rng.choice([1, 1, 3, 3, 3, 5]), image.channels % 4 == 0
        depthwise = wide and window > 1 and self.rng.random() < 0.3
        channels = image.channels if depthwise else self.rng.choice([8, 12, 16, 24, 32, 48, 64])
        group = image.channels if depthwise else 1
        stride = self.rng.choice([1, 1, 2]) if min(image.rows, image.columns) > 8 else 1
        dilation = self.rng.choice([1, 1, 2]) if window > 1 else 1
        low, high = (self.rng.choice([0, dilation * (window // 2)]) for _ in range(2))
        rows, columns = (
            (n + low + high - dilation * (window - 1) - 1) // stride + 1 for n in (image.rows, image.columns)
        )
        if min(rows, columns) < 1:
            return self.activation(image)
        scale = (2.0 / (window * window * image.channels / group)) ** 0.5
        name = self.builder.node(
            "Conv", image.name, self.builder.weight(channels, image.channels // group, window, window, scale=scale),
            self.builder.weight(channels, scale=0.3), group=group, strides=[stride] * 2, dilations=[dilation] * 2,
            pads=[low, low, high, high],
        )  # fmt: skip
        made = Image(name, channels, rows, columns)
        return self.activation(made) if self.rng.random() < 0.8 else made

    def activation(self, image: Image) -> Image:
        """A bounded or piecewise linear function."""
        kind = self.rng.choice(["Relu", "Relu", "HardSwish", "Tanh", "Sigmoid", "LeakyRelu"])
        return image._replace(name=self.builder.node(kind, image.name))

    def residual(self, image: Image) -> Image:
        """The sum with an earlier image of this size."""
        like = [one for one in self.images if one[1:] == image[1:]]
        return image._replace(name=self.builder.node("Add", image.name, self.rng.choice(like).name))

    def concat(self, image: Image) -> Image:
        """With an earlier image of as many pixels."""
        other = self.rng.choice([one for one in self.images if one[2:] == image[2:]])
        name = self.builder.node("Concat", image.name, other.name, axis=1)
        return image._replace(name=name, channels=image.channels + other.channels)

    def pooling(self, image: Image) -> Image:
        """Over windows of 3x3 or 2x2."""
        window = self.rng.choice([2, 3])
        if min(image.rows, image.columns) < window:
            return self.activation(image)
        kind = self.rng.choice(["MaxPool", "AveragePool"])
        name = self.builder.node(kind, image.name, kernel_shape=[window] * 2, strides=[2, 2])
        return Image(name, image.channels, (image.rows - window) // 2 + 1, (image.columns - window) // 2 + 1)

    def scaling(self, image: Image) -> Image:
        """Channels scaled by what their means tell (squeeze and excite)."""
        weight = self.builder.weight(image.channels, image.channels, 1, 1, scale=image.channels**-0.5)
        mean = self.builder.node("GlobalAveragePool", image.name)
        gate = self.builder.node("Sigmoid", self.builder.node("Conv", mean, weight))
        return image._replace(name=self.builder.node("Mul", image.name, gate))

    def upsampling(self, image: Image) -> Image:
        """Twice the rows and columns, while that is small."""
        if image.rows * image.columns * image.channels > 60_000:
            return self.pooling(image)
        sizes = self.builder.constant([1.0, 1.0, 2.0, 2.0])
        name = self.builder.node("Resize", image.name, "", self._halves(sizes), mode="nearest")
        return Image(name, image.channels, 2 * image.rows, 2 * image.columns)

    def _halves(self, name: str) -> str:
        self.builder.weights[name] = self.builder.weights[name].astype("float32")
        return name


def _shape(image: Image) -> tuple[int, ...]:
    return (1, image.channels, image.rows, image.columns)


LAYERS = [
    *[SizedNetwork.convolution] * 6, SizedNetwork.residual, SizedNetwork.concat, SizedNetwork.pooling,
    SizedNetwork.scaling, SizedNetwork.upsampling,
]  # fmt: skip
