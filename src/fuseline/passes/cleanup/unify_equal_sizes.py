"""Pass `unify-equal-sizes`: sizes that every run checks to be equal get one name.

    matmul(a[a_0, a_1], b[b_0, b_1]) into empty[b_0, b_1]      requires a_1 == b_0 and a_0 == b_0; one name: a_0

Two names for one size keep apart what belongs together: loops over `a_0` and over `b_0` are not the same loop to
anybody. The feeds are checked as those of a program that says so from the start: sizes of one name must be equal
(E0203). Only names that the frontend made up vanish (`CompilerContext.made_up_sizes`); what a model calls a size, and
an argument that is a size, keeps its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from fuseline.analysis.shapes import DIMS_ATTRIBUTE
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim, Symbol
from fuseline.ir.dim_json import from_name, to_name
from fuseline.ir.dim_order import never_less
from fuseline.ir.rounds import rounds
from fuseline.size_requirement import SizeRequirement


@dataclass(frozen=True)
class UnifyEqualSizesPass(ModulePass):
    """Renames the sizes of arguments, and what the context knows of them."""

    name = "unify-equal-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Nothing but names of sizes changes."""
        assert isinstance(ctx, CompilerContext)
        names = _unified(ctx)
        if not names:
            return
        sizes: dict[str, Dim] = {old: ctx.symbols[new] for old, new in names.items()}
        sizes |= {new: ctx.symbols[new] for new in names.values()}  # with the bounds of both
        for function in op.body.block.ops:
            if isinstance(function, FuncOp) and function.arg_attrs is not None:
                said = [_renamed(entry, sizes) for entry in function.arg_attrs.data]
                function.arg_attrs = ArrayAttr(said)
        _keep_requirements(ctx, sizes)
        for old in names:
            del ctx.symbols[old]
            ctx.made_up_sizes.discard(old)


def _unified(ctx: CompilerContext) -> dict[str, str]:
    """What each name that vanishes becomes; the bounds of a name that stays are those of both from now on."""
    names: dict[str, str] = {}
    for requirement in ctx.requirements.values():
        pair = _two_names(requirement)
        if pair is None or requirement.relation != "equal":
            continue
        kept, lost = (_followed(name, names) for name in pair)
        if lost not in ctx.made_up_sizes:
            kept, lost = lost, kept
        bounds = _common_bounds(ctx.symbols[kept], ctx.symbols[lost])
        if kept != lost and lost in ctx.made_up_sizes and bounds is not None:
            names[lost] = kept
            ctx.symbols[kept] = d.symbol(kept, *bounds)
    return {old: _followed(old, names) for old in names}


def _two_names(requirement: SizeRequirement) -> tuple[str, str] | None:
    left, right = _bare(requirement.left), _bare(requirement.right)
    return None if left is None or right is None else (left.name, right.name)


def _bare(size: Dim) -> Symbol | None:
    """The symbol that a size is, None for any other size."""
    found = d.symbols(size)
    one = next(iter(found)) if len(found) == 1 else None
    return one if one is not None and to_name(size) == one.name else None


def _followed(name: str, names: Mapping[str, str]) -> str:
    for _ in rounds("names of sizes", most=len(names) + 1):
        if name not in names:
            break
        name = names[name]
    return name


def _common_bounds(one: Dim, other: Dim) -> tuple[int, int | None] | None:
    """The values that both sizes may have, None where there are none."""
    low = max(d.lower_bound(one) or 0, d.lower_bound(other) or 0)
    ends = [end for end in (d.upper_bound(one), d.upper_bound(other)) if end is not None]
    high = min(ends, default=None)
    return None if high is not None and high < low else (low, high)


def _renamed(entry: DictionaryAttr, sizes: Mapping[str, Dim]) -> DictionaryAttr:
    """What is said of an argument, with other names of its sizes."""
    said = entry.data.get(DIMS_ATTRIBUTE)
    if not isinstance(said, ArrayAttr):
        return entry
    dims = [name.data for name in said.data if isinstance(name, StringAttr)]
    new = [name if name.isdecimal() else to_name(d.substitute(from_name(name), sizes)) for name in dims]
    return DictionaryAttr({**entry.data, DIMS_ATTRIBUTE: ArrayAttr([StringAttr(name) for name in new])})


def _keep_requirements(ctx: CompilerContext, sizes: Mapping[str, Dim]) -> None:
    """Requirements in the names that are left, without those that hold now by name."""
    old = list(ctx.requirements.values())
    ctx.requirements.clear()
    for left, right, node, relation in old:
        new = SizeRequirement(d.substitute(left, sizes), d.substitute(right, sizes), node, relation)
        if new.left != new.right and not (relation == "at_least" and never_less(new.left, new.right)):
            ctx.require(new)


EXPORT = UnifyEqualSizesPass
