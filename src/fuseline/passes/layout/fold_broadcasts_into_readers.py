"""A tensor that is only repeated along new loops is read as it was before.

    contract(q, broadcast(k))  with  broadcast: (g, n, d) -> (g, r, n, d)      =>
            contract(q, k)  reading k at (g, n, d) for every r

Nothing is computed in between, so nothing is computed again; grouped-query attention then reads each key and value head
once per group. Windows keep their operands, and a contraction keeps every summed loop in both.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import linalg
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass

from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, producer_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import body_of, ops_of
from fuseline.ir.functions import functions
from fuseline.ir.provenance import carry
from fuseline.passes.layout.rewriting.broadcasts import broadcast_source
from fuseline.passes.layout.rewriting.generics import set_input
from fuseline.passes.layout.rewriting.loops import dims_in
from fuseline.passes.layout.rewriting.scope import Ledger, sweep

_READERS = (Kind.ELEMENTWISE, Kind.COPY, Kind.BROADCAST, Kind.GATHER, Kind.REDUCTION, Kind.CONTRACTION)


@dataclass(frozen=True)
class FoldBroadcastsIntoReadersPass(ModulePass):
    """Reads broadcast tensors before they are repeated."""

    name = "fold-broadcasts-into-readers"

    def apply(self, ctx: CompilerContext, op: ModuleOp) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Read through broadcasts in every function; those without readers go, and are recorded."""
        ledger = Ledger(op)
        for function in functions(op):
            for inner in ops_of(body_of(function)):
                if (
                    is_generic(inner)
                    and any(broadcast_source(value) is not None for value in inner.inputs)
                    and kind(inner) in _READERS
                ):
                    _fold_into(inner)
            sweep(body_of(function))
        ledger.close(ctx, self.name)


def _fold_into(op: linalg.ops.GenericOp) -> None:
    for i, value in enumerate(op.inputs):
        found = broadcast_source(value)
        if found is not None:
            source, read = found
            view = StructuredOp(op)
            composed = read.compose(view.maps[i])
            if _keeps_loops(view, i, composed):
                _note(op, value)
                set_input(op, i, source, composed)


def _keeps_loops(view: StructuredOp, index: int, map_: AffineMap) -> bool:
    """Whether another operand still spells every loop that the operand no longer traverses, and no summed loop is among
    them."""
    gone = dims_in(view.maps[index]) - dims_in(map_)
    others = {loop for i, other in enumerate(view.maps) if i != index for loop in dims_in(other)}
    return gone <= others and not gone & set(view.reduction)


def _note(op: linalg.ops.GenericOp, value: SSAValue) -> None:
    """The reader now does what the broadcast did: it carries its source nodes."""
    made = producer_of(value)
    assert made is not None
    carry([made], [op])


EXPORT = FoldBroadcastsIntoReadersPass
