"""compare-executables: write down, for code that looks alike, what differs first and what sharing it would cost. It
changes nothing in the IR.

Of each class of near-duplicates every member but the first is compared with the one before it that is nearest: one that
is the same but for constants, if there is one. Whether two share their code in the end shows when it is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fuseline.ir import flow
from fuseline.ir.context import ComparedCode, CompilerContext
from fuseline.passes.dedup.constant_classes import ConstantVariant, classes, differing
from fuseline.passes.dedup.first_difference import first_difference
from fuseline.passes.dedup.levels import checked, contains
from fuseline.passes.dedup.scalar_operands import calls_of
from fuseline.targets.target import SharingPrice, SharingPrices

COMPARED = 8
"""Members before it that one is compared with."""


@dataclass(frozen=True)
class CompareExecutablesPass(ModulePass):
    """`level`: one of `levels.LEVELS`."""

    name = "compare-executables"
    level: str = "exact"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fill `ctx.compared`. Raises FuselineError: E0304 for an unknown level."""
        assert isinstance(ctx, CompilerContext)
        ctx.records.dedup = checked(self.level, self.name)
        ctx.compared.clear()
        calls = calls_of(op)
        executables = [one for one in op.ops if isinstance(one, flow.ExecutableOp) and one.sym_name.data in calls]
        comparison = _Comparison(self.level, calls, ctx.sharing_price)
        for variants in classes(executables, extents=False):
            for i in range(1, len(variants)):
                ctx.compared.append(comparison.nearest(variants[max(0, i - COMPARED) : i], variants[i]))


@dataclass(frozen=True)
class _Comparison:
    level: str
    calls: Mapping[str, Sequence[flow.DispatchOp]]
    price: SharingPrices

    def nearest(self, before: Sequence[ConstantVariant], variant: ConstantVariant) -> ComparedCode:
        """What keeps `variant` from the nearest of those before it: one whose extents are the same and whose constants
        cost least."""
        found = [self._compared(one, variant) for one in before]
        return min(found, key=lambda one: (one.code == EXTENTS, one.ns))

    def _compared(self, one: ConstantVariant, other: ConstantVariant) -> ComparedCode:
        code, detail, ns = self._difference(one, other)
        first, second = (self.calls[variant.executable.sym_name.data][0] for variant in (one, other))
        return ComparedCode(first, second, code, detail, ns)

    def _difference(self, one: ConstantVariant, other: ConstantVariant) -> tuple[str, str, float]:
        text = first_difference(one.entry, other.entry)
        if text:
            return EXTENTS, text, 0.0
        varying = differing([one, other])
        prices = [price for i in varying for price in self._prices(one, other, i)]
        text = _constants(one, other, varying) if varying else "nothing"
        if prices:
            return DECIDES, f"{text}: {prices[0].reason}", sum(price.ns for price in prices)
        return (UNBOUND if contains(self.level, "constants") else BELOW), text, 0.0

    def _prices(self, one: ConstantVariant, other: ConstantVariant, number: int) -> list[SharingPrice]:
        """The dearer of the two, where one is not free."""
        asked = [self.price(variant.entry, variant.constants[number]) for variant in (one, other)]
        return sorted([price for price in asked if price is not None], key=lambda price: -price.ns)[:1]


def _constants(one: ConstantVariant, other: ConstantVariant, varying: Sequence[int]) -> str:
    """The first constant that differs, and how many do."""
    first = varying[0]
    more = f" ({len(varying)} constants)" if len(varying) > 1 else ""
    return f"{one.constants[first].reader.name} has {one.values[first]}, {other.values[first]}{more}"


EXTENTS, DECIDES, BELOW, UNBOUND = "extents-differ", "constant-decides-code", "below-level", "too-many-operands"
"""Why near-duplicates may stay apart: extents are no operands, or cost time as such; so do constants; the level shares
no constants, or nothing; a dispatch cannot bind more."""

EXPORT = CompareExecutablesPass
