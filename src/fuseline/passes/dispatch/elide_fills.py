"""elide-fills: what only fills needs no dispatch: the runtime does it.

    %r = flow.dispatch.region {                             %s = tensor.extract %x[]
      %b = linalg.generic ins(%x : tensor<f32>)      =>     %r = linalg.fill ins(%s) outs(tensor.empty(%n))
           outs(tensor.empty(%n)) { yield %x }
    }

    %r = flow.dispatch.region {                             %f = linalg.fill ins(%c) outs(tensor.empty(%n))
      tensor.insert_slice %y into %f[%i]             =>     %r = tensor.insert_slice %y into %f[%i]
    }

A fill whose readers took it in is never here; the dispatches that are left over fill with a constant, or with the only
element of a tensor, and may put a box of what is in memory into it. The schedule makes steps of them
(`program/fills.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

import msgspec
from xdsl.context import Context
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.cost import num_bytes
from fuseline.analysis.indexing_maps import is_permutation
from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import FREE, StructuredOp, is_generic, kind, yielded
from fuseline.analysis.views import base_of
from fuseline.dispatch.region_names import member_ids
from fuseline.dispatch.result_boxes import returned, unreshaped
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import upper_bound
from fuseline.ir.fast.create import create_fill
from fuseline.ir.fast.direct import erase, insert_before, ops_of, replace_uses
from fuseline.ir.flow import DispatchRegionOp, ReturnOp
from fuseline.ir.functions import functions
from fuseline.ir.provenance import provenance
from fuseline.passes.dispatch.open_regions import dissolve
from fuseline.program.box_rows import box_rows
from fuseline.program.fills import elements_of, is_box_of_rows, is_fill_step, readers_of
from fuseline.report.records import CompileRecord, Decision


@dataclass(frozen=True)
class ElideFillsPass(ModulePass):
    """Has no options."""

    name = "elide-fills"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Take fills out of their regions; what they were made of goes to `ctx.records`."""
        assert isinstance(ctx, CompilerContext)
        blocks = [function.body.block for function in functions(op)]
        shapes = ShapeAnalysis(ctx.symbols)
        cached = ctx.target.costs.cached_bytes
        regions = [
            region
            for block in blocks
            for region in _regions(block)
            if _only_fills(region, shapes) and not any(_writes_twice(op, shapes, cached) for op in _members(region))
        ]
        ids = {name for region in regions for name in member_ids(region)}
        elided = [member for region in regions for member in _elide(region)]
        if elided:
            _record(ctx.records, blocks, elided, ids)


def _regions(block: Block) -> list[DispatchRegionOp]:
    return [op for op in ops_of(block) if isinstance(op, DispatchRegionOp)]


def _elide(region: DispatchRegionOp) -> list[Operation]:
    """The members of a region, as fills and inserts in its place."""
    members = _members(region)
    dissolve(region)
    return [_as_fill(member) if is_generic(member) else member for member in members]


def _members(region: DispatchRegionOp) -> list[Operation]:
    """What a region does, reshapes aside."""
    inside = ops_of(region.body.block)
    return [op for op in inside if not isinstance(op, (*RESHAPES, ReturnOp)) and kind(op) not in FREE]


def _only_fills(region: DispatchRegionOp, shapes: ShapeAnalysis) -> bool:
    """Whether a region fills its results, and puts something into them, but does nothing else."""
    members = _members(region)
    made = {unreshaped(value) for value in returned(region.body.block)}
    return (
        bool(members)
        and made <= {member.results[0] for member in members}
        and all(_is_insert(op, shapes) or _is_fill(op) for op in members)
        and not any(_is_cut(result) for result in region.results)
    )


def _is_fill(op: Operation) -> bool:
    """Whether `op` repeats a constant, or the only element of what is in memory."""
    number = repeated(op) if is_generic(op) else None
    return number is not None and (not isinstance(number.type, TensorType) or _is_outside(number, op))


def repeated(op: linalg.ops.GenericOp) -> SSAValue | None:
    """What every element of the result is: a scalar constant, or the only element of a tensor. None for any other
    op."""
    view = StructuredOp(op)
    if view.reduction or len(op.results) != 1 or not isinstance(view.outputs[0].owner, tensor.EmptyOp):
        return None
    if not is_permutation(view.output_maps[0]):
        return None
    (value,) = yielded(op)
    if isinstance(value, OpResult):
        return value if isinstance(value.op, arith.ConstantOp) else None
    if not isinstance(value, BlockArgument) or value.owner is not view.body or value.index >= view.input_count:
        return None
    source = view.inputs[value.index]
    return source if elements_of(source) == 1 else None


def _is_insert(op: Operation, shapes: ShapeAnalysis) -> bool:
    """Whether `op` puts what is in memory into a fill."""
    if not isinstance(op, tensor.InsertSliceOp) or not is_box_of_rows(op, shapes) or not _is_outside(op.source, op):
        return False
    dest = op.dest.owner
    if is_fill_step(dest):
        return True
    return isinstance(dest, Operation) and dest.parent is op.parent and _is_fill(dest)


def _writes_twice(op: Operation, shapes: ShapeAnalysis, cached: int) -> bool:
    """Whether rows are put into a fill of more bytes than the caches hold that take more than half of it: they would be
    written twice, to memory (a box of 95 % took 1.1 to 2 of the time of the dispatch)."""
    if not isinstance(op, tensor.InsertSliceOp) or not box_rows(shapes.dims(op.source), shapes.dims(op.dest), 1).loops:
        return False
    box, whole = upper_bound(num_bytes(op.source, shapes)), upper_bound(num_bytes(op.dest, shapes))
    return box is not None and whole is not None and whole > cached and 2 * box > whole


def _is_outside(value: SSAValue, reader: Operation) -> bool:
    """Whether a value that is read in a region lies in memory before it, under whatever shape."""
    made = unreshaped(value).owner
    inside = isinstance(made, Operation) and made.parent is reader.parent
    return not inside and not isinstance(base_of(value).owner, tensor.EmptyOp)


def _is_cut(value: SSAValue) -> bool:
    """Whether somebody reads a slice of a result: those of a fill are no views."""
    return any(isinstance(reader, tensor.ExtractSliceOp) for reader in readers_of(value))


# the ops that steps are read from -------------------------------------------------------------------------------------


def _as_fill(op: linalg.ops.GenericOp) -> Operation:
    value = repeated(op)
    assert value is not None
    fill = create_fill(_number(value, Emitter.before(op)), op.outputs[0], op.location)
    insert_before(fill, op)
    replace_uses(op.results[0], fill.results[0])
    erase(op)
    return fill


def _number(value: SSAValue, emit: Emitter) -> SSAValue:
    """The scalar that is repeated, outside of any body."""
    if isinstance(value.type, TensorType):
        return emit.add(tensor.ExtractOp(value, [emit.index(0) for _ in shape_of(value)], element_of(value))).result
    assert isinstance(value.owner, arith.ConstantOp)
    return emit.add(value.owner.clone()).result


# records --------------------------------------------------------------------------------------------------------------


def _record(records: CompileRecord, blocks: Iterable[Block], elided: Iterable[Operation], members: Set[str]) -> None:
    """A source node that was nothing but a fill costs no dispatch any more."""
    dispatched = {name for block in blocks for region in _regions(block) for name in provenance(region)}
    for name in (name for op in elided for name in provenance(op)):
        if name not in dispatched:
            records.eliminated.setdefault(name, ElideFillsPass.name)
    records.decisions[:] = [
        _filled(one) if one.verdict == "fused" and {one.producer, one.consumer} <= members else one
        for one in records.decisions
    ]


def _filled(decision: Decision) -> Decision:
    return msgspec.structs.replace(
        decision, rule=ElideFillsPass.name, detail="what is put into a fill is copied there, without a dispatch", at=""
    )


EXPORT = ElideFillsPass
