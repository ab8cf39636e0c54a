"""Max and Min with scalars are a Clip; a lone Max with zero is a Relu."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from fuseline.exports.optimized.editor import Array, Editor, is_standard, sizes

NAME = "clips"


def apply(editor: Editor) -> bool:
    """Rewrite such nodes; whether there were some."""
    changed = False
    for node in editor.nodes():
        if node.graph is editor.graph and is_standard(node, "Max", "Min") and editor.opset >= 12:
            changed = _pair(editor, node) or changed
    for node in editor.nodes():
        if node.graph is editor.graph and is_standard(node, "Max") and editor.opset >= 7:
            changed = _relu(editor, node) or changed
    return changed


def _bound(editor: Editor, node: ir.Node) -> tuple[ir.Value, Array] | None:
    """What a Max or Min bounds, and the bound, a single number."""
    if len(node.inputs) != 2:
        return None
    for index in (0, 1):
        value, bound = node.inputs[index], editor.constant(node.inputs[1 - index])
        if value is None or bound is None or editor.is_constant(value):
            continue
        if bound.size == 1 and bound.ndim <= len(sizes(value) or ()) and value.dtype == ir.DataType.FLOAT:
            return value, bound.reshape(())
    return None


def _pair(editor: Editor, node: ir.Node) -> bool:
    """Min(Max(x, low), high), or Max(Min(x, high), low), with low not above high."""
    outer = _bound(editor, node)
    maker = outer[0].producer() if outer is not None else None
    if outer is None or maker is None or editor.only_user(outer[0]) is not node:
        return False
    if not is_standard(maker, "Max" if node.op_type == "Min" else "Min"):
        return False
    inner = _bound(editor, maker)
    if inner is None:
        return False
    low, high = (inner[1], outer[1]) if node.op_type == "Min" else (outer[1], inner[1])
    if not low <= high:
        editor.summary.refuse(NAME, node.name, "the lower bound is above the upper one")
        return False
    bounds = [editor.new_constant(np.asarray(bound), f"{node.name}/bound") for bound in (low, high)]
    editor.replace(node.outputs[0], editor.new_node("Clip", [inner[0], *bounds], node, sizes(node.outputs[0])), node)
    editor.remove_unused(node)
    editor.summary.did(NAME)
    return True


def _relu(editor: Editor, node: ir.Node) -> bool:
    found = _bound(editor, node)
    if found is None or found[1] != 0:
        return False
    editor.replace(node.outputs[0], editor.new_node("Relu", [found[0]], node, sizes(node.outputs[0])), node)
    editor.remove_unused(node)
    editor.summary.did(NAME)
    return True
