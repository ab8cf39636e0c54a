"""Small random ONNX models: contractions, convolutions, norms, data movement and elementwise ops over a few shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx

from tests.graphs.onnx_builder import FLOAT, Builder

Step: TypeAlias = tuple[int, int, int]
"""Which op, and two numbers that choose its operands."""

Shape: TypeAlias = tuple[int, ...]

INPUTS: dict[str, Shape] = {"image": (1, 4, 8, 8), "rows": (6, 16), "more": (6, 16)}
ELEMENT_LIMIT = 4096


class RandomModel:
    """Interprets steps as nodes on the values made so far; a step that fits no value is skipped."""

    def __init__(self, seed: int) -> None:
        self.builder = Builder(seed)
        self.shapes: dict[str, Shape] = dict(INPUTS)

    def build(self, steps: Sequence[Step]) -> onnx.ModelProto:
        """The model; every value that nobody reads is an output."""
        for code, first, second in steps:
            names = list(self.shapes)
            _STEPS[code % len(_STEPS)](self, names[first % len(names)], second)
        made = [name for name in self.shapes if name not in INPUTS]
        outputs = {name: self.shapes[name] for name in made if name not in self.builder.read} or {
            self.add("Neg", ["rows"], INPUTS["rows"]): INPUTS["rows"]
        }
        return self.builder.model({name: (FLOAT, shape) for name, shape in INPUTS.items()}, dict(outputs))

    def add(self, op_type: str, inputs: Sequence[str], shape: Shape, **attributes: Any) -> str:
        """A node with one result of this shape."""
        name = self.builder.node(op_type, *inputs, **attributes)
        if int(np.prod(shape)) <= ELEMENT_LIMIT:
            self.shapes[name] = shape
        return name


def _unary(m: RandomModel, x: str, number: int) -> None:
    m.add(("Relu", "Tanh", "Sigmoid", "Abs", "Neg")[number % 5], [x], m.shapes[x])


def _binary(m: RandomModel, x: str, number: int) -> None:
    like = [name for name, shape in m.shapes.items() if shape == m.shapes[x]]
    m.add(("Add", "Mul", "Sub", "Max")[number % 4], [x, like[number % len(like)]], m.shapes[x])


def _bias(m: RandomModel, x: str, number: int) -> None:
    del number
    m.add("Add", [x, m.builder.weight(m.shapes[x][-1])], m.shapes[x])


def _matmul(m: RandomModel, x: str, number: int) -> None:
    shape, width = m.shapes[x], (8, 16, 24)[number % 3]
    m.add("MatMul", [x, m.builder.weight(shape[-1], width, scale=0.2)], (*shape[:-1], width))


def _convolution(m: RandomModel, x: str, number: int) -> None:
    shape = m.shapes[x]
    if len(shape) != 4 or min(shape[2:]) < 3:
        return
    channels, pads = (shape[1], 8)[number % 2], number % 2
    size = [extent - 2 + 2 * pads for extent in shape[2:]]
    weight = m.builder.weight(channels, shape[1], 3, 3, scale=0.2)
    m.add("Conv", [x, weight], (shape[0], channels, *size), kernel_shape=[3, 3], pads=[pads] * 4)


def _pool(m: RandomModel, x: str, number: int) -> None:
    shape = m.shapes[x]
    if len(shape) == 4 and min(shape[2:]) >= 2:
        half = (shape[0], shape[1], shape[2] // 2, shape[3] // 2)
        m.add(("MaxPool", "AveragePool")[number % 2], [x], half, kernel_shape=[2, 2], strides=[2, 2])


def _softmax(m: RandomModel, x: str, number: int) -> None:
    m.add("Softmax", [x], m.shapes[x], axis=(-1, 0)[number % 2])


def _norm(m: RandomModel, x: str, number: int) -> None:
    del number
    width = m.shapes[x][-1]
    m.add("LayerNormalization", [x, m.builder.weight(width), m.builder.weight(width)], m.shapes[x], axis=-1)


def _transpose(m: RandomModel, x: str, number: int) -> None:
    rank = len(m.shapes[x])
    order = list(np.random.default_rng(number).permutation(rank))
    m.add("Transpose", [x], tuple(m.shapes[x][i] for i in order), perm=[int(i) for i in order])


def _concat(m: RandomModel, x: str, number: int) -> None:
    shape = m.shapes[x]
    like = [name for name, other in m.shapes.items() if other == shape]
    axis = number % len(shape)
    m.add("Concat", [x, like[number % len(like)]], (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]), axis=axis)


def _reshape(m: RandomModel, x: str, number: int) -> None:
    del number
    count = int(np.prod(m.shapes[x]))
    if count % 16 == 0:
        m.add("Reshape", [x, m.builder.constant(np.array([count // 16, 16], np.int64))], (count // 16, 16))


_STEPS: tuple[Callable[[RandomModel, str, int], None], ...] = (
    _unary,
    _binary,
    _bias,
    _matmul,
    _convolution,
    _pool,
    _softmax,
    _norm,
    _transpose,
    _concat,
    _reshape,
)
