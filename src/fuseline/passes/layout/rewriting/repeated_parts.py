"""Elementwise ops on a value that is only repeated: computed before it is, and then repeated.

quantized(repeated(x))  with  repeated: (c) -> (y, x, c)      =>      repeated(quantized(x))
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import linalg
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.indexing_maps import is_identity
from fuseline.analysis.structured import StructuredOp, captured_tensors, is_generic
from fuseline.ir.build import Emitter, element_of, identity_map, shape_of
from fuseline.ir.fast.create import create_generic
from fuseline.ir.fast.direct import body_of, result_of, users_of_value
from fuseline.ir.provenance import carry
from fuseline.passes.layout.rewriting.generics import index_ops, plain_loops

Chain = list[linalg.ops.GenericOp]


def is_point_by_point(op: Operation, *, in_order: bool = False) -> bool:
    """Whether an op computes its only result from one element of one tensor each, which it reads along different loops;
    `in_order`: at the same coordinates."""
    if not is_generic(op) or len(op.inputs) != 1 or len(op.results) != 1:
        return False
    view = StructuredOp(op)
    (read,), (written,) = view.input_maps, view.output_maps
    if view.reduction or captured_tensors(op) or index_ops(op) or list(body_of(op).args[1].uses):
        return False
    if in_order:
        return is_identity(read) and is_identity(written)
    return plain_loops(read) is not None and len(plain_loops(written) or ()) == view.rank


def computed(value: SSAValue, chain: Chain, before: Operation) -> SSAValue:
    """What the ops of `chain`, each of which reads the one before in order, make of `value`, inserted before an op.
    Where that is made of what is repeated, point by point, it is made of what is not."""
    source, read, made = _source(value)
    for op in (*made, *chain):
        source = applied(op, source, before)
    return source if is_identity(read) else _repeated(source, read, value, before, (*made, *chain))


def _source(value: SSAValue) -> tuple[SSAValue, AffineMap, Chain]:
    """The smallest tensor that `value` is made of point by point, for `value` alone, with the map from its dimensions,
    and the ops between; `value` itself where nothing is repeated."""
    whole = identity_map(len(shape_of(value)))
    best: tuple[SSAValue, AffineMap, Chain] = (value, whole, [])
    at, map_, chain = value, whole, Chain()
    while isinstance(at, OpResult) and is_point_by_point(at.op) and len(users_of_value(at)) == 1:
        assert is_generic(at.op)
        view = StructuredOp(at.op)
        loops = plain_loops(view.output_maps[0])
        assert loops is not None
        place = {loop: map_.results[i] for i, loop in enumerate(loops)}
        read = [place[expr.position] for expr in view.input_maps[0].results if isinstance(expr, AffineDimExpr)]
        at, map_, chain = at.op.inputs[0], AffineMap(whole.num_dims, 0, tuple(read)), [at.op, *chain]
        if len(read) < len(best[1].results):
            best = at, map_, chain
    return best


def applied(op: linalg.ops.GenericOp, value: SSAValue, before: Operation) -> SSAValue:
    """What the body of `op` makes of each element of `value`."""
    at, rank = Emitter.before(before), len(shape_of(value))
    out = at.empty_like(value, element_of(result_of(op)))
    maps, iterators = [identity_map(rank)] * 2, ["parallel"] * rank
    new = at.add(create_generic([value], [out], op.body.clone(), maps, iterators))
    new.attributes.update(op.attributes)
    carry([op], [new])
    return result_of(new)


def _repeated(
    value: SSAValue, read: AffineMap, like: SSAValue, before: Operation, made: Sequence[Operation]
) -> SSAValue:
    """`value`, read by `read`, in the shape of `like`."""
    at, rank = Emitter.before(before), len(shape_of(like))
    out = at.empty_like(like, element_of(value))
    new = at.generic([value], [out], [read, identity_map(rank)], ["parallel"] * rank, lambda b: [b.args[0]])
    carry(made, [new])
    return result_of(new)
