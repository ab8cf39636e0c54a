"""Random models of near-duplicates: a few kinds of layers, each several times, with other constants, other weights and
operands in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

from tests.graphs.onnx_text import onnx_model

WIDTH = 24
"""Features of every layer."""

Layer: TypeAlias = Callable[["Layers", str], str]


@dataclass
class Layers:
    """Layers on rows of `WIDTH` features; `weights` are the model's, constants among them."""

    rng: np.random.Generator
    lines: list[str] = field(default_factory=list[str])
    weights: dict[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])

    def op(self, text: str, *operands: str) -> str:
        """A node; `text` is its operator, and attributes in angle brackets."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}({', '.join(operands)})")
        return name

    def swapped(self, operator: str, a: str, b: str) -> str:
        """A node of a commutative operator, its operands in any order."""
        return self.op(operator, *((a, b) if self.rng.random() < 0.5 else (b, a)))

    def number(self, value: float | None = None, dtype: Any = np.float32) -> str:
        """A scalar weight: any number, or `value`."""
        return self.weight(np.array(self.rng.uniform(0.3, 1.9) if value is None else value, dtype))

    def weight(self, array: NDArray[Any]) -> str:
        """A weight."""
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name


def scaled(layers: Layers, x: str) -> str:
    return layers.swapped("Add", layers.swapped("Mul", x, layers.number()), layers.number())


def clipped(layers: Layers, x: str) -> str:
    low, high = layers.rng.uniform(-1.5, -0.5), layers.rng.choice([1.0, 6.0])
    return layers.op("Clip", x, layers.number(low), layers.number(high))


def divided(layers: Layers, x: str) -> str:
    return layers.op("Div", x, layers.number(layers.rng.choice([0.5, 0.7, 1.3, 2.0])))


def power(layers: Layers, x: str) -> str:
    return layers.op("Pow", layers.op("Abs", x), layers.number(layers.rng.choice([0.5, 1.5, 2.0])))


def quantized(layers: Layers, x: str) -> str:
    scale, zero = layers.number(layers.rng.uniform(0.01, 0.05)), layers.number(int(layers.rng.integers(-3, 3)), np.int8)
    return layers.op("DequantizeLinear", layers.op("QuantizeLinear", x, scale, zero), scale, zero)


def product(layers: Layers, x: str) -> str:
    weight = layers.weight(layers.rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 4)
    return clipped(layers, scaled(layers, layers.op("MatMul", x, weight)))


def attention(layers: Layers, x: str) -> str:
    return layers.swapped("Mul", layers.op("Softmax<axis = -1>", layers.swapped("Mul", x, layers.number())), x)


def leaky(layers: Layers, x: str) -> str:
    return layers.op(f"LeakyRelu<alpha = {layers.rng.uniform(0.01, 0.3)}>", x)


KINDS: tuple[Layer, ...] = (scaled, clipped, divided, power, quantized, product, attention, leaky)


def near_duplicates(rng: np.random.Generator, rows: str) -> onnx.ModelProto:
    """A model of `rows` rows (a number or a name): three kinds of layers, in turn, three times, with what needs all
    rows in between; the same on two inputs that have nothing to do with each other."""
    layers = Layers(rng)
    kinds = [KINDS[i] for i in rng.choice(len(KINDS), 3, replace=False)]
    axes = layers.weight(np.array([0], np.int64))
    made = [_tower(layers, name, kinds, axes) for name in ("x", "y")]
    inputs, outputs = (", ".join(f"float[{rows}, {WIDTH}] {name}" for name in names) for names in (("x", "y"), made))
    return onnx_model(f"({inputs}) => ({outputs}) {{ {chr(10).join(layers.lines)} }}", layers.weights)


def _tower(layers: Layers, x: str, kinds: Sequence[Layer], axes: str) -> str:
    for _ in range(3):
        for kind in kinds:
            x = kind(layers, x)
        x = layers.op("Sub", x, layers.op("ReduceMax<keepdims = 1>", x, axes))
    return x


def feeds(rng: np.random.Generator, rows: int) -> dict[str, NDArray[np.float32]]:
    """Inputs for such a model."""
    return {name: rng.standard_normal((rows, WIDTH)).astype(np.float32) for name in ("x", "y")}
