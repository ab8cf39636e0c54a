"""What must hold for places to lie inside of a tensor: proved from the symbols, noted as a requirement, or refused
where it never holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim
from fuseline.ir.dim_order import never_less
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.provenance import node_names
from fuseline.size_requirement import SizeRequirement


def operations(module: ModuleOp) -> Iterator[Operation]:
    """Every op inside the module's functions, nested ones included."""
    for function in module.body.block.ops:
        if isinstance(function, FuncOp):
            yield function
            yield from ops_inside(function)


def require_inside(
    ctx: CompilerContext,
    reader: Operation,
    ends: tuple[Dim | None, Dim | None],
    size: Dim,
    loops: Sequence[Dim],
    *,
    does: str = "reads",
) -> None:
    """Note what must hold for the places from `ends[0]` to `ends[1]` (None: nothing is asked of that end) to lie in
    `0..size - 1` wherever `loops` run at all. Raises FuselineError (E0107) for what never holds."""
    least, most = ends
    if least is not None:
        _require(ctx, reader, loops, (least, 0), lambda: f"it {does} element {d.to_text(least)}")
    if most is not None:
        _require(
            ctx,
            reader,
            loops,
            (size, d.add(most, 1)),
            lambda: f"it {does} element {d.to_text(most)} of {d.to_text(size)}",
        )


def _require(
    ctx: CompilerContext, reader: Operation, loops: Sequence[Dim], sizes: tuple[Dim, Dim], what: Callable[[], str]
) -> None:
    """Note that the first of `sizes` must be no smaller than the second one."""
    if never_less(*sizes):
        return
    some = d.minimum(1, d.product(loops))  # 0 where nothing is read at all
    left, right = (d.mul(size, some) for size in sizes)
    if never_less(left, right):
        return
    node = node_names(reader) or reader.name
    high = d.upper_bound(d.sub(left, right))
    if high is not None and high < 0:
        raise FuselineError("E0107", what(), node=node)
    _note(ctx, left, right, node)


def require_to_fit(ctx: CompilerContext, reader: Operation, size: Dim, bits: int) -> None:
    """Note that a size must be a signed integer of so many bits."""
    node = node_names(reader) or reader.name
    for left, right in (((1 << (bits - 1)) - 1, size), (size, -(1 << (bits - 1)))):
        if not never_less(left, right):
            _note(ctx, left, right, node)


def _note(ctx: CompilerContext, left: Dim, right: Dim, node: str) -> None:
    require_of_symbols(ctx, SizeRequirement(left, right, node, relation="at_least"))


def require_of_symbols(ctx: CompilerContext, requirement: SizeRequirement) -> None:
    """Note a requirement that a run can check: of sizes that have names. Others (what a loop carries, say) follow from
    how whoever made the op has sized it; nobody could feed them."""
    named = {one.name for one in d.symbols(requirement.left) | d.symbols(requirement.right)}
    if named <= ctx.symbols.keys():
        ctx.require(requirement)
