"""`linalg.pack` and `linalg.unpack` of sizes that only the run tells: one op each, which reads where a tile and a place
in it lead.

    pack:    out[o, i] = padded[o * tile + i]
    unpack:  out[d] = source[d floordiv tile, d mod tile]

How far that is, `require-maps-inside` sees to: without a padding value sizes that the tiles do not divide are refused
by the run (E0203).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.linalg_named import PackOp, UnPackOp


def pack_unknown(emit: Emitter, op: PackOp, tiles: Sequence[int]) -> SSAValue:
    """The packed tensor."""
    positions, order = list(op.inner_dims_pos.get_values()), list(op.permutation())
    rank, total = len(order), len(shape_of(op.dest))
    source = _padded(emit, op, positions, tiles, order) if op.padding_value is not None else op.source
    outer = [AffineExpr.dimension(order.index(d)) for d in range(rank)]
    for number, (d, tile) in enumerate(zip(positions, tiles, strict=True)):
        outer[d] = outer[d] * tile + AffineExpr.dimension(rank + number)
    return _read(emit, source, AffineMap(total, 0, tuple(outer)), op.dest)


def unpack_unknown(emit: Emitter, op: UnPackOp, tiles: Sequence[int]) -> SSAValue:
    """The unpacked tensor."""
    positions, order = list(op.inner_dims_pos.get_values()), list(op.permutation())
    loops = [AffineExpr.dimension(d) for d in range(len(order))]
    outer = [loops[d] // tiles[positions.index(d)] if d in positions else loops[d] for d in order]
    inner = [loops[d] % tile for d, tile in zip(positions, tiles, strict=True)]
    return _read(emit, op.source, AffineMap(len(order), 0, (*outer, *inner)), op.dest)


def _read(emit: Emitter, source: SSAValue, map_: AffineMap, like: SSAValue) -> SSAValue:
    return emit.elementwise([source], emit.empty_like(like), lambda b: b.args[0], [map_])


def _padded(
    emit: Emitter, op: PackOp, positions: Sequence[int], tiles: Sequence[int], order: Sequence[int]
) -> SSAValue:
    """The source, filled up to whole tiles."""
    sizes, missing = list(shape_of(op.source)), list[SSAValue]()
    for d, tile in zip(positions, tiles, strict=True):
        outer = shape_of(op.dest)[order.index(d)]
        sizes[d] = outer * tile if outer != DYNAMIC_INDEX else DYNAMIC_INDEX
    for d in range(len(sizes)):
        whole = emit.dim(op.dest, order.index(d))
        if d in positions:
            whole = emit.add(arith.MuliOp(whole, emit.index(tiles[positions.index(d)]))).result
        missing.append(emit.add(arith.SubiOp(whole, emit.dim(op.source, d))).result)
    zeros, unknown = attributes.dense((0,) * len(sizes)), attributes.dense((DYNAMIC_INDEX,) * len(sizes))
    body = Block(arg_types=[attributes.INDEX] * len(sizes))
    assert op.padding_value is not None
    body.add_op(tensor.YieldOp(op.padding_value))
    properties: dict[str, Attribute] = {"static_low": zeros, "static_high": unknown}
    properties["operandSegmentSizes"] = attributes.segments((1, 0, len(sizes)))
    type_ = attributes.tensor_type(element_of(op.source), tuple(sizes))
    pad = tensor.PadOp.create(
        operands=[op.source, *missing], result_types=[type_], properties=properties, regions=[Region(body)]
    )
    return emit.add(pad).results[0]
