"""Turn every named linalg op into `linalg.generic`.

    linalg.matmul ins(%a, %b) outs(%c)   =>   linalg.generic {maps, iterators} ins(%a, %b) outs(%c) { mulf; addf }

Poolings keep their window operand, of which only the shape is read. Fills stay: they are what reductions start from
(their number has the type of the elements from here on).
Softmax becomes its four steps; pack and unpack become pad, reshape and transpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xdsl.builder import Builder, ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import linalg
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from fuseline.ir.fast import attributes
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.linalg_named import MapOp, PackOp, ReduceOp, SoftmaxOp, UnPackOp
from fuseline.ir.linalg_named.base import cast_to
from fuseline.ir.provenance import provenance, replace
from fuseline.passes.cleanup.named_ops.packing import expand_pack, expand_unpack
from fuseline.passes.cleanup.named_ops.softmax import expand_softmax


def generalized(op: Operation) -> linalg.ops.GenericOp | None:
    """The generic op that computes the same as `op`, None where `op` is no named op (or a fill)."""
    if not _is_named(type(op)):
        return None
    if isinstance(op, NamedOperation | linalg.ops.TransposeOp):
        maps = [attribute.data for attribute in op.get_indexing_maps()]
        return _generic(op, list(op.inputs), list(op.outputs), maps, [kind.data for kind in op.get_iterator_types()])
    if isinstance(op, MapOp | ReduceOp):
        maps, kinds = op.loops()
        return _generic(op, list(op.inputs), list(op.outputs), maps, kinds)
    if type(op) is linalg.ops.BroadcastOp:
        return _broadcast(op)
    return None


@cache
def _is_named(kind: type[Operation]) -> bool:
    plain = issubclass(kind, linalg.ops.FillOp | linalg.ops.GenericOp)
    return not plain and issubclass(
        kind, NamedOperation | linalg.ops.TransposeOp | MapOp | ReduceOp | linalg.ops.BroadcastOp
    )


def _generic(
    op: Operation, inputs: list[SSAValue], outputs: list[SSAValue], maps: list[AffineMap], kinds: list[IteratorType]
) -> linalg.ops.GenericOp:
    body = op.detach_region(op.regions[0])
    for inner in body.walk():
        if not provenance(inner):
            inner.location = op.location
    maps_ = [AffineMapAttr(map_) for map_ in maps]
    return linalg.ops.GenericOp(
        inputs, outputs, body, maps_, [IteratorTypeAttr(kind) for kind in kinds], [result.type for result in op.results]
    )


def _broadcast(op: linalg.ops.BroadcastOp) -> linalg.ops.GenericOp:
    rank = AffineMap.identity(len(op.init.type.get_shape())).num_dims  # pyright: ignore[reportAttributeAccessIssue]
    added = set(attributes.values(op.dimensions))
    source = AffineMap(rank, 0, tuple(AffineExpr.dimension(d) for d in range(rank) if d not in added))
    return _generic(op, [op.input], [op.init], [source, AffineMap.identity(rank)], [IteratorType.PARALLEL] * rank)


def _convert_number(op: linalg.ops.FillOp) -> None:
    """Let a fill have a number of the type of its elements, converted as linalg says: signed."""
    number, element = op.inputs[0], op.body.block.args[-1].type
    if number.type == element:
        return
    with ImplicitBuilder(Builder(InsertPoint.before(op))):
        converted = cast_to(number, element)
    assert isinstance(converted.owner, Operation)
    converted.owner.location = op.location
    replace(op, [linalg.ops.FillOp([converted], op.outputs, op.result_types)])


@dataclass(frozen=True)
class GeneralizeNamedOpsPass(ModulePass):
    """Turn every named linalg op into `linalg.generic`."""

    name = "generalize-named-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replace named ops at any depth, dispatches included."""
        for inner in ops_inside(op):
            if type(inner) is SoftmaxOp:
                expand_softmax(inner)
            elif type(inner) is PackOp:
                expand_pack(inner)
            elif type(inner) is UnPackOp:
                expand_unpack(inner)
            elif type(inner) is linalg.ops.FillOp:
                _convert_number(inner)
            elif (generic := generalized(inner)) is not None:
                replace(inner, [generic])


EXPORT = GeneralizeNamedOpsPass
