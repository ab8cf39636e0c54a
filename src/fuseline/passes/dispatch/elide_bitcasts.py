"""elide-bitcasts: what only calls the bits of a tensor another type needs no dispatch: it is the same memory.

    %r = flow.dispatch.region {
      %b = linalg.generic ins(%x : tensor<?xf32>)        =>     %r = linalg.generic ins(%x) { yield bitcast %in }
           outs(%e : tensor<?xi32>) { bitcast %in }
    }

Reshapes may stand between several, and 16-bit floats be widened and narrowed again in between. A bitcast that some
dispatch took in is never here. The schedule reads a view of those that are left (`program/bitcasts.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, OpResult
from xdsl.passes import ModulePass

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.structured import is_generic, yielded
from fuseline.dispatch.result_boxes import returned
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import body_of, ops_of, replace_uses
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.functions import functions
from fuseline.ir.halves import is_half
from fuseline.ir.provenance import provenance
from fuseline.passes.dispatch.open_regions import dissolve
from fuseline.program.bitcasts import reads_in_place


@dataclass(frozen=True)
class ElideBitcastsPass(ModulePass):
    """Has no options."""

    name = "elide-bitcasts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Take bitcasts out of their regions; what they were made of goes to `ctx.records`."""
        assert isinstance(ctx, CompilerContext)
        regions = [inner for function in functions(op) for inner in ops_of(body_of(function)) if _is_region(inner)]
        chains = [(region, _chain(region)) for region in regions]
        elided = [name for region, chain in chains if chain for name in _elide(region, chain)]
        left = {name for region, chain in chains if not chain for name in provenance(region)}
        for name in elided:
            if name not in left:
                ctx.records.eliminated.setdefault(name, self.name)


def _is_region(op: Operation) -> bool:
    return isinstance(op, DispatchRegionOp)


def _chain(region: Operation) -> list[Operation]:
    """The ops from what a region reads to its one result, where they change nothing but the type and the shape; none
    for other regions, and where a concat may be made of the result in its place."""
    assert isinstance(region, DispatchRegionOp)
    results = returned(region.body.block)
    if len(results) != 1 or any(isinstance(use.operation, tensor.ConcatOp) for use in region.results[0].uses):
        return []
    found, value = list[Operation](), results[0]
    while isinstance(value, OpResult) and value.op.parent is region.body.block:
        if not isinstance(value.op, RESHAPES) and not (is_generic(value.op) and reads_in_place(value.op)):
            return []
        found.append(value.op)
        value = value.op.operands[0]
    made = element_of(results[0])
    return found[::-1] if any(map(is_generic, found)) and _keeps_bits(found[::-1], element_of(value), made) else []


def _keeps_bits(chain: Sequence[Operation], source: Attribute, made: Attribute) -> bool:
    """Whether the bits that come out are those of the elements of type `source` that go in."""
    stored, widened = source, False
    for op in (inner for one in chain if is_generic(one) for inner in _computed(one)):
        (result,) = op.results
        if type(op) is arith.BitcastOp and not widened:
            stored = result.type
        elif type(op) is arith.ExtFOp and is_half(stored) and not widened:
            widened = True
        elif type(op) is arith.TruncFOp and widened and result.type == stored:
            widened = False
        else:
            return False
    return stored == made and not widened


def _computed(op: Operation) -> list[Operation]:
    """The ops of a body; with those twice whose results are not read by the next alone, so that it is no chain."""
    assert is_generic(op)
    *ops, _ = ops_of(body_of(op))
    reads = [body_of(op).args[0], *(inner.results[0] for inner in ops)]
    given = [*(inner.operands for inner in ops), yielded(op)]
    if all(list(values) == [read] for values, read in zip(given, reads, strict=True)):
        return ops
    return [op]


def _elide(region: Operation, chain: Sequence[Operation]) -> list[str]:
    """Put one bitcast and the reshapes in place of a region; the nodes that it was made of."""
    assert isinstance(region, DispatchRegionOp)
    names, made = list(provenance(region)), element_of(chain[-1].results[0])
    dissolve(region)
    emit, value = Emitter.before(chain[-1]), chain[0].operands[0]
    if element_of(value) != made:
        value = emit.elementwise(
            [value], emit.empty_like(value, made), lambda b: b.op(arith.BitcastOp, b.args[0], made)
        )
    for op in chain:
        if isinstance(op, RESHAPES):
            value = emit.reshaped_again(op, value)
    replace_uses(chain[-1].results[0], value)
    return names


EXPORT = ElideBitcastsPass
