"""What only reorders one axis, however it is spelled, is taken up by the filters that read it, or is a Gather.

    Reshape -> Transpose -> Reshape                               a channel shuffle
    Slice, Slice -> Unsqueeze, Unsqueeze -> Concat -> Reshape     another one

Filters take an order of channels up for nothing (`channel_orders.py`), those that read them or those that make them. A
Gather is written where its sections are taken, or where all runtimes understand it; else a long spelling becomes the
short one.

Where elements come from is read off numbers that are moved as the data would be (`movement.py`). The rows that move
together must be long (`SHORTEST`): else a Gather copies little at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from fuseline.exports.optimized.channel_orders import (
    ends_in_groups,
    is_permutation,
    is_safe_gather,
    reorder_makers,
    reorder_readers,
)
from fuseline.exports.optimized.editor import Array, Editor, is_standard, sizes, static_sizes
from fuseline.exports.optimized.movement import POSITIONS_LIMIT, moves, traced
from fuseline.exports.optimized.rewrites.gathers import takes_sections

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
                changed = _write(editor, node, *found) or changed
    return changed


def _shuffle(editor: Editor, node: ir.Node) -> tuple[Shuffle, list[ir.Node]] | None:
    """The shuffle that ends in `node`, as close to it as there is one, and the nodes that spell it."""
    inside: list[ir.Node] = [node]
    while len(inside) < LONGEST:
        frontier = _read(editor, inside)
        if len(frontier) == 1 and not all(is_standard(each, "Transpose") for each in inside):
            found = _between(editor, frontier[0], inside, node)
            if found is not None:
                return found, inside
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
    if dims is None or out is None or len(dims) != len(out) or not 0 < np.prod(dims) <= POSITIONS_LIMIT:
        return None
    start = np.arange(np.prod(dims), dtype=np.int64).reshape(dims)
    positions = traced(editor, inside, {value: start})
    return None if positions is None else _along_one_axis(value, start, positions[node.outputs[0]])


def _along_one_axis(value: ir.Value, start: Array, positions: Array) -> Shuffle | None:
    different = [axis for axis, (a, b) in enumerate(zip(start.shape, positions.shape, strict=True)) if a != b]
    for axis in range(start.ndim):
        if different not in ([], [axis]) or np.prod(start.shape[axis + 1 :]) < SHORTEST:
            continue
        step = int(np.prod(start.shape[axis + 1 :]))
        line = np.moveaxis(positions, axis, 0).reshape(positions.shape[axis], -1)[:, 0]
        order = line // step
        if order.max(initial=0) < start.shape[axis] and np.array_equal(np.take(start, order, axis), positions):
            return Shuffle(value, axis, order)
    return None


def _write(editor: Editor, node: ir.Node, found: Shuffle, inside: list[ir.Node]) -> bool:
    """Put the shuffle into its best form; whether that changed something."""
    new = _better(editor, node, found)
    if new is None:
        new = _as_grid(editor, node, found, inside)
    if new is None:
        editor.summary.refuse(NAME, node.name, "no filter takes the order up, and OpenVINO misreads a Gather of all")
        return False
    editor.replace(node.outputs[0], new, node)
    editor.remove_unused(node)
    editor.summary.did(NAME)
    return True


def _better(editor: Editor, node: ir.Node, found: Shuffle) -> ir.Value | None:
    """Nothing at all, where the order is that of the source or filters take it up; or a Gather."""
    size, out = (static_sizes(found.value) or ())[found.axis], node.outputs[0]
    in_order = np.array_equal(found.order, np.arange(size))
    if in_order and not out.is_graph_output():
        return found.value
    all_of_it = is_permutation(found.order, size)
    if all_of_it and found.axis == 1:
        if reorder_readers(editor, out, found.order):
            return found.value
        if not out.is_graph_output() and reorder_makers(editor, found.value, found.order):
            return found.value
    safe = is_safe_gather(found.order, size) or (found.axis == 1 and ends_in_groups(editor, out))
    if not safe and not _taken_in_sections(editor, out, found.axis):
        return None
    order = editor.new_constant(found.order, f"{node.name}/order")
    return editor.new_node("Gather", [found.value, order], node, sizes(out), {"axis": found.axis})


def _taken_in_sections(editor: Editor, value: ir.Value, axis: int) -> bool:
    """Whether a Gather of it would be taken apart at once (`gathers.py`)."""
    users = editor.users(value)
    return (
        bool(users) and not value.is_graph_output() and all(takes_sections(editor, user, value, axis) for user in users)
    )


def _as_grid(editor: Editor, node: ir.Node, found: Shuffle, inside: list[ir.Node]) -> ir.Value | None:
    """Reshape -> Transpose -> Reshape, where a longer chain spells what that can say."""
    groups, dims = _groups(found.order), static_sizes(found.value) or ()
    if groups is None or len(inside) <= len(_GRID):
        return None
    axis, rest = found.axis, len(found.order) // groups
    split = [*dims[:axis], groups, rest, *dims[axis + 1 :]]
    perm = [*range(axis), axis + 1, axis, *range(axis + 2, len(split))]
    shapes = [editor.new_constant(np.array(each, np.int64), f"{node.name}/sizes") for each in (split, dims)]
    apart = editor.new_node("Reshape", [found.value, shapes[0]], node, split)
    moved = editor.new_node("Transpose", [apart], node, [split[k] for k in perm], {"perm": perm})
    return editor.new_node("Reshape", [moved, shapes[1]], node, sizes(node.outputs[0]))


_GRID = ("Reshape", "Transpose", "Reshape")


def _groups(order: Array) -> int | None:
    """The groups of a channel shuffle: channel j of group i becomes channel j * groups + i."""
    if len(order) < 2 or order[0] or not order[1] or len(order) % order[1]:
        return None
    groups = len(order) // int(order[1])
    grid = np.arange(len(order)).reshape(groups, -1).T.reshape(-1)
    return groups if np.array_equal(order, grid) else None
