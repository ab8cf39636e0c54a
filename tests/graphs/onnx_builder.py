"""ONNX models whose nodes a test computes: collected one by one, as lines of ONNX's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from tests.graphs.onnx_text import Shape, call, declared, onnx_model

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


class Builder:
    """Collects nodes and weights; `node` answers the name of its (first) output."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[str] = []
        self.read: set[str] = set()
        self.weights: dict[str, npt.NDArray[Any]] = {}

    def node(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        """A node called `<OpType>_<index>`."""
        name = f"{op_type}_{len(self.nodes)}"
        results = [f"{name}_out{i}" for i in range(outputs)]
        self.nodes.append(call(op_type, *inputs, results=results, name=name, **attributes))
        self.read |= set(inputs)
        return results[0]

    def weight(self, *shape: int, scale: float = 1.0) -> str:
        """A normal f32 initializer."""
        return self.constant((scale * self.rng.standard_normal(shape)).astype(np.float32))

    def constant(self, values: npt.ArrayLike) -> str:
        """An initializer with these values."""
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(values)
        return name

    def model(
        self,
        inputs: Mapping[str, tuple[int, Shape]],
        outputs: Mapping[str, Shape] | Sequence[str],
        output_type: int = FLOAT,
    ) -> onnx.ModelProto:
        """The model, checked where its outputs declare their sizes; those that are names alone have no type."""
        given = ", ".join(_typed(name, kind, shape) for name, (kind, shape) in inputs.items())
        typed = isinstance(outputs, Mapping)
        results = [_typed(name, output_type, shape) for name, shape in outputs.items()] if typed else outputs
        model = onnx_model(f"({given}) => ({', '.join(results)}) {{ {chr(10).join(self.nodes)} }}", self.weights)
        if typed:
            onnx.checker.check_model(model)
        return model


def _typed(name: str, kind: int, shape: Shape) -> str:
    return declared({name: shape}, element=onnx.TensorProto.DataType.Name(kind).lower())
