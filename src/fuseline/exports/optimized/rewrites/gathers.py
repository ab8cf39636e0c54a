"""Sections of a reordered axis are taken from where it comes from.

Gather -> Split (or Slices)      =>      a Gather, or a Slice, for each section
Gather -> Gather                 =>      one Gather
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from fuseline.exports.optimized.channel_orders import is_safe_gather
from fuseline.exports.optimized.editor import Array, Editor, attribute, is_standard, operand, sizes

NAME = "gathers"


def apply(editor: Editor) -> bool:
    """Rewrite such nodes; whether there were some."""
    changed = False
    for node in editor.nodes():
        if node.graph is editor.graph and is_standard(node, "Gather") and editor.opset >= 13:
            order = _order(editor, node)
            users = [] if order is None else editor.users(node.outputs[0])
            if order is not None and users and all(_can_take(editor, user, node) for user in users):
                for user in users:
                    _rewrite(editor, user, node, order)
                editor.summary.did(NAME)
                changed = True
    return changed


def _order(editor: Editor, node: ir.Node) -> Array | None:
    """The constant places of a Gather along one axis, none of them negative."""
    order = editor.constant(operand(node, 1))
    known = order is not None and order.ndim == 1 and (order >= 0).all() and not node.outputs[0].is_graph_output()
    return order if known else None


def _axis(node: ir.Node, dims: int, default: int = 0) -> int:
    return int(attribute(node, "axis", default)) % dims


def _can_take(editor: Editor, user: ir.Node, node: ir.Node) -> bool:
    """Whether `user` takes sections of a Gather, none of which is a Gather that is misread (`is_safe_gather`)."""
    dims, source = sizes(node.outputs[0]), sizes(node.inputs[0])
    if dims is None or source is None:
        return False
    axis, order = _axis(node, len(dims)), _order(editor, node)
    if order is None or not takes_sections(editor, user, node.outputs[0], axis):
        return False
    size = source[axis]
    sections = _sections(editor, user, order, axis)
    return all(isinstance(size, int) and (_in_a_row(section) or is_safe_gather(section, size)) for section in sections)


def takes_sections(editor: Editor, user: ir.Node, value: ir.Value, axis: int) -> bool:
    """Whether `user` takes known sections of `value` along `axis`."""
    dims = sizes(value)
    if dims is None or user.graph is not editor.graph or user.inputs[0] is not value:
        return False
    if is_standard(user, "Gather"):
        return _order(editor, user) is not None and _axis(user, len(dims)) == axis
    if is_standard(user, "Split"):
        known = all(isinstance((sizes(out) or {axis: None})[axis], int) for out in user.outputs)
        return known and _axis(user, len(dims)) == axis
    return is_standard(user, "Slice") and _slices(editor, user, axis, len(dims))


def _slices(editor: Editor, user: ir.Node, axis: int, rank: int) -> bool:
    """Whether a Slice takes a known section along this axis alone, forwards."""
    if editor.numbers(user, 3, "axes") not in ([axis], [axis - rank]):
        return False
    steps = [1] if operand(user, 4) is None else editor.numbers(user, 4, "steps")
    known = None not in (editor.numbers(user, 1, "starts"), editor.numbers(user, 2, "ends"))
    return known and steps is not None and steps[0] > 0


def _rewrite(editor: Editor, user: ir.Node, node: ir.Node, order: Array) -> None:
    source, axis = node.inputs[0], _axis(node, len(sizes(node.outputs[0]) or ()))
    assert source is not None
    for out, section in zip(user.outputs, _sections(editor, user, order, axis), strict=True):
        new = _taken(editor, user, source, section, axis, out)
        editor.replace(out, new, user)
    editor.remove_unused(user)


def _sections(editor: Editor, user: ir.Node, order: Array, axis: int) -> list[Array]:
    if is_standard(user, "Gather"):
        places = editor.constant(user.inputs[1])
        assert places is not None
        return [order[places]]
    if is_standard(user, "Slice"):
        start, end = (editor.numbers(user, k, "")[0] for k in (1, 2))  # pyright: ignore[reportOptionalSubscript]
        step = (editor.numbers(user, 4, "steps") or [1])[0]
        return [order[start:end:step]]
    ends = np.cumsum([int((sizes(out) or ())[axis] or 0) for out in user.outputs])
    return list(np.split(order, ends[:-1]))


def _in_a_row(section: Array) -> bool:
    return bool(len(section)) and bool(np.array_equal(section, np.arange(section[0], section[0] + len(section))))


def _taken(editor: Editor, at: ir.Node, source: ir.Value, section: Array, axis: int, out: ir.Value) -> ir.Value:
    shape = sizes(out)
    if _in_a_row(section):
        numbers = [np.array([number], np.int64) for number in (section[0], section[0] + len(section), axis)]
        return editor.new_node(
            "Slice", [source, *(editor.new_constant(n, f"{at.name}/part") for n in numbers)], at, shape
        )
    order = editor.new_constant(section, f"{at.name}/order")
    return editor.new_node("Gather", [source, order], at, shape, {"axis": axis})
