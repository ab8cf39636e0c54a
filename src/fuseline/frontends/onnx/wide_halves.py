"""Operators on 16-bit floats, computed in f32 and rounded once: what lies between an operator's inputs and its outputs
is no value of the model, and neither underflows nor overflows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from fuseline.frontends.onnx.dtypes import from_onnx, holds, is_half
from fuseline.frontends.onnx.emission import FLOAT32, cast, reshape
from fuseline.frontends.onnx.host_values import Value
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, view

Outputs = Sequence[Value | None]

TYPING = frozenset({"dtype", "output_dtype", "stash_type", "to"})
"""Attributes that say the type of an output."""


def with_wide_inputs(node: OnnxNode) -> OnnxNode:
    """The node with its 16-bit inputs as f32."""
    return replace(node, inputs=[_widened(node, t) for t in node.inputs]) if _has_halves(node) else node


def rounded(node: OnnxNode, domain: str, outputs: Outputs) -> Outputs:
    """What was computed with wide inputs, rounded where the standard gives an output a 16-bit type.

    Raises:
        NoNativeLowering: such an output comes from the host, which says no type that could be rounded.
    """
    if not _has_halves(node):
        return outputs
    return [_narrowed(node, value, _declared(node, domain, position)) for position, value in enumerate(outputs)]


def as_sequence(out: Value | Outputs) -> Outputs:
    """The outputs of a lowering, which answers a single one as it is."""
    return out if isinstance(out, Sequence) else [out]


def _has_halves(node: OnnxNode) -> bool:
    return any(t is not None and is_half(t.dtype) for t in node.inputs)


def _widened(node: OnnxNode, t: Tensor | None) -> Tensor | None:
    """`t` in f32 where it is a half: numbers, views and reshapes stay such."""
    if t is None or not is_half(t.dtype):
        return t
    if t.is_constant:
        return known(t.numbers().astype(np.float32), name=t.name)
    source = t.base if t.base is not None else t.reshaped
    wide = None if source is None else _widened(node, source)
    if wide is None:
        return cast(node, t, FLOAT32)
    return view(wide, t.dims, t.axes) if t.base is not None else reshape(node, wide, t.dims)


def _declared(node: OnnxNode, domain: str, position: int) -> np.dtype[Any] | None:
    """The 16-bit type of an output: that of the inputs with the same type variable, of the first one of floats where
    the standard has no such operator (any more, or ever), what the model declares where no input was given that says
    it; None for any other type."""
    if not onnx.defs.has(node.op_type, node.opset, domain):
        floats = [t.dtype for t in node.inputs if t is not None and (is_half(t.dtype) or t.dtype.kind == "f")]
        return floats[0] if floats and is_half(floats[0]) else None
    schema: Any = onnx.defs.get_schema(node.op_type, node.opset, domain)  # onnx's stub lacks a schema's fields
    variable = schema.outputs[min(position, len(schema.outputs) - 1)].type_str
    last = len(schema.inputs) - 1
    alike = [
        t.dtype for i, t in enumerate(node.inputs) if t is not None and schema.inputs[min(i, last)].type_str == variable
    ]
    if not alike and not schema.attributes.keys() & TYPING:
        outputs = node.source.outputs  # those at the end may be left out
        return _half_of(outputs[position]) if position < len(outputs) else None
    return alike[0] if alike and is_half(alike[0]) else None


def _half_of(declared: ir.Value) -> np.dtype[Any] | None:
    known_type = declared.dtype is not None and holds(declared.dtype)
    dtype = from_onnx(declared.dtype) if known_type and declared.dtype is not None else None
    return dtype if dtype is not None and is_half(dtype) else None


def _narrowed(node: OnnxNode, value: Value | None, dtype: np.dtype[Any] | None) -> Value | None:
    if value is None or dtype is None:
        return value
    if not isinstance(value, Tensor):
        raise NoNativeLowering("runtime-value", f"{node.op_type} of 16-bit floats needs a value of the host's")
    return cast(node, value, dtype) if value.dtype == FLOAT32 else value
