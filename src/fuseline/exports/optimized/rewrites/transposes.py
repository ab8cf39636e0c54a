"""A Transpose of a Transpose is one; a Transpose of a constant is a constant."""

from __future__ import annotations

import onnx_ir as ir

from fuseline.exports.optimized.editor import Editor, is_standard, operand, sizes
from fuseline.exports.optimized.permutation import composed, perm_of, permuted

NAME = "merge-transposes"
LIMIT = 1 << 26
"""Elements of a constant that is turned here."""


def apply(editor: Editor) -> bool:
    """Merge; whether there was something to."""
    changed = False
    for node in editor.nodes():
        if is_standard(node, "Transpose") and node.graph is editor.graph:
            changed = merge(editor, node) or changed
    return changed


def merge(editor: Editor, node: ir.Node) -> bool:
    """Merge a Transpose with what makes its operand; whether that could be."""
    perm, source = perm_of(node), operand(node, 0)
    if perm is None or source is None:
        return False
    if editor.is_constant(source):
        return _turned_constant(editor, node, perm, source)
    maker = source.producer()
    if maker is None or maker.graph is not editor.graph or not is_standard(maker, "Transpose"):
        return False
    inner, first = perm_of(maker), operand(maker, 0)
    if inner is None or first is None:
        return False
    both = composed(inner, perm)
    if both == tuple(range(len(both))) and not node.outputs[0].is_graph_output():
        new = first
    else:
        new = editor.new_node("Transpose", [first], node, sizes(node.outputs[0]), {"perm": list(both)})
    editor.replace(node.outputs[0], new, node)
    editor.remove_unused(node)
    editor.summary.did(NAME)
    return True


def _turned_constant(editor: Editor, node: ir.Node, perm: tuple[int, ...], source: ir.Value) -> bool:
    array = editor.constant(source)
    if array is None or array.size > LIMIT or node.outputs[0].is_graph_output() or len(editor.users(source)) > 1:
        return False
    editor.replace(node.outputs[0], editor.new_constant(permuted(array, perm), f"{source.name}/turned"), node)
    editor.remove_unused(node)
    editor.summary.did(NAME)
    return True
