"""A Sum of two tensors is an Add, which runtimes know how to fuse into a convolution."""

from __future__ import annotations

import onnx_ir as ir

from fuseline.exports.optimized.editor import Editor, is_standard, sizes

NAME = "sums"


def apply(editor: Editor) -> bool:
    """Rewrite such Sums; whether there were some."""
    found = [node for node in editor.nodes() if is_standard(node, "Sum") and _is_pair(node)]
    for node in found:
        new = editor.new_node("Add", node.inputs, node, sizes(node.outputs[0]))
        editor.replace(node.outputs[0], new, node)
        editor.remove_unused(node)
        editor.summary.did(NAME)
    return bool(found)


def _is_pair(node: ir.Node) -> bool:
    return len(node.inputs) == 2 and None not in node.inputs
