"""Channels between two dense convolutions that a depthwise one works on become a multiple of `LANES`.

    Conv (58) -> Relu -> depthwise Conv (58) -> Conv      =>      Conv (60) -> Relu -> depthwise Conv (60) -> Conv

The new channels are zero, and the last convolution reads them with zeros. Runtimes that keep channels in blocks need
whole groups of `LANES` channels to do so; onnxruntime runs a depthwise convolution of 58 channels at an eighth of the
speed of one of 60. At most one channel in `RARELY` is added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from fuseline.exports.optimized.editor import Editor, attribute, is_standard, operand, sizes

NAME = "aligned-channels"
LANES = 4
"""The channels that onnxruntime asks for, whatever the width of the machine's vectors."""
RARELY = 8

_FINITE_AT_ZERO = (
    *("Relu", "LeakyRelu", "Clip", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Elu", "Selu", "Celu", "Softplus"),
    *("Mish", "Gelu", "Swish", "Identity", "Neg", "Abs"),
)
"""Operators that a channel of zeros may go through."""


@dataclass(frozen=True)
class Span:
    """From the convolution that makes the channels to the one that reads them, and what is between."""

    first: ir.Node
    between: list[ir.Node]
    last: ir.Node


def apply(editor: Editor) -> bool:
    """Add channels where that helps; whether somewhere."""
    changed = False
    for node in editor.nodes():
        if node.graph is editor.graph and _is_depthwise(editor, node):
            channels = int(attribute(node, "group", 1))
            more = -channels % LANES
            span = _span(editor, node) if more and more * RARELY <= channels else None
            if span is not None:
                _widen(editor, span, channels, channels + more)
                changed = True
    return changed


def _filter_sizes(editor: Editor, node: ir.Node) -> tuple[int, ...] | None:
    """The sizes of a convolution's constant filter, where its bias is constant, too."""
    bias = operand(node, 2)
    if not is_standard(node, "Conv") or not editor.is_constant(operand(node, 1)):
        return None
    if bias is not None and not editor.is_constant(bias):
        return None
    filter_ = editor.constant(node.inputs[1])
    return None if filter_ is None else filter_.shape


def _is_depthwise(editor: Editor, node: ir.Node) -> bool:
    found = _filter_sizes(editor, node)
    return found is not None and found[1] == 1 and found[0] == attribute(node, "group", 1) > 1


def _is_dense(editor: Editor, node: ir.Node) -> bool:
    return _filter_sizes(editor, node) is not None and attribute(node, "group", 1) == 1


def _passes(editor: Editor, node: ir.Node) -> bool:
    return is_standard(node, *_FINITE_AT_ZERO) or _is_depthwise(editor, node)


def _span(editor: Editor, node: ir.Node) -> Span | None:
    """The span around a depthwise convolution, where nothing else reads what is between."""
    between, first, last = [node], _maker(editor, node), editor.only_user(node.outputs[0])
    while first is not None and _passes(editor, first):
        between.insert(0, first)
        first = _maker(editor, first)
    while last is not None and _passes(editor, last):
        between.append(last)
        last = editor.only_user(last.outputs[0])
    if first is None or last is None or not _is_dense(editor, first) or not _is_dense(editor, last):
        return None
    return Span(first, between, last) if last.inputs[0] is between[-1].outputs[0] else None


def _maker(editor: Editor, node: ir.Node) -> ir.Node | None:
    value = node.inputs[0]
    maker = value.producer() if value is not None else None
    return maker if maker is not None and value is not None and editor.only_user(value) is node else None


def _widen(editor: Editor, span: Span, old: int, new: int) -> None:
    for node in (span.first, *span.between):
        if is_standard(node, "Conv"):
            for index in range(1, len(node.inputs)):
                _pad(editor, node, index, 0, new - old)
        if is_standard(node, "Conv") and node is not span.first:
            node.attributes["group"] = ir.AttrInt64("group", new)
        dims = sizes(node.outputs[0])
        node.outputs[0].shape = None if dims is None else ir.Shape([dims[0], new, *dims[2:]])
    _pad(editor, span.last, 1, 1, new - old)
    editor.summary.did(NAME)


def _pad(editor: Editor, node: ir.Node, index: int, axis: int, more: int) -> None:
    value = operand(node, index)
    array = editor.constant(value)
    if value is not None and array is not None:
        amounts = [(0, more if each == axis else 0) for each in range(array.ndim)]
        node.replace_input_with(index, editor.new_constant(np.pad(array, amounts), f"{value.name}/aligned"))
