"""Nodes that change nothing: Identity, Dropout as inference has it, a Transpose that moves nothing, a Reshape, Expand
or Cast to what is there already, a Pad by nothing, a Concat of one tensor.
"""

from __future__ import annotations

import onnx_ir as ir

from fuseline.exports.optimized.editor import Editor, attribute, is_standard, operand, sizes, static_sizes

NAME = "identities"


def apply(editor: Editor) -> bool:
    """Take such nodes out; whether there were some."""
    changed = False
    for node in editor.nodes():
        source = operand(node, 0)
        if source is not None and len(node.inputs) and _same(editor, node, source):
            changed = _removed(editor, node, source) or changed
    return changed


def _removed(editor: Editor, node: ir.Node, source: ir.Value) -> bool:
    """Graph outputs that are inputs or constants need the Identity that makes them."""
    out = node.outputs[0]
    if out.is_graph_output() and (source.producer() is None or source.is_graph_output()):
        return False
    editor.replace(out, source, node)
    editor.remove_unused(node)
    editor.summary.did(NAME)
    return True


def _same(editor: Editor, node: ir.Node, source: ir.Value) -> bool:
    if is_standard(node, "Identity"):
        return source.type is None or isinstance(source.type, ir.TensorType)
    if is_standard(node, "Dropout"):
        return not any(out.uses() or out.is_graph_output() for out in node.outputs[1:]) and _inference(editor, node)
    if is_standard(node, "Transpose"):
        perm = attribute(node, "perm", None)
        return perm is not None and list(perm) == list(range(len(perm)))
    if is_standard(node, "Concat"):
        return len(node.inputs) == 1
    if is_standard(node, "Cast"):
        return source.dtype is not None and source.dtype == attribute(node, "to", None)
    if is_standard(node, "Pad"):
        pads = editor.numbers(node, 1, "pads")
        return pads is not None and not any(pads)
    if is_standard(node, "Reshape", "Expand"):
        found = static_sizes(source)
        return found is not None and found == sizes(node.outputs[0]) and 0 not in found
    return False


def _inference(editor: Editor, node: ir.Node) -> bool:
    if editor.opset < 7:
        return False
    training = operand(node, 2)
    return training is None or (editor.is_constant(training) and not editor.constant(training))
