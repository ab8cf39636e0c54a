"""How operands follow loops: which axes a map follows, maps over fewer loops, bodies that ask for their index."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import Rewriter

from fuseline.analysis.indexing_maps import loops_of
from fuseline.ir.build import dims_map


def unfollowed(maps: Sequence[AffineMap], loops: Sequence[int]) -> list[int]:
    """Those of `loops` that no map follows."""
    seen = {loop for map_ in maps for loop in loops_of(map_.results)}
    return [loop for loop in loops if loop not in seen]


def renumbered(map_: AffineMap, loops: Sequence[int]) -> AffineMap:
    """The map over `loops` alone, numbered from 0."""
    return dims_map(len(loops), [None if loop is None else loops.index(loop) for loop in loops_of(map_.results)])


def renumber_indices(op: linalg.ops.GenericOp, loops: Sequence[int]) -> None:
    """Let the body count the loops that are left; one that is not stays at 0."""
    for index in [inner for inner in op.body.block.walk() if isinstance(inner, linalg.ops.IndexOp)]:
        loop = index.dim.value.data
        new = linalg.ops.IndexOp(loops.index(loop)) if loop in loops else arith.ConstantOp(IntegerAttr(0, IndexType()))
        Rewriter.replace_op(index, new)
