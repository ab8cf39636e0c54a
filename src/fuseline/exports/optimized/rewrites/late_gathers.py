"""A Gather of all channels is taken up by the convolution that makes them, or stands behind the depthwise convolution
that reads them, where that makes the image smaller.

    Gather (60 x 56 x 56) -> depthwise Conv, stride 2      =>      depthwise Conv, stride 2 -> Gather (60 x 28 x 28)
"""

from __future__ import annotations

import onnx_ir as ir

from fuseline.exports.optimized.channel_orders import ends_in_groups, hand_on, is_permutation, reorder_makers
from fuseline.exports.optimized.editor import Array, Editor, attribute, is_standard, reconnect, sizes

NAME = "late-gathers"


def apply(editor: Editor) -> bool:
    """Move such Gathers; whether there were some."""
    changed = False
    for node in editor.nodes():
        if node.graph is editor.graph and is_standard(node, "Gather") and attribute(node, "axis", 0) == 1:
            changed = _moved(editor, node) or changed
    return changed


def _moved(editor: Editor, node: ir.Node) -> bool:
    source, order = node.inputs[0], editor.constant(node.inputs[1])
    dims = sizes(source)
    if source is None or dims is None or not isinstance(dims[1], int) or order is None or order.ndim != 1:
        return False
    if not is_permutation(order, dims[1]):
        return False
    if not node.outputs[0].is_graph_output() and reorder_makers(editor, source, order):
        editor.replace(node.outputs[0], source, node)
        editor.remove_unused(node)
        editor.summary.did(NAME)
        return True
    reader = editor.only_user(node.outputs[0])
    return reader is not None and _behind(editor, node, reader, source, order)


def _behind(editor: Editor, node: ir.Node, reader: ir.Node, source: ir.Value, order: Array) -> bool:
    smaller = is_standard(reader, "Conv") and any(step > 1 for step in attribute(reader, "strides", ()))
    if not smaller or not ends_in_groups(editor, node.outputs[0]):
        return False
    if not hand_on(editor, reader, node.outputs[0], order):
        return False
    reader.replace_input_with(0, source)
    out = reader.outputs[0]
    users = editor.users(out)
    late = editor.new_behind("Gather", out, node, sizes(out), {"axis": 1})
    made = late.producer()
    assert made is not None
    made.resize_inputs(2)
    made.replace_input_with(1, editor.new_constant(order, f"{node.name}/order"))
    reconnect(users, out, late)
    editor.remove_unused(node)
    editor.summary.did(NAME)
    return True
