"""Where elements come from: operators that only move elements, run on numbers that stand for their places.

A tensor of consecutive numbers goes through a chain of such operators as data would; what comes out says which element
stands where, however the chain is spelled. Padding gives -1. Sizes must be known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from fuseline.exports.optimized.editor import Editor, attribute, is_standard, operand
from fuseline.exports.optimized.permutation import perm_of

Positions = NDArray[np.int64]
Mover = Callable[[Editor, ir.Node, Sequence["Positions | None"]], "Positions | None"]

POSITIONS_LIMIT = 1 << 23
"""Elements of a tensor that is traced."""


def moved(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    """The places that the first result of a node has, those of its operands given (None for what is not traced); None
    where it does more than to move elements, or how is not known."""
    mover = _MOVERS.get(node.op_type) if is_standard(node, node.op_type) else None
    if mover is None or (sources and sources[0] is None):
        return None
    try:
        out = mover(editor, node, sources)
    except (ValueError, IndexError):  # sizes that do not fit: the model says so when it runs
        return None
    return out if out is None or out.size <= POSITIONS_LIMIT else None


def moves(node: ir.Node) -> bool:
    """Whether a node is one that may move elements only."""
    return is_standard(node, *_MOVERS)


def traced(
    editor: Editor, nodes: Sequence[ir.Node], known: Mapping[ir.Value, Positions]
) -> dict[ir.Value, Positions] | None:
    """The places of all results of `nodes`, which stand in order, from those that are known before them."""
    found = dict(known)
    for node in nodes:
        out = moved(editor, node, [None if value is None else found.get(value) for value in node.inputs])
        if out is None:
            return None
        found[node.outputs[0]] = out
    return found


def _first(sources: Sequence[Positions | None]) -> Positions:
    source = sources[0]
    assert source is not None
    return source


def _identity(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    return _first(sources)


def _transpose(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    perm = perm_of(node)
    return None if perm is None else np.transpose(_first(sources), perm)


def _reshape(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    target, source = editor.numbers(node, 1, "shape"), _first(sources)
    if target is None:
        return None
    if not attribute(node, "allowzero", 0):
        target = [source.shape[axis] if size == 0 else size for axis, size in enumerate(target)]
    return source.reshape(target)


def _flatten(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    source, axis = _first(sources), int(attribute(node, "axis", 1))
    return source.reshape(int(np.prod(source.shape[:axis])), -1)


def _squeeze(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    axes = editor.numbers(node, 1, "axes")
    return None if axes is None else np.squeeze(_first(sources), tuple(axes))


def _unsqueeze(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    axes = editor.numbers(node, 1, "axes")
    return None if axes is None else np.expand_dims(_first(sources), tuple(axes))


def _pad(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    pads, source, fill = editor.numbers(node, 1, "pads"), _first(sources), editor.constant(operand(node, 2))
    zero = operand(node, 2) is None or (fill is not None and not fill.any())
    plain = str(attribute(node, "mode", "constant")) == "constant" and not attribute(node, "value", 0.0)
    if pads is None or operand(node, 3) is not None or min(pads) < 0 or not (zero and plain):
        return None
    half = len(pads) // 2
    return np.pad(source, list(zip(pads[:half], pads[half:], strict=True)), constant_values=-1)


def _slice(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    source = _first(sources)
    starts, ends = editor.numbers(node, 1, "starts"), editor.numbers(node, 2, "ends")
    if starts is None or ends is None:
        return None
    axes = editor.numbers(node, 3, "axes") if _has(node, 3, "axes") else list(range(len(starts)))
    steps = editor.numbers(node, 4, "steps") if _has(node, 4, "steps") else [1] * len(starts)
    if axes is None or steps is None or any(step < 1 for step in steps):
        return None
    picked = [slice(None)] * source.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        picked[axis] = slice(start, end, step)
    return source[tuple(picked)]


def _has(node: ir.Node, index: int, name: str) -> bool:
    return name in node.attributes or operand(node, index) is not None


def _gather(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    indices = editor.constant(operand(node, 1))
    return None if indices is None else np.take(_first(sources), indices, int(attribute(node, "axis", 0)))


def _concat(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    known = [source for source in sources if source is not None]
    return np.concatenate(known, int(attribute(node, "axis", 0))) if len(known) == len(sources) else None


def _space_to_depth(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    block, source = int(attribute(node, "blocksize", 1)), _first(sources)
    n, c, h, w = source.shape
    split = source.reshape(n, c, h // block, block, w // block, block).transpose(0, 3, 5, 1, 2, 4)
    return split.reshape(n, c * block * block, h // block, w // block)


def _depth_to_space(editor: Editor, node: ir.Node, sources: Sequence[Positions | None]) -> Positions | None:
    block, source = int(attribute(node, "blocksize", 1)), _first(sources)
    n, c, h, w = source.shape
    mode: Any = attribute(node, "mode", "DCR")
    if mode == "DCR":
        split = source.reshape(n, block, block, c // block**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        split = source.reshape(n, c // block**2, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return split.reshape(n, c // block**2, h * block, w * block)


_MOVERS: dict[str, Mover] = {
    "Identity": _identity,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Pad": _pad,
    "Slice": _slice,
    "Gather": _gather,
    "Concat": _concat,
    "SpaceToDepth": _space_to_depth,
    "DepthToSpace": _depth_to_space,
}
