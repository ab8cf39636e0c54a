"""A Pad with zeros before a convolution is the convolution's own padding."""

from __future__ import annotations

import onnx_ir as ir

from fuseline.exports.optimized.editor import Editor, attribute, is_standard, operand, rank

NAME = "pads"


def apply(editor: Editor) -> bool:
    """Fold such pads; whether there were some."""
    changed = False
    for node in editor.nodes():
        if is_standard(node, "Conv") and node.graph is editor.graph:
            maker = node.inputs[0].producer() if node.inputs[0] is not None else None
            if maker is not None and is_standard(maker, "Pad"):
                changed = _folded(editor, node, maker) or changed
    return changed


def _folded(editor: Editor, node: ir.Node, pad: ir.Node) -> bool:
    pads, source = editor.numbers(pad, 1, "pads"), operand(pad, 0)
    reason = _reason(editor, node, pad, pads)
    if reason or pads is None or source is None:
        editor.summary.refuse(NAME, pad.name, reason or "the amounts are not known")
        return False
    half = len(pads) // 2
    own = list(attribute(node, "pads", [0] * (2 * half - 4)))
    added = [*pads[2:half], *pads[half + 2 :]]
    node.attributes["pads"] = ir.AttrInt64s("pads", [a + b for a, b in zip(own, added, strict=True)])
    node.attributes.pop("auto_pad", None)
    node.replace_input_with(0, source)
    editor.remove_unused(pad)
    editor.summary.did(NAME)
    return True


def _reason(editor: Editor, node: ir.Node, pad: ir.Node, pads: list[int] | None) -> str | None:
    fill, given = editor.constant(operand(pad, 2)), operand(pad, 2)
    if attribute(pad, "mode", "constant") != "constant":
        return "the padding repeats the image"
    if attribute(pad, "value", 0.0) or (given is not None and (fill is None or fill.any())):
        return "the padding is not zero"
    if pads is None or operand(pad, 3) is not None:
        return "the amounts are not known"
    if len(pads) != 2 * (rank(node.inputs[0]) or len(pads) // 2) or min(pads) < 0:
        return "the amounts are negative"
    if any((*pads[:2], *pads[len(pads) // 2 : len(pads) // 2 + 2])):
        return "the batch or the channels are padded"
    return None if attribute(node, "auto_pad", "NOTSET") in ("NOTSET", "VALID") else "the convolution pads by rule"
