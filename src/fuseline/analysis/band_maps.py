"""Copies that take bands of a tensor, row `28 b + r` as row `r` of band `b`: how far bands are apart is an extent."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import linalg
from xdsl.ir.affine import AffineMap

from fuseline.analysis.indexing_maps import dims_of, with_steps_alike
from fuseline.analysis.structured import yielded


def takes_bands(op: linalg.ops.GenericOp) -> bool:
    """Whether `op` hands on its first input, one dimension of it as several."""
    copied = yielded(op)[0] is op.body.block.args[0]
    return copied and any(len(dims_of(expr)) > 1 for expr in next(iter(op.indexing_maps)).data.results)


def maps_but_for_bands(op: linalg.ops.GenericOp) -> Sequence[AffineMap]:
    """The maps of `op`, the same wherever the bands are that it takes."""
    maps = [map_.data for map_ in op.indexing_maps]
    return [with_steps_alike(map_) for map_ in maps] if takes_bands(op) else maps
