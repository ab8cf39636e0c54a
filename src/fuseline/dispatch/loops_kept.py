"""What regions say of their loops (`fuseline.loops`), kept true while passes that know nothing of it change their
bodies: a user's pipeline may clean up behind a round of fusion.

A pass that changes what a region says is left alone. Where members only went away, what was said of the others stays;
where others took their place, it stays if it is so of them, and else nothing is said: the loops are derived then
(`derived_loops.py`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, members_of, require_match
from fuseline.dispatch.loop_claims import require_shared
from fuseline.dispatch.loops_attribute import from_attribute, to_attribute
from fuseline.dispatch.member_classes import with_classes
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import body_of, ops_of
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.functions import functions

_Said = tuple[Attribute, FusedLoops, list[Operation]]


@contextmanager
def loops_kept(module: ModuleOp, ctx: CompilerContext) -> Generator[None]:
    """While a pass runs on `module`: afterwards no region says of its loops what is no longer so of its body. One that
    said what was not so is malformed, and stays so until somebody reports it."""
    before = dict(_regions(module, ShapeAnalysis(ctx.symbols)))
    yield
    changed = [
        (region, loops, members)
        for region, (said, loops, members) in before.items()
        if region.parent is not None
        and region.attributes.get(LOOPS_ATTRIBUTE) is said
        and members_of(body_of(region)) != members
    ]
    shapes = ShapeAnalysis(ctx.symbols) if changed else None
    for region, loops, members in changed:
        assert shapes is not None
        _settle(region, loops, members, shapes)


def _regions(module: ModuleOp, shapes: ShapeAnalysis) -> Iterator[tuple[DispatchRegionOp, _Said]]:
    """The regions that say what is so, with that and their members."""
    for function in functions(module):
        for region in (op for block in function.body.blocks for op in ops_of(block)):
            said = region.attributes.get(LOOPS_ATTRIBUTE)
            loops = _true(said, body_of(region), shapes) if type(region) is DispatchRegionOp and said else None
            if said is not None and loops is not None:
                yield cast(DispatchRegionOp, region), (said, loops, members_of(body_of(region)))


def _true(said: Attribute, body: Block, shapes: ShapeAnalysis) -> FusedLoops | None:
    """What was said of the members of `body`; None where it is malformed, or is not so of them."""
    try:
        loops = from_attribute(said, shapes.symbols)
        require_match(loops, body, shapes)
    except FuselineError:
        return None
    return loops


def _settle(region: DispatchRegionOp, loops: FusedLoops, before: Sequence[Operation], shapes: ShapeAnalysis) -> None:
    """Let a region say what holds of its members now."""
    try:
        region.attributes[LOOPS_ATTRIBUTE] = to_attribute(_still_so(loops, before, body_of(region), shapes))
    except FuselineError:
        del region.attributes[LOOPS_ATTRIBUTE]


def _still_so(loops: FusedLoops, before: Sequence[Operation], body: Block, shapes: ShapeAnalysis) -> FusedLoops:
    """What was said of the members `before`, said of those that `body` has. Raises FuselineError where it is not so."""
    numbers = {op: number for number, op in enumerate(before)}
    members = members_of(body)
    if len(members) != len(before) or numbers.keys() >= set(members):
        loops = _of_members(loops, [numbers.get(op) for op in members])
    require_match(loops, body, shapes)
    found = with_classes(loops, body, shapes)
    require_shared(found, body, shapes, "")
    return found


def _of_members(loops: FusedLoops, numbers: Sequence[int | None]) -> FusedLoops:
    """The loops of the members `numbers`, in this order. Raises E0302 where there are others (None), or one went away
    that belongs to a loop met block by block."""
    now = {number: i for i, number in enumerate(numbers) if number is not None}
    if len(now) != len(numbers) or any(number not in now for one in loops.online for number, _ in one.loops):
        raise FuselineError("E0302", "members that nothing is said of")
    members = [loops.members[number] for number in now]
    arms = sorted({one.arm for one in members})
    return replace(
        loops,
        grids=tuple(loops.grids[arm] for arm in arms),
        members=tuple(replace(one, arm=arms.index(one.arm)) for one in members),
        online=tuple(one.renumbered(now) for one in loops.online),
        along=tuple((now[member], operand) for member, operand in loops.along if member in now),
        classes=(),
    )
