"""Factors and terms per channel behind a convolution with a constant filter go into its filter and bias; a batch
normalisation is one of each.

    Conv(x, w, b) -> * a -> + c      =>      Conv(x, w * a, b * a + c)

Products are computed in f64 and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from fuseline.exports.optimized.editor import Array, Editor, attribute, is_standard, operand, rank, static_sizes

NAME = "scales"
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True)
class Affine:
    """`x * factor + term`, one of each per channel, in f64."""

    factor: Array
    term: Array


def apply(editor: Editor) -> bool:
    """Fold such chains; whether there were some."""
    changed = False
    for node in editor.nodes():
        if node.graph is editor.graph and is_standard(node, "Conv"):
            while _folded(editor, node):
                changed = True
    return changed


def _folded(editor: Editor, node: ir.Node) -> bool:
    """Fold what alone reads the convolution's result; whether it was such."""
    user = editor.only_user(node.outputs[0])
    if user is None:
        return False
    filter_, bias = editor.constant(operand(node, 1)), editor.constant(operand(node, 2))
    if filter_ is None or filter_.dtype not in FLOATS or (operand(node, 2) is not None and bias is None):
        return False
    affine = _affine(editor, user, node.outputs[0], len(filter_))
    if affine is None:
        return False
    _fold(editor, node, filter_, bias, affine)
    editor.replace(user.outputs[0], node.outputs[0], user)
    editor.remove_unused(user)
    editor.summary.did(NAME)
    return True


def _fold(editor: Editor, node: ir.Node, filter_: Array, bias: Array | None, affine: Affine) -> None:
    kind, stem = filter_.dtype, node.inputs[1].name if node.inputs[1] is not None else "filter"
    if (affine.factor != 1).any():
        factor = affine.factor.reshape(-1, *(1,) * (filter_.ndim - 1))
        node.replace_input_with(1, editor.new_constant((filter_ * factor).astype(kind), f"{stem}/scaled"))
    old = np.zeros(len(filter_)) if bias is None else bias.astype(np.float64)
    new = editor.new_constant((old * affine.factor + affine.term).astype(kind), f"{stem}/bias")
    if len(node.inputs) < 3:
        node.resize_inputs(3)
    node.replace_input_with(2, new)


def _affine(editor: Editor, user: ir.Node, value: ir.Value, channels: int) -> Affine | None:
    if is_standard(user, "BatchNormalization") and user.inputs[0] is value:
        return _normalization(editor, user)
    if not is_standard(user, "Add", "Sub", "Mul", "Div") or len(user.inputs) != 2 or editor.opset < 7:
        return None
    first = user.inputs[0] is value
    other = _per_channel(editor, user.inputs[1 if first else 0], channels, rank(value) or 0)
    if other is None or user.inputs[0] is user.inputs[1]:
        return None
    return _of_operator(user.op_type, first, other)


def _of_operator(op_type: str, first: bool, other: Array) -> Affine | None:
    one, zero = np.ones_like(other), np.zeros_like(other)
    if op_type == "Add":
        return Affine(one, other)
    if op_type == "Mul":
        return Affine(other, zero)
    if op_type == "Sub":
        return Affine(one, -other) if first else Affine(-one, other)
    return Affine(1 / other, zero) if first and (other != 0).all() else None


def _per_channel(editor: Editor, value: ir.Value | None, channels: int, known: int) -> Array | None:
    """A constant that differs along the channels only, one number for each."""
    dims = static_sizes(value)
    if dims is None or not known or len(dims) > known:
        return None
    full = (1,) * (known - len(dims)) + dims
    if any(size != 1 for axis, size in enumerate(full) if axis != 1) or full[1] not in (1, channels):
        return None
    array = editor.constant(value)
    return None if array is None else np.broadcast_to(array.reshape(-1).astype(np.float64), channels)


def _normalization(editor: Editor, node: ir.Node) -> Affine | None:
    extra = any(out.uses() or out.is_graph_output() for out in node.outputs[1:])
    if extra or attribute(node, "training_mode", 0) or not attribute(node, "spatial", 1) or editor.opset < 7:
        return None
    found = [editor.constant(value) for value in node.inputs[1:5]]
    numbers = [array.astype(np.float64) for array in found if array is not None]
    if len(numbers) != 4:
        return None
    scale, shift, mean, variance = numbers
    factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
    return Affine(factor, shift - mean * factor) if np.isfinite(factor).all() else None
