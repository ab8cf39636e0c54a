"""`linalg.pack` and `linalg.unpack` as pad, reshape, transpose and slice.

pack:   source -> tensor.pad -> tensor.expand_shape -> transpose
unpack: source -> transpose -> tensor.collapse_shape -> tensor.extract_slice

Those of unknown sizes: `packing_unknown.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IndexType, TensorType
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.errors import FuselineError
from fuseline.ir.build import Emitter, element_of, identity_map, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.linalg_named import PackOp, UnPackOp
from fuseline.ir.provenance import node_names, replace
from fuseline.passes.cleanup.named_ops.packing_unknown import pack_unknown, unpack_unknown


def expand_pack(op: PackOp) -> None:
    """Replace `op`; raises E0106 for tiles that are not known at compile time, or that need a padding value and have
    none."""
    emit, positions, tiles = Emitter.before(op), list(op.inner_dims_pos.get_values()), _tiles(op)
    if _unknown(op):
        replace(op, [], [pack_unknown(emit, op, tiles)])
        return
    shape = shape_of(op.source)
    split, groups, outer, inner = _split(
        [_rounded(n, d, positions, tiles) for d, n in enumerate(shape)], positions, tiles
    )
    source = _padded(emit, op, [_rounded(n, d, positions, tiles) - n for d, n in enumerate(shape)])
    expanded = emit.add(tensor.ExpandShapeOp(source, [], groups, split, TensorType(element_of(source), split))).result
    order = [*(outer[d] for d in op.permutation()), *inner]
    replace(op, [], [_transposed(emit, expanded, order, op.dest)])


def expand_unpack(op: UnPackOp) -> None:
    """Replace `op`; raises E0106 for tiles that are not known at compile time."""
    emit, positions, tiles = Emitter.before(op), list(op.inner_dims_pos.get_values()), _tiles(op)
    if _unknown(op):
        replace(op, [], [unpack_unknown(emit, op, tiles)])
        return
    shape, element = shape_of(op.dest), element_of(op.source)
    padded = [_rounded(n, d, positions, tiles) for d, n in enumerate(shape)]
    split, groups, outer, inner = _split(padded, positions, tiles)
    order = [*(outer[d] for d in op.permutation()), *inner]
    inverse = [order.index(d) for d in range(len(order))]
    empty = emit.add(tensor.EmptyOp([], TensorType(element, split))).tensor
    spread = _transposed(emit, op.source, inverse, empty)
    whole = emit.add(
        tensor.CollapseShapeOp.build(
            operands=[spread], result_types=[TensorType(element, padded)], properties={"reassociation": groups}
        )
    ).result
    if padded != list(shape):
        whole = emit.add(
            tensor.ExtractSliceOp(whole, [0] * len(shape), list(shape), [1] * len(shape), TensorType(element, shape))
        ).result
    replace(op, [], [whole])


def _rounded(size: int, d: int, positions: Sequence[int], tiles: Sequence[int]) -> int:
    tile = tiles[positions.index(d)] if d in positions else 1
    return -(-size // tile) * tile


def _tiles(op: PackOp | UnPackOp) -> list[int]:
    tiles = [int(tile) for tile in op.static_inner_tiles.get_values()]
    if DYNAMIC_INDEX in tiles:
        raise _refused(op, "a tile size is not known at compile time")
    return tiles


def _unknown(op: PackOp | UnPackOp) -> bool:
    return DYNAMIC_INDEX in (*shape_of(op.source), *shape_of(op.dest))


def _refused(op: PackOp | UnPackOp, why: str) -> FuselineError:
    return FuselineError("E0106", f"{op.name}: {why}", node=node_names(op))


def _split(
    shape: Sequence[int], positions: Sequence[int], tiles: Sequence[int]
) -> tuple[list[int], ArrayAttr[Any], list[int], list[int]]:
    """The shape with tiled dimensions split in two, the reassociation, where each outer part is, and where the tiles
    are."""
    split: list[int] = []
    groups: list[list[int]] = []
    inner: dict[int, int] = {}
    for d, size in enumerate(shape):
        tile = [tiles[positions.index(d)]] if d in positions else []
        groups.append(list(range(len(split), len(split) + 1 + len(tile))))
        if tile:
            inner[d] = len(split) + 1
        split += [size // (tile[0] if tile else 1), *tile]
    return split, attributes.reassociation(groups), [group[0] for group in groups], [inner[d] for d in positions]


def _padded(emit: Emitter, op: PackOp, high: Sequence[int]) -> SSAValue:
    if not any(high):
        return op.source
    if op.padding_value is None:
        raise _refused(op, "tiles do not divide the sizes and there is no padding_value")
    block = Block([tensor.YieldOp(op.padding_value)], arg_types=[IndexType()] * len(high))
    shape = [size + more for size, more in zip(shape_of(op.source), high, strict=True)]
    return emit.add(
        tensor.PadOp(
            op.source, [], [], Region(block), [0] * len(high), list(high), TensorType(element_of(op.source), shape)
        )
    ).result


def _transposed(emit: Emitter, source: SSAValue, order: Sequence[int], into: SSAValue) -> SSAValue:
    """`source` with its dimensions in `order`, written to `into`."""
    rank = len(order)
    read = AffineMap(rank, 0, tuple(AffineExpr.dimension(order.index(d)) for d in range(rank)))
    return emit.generic(
        [source], [into], [read, identity_map(rank)], ["parallel"] * rank, lambda b: [b.args[0]]
    ).results[0]
