"""A convolution between space-to-batch and batch-to-space is one with dilations.

    x -> Pad -> Reshape -> Transpose -> Reshape -> Conv -> Reshape -> Transpose -> Reshape -> Slice -> y
    x -> Transpose -> Conv (dilations, pads) -> Transpose -> y

TensorFlow writes dilations so. The two chains may be spelled in any way: what counts is where their elements come from
(`movement.py`). Block b, padding p before, crop c before: row r of the result reads rows r + c - p + k * b of the
source, for the rows k of the filter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from fuseline.exports.optimized.editor import Editor, attribute, is_standard, operand, sizes, static_sizes
from fuseline.exports.optimized.movement import POSITIONS_LIMIT, Positions, moves, traced
from fuseline.exports.optimized.permutation import inverse, reordered

NAME = "dilations"
LAYOUTS = ((0, 1, 2, 3), (0, 3, 1, 2))
"""What brings an image into NCHW."""
LONGEST = 12
"""Nodes of a chain."""


@dataclass(frozen=True)
class Blocks:
    """One of the two chains: the value at its far end, how that comes into NCHW, the block, and what is padded or
    cropped before the first row and column."""

    value: ir.Value
    layout: tuple[int, ...]
    block: tuple[int, int]
    before: tuple[int, int]


def apply(editor: Editor) -> bool:
    """Rewrite such convolutions; whether there were some."""
    changed = False
    for node in editor.nodes():
        if is_standard(node, "Conv") and node.graph is editor.graph and _could(editor, node):
            changed = _rewritten(editor, node) or changed
    return changed


def _could(editor: Editor, node: ir.Node) -> bool:
    source, batch = operand(node, 0), (sizes(node.inputs[0]) or (None,))[0]
    maker = source.producer() if source is not None else None
    return maker is not None and moves(maker) and batch != 1 and len(sizes(source) or ()) == 4


def _rewritten(editor: Editor, node: ir.Node) -> bool:
    plain = all(step == 1 for name in ("strides", "dilations") for step in attribute(node, name, (1, 1)))
    plain = (
        plain and attribute(node, "auto_pad", "NOTSET") in ("NOTSET", "VALID") and not any(attribute(node, "pads", ()))
    )
    if not plain:
        return False
    source = _source(editor, node)
    if source is None:
        return False
    target = _target(editor, node, source)
    if target is None:
        editor.summary.refuse(NAME, node.name, "what follows the convolution does not put the blocks together again")
        return False
    pads = _pads(node, source, target)
    if min(pads) < 0:
        editor.summary.refuse(NAME, node.name, "more is cropped than padded")
        return False
    _write(editor, node, source, target, pads)
    return True


def _source(editor: Editor, node: ir.Node) -> Blocks | None:
    """The longest chain before the convolution that is space to batch."""
    chain: list[ir.Node] = []
    value, found = node.inputs[0], None
    while value is not None and len(chain) < LONGEST:
        maker = value.producer()
        if maker is None or maker.graph is not editor.graph or not moves(maker) or is_standard(maker, "Concat"):
            break
        chain.insert(0, maker)
        value = maker.inputs[0]
        found = (_space_to_batch(editor, chain, value, node) if value is not None else None) or found
    return found


def _space_to_batch(editor: Editor, chain: list[ir.Node], value: ir.Value, node: ir.Node) -> Blocks | None:
    dims = static_sizes(value)
    if dims is None or len(dims) != 4 or np.prod(dims) > POSITIONS_LIMIT:
        return None
    start = np.arange(np.prod(dims), dtype=np.int64).reshape(dims)
    result = traced(editor, chain, {value: start})
    if result is None:
        return None
    out = result[chain[-1].outputs[0]]
    for layout in LAYOUTS:
        image = start.transpose(layout)
        found = _matched(out, image)
        if found is not None:
            return Blocks(value, layout, *found)
    return None


def _matched(out: Positions, image: Positions) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Block and padding with which `out` is space to batch of `image` (both NCHW)."""
    (batch, channels, *_), (total, same, height, width) = image.shape, out.shape
    if channels != same or total % batch or total == batch:
        return None
    for rows in range(1, total // batch + 1):
        columns, rest = divmod(total // batch, rows)
        if rest or not image.size:
            continue
        whole = _together(out, (rows, columns), batch)
        first = np.argwhere(whole[0, 0] == image[0, 0, 0, 0])
        if len(first) != 1:
            continue
        top, left = (int(place) for place in first[0])
        after = (height * rows - top - image.shape[2], width * columns - left - image.shape[3])
        if min(after) < 0:
            continue
        padded = np.pad(image, [(0, 0), (0, 0), (top, after[0]), (left, after[1])], constant_values=-1)
        if np.array_equal(whole, padded):
            return (rows, columns), (top, left)
    return None


def _together(blocks: Positions, block: tuple[int, int], batch: int) -> Positions:
    """The images (NCHW) whose blocks these are: block index before image in the batch."""
    rows, columns = block
    _, channels, height, width = blocks.shape
    split = blocks.reshape(rows, columns, batch, channels, height, width).transpose(2, 3, 4, 0, 5, 1)
    return split.reshape(batch, channels, height * rows, width * columns)


def _target(editor: Editor, node: ir.Node, source: Blocks) -> Blocks | None:
    """The longest chain behind the convolution that is batch to space with the same block."""
    dims, images = static_sizes(node.outputs[0]), static_sizes(source.value)
    if dims is None or images is None or np.prod(dims) > POSITIONS_LIMIT:
        return None
    start = np.arange(np.prod(dims), dtype=np.int64).reshape(dims)
    whole = _together(start, source.block, images[0])
    value, positions, found = node.outputs[0], start, None
    while (user := editor.only_user(value)) is not None and moves(user) and not is_standard(user, "Concat"):
        result = traced(editor, [user], {value: positions})
        if result is None:
            break
        value, positions = user.outputs[0], result[user.outputs[0]]
        for layout in LAYOUTS:
            crop = _cropped(positions.transpose(layout), whole) if positions.ndim == 4 else None
            if crop is not None:
                found = Blocks(value, layout, source.block, crop)
    return found


def _cropped(positions: Positions, whole: Positions) -> tuple[int, int] | None:
    """How many rows and columns of `whole` lie before `positions`, a part of it."""
    first = np.argwhere(whole[0, 0] == positions[0, 0, 0, 0]) if positions.size else []
    if len(first) != 1:
        return None
    top, left = (int(place) for place in first[0])
    window = whole[:, :, top : top + positions.shape[2], left : left + positions.shape[3]]
    return (top, left) if np.array_equal(window, positions) else None


def _pads(node: ir.Node, source: Blocks, target: Blocks) -> list[int]:
    """Rows and columns of zeros before and behind the image."""
    image = reordered(static_sizes(source.value) or (), source.layout)[2:]
    out = reordered(static_sizes(target.value) or (), target.layout)[2:]
    window = (static_sizes(node.inputs[1]) or ())[2:]
    before = [p - c for p, c in zip(source.before, target.before, strict=True)]
    after = [
        o + (k - 1) * b - size - first
        for o, k, b, size, first in zip(out, window, source.block, image, before, strict=True)
    ]
    return [*before, *after]


def _write(editor: Editor, node: ir.Node, source: Blocks, target: Blocks, pads: list[int]) -> None:
    image = editor.new_node(
        "Transpose",
        [source.value],
        node,
        reordered(sizes(source.value) or (), source.layout),
        {"perm": list(source.layout)},
    )
    made = {name: attr for name, attr in node.attributes.items() if name not in ("auto_pad", "pads", "dilations")}
    attributes = {**made, "dilations": list(source.block), "pads": pads}
    shape = reordered(sizes(target.value) or (), target.layout)
    out = editor.new_node("Conv", [image, *node.inputs[1:]], node, shape, attributes)
    last = target.value.producer()
    assert last is not None
    turned = editor.new_node("Transpose", [out], last, sizes(target.value), {"perm": list(inverse(target.layout))})
    editor.replace(target.value, turned, last)
    editor.remove_unused(last)
    editor.summary.did(NAME)
