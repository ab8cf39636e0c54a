"""What only reorders one axis, however it is spelled, is a Gather along it.

    Reshape -> Transpose -> Reshape                        a channel shuffle
    Slice, Slice -> Unsqueeze, Unsqueeze -> Concat -> Reshape     another one
                                                    =>     Gather(x, order, axis=1)

Where elements come from is read off numbers that are moved as the data would be (`movement.py`). The rows that move
together must be long (`SHORTEST`): else a Gather copies little at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from fuseline.exports.optimized.editor import Array, Editor, is_standard, sizes, static_sizes
from fuseline.exports.optimized.movement import PLACES_LIMIT, moves, traced

NAME = "shuffles"
SHORTEST = 16
"""Elements of a row that moves as one."""
LONGEST = 32
"""Nodes that spell a shuffle."""


@dataclass(frozen=True)
class Shuffle:
    """`value`, along `axis` in the order `order`."""

    value: ir.Value
    axis: int
    order: Array


def apply(editor: Editor) -> bool:
    """Rewrite shuffles, from the last node on, so that the longest spelling counts; whether there were some."""
    changed = False
    for node in reversed(editor.nodes()):
        if node.graph is editor.graph and is_standard(node, "Reshape", "Transpose"):
            found = _shuffle(editor, node)
            if found is not None:
                _write(editor, node, found)
                changed = True
    return changed


def _shuffle(editor: Editor, node: ir.Node) -> Shuffle | None:
    """The shuffle that ends in `node`, as close to it as there is one."""
    inside: list[ir.Node] = [node]
    while len(inside) < LONGEST:
        frontier = _read(editor, inside)
        if len(frontier) == 1 and not all(is_standard(each, "Transpose") for each in inside):
            found = _between(editor, frontier[0], inside, node)
            if found is not None:
                return found
        maker = _last_maker(editor, frontier, inside)
        if maker is None:
            return None
        inside.insert(0, maker)
    return None


def _read(editor: Editor, inside: list[ir.Node]) -> list[ir.Value]:
    """The values that come from outside, constants left out."""
    read = [value for node in inside for value in node.inputs if value is not None and not editor.is_constant(value)]
    return list(dict.fromkeys(value for value in read if value.producer() not in inside))


def _last_maker(editor: Editor, frontier: list[ir.Value], inside: list[ir.Node]) -> ir.Node | None:
    """A node before these that moves elements only and that nothing else reads."""
    for value in frontier:
        maker = value.producer()
        if maker is None or maker.graph is not editor.graph or not moves(maker):
            continue
        if not value.is_graph_output() and all(user in inside for user in editor.users(value)):
            return maker
    return None


def _between(editor: Editor, value: ir.Value, inside: list[ir.Node], node: ir.Node) -> Shuffle | None:
    dims, out = static_sizes(value), static_sizes(node.outputs[0])
    if dims is None or out is None or len(dims) != len(out) or not 0 < np.prod(dims) <= PLACES_LIMIT:
        return None
    start = np.arange(np.prod(dims), dtype=np.int64).reshape(dims)
    places = traced(editor, inside, {value: start})
    return None if places is None else _along_one_axis(value, start, places[node.outputs[0]])


def _along_one_axis(value: ir.Value, start: Array, places: Array) -> Shuffle | None:
    different = [axis for axis, (a, b) in enumerate(zip(start.shape, places.shape, strict=True)) if a != b]
    for axis in range(start.ndim):
        if different not in ([], [axis]) or np.prod(start.shape[axis + 1 :]) < SHORTEST:
            continue
        step = int(np.prod(start.shape[axis + 1 :]))
        line = np.moveaxis(places, axis, 0).reshape(places.shape[axis], -1)[:, 0]
        order = line // step
        if order.max(initial=0) < start.shape[axis] and np.array_equal(np.take(start, order, axis), places):
            return Shuffle(value, axis, order)
    return None


def _write(editor: Editor, node: ir.Node, found: Shuffle) -> None:
    if list(found.order) == list(range((static_sizes(found.value) or ())[found.axis])) and not (
        node.outputs[0].is_graph_output()
    ):
        new = found.value
    else:
        order = editor.new_constant(found.order, f"{node.name}/order")
        new = editor.new_node("Gather", [found.value, order], node, sizes(node.outputs[0]), {"axis": found.axis})
    editor.replace(node.outputs[0], new, node)
    editor.remove_unused(node)
    editor.summary.did(NAME)
