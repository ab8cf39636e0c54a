"""Named ops that are cheaper done directly than through their loops, or that have no loops in xDSL."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import linalg
from xdsl.ir import Operation

from fuseline.evaluation.program import Array, Scope, evaluates, failure
from fuseline.evaluation.structured import evaluate_loops
from fuseline.evaluation.tensors import mixed_sizes
from fuseline.ir.linalg_named import MapOp, PackOp, ReduceOp, SoftmaxOp, UnPackOp


@evaluates("linalg.fill")
def fill(op: Operation, scope: Scope) -> list[Array]:
    """One value everywhere, a view."""
    assert isinstance(op, linalg.ops.FillOp)
    value, out = np.asarray(scope[op.inputs[0]]), scope[op.outputs[0]]
    return [np.broadcast_to(value.astype(out.dtype, copy=False).reshape(()), out.shape)]


@evaluates("linalg.transpose")
def transpose(op: Operation, scope: Scope) -> list[Array]:
    """A view with the dimensions in another order."""
    assert isinstance(op, linalg.ops.TransposeOp)
    return [np.transpose(scope[op.inputs[0]], op.permutation.get_values())]


@evaluates("linalg.broadcast")
def broadcast(op: Operation, scope: Scope) -> list[Array]:
    """A view with new dimensions; raises E0305 where the sizes of the others differ."""
    assert isinstance(op, linalg.ops.BroadcastOp)
    source, shape, added = scope[op.input], scope[op.init].shape, op.dimensions.get_values()
    kept = tuple(size for d, size in enumerate(shape) if d not in added)
    if kept != source.shape:
        raise failure(op, f"a tensor of shape {source.shape} cannot be broadcast to {shape}")
    return [np.broadcast_to(np.expand_dims(source, tuple(added)), shape)]


@evaluates("linalg.map", "linalg.reduce")
def written_body(op: Operation, scope: Scope) -> list[Array]:
    """A body over all elements, or folded over some dimensions; raises E0305 where input and output sizes differ."""
    assert isinstance(op, MapOp | ReduceOp)
    return evaluate_loops(op, op.body.block, op.loops(), op.operands, len(op.outputs), scope)


@evaluates("linalg.softmax")
def softmax(op: Operation, scope: Scope) -> list[Array]:
    """Along one dimension, shifted by its maximum."""
    assert isinstance(op, SoftmaxOp)
    source, axis = scope[op.input], op.dimension.value.data
    powers = np.exp(source - source.max(axis=axis, keepdims=True))
    return [powers / powers.sum(axis=axis, keepdims=True)]


@evaluates("linalg.pack")
def pack(op: Operation, scope: Scope) -> list[Array]:
    """Pad, split into tiles, permute; raises E0305 when padding is needed and no value is given."""
    assert isinstance(op, PackOp)
    source, positions = scope[op.source], op.inner_dims_pos.get_values()
    tiles = mixed_sizes(op.static_inner_tiles, op.inner_tiles, scope)
    short = [(0, -source.shape[d] % tiles[positions.index(d)] if d in positions else 0) for d in range(source.ndim)]
    if any(high for _, high in short):
        if op.padding_value is None:
            raise failure(op, f"tiles {tiles} do not divide {source.shape} and there is no padding_value")
        source = np.pad(source, short, constant_values=scope[op.padding_value])
    split, outer, inner = _split(source.shape, positions, tiles)
    return [source.reshape(split).transpose(*(outer[d] for d in op.permutation()), *inner)]


@evaluates("linalg.unpack")
def unpack(op: Operation, scope: Scope) -> list[Array]:
    """The inverse of pack, cut to the destination's shape."""
    assert isinstance(op, UnPackOp)
    source, shape, positions = scope[op.source], scope[op.dest].shape, op.inner_dims_pos.get_values()
    tiles = mixed_sizes(op.static_inner_tiles, op.inner_tiles, scope)
    padded = [
        -(-size // tiles[positions.index(d)]) * tiles[positions.index(d)] if d in positions else size
        for d, size in enumerate(shape)
    ]
    _, outer, inner = _split(padded, positions, tiles)
    order = [*(outer[d] for d in op.permutation()), *inner]
    whole = source.transpose(np.argsort(order)).reshape(padded)
    return [whole[tuple(slice(size) for size in shape)]]


def _split(
    shape: Sequence[int], positions: Sequence[int], tiles: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """The shape with tiled dimensions split in two; where each outer part is; where each tile is, in the order of
    `positions`."""
    split: list[int] = []
    outer: list[int] = []
    inner: dict[int, int] = {}
    for d, size in enumerate(shape):
        outer.append(len(split))
        if d not in positions:
            split.append(size)
            continue
        tile = tiles[positions.index(d)]
        inner[d] = len(split) + 1
        split += [size // tile, tile]
    return split, outer, [inner[d] for d in positions]
