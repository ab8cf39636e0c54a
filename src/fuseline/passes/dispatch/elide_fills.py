"""elide-fills: what only fills needs no dispatch: the runtime does it.

    %r = flow.dispatch.region {                             %s = tensor.extract %x[]
      %b = linalg.generic ins(%x : tensor<f32>)      =>     %r = linalg.fill ins(%s) outs(tensor.empty(%n))
           outs(tensor.empty(%n)) { yield %x }
    }

A fill whose readers took it in is never here; the dispatches that are left over fill with a constant, or with the only
element of a tensor. The schedule makes steps of them (`program/fills.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.indexing_maps import is_permutation
from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.structured import FREE, StructuredOp, is_generic, kind, yielded
from fuseline.analysis.views import base_of
from fuseline.dispatch.result_boxes import returned, unreshaped
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.create import create_fill
from fuseline.ir.fast.direct import erase, insert_before, ops_of, replace_uses
from fuseline.ir.flow import DispatchRegionOp, ReturnOp
from fuseline.ir.functions import functions
from fuseline.ir.provenance import provenance
from fuseline.passes.dispatch.open_regions import dissolve
from fuseline.program.fills import elements_of


@dataclass(frozen=True)
class ElideFillsPass(ModulePass):
    """Has no options."""

    name = "elide-fills"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Take fills out of their regions; what they were made of goes to `ctx.records`."""
        assert isinstance(ctx, CompilerContext)
        blocks = [function.body.block for function in functions(op)]
        elided = [fill for block in blocks for fill in _elide_all(block)]
        _record(ctx, blocks, elided)


def _elide_all(block: Block) -> list[Operation]:
    """The fills that were all that some regions did, now in their place."""
    elided: list[Operation] = []
    for region in ops_of(block):
        fills = _only_fills(region) if isinstance(region, DispatchRegionOp) else []
        if fills and not any(_is_read_in_part(result) for result in region.results):
            assert isinstance(region, DispatchRegionOp)
            dissolve(region)
            elided += [_as_fill(fill) for fill in fills]
    return elided


def _only_fills(region: DispatchRegionOp) -> Sequence[linalg.ops.GenericOp]:
    """The fills that are all that a region does, reshapes aside; none where it does anything else."""
    inside = ops_of(region.body.block)
    members = [op for op in inside if not isinstance(op, (*RESHAPES, ReturnOp)) and kind(op) not in FREE]
    fills = [op for op in members if is_generic(op) and filled_with(op) is not None]
    made = {unreshaped(value) for value in returned(region.body.block)}
    return fills if len(fills) == len(members) and made <= {fill.results[0] for fill in fills} else []


def filled_with(op: linalg.ops.GenericOp) -> SSAValue | None:
    """What every element of the result is: a scalar constant, or the only element of a tensor that is in memory. None
    for any other op."""
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
    return source if elements_of(source) == 1 and _is_in_memory(source) else None


def _is_in_memory(value: SSAValue) -> bool:
    base = base_of(value).owner
    return not isinstance(base, tensor.EmptyOp)


def _is_read_in_part(value: SSAValue) -> bool:
    """Whether somebody reads a slice of it: the slices of a fill are no views."""
    users = [use.operation for use in value.uses]
    return any(
        isinstance(user, tensor.ExtractSliceOp) or (isinstance(user, RESHAPES) and _is_read_in_part(user.results[0]))
        for user in users
    )


def _as_fill(op: linalg.ops.GenericOp) -> Operation:
    value = filled_with(op)
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


def _record(ctx: CompilerContext, blocks: Iterable[Block], elided: Iterable[Operation]) -> None:
    """A source node that was nothing but a fill costs no dispatch any more."""
    dispatched = {
        name for block in blocks for op in block.ops if isinstance(op, DispatchRegionOp) for name in provenance(op)
    }
    for name in (name for fill in elided for name in provenance(fill)):
        if name not in dispatched:
            ctx.records.eliminated.setdefault(name, ElideFillsPass.name)


EXPORT = ElideFillsPass
