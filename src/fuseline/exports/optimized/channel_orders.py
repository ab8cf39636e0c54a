"""Orders of channels that filters take up: what reads the channels in another order has its filter reordered instead.

    y[c] = x[order[c]] -> depthwise Conv (w) -> Relu -> Conv (v)   =>   x -> depthwise Conv (w') -> Relu -> Conv (v')

A depthwise convolution and an elementwise operator hand the order on; a dense convolution ends it: w'[order[c]] = w[c].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from fuseline.exports.optimized.editor import Array, Editor, attribute, is_standard, operand, sizes
from fuseline.exports.optimized.layout_rules import UNARY

_HANDED_ON = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")


def is_permutation(order: Array, size: int) -> bool:
    """Whether an order is one of all channels."""
    return len(order) == size and bool(np.array_equal(np.sort(order), np.arange(size)))


def is_safe_gather(order: Array, size: int) -> bool:
    """Whether a Gather of this order means the same everywhere. OpenVINO (2026.4) folds a Gather of all channels into
    the filter behind it the wrong way round, which only an order that is its own inverse survives."""
    return not is_permutation(order, size) or bool(np.array_equal(order[order], np.arange(size)))


def reorder_readers(editor: Editor, value: ir.Value, order: Array) -> bool:
    """Let all that reads `value`, whose channels (axis 1) stand in `order`, take them as they stood before; whether
    that could be. The caller replaces the value."""
    found: dict[ir.Node, bool] = {}
    if not _takes(editor, value, found):
        return False
    for node, ends in found.items():
        if is_standard(node, "Conv"):
            _reorder(editor, node, order, 1 if ends else 0)
    return True


def reorder_makers(editor: Editor, value: ir.Value, order: Array) -> bool:
    """Let a dense convolution make `value` with its channels in `order`, where nothing else reads what is on the way;
    whether that could be."""
    chain: list[ir.Node] = []
    node = _only_maker(editor, value)
    while node is not None:
        ends = _ends(editor, node, node.inputs[0]) if node.inputs[0] is not None else None
        if ends is None:
            return False
        chain.append(node)
        if ends:
            for each in chain:
                if is_standard(each, "Conv"):
                    _reorder(editor, each, np.argsort(order), 0)
            return True
        node = _only_maker(editor, node.inputs[0]) if node.inputs[0] is not None else None
    return False


def hand_on(editor: Editor, node: ir.Node, value: ir.Value, order: Array) -> bool:
    """Let a depthwise convolution that reads `value`, channels in `order`, take them as they stood before: its results
    stand as they do then. Whether it is one."""
    if not is_standard(node, "Conv") or _ends(editor, node, value) is not False:
        return False
    _reorder(editor, node, order, 0)
    return True


def _only_maker(editor: Editor, value: ir.Value) -> ir.Node | None:
    maker = value.producer()
    return maker if maker is not None and editor.only_user(value) is not None else None


def ends_in_groups(editor: Editor, value: ir.Value) -> bool:
    """Whether an order of channels meets nothing but grouped convolutions, whose filters cannot take it up: there
    OpenVINO leaves a Gather alone."""
    users = editor.users(value)
    if value.is_graph_output() or not users:
        return False
    return all(
        _is_grouped(node) or (_ends(editor, node, value) is False and ends_in_groups(editor, node.outputs[0]))
        for node in users
    )


def _is_grouped(node: ir.Node) -> bool:
    filter_ = sizes(node.inputs[1]) if is_standard(node, "Conv") else None
    return filter_ is not None and attribute(node, "group", 1) > 1 and filter_[1] != 1


def _takes(editor: Editor, value: ir.Value, found: dict[ir.Node, bool]) -> bool:
    """Whether all that reads `value` takes an order up or hands it on; `found` gets these, True where it ends."""
    users = editor.users(value)
    if value.is_graph_output() or not users:
        return False
    for node in users:
        ends = _ends(editor, node, value)
        if ends is None or (not ends and not _takes(editor, node.outputs[0], found)):
            return False
        found[node] = ends
    return True


def _ends(editor: Editor, node: ir.Node, value: ir.Value) -> bool | None:
    """True for a dense convolution, False for what hands the order on, None for all else."""
    if node.graph is not editor.graph or node.inputs[0] is not value or value in node.inputs[1:]:
        return None
    if is_standard(node, "Conv") and all(v is None or editor.is_constant(v) for v in node.inputs[1:]):
        group, filter_ = attribute(node, "group", 1), sizes(node.inputs[1]) or (None, None)
        return True if group == 1 else False if filter_[:2] == (group, 1) else None
    if is_standard(node, *_HANDED_ON):
        return False if len(node.outputs) == 1 else None
    single = all(v is None or editor.is_constant(v) for v in node.inputs[1:])
    return False if is_standard(node, *UNARY) and single and _scalars(node.inputs[1:]) else None


def _scalars(values: Sequence[ir.Value | None]) -> bool:
    return all(all(size == 1 for size in sizes(value) or ()) for value in values if value is not None)


def _reorder(editor: Editor, node: ir.Node, order: Array, axis: int) -> None:
    """A filter along its input channels (axis 1); or filters and biases along those that they make (axis 0)."""
    for index in (1,) if axis else (1, 2):
        value = operand(node, index)
        array = editor.constant(value)
        if value is not None and array is not None:
            turned = np.take(array, np.argsort(order), axis)
            node.replace_input_with(index, editor.new_constant(turned, f"{value.name}/reordered"))
