"""elide-concats: a concat whose parts are contiguous in it is memory, not work: the dispatches that make the parts
write them there.

    %a = flow.dispatch.region ..                          %a = flow.dispatch.region ..
    %b = flow.dispatch.region ..                    =>    %b = flow.dispatch.region ..
    %c = flow.dispatch.region { concat(%a, %b) }          %c = tensor.concat %a, %b

The schedule lays such a concat out (`program/concat_in_place.py`). Concats whose parts are arms of one dispatch, or
that are read in place, never come here: they are not alone in their dispatch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import msgspec
from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.region_names import member_ids
from fuseline.ir.context import CompilerContext
from fuseline.ir.flow import DispatchRegionOp, ReturnOp
from fuseline.ir.functions import functions
from fuseline.ir.provenance import provenance
from fuseline.passes.dispatch.open_regions import dissolve
from fuseline.program.concat_in_place import ConcatsInPlace
from fuseline.report.records import CompileRecord, Decision


@dataclass(frozen=True)
class ElideConcatsPass(ModulePass):
    """Has no options."""

    name = "elide-concats"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Take concats out of their regions; their decisions go to `ctx.records`."""
        assert isinstance(ctx, CompilerContext)
        blocks = [function.body.block for function in functions(op)]
        elided, members = list[tensor.ConcatOp](), set[str]()
        for block in blocks:
            _elide_all(ctx, block, elided, members)
        if elided:
            _record(ctx.records, blocks, elided, members)


def _elide_all(ctx: CompilerContext, block: Block, elided: list[tensor.ConcatOp], members: set[str]) -> None:
    """Dissolve the regions of `block` that are memory, and add their concats and the ids of those to the lists."""
    places = ConcatsInPlace(block, ShapeAnalysis(ctx.symbols))
    for op in list(block.ops):
        concat = op if isinstance(op, tensor.ConcatOp) else _only_concat(op)
        if concat is None or places.claim(concat) is None or concat is op:
            continue
        assert isinstance(op, DispatchRegionOp)
        members.update(member_ids(op))
        dissolve(op)
        elided.append(concat)


def _only_concat(op: Operation) -> tensor.ConcatOp | None:
    """The concat that is all that a dispatch does, reshapes aside."""
    inside = list(op.body.block.ops) if isinstance(op, DispatchRegionOp) else []
    concats = [inner for inner in inside if isinstance(inner, tensor.ConcatOp)]
    plain = all(isinstance(inner, (*RESHAPES, tensor.ConcatOp, ReturnOp)) for inner in inside)
    return concats[0] if plain and len(concats) == 1 else None


# records --------------------------------------------------------------------------------------------------------------


def _record(
    records: CompileRecord, blocks: Iterable[Block], elided: Iterable[tensor.ConcatOp], members: Collection[str]
) -> None:
    """A source node that was nothing but such a concat costs nothing any more; its parts are fused into those that make
    them."""
    dispatched = {
        name for block in blocks for op in block.ops if isinstance(op, DispatchRegionOp) for name in provenance(op)
    }
    for concat in elided:
        for name in provenance(concat):
            if name not in dispatched:
                records.eliminated.setdefault(name, ElideConcatsPass.name)
    records.decisions[:] = [
        _written(decision) if decision.consumer in members else decision for decision in records.decisions
    ]


def _written(decision: Decision) -> Decision:
    detail = "the part is written where it lies in the concat"
    return msgspec.structs.replace(
        decision, rule=ElideConcatsPass.name, verdict="fused", code="fused", detail=detail, at=""
    )


EXPORT = ElideConcatsPass
