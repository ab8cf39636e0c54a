"""What regions, and the entries of executables, say of their loops (`fuseline.loops`), kept true while passes that know
nothing of it change their bodies: a user's pipeline may clean up behind a round of fusion, or behind outlining.

A pass that changes what is said is left alone. Where members only went away, what was said of the others stays;
where others took their place, it stays if it is so of them, and else nothing is said: the loops are derived then
(`derived_loops.py`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, Role, members_of, require_match
from fuseline.dispatch.loop_claims import require_shared
from fuseline.dispatch.loops_attribute import from_attribute, to_attribute
from fuseline.dispatch.member_classes import with_classes
from fuseline.dispatch.view import DispatchView
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import body_of, ops_of
from fuseline.ir.flow import DispatchRegionOp, ExecutableOp
from fuseline.ir.functions import functions

_Home = DispatchRegionOp | FuncOp

_Said = tuple[Attribute, FusedLoops, list[Operation]]


@contextmanager
def loops_kept(module: ModuleOp, ctx: CompilerContext) -> Generator[None]:
    """While a pass runs on `module`: afterwards no region and no entry says of its loops what is no longer so of its
    body. One that said what was not so is malformed, and stays so until somebody reports it."""
    before = dict(_homes(module, ShapeAnalysis(ctx.symbols)))
    yield
    changed = [
        (home, loops, members)
        for home, (said, loops, members) in before.items()
        if home.parent is not None
        and home.attributes.get(LOOPS_ATTRIBUTE) is said
        and members_of(body_of(home)) != members
    ]
    shapes = ShapeAnalysis(ctx.symbols) if changed else None
    for home, loops, members in changed:
        assert shapes is not None
        _settle(home, loops, members, _sizes_in(home, shapes))


def says_loops(module: ModuleOp) -> bool:
    """Whether any dispatch of `module` says something of its loops."""
    return any(LOOPS_ATTRIBUTE in home.attributes for home in _dispatches(module))


def _homes(module: ModuleOp, shapes: ShapeAnalysis) -> Iterator[tuple[_Home, _Said]]:
    """The regions and entries that say what is so, with that and their members."""
    for home in _dispatches(module):
        said = home.attributes.get(LOOPS_ATTRIBUTE)
        loops = _true(said, body_of(home), _sizes_in(home, shapes)) if said is not None else None
        if said is not None and loops is not None:
            yield home, (said, loops, members_of(body_of(home)))


def _dispatches(module: ModuleOp) -> Iterator[_Home]:
    for op in ops_of(body_of(module)):
        if type(op) is ExecutableOp:
            yield entry_of(op)
    for function in functions(module):
        for block in function.body.blocks:
            yield from (op for op in ops_of(block) if type(op) is DispatchRegionOp)


def _sizes_in(home: _Home, shapes: ShapeAnalysis) -> ShapeAnalysis:
    """The sizes that a body speaks of: those of the program, of which an entry has names of its own."""
    return DispatchView(home).shapes if isinstance(home, FuncOp) else shapes


def _true(said: Attribute, body: Block, shapes: ShapeAnalysis) -> FusedLoops | None:
    """What was said of the members of `body`; None where it is malformed, or is not so of them."""
    try:
        loops = from_attribute(said, shapes.symbols)
        require_match(loops, body, shapes)
    except FuselineError:
        return None
    return loops


def _settle(home: _Home, loops: FusedLoops, before: Sequence[Operation], shapes: ShapeAnalysis) -> None:
    """Let `home` say what holds of its members now."""
    try:
        home.attributes[LOOPS_ATTRIBUTE] = to_attribute(_still_so(loops, before, body_of(home), shapes))
    except FuselineError:
        del home.attributes[LOOPS_ATTRIBUTE]


def _still_so(loops: FusedLoops, before: Sequence[Operation], body: Block, shapes: ShapeAnalysis) -> FusedLoops:
    """What was said of the members `before`, said of those that `body` has. Raises FuselineError where it is not so."""
    numbers = {op: number for number, op in enumerate(before)}
    members = members_of(body)
    if len(members) != len(before) or numbers.keys() >= set(members):
        loops = _of_members(loops, [numbers.get(op) for op in members])
    require_match(loops, body, shapes)
    _require_read_at_home(loops, members)
    found = with_classes(loops, body, shapes)
    require_shared(found, body, shapes, "")
    return found


def _require_read_at_home(loops: FusedLoops, members: Sequence[Operation]) -> None:
    """Raises E0302 where an arm reads what another one evaluates where it is read: of two equal ops in two arms one is
    left."""
    homes = dict(zip(members, loops.members, strict=True))
    for op, one in homes.items():
        readers = {homes[use.operation].arm for result in op.results for use in result.uses if use.operation in homes}
        if one.role is Role.INLINED and readers - {one.arm}:
            raise FuselineError("E0302", "what is read in place is read by several arms")


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
