"""Bitcasts that need no dispatch: the bytes of a buffer, under another type of the same width.

    %r = linalg.generic ins(%x : tensor<4xf32>) outs(%e : tensor<4xi32>) { yield arith.bitcast %in }

Only what no dispatch took in is one: a view, as reshapes are.
"""

from __future__ import annotations

from typing import TypeGuard

from xdsl.dialects import arith, linalg
from xdsl.ir import Block, Operation

from fuseline.analysis.structured import is_generic, yielded
from fuseline.analysis.structured_op import input_count
from fuseline.ir.build import identity_map
from fuseline.ir.fast.direct import body_of, ops_of


def is_bitcast_view(op: Operation | Block) -> TypeGuard[linalg.ops.GenericOp]:
    """Whether `op` is each element of one tensor, where it stands, with the same bits as another type."""
    if not isinstance(op, Operation) or not is_generic(op) or not reads_in_place(op):
        return False
    cast, *rest = ops_of(body_of(op))
    return type(cast) is arith.BitcastOp and len(rest) == 1 and list(yielded(op)) == [cast.results[0]]


def reads_in_place(op: linalg.ops.GenericOp) -> bool:
    """Whether `op` makes one tensor of one, each element of the element in its place."""
    one = input_count(op) == 1 and len(op.results) == 1
    return one and all(map_.data == identity_map(map_.data.num_dims) for map_ in op.indexing_maps.data)
