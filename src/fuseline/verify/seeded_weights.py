"""Replaces constant placeholder weights (`ConstantOfShape` of a known shape) with seeded random ones, so that outputs
depend on inputs.

The topologies that ship inside the onnx wheel (`backend/test/data/light`) have every weight at 0.02: whatever goes in,
the same comes out.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import onnx
from onnx import numpy_helper

Weights = np.ndarray
Maker = Callable[[np.random.Generator, tuple[int, ...]], Weights]


def with_seeded_weights(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """A copy of `model` whose constant weights are initializers, scaled by fan-in so that magnitudes neither grow nor
    vanish."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    out.ir_version = max(out.ir_version, 4)  # the first in which an initializer need not be an input
    graph = out.graph
    shapes = {
        tensor.name: tuple(int(size) for size in numpy_helper.to_array(tensor))
        for tensor in graph.initializer
        if tensor.data_type == 7
    }
    placeholders = [node for node in graph.node if node.op_type == "ConstantOfShape" and node.input[0] in shapes]
    makers = _makers(graph)
    for node in placeholders:
        name = node.output[0]
        rng = np.random.default_rng((seed, zlib.crc32(name.encode())))
        values = makers.get(name, _bias)(rng, shapes[node.input[0]]).astype(np.float32)
        graph.node.remove(node)
        graph.initializer.append(numpy_helper.from_array(values, name))
    _drop_unused(graph, {node.input[0] for node in placeholders})
    return out


def _drop_unused(graph: onnx.GraphProto, names: set[str]) -> None:
    unused = names - {name for node in graph.node for name in node.input}
    for values in (graph.initializer, graph.input):
        for value in [value for value in values if value.name in unused]:
            values.remove(value)  # pyright: ignore[reportArgumentType]


def _makers(graph: onnx.GraphProto) -> dict[str, Maker]:
    """How to fill each tensor, told by the operator and operand position that reads it, through Unsqueeze."""
    consumers = {name: node for node in reversed(graph.node) for name in node.input}
    makers: dict[str, Maker] = {}
    for node in reversed(graph.node):
        if node.op_type == "Unsqueeze" and node.output[0] in makers:
            makers[node.input[0]] = makers[node.output[0]]
        makers |= {
            node.input[i]: maker
            for i, maker in _operand_makers(node, _ends_in(node, consumers)).items()
            if i < len(node.input)
        }
    return makers


def _ends_in(node: onnx.NodeProto, consumers: Mapping[str, onnx.NodeProto]) -> str:
    """The operator that a node's result meets after normalization: `Relu`, `Sum` or whatever else."""
    reader = consumers.get(node.output[0])
    while reader is not None and reader.op_type in ("BatchNormalization", "Mul", "Add"):
        reader = consumers.get(reader.output[0])
    return reader.op_type if reader is not None else ""


def _operand_makers(node: onnx.NodeProto, end: str) -> dict[int, Maker]:
    if node.op_type in ("Conv", "ConvTranspose"):
        return {1: partial(_filters, variance=2.0 if end == "Relu" else 1.0)}
    if node.op_type == "Gemm":
        flags: Mapping[str, int] = {attribute.name: attribute.i for attribute in node.attribute}
        return {1: partial(_matrix, axis=1 if flags.get("transB") else 0)}
    # Below one before a residual sum, which adds up the variance of what it joins.
    scale = partial(_around, middle=0.6 if end == "Sum" else 1.0)
    rows: dict[str, dict[int, Maker]] = {
        "MatMul": {1: _matrix},
        "BatchNormalization": {1: scale, 4: partial(_around, middle=1.0)},
        "Mul": {0: scale, 1: scale},
    }
    return rows.get(node.op_type, {})


def _filters(rng: np.random.Generator, shape: tuple[int, ...], variance: float) -> Weights:
    return rng.standard_normal(shape) * np.sqrt(variance / np.prod(shape[1:]))


def _matrix(rng: np.random.Generator, shape: tuple[int, ...], axis: int = 0) -> Weights:
    return rng.standard_normal(shape) / np.sqrt(shape[axis])


def _around(rng: np.random.Generator, shape: tuple[int, ...], middle: float) -> Weights:
    return rng.uniform(0.9 * middle, 1.1 * middle, shape)


def _bias(rng: np.random.Generator, shape: tuple[int, ...]) -> Weights:
    return 0.02 * rng.standard_normal(shape)
