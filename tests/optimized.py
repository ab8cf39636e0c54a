"""What must hold of a model that `fuseline.optimize` answers: ONNX takes it, onnxruntime and our own interpreter
compute the same from it, its borders are those of the model, and optimizing it again changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

import fuseline
from fuseline.exports.optimized.summary import Summary
from tests.draws import RNG

RELATIVE = 1e-5
"""What f32 results may differ by, of the largest magnitude."""


@dataclass(frozen=True)
class Checked:
    """The rewritten model, and what was done."""

    model: onnx.ModelProto
    summary: Summary

    @property
    def operators(self) -> Counter[str]:
        """The nodes of the main graph by operator."""
        return Counter(node.op_type for node in self.model.graph.node)

    @property
    def reasons(self) -> list[str]:
        """Why places were left as they were."""
        return [refusal.reason for refusal in self.summary.refused]


def checked(model: onnx.ModelProto, feeds: Mapping[str, Any] | None = None, *, interpreted: bool = True) -> Checked:
    """Optimize `model` and try all of it, on fresh random feeds where none are given; AssertionError where something
    does not hold. `interpreted`: our interpreter runs both models, too."""
    before = model.SerializeToString()
    optimized = fuseline.optimize(model)
    assert model.SerializeToString() == before
    proto = optimized.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    assert [names(values) for values in borders(proto)] == [names(values) for values in borders(model)]
    given = dict(feeds) if feeds is not None else drawn(model)
    expected = outputs(model, given)
    compare(expected, outputs(proto, given))
    if interpreted:
        compare(expected, interpreter_outputs(proto, given))
    again = fuseline.optimize(proto)
    assert not again.summary.done, again.summary.done
    assert again.to_proto().SerializeToString() == proto.SerializeToString()
    return Checked(proto, optimized.summary)


def borders(model: onnx.ModelProto) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    """The inputs that a caller feeds, and the outputs."""
    held = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in held], list(model.graph.output)


def names(values: list[onnx.ValueInfoProto]) -> list[tuple[str, int]]:
    """Names and element types."""
    return [(value.name, value.type.tensor_type.elem_type) for value in values]


def drawn(model: onnx.ModelProto, size: int = 3) -> dict[str, Any]:
    """Random feeds; symbols are `size`."""
    feeds: dict[str, Any] = {}
    for value in borders(model)[0]:
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        dims = [dim.dim_value if dim.HasField("dim_value") else size for dim in value.type.tensor_type.shape.dim]
        numbers = (
            RNG.standard_normal(dims) if kind.kind == "f" else RNG.integers(0, 2 if kind.kind == "b" else 120, dims)
        )
        feeds[value.name] = numbers.astype(kind)
    return feeds


def outputs(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """What onnxruntime computes, its own rewriting turned off."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session: Any = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(feeds))


def interpreter_outputs(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """What our interpreter computes."""
    found = fuseline.compile(model, target="interpreter").run(feeds)
    return [found[value.name] for value in model.graph.output]


def compare(expected: list[Any], found: list[Any]) -> None:
    """Assert equal results: floats within `RELATIVE` of the largest magnitude, all else to the bit."""
    for one, other in zip(expected, found, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        if one.dtype.kind == "f":
            scale = max(float(np.abs(one).max(initial=0)), 1e-30)
            assert float(np.abs(one - other).max(initial=0)) <= RELATIVE * scale
        else:
            np.testing.assert_array_equal(one, other)
