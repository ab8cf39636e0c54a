"""merge-equal-regions: of dispatch regions of one op each that compute the same from the same, the first stays and
takes over all readers.

    %a = flow.dispatch.region { slice %x }          %a = flow.dispatch.region { slice %x }
    %b = flow.dispatch.region { slice %x }    =>
    use(%a, %b)                                     use(%a, %a)

So what was cloned for the sake of readers that did not take it in (`clone-reads`) is stored once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fuseline.ir.fast.direct import erase, ops_of, replace_uses, result_of
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.functions import functions
from fuseline.ir.provenance import carry
from fuseline.passes.cleanup.value_numbering import ValueNumbering


@dataclass(frozen=True)
class MergeEqualRegionsPass(ModulePass):
    """Has no options."""

    name = "merge-equal-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Merge within the block of each function."""
        del ctx
        for function in functions(op):
            _merge([inner for inner in ops_of(function.body.block) if type(inner) is DispatchRegionOp])


def _merge(regions: list[DispatchRegionOp]) -> None:
    numbering, known = ValueNumbering(), dict[Hashable, DispatchRegionOp]()
    for region in regions:
        first = known.setdefault(numbering.region(region.body), region) if _has_one_op(region) else region
        if first is region:
            continue
        replace_uses(result_of(region), result_of(first))
        carry((region,), (first,))
        erase(region)


def _has_one_op(region: DispatchRegionOp) -> bool:
    """Whether the region computes the one result of one op; the tensor that it writes to counts for nothing."""
    ops = [op for op in ops_of(region.body.block) if type(op) is not tensor.EmptyOp]
    return len(ops) == len(region.results) + 1 == 2


EXPORT = MergeEqualRegionsPass
