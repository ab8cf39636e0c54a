"""Types of what a host operator answers: as onnxruntime or ONNX infer them, or as the model declares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TypeProto

from fuseline.frontends.onnx.foreign_operators import is_foreign, output_types
from fuseline.frontends.onnx.host_models import HostModel, HostNode
from fuseline.frontends.onnx.host_values import HostValue, Value, element_dtype, without_sizes
from fuseline.frontends.onnx.inferred_sizes import corrected, most_of
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.dim import Dim

SHAPE_KEEPING = frozenset({("ai.onnx.ml", "Imputer"), ("ai.onnx.ml", "Normalizer"), ("ai.onnx.ml", "Scaler")})
"""Operators of which onnx.shape_inference does not know that they keep the shape of their input (and, but for Imputer,
give float)."""


_ALWAYS_SCALARS = frozenset({("", "Size"), ("", "SequenceLength"), ("", "OptionalHasElement")})
"""Operators whose result has no dimensions whatever they read."""


def outputs_of(node: HostNode, model: HostModel, program: Program) -> list[Value]:
    """Each output with its type as inferred, else as declared; sizes that only the run tells become new symbols.

    A tensor of numbers of known rank is a `Tensor`, all else a `HostValue`; neither has a `value` yet.
    """
    types = _inferred_by_onnxruntime(node, model) if is_foreign(node.domain) else _inferred(model)
    return [
        _output(node, position, type_, model.sizes, program) for position, type_ in zip(node.asked, types, strict=True)
    ]


def _inferred_by_onnxruntime(node: HostNode, model: HostModel) -> list[TypeProto]:
    """The types of a model's outputs; of sizes that it computes from unknown ones onnxruntime says 0, which is no
    number to rely on."""
    types = output_types(model.proto, node.label)
    for dim in (dim for type_ in types for dim in type_.tensor_type.shape.dim):
        if model.sizes and dim.dim_value == 0:
            dim.ClearField("dim_value")
    return types


def _inferred(model: HostModel) -> list[TypeProto]:
    """The types of a model's outputs, as far as onnx.shape_inference can tell."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model.proto, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        inferred = model.proto
    return [info.type for info in inferred.graph.output]


def _output(node: HostNode, index: int, inferred: TypeProto, sizes: Mapping[str, Dim], program: Program) -> Value:
    declared = node.declared_type(index)
    like = node.inputs[0] if not _is_complete(inferred) and (node.domain, node.op_type) in SHAPE_KEEPING else None
    if isinstance(like, Tensor):
        return Tensor(like.dtype if node.op_type == "Imputer" else np.dtype(np.float32), like.dims)
    type_ = inferred if _is_complete(inferred) or declared is None else declared
    dims = _dims(node, index, inferred, sizes, program) if type_.HasField("tensor_type") else None
    dtype = element_dtype(type_)
    if dtype is not None and dims is not None:
        return Tensor(dtype, dims)
    return HostValue(without_sizes(type_), dims if type_.tensor_type.elem_type else None)


def _is_complete(type_: TypeProto) -> bool:
    kind = type_.WhichOneof("value")
    return kind is not None and (kind != "tensor_type" or type_.tensor_type.elem_type != 0)


def _dims(
    node: HostNode, index: int, inferred: TypeProto, sizes: Mapping[str, Dim], program: Program
) -> tuple[Dim, ...] | None:
    found = _inferred_sizes(inferred, sizes)
    if found == [] and _is_guess(node):
        found = None
    if found is not None and node.domain == "":
        found = corrected(node.op_type, node.attributes, node.inputs[0] if node.inputs else None, found)
    declared = _declared_sizes(node, index)
    if found is None or (
        None in found and declared is not None and None not in declared and len(declared) == len(found)
    ):
        found = declared
    if found is None:
        return None
    stem = str(node.source.outputs[index].name) or node.label
    source = node.inputs[0] if node.inputs else None
    most = most_of(node.op_type, node.attributes, source) if node.domain == "" else None
    return tuple(
        program.fresh_symbol(f"{stem}_{axis}", lo=0, hi=most) if size is None else size
        for axis, size in enumerate(found)
    )


def _is_guess(node: HostNode) -> bool:
    """Whether a result without dimensions may be one of any rank: onnx.shape_inference gives operators such as
    Attention an empty shape where it does not know the rank of what they read."""
    unknown = any(isinstance(value, HostValue) and value.dims is None for value in node.given)
    return unknown and (node.domain, node.op_type) not in _ALWAYS_SCALARS


def _inferred_sizes(type_: TypeProto, sizes: Mapping[str, Dim]) -> Sequence[Dim | None] | None:
    if not type_.tensor_type.HasField("shape"):
        return None
    return [
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else sizes.get(dim.dim_param)
        for dim in type_.tensor_type.shape.dim
    ]


def _declared_sizes(node: HostNode, index: int) -> list[int | None] | None:
    """The sizes that the model itself declares for an output; of one that no node reads only the rank counts, as
    runtimes let such a declaration be wrong."""
    value = node.source.outputs[index]
    shape = value.shape
    if shape is None:
        return _declared_by_body(node, index)
    if not value.uses():
        return [_declared_size(-1) for _ in shape]
    return [_declared_size(size) for size in shape]


def _declared_size(size: int | ir.SymbolicDim) -> int | None:
    """A size that a model declares; exporters write -1 for any."""
    return size if isinstance(size, int) and size >= 0 else None


def _declared_by_body(node: HostNode, index: int) -> list[int | None] | None:
    """The sizes that a loop's body declares: of a state, or of one step of what the loop collects."""
    if node.op_type != "Loop":
        return None
    shape = node.attributes["body"].as_graph().outputs[index + 1].shape
    if shape is None:
        return None
    sizes = [_declared_size(size) for size in shape]
    return sizes if index < len(node.inputs) - 2 else [None, *sizes]
