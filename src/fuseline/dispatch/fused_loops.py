"""The loops that the members of a dispatch share, as fusion decided them: a value, whose text is on the region and on
the entry function made of it (`loops_attribute.py`).

    softmax over (r, c):   fuseline.loops = {grids = [["r"]], members = [array<i64: 0, -1>, array<i64: 0, -1>, ...]}
                              the extents       per loop of a member: the grid loop, -1 for an inner loop

A member that is `"inlined"` has no loops of its own: it is evaluated where it is read. A `"view"` is a slice that names
part of a buffer. Dispatches of several arms have a grid for each, and `arms` says which arm a member is in. `online`
are reductions whose loop may be met block by block. Parts of an arm that share no value may go along one argument
together: `along` says which, as operand `o` of member `m`. `classes` number the loops of all members, inner and inlined
ones too, -1 for those of one step: what has one number has one coordinate.

Members are the ops of a body that do something (`members_of`), in order; what is free is cloned in and out of bodies,
and does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.softmax_roles import SoftmaxRoles
from fuseline.analysis.structured import FREE, Kind, StructuredOp, is_generic, kind
from fuseline.errors import FuselineError
from fuseline.ir.dim import Dim, substitute, symbols
from fuseline.ir.fast.direct import ops_of

LOOPS_ATTRIBUTE = "fuseline.loops"
"""On a dispatch region, and on the entry function made of it."""

Extent: TypeAlias = Dim | None
"""How far a grid loop runs; None where the program has no name for it (it follows from data)."""

_OVER_RESULT = (Kind.PAD, Kind.SLICE, Kind.CONCAT, Kind.TRANSPOSE, Kind.BROADCAST)


class Role(Enum):
    """How a member takes part: it runs over the grid, is evaluated where it is read, or names part of a buffer."""

    PLACED = "placed"
    INLINED = "inlined"
    VIEW = "view"


@dataclass(frozen=True)
class MemberLoops:
    """One member. `grid_loops[i]` is the grid loop of its loop `i`, None for an inner one; `()` unless it is placed.
    `arm`: whose grid."""

    grid_loops: tuple[int | None, ...] = ()
    role: Role = Role.PLACED
    arm: int = 0


@dataclass(frozen=True)
class OnlineReduction:
    """Loops `(member, loop)` that are one and may be met block by block, `points` at a time at the least: those of the
    softmax whose members have `roles`, and of what lies along them."""

    loops: tuple[tuple[int, int], ...]
    roles: SoftmaxRoles[int]
    points: int

    @property
    def product(self) -> int:
        """The member that ends it."""
        return self.roles.product

    def renumbered(self, numbers: Mapping[int, int]) -> OnlineReduction:
        """The same where members have other numbers."""
        loops = tuple((numbers[member], loop) for member, loop in self.loops)
        return OnlineReduction(loops, self.roles.mapped(numbers.__getitem__), self.points)


@dataclass(frozen=True)
class FusedLoops:
    """`grids[arm]` are the extents of the loops that the placed members of an arm share; `members` are in the order of
    the body. `along` are `(member, operand)`: the argument that independent parts of an arm go along.

    `classes`: per member the class of each of its loops, in the grid or not; loops with one number have the same
    coordinate. None for a loop of one step; nothing where nobody has said them.
    """

    grids: tuple[tuple[Extent, ...], ...]
    members: tuple[MemberLoops, ...]
    online: tuple[OnlineReduction, ...] = ()
    along: tuple[tuple[int, int], ...] = ()
    classes: tuple[tuple[int | None, ...], ...] = ()

    def renamed(self, names: Mapping[str, Dim]) -> FusedLoops:
        """The same loops where sizes have other names; an extent that depends on a size without one has none any
        more."""
        return replace(self, grids=tuple(tuple(_renamed(extent, names) for extent in grid) for grid in self.grids))

    def of_arm(self, numbers: Sequence[int | None]) -> FusedLoops | None:
        """The loops of one arm whose members are those of `numbers`, in this order, and views of their results (None);
        None where that is no arm."""
        known = {number: i for i, number in enumerate(numbers) if number is not None}
        arms = {self.members[number].arm for number in known}
        if len(arms) != 1 or {i for i, one in enumerate(self.members) if one.arm in arms} != known.keys():
            return None
        members = [replace(self.members[i], arm=0) if i is not None else MemberLoops((), Role.VIEW) for i in numbers]
        online = [one.renumbered(known) for one in self.online if one.product in known]
        along = [(known[member], operand) for member, operand in self.along if member in known]
        classes = _renumbered(self.classes[i] if i is not None else () for i in numbers) if self.classes else ()
        return FusedLoops((self.grids[arms.pop()],), tuple(members), tuple(online), tuple(along), classes)

    def canonical(self) -> FusedLoops:
        """The same loops in an order that no decision changes: arms by their first member, grid loops as the last
        member of an arm has them."""
        arms = list(dict.fromkeys([*(member.arm for member in self.members), *range(len(self.grids))]))
        orders = [self._grid_order(arm) for arm in range(len(self.grids))]
        members = tuple(
            MemberLoops(_reordered(one.grid_loops, orders[one.arm]), one.role, arms.index(one.arm))
            for one in self.members
        )
        return replace(
            self, grids=tuple(tuple(self.grids[arm][loop] for loop in orders[arm]) for arm in arms), members=members
        )

    def _grid_order(self, arm: int) -> list[int]:
        met = [
            loop
            for member in reversed(self.members)
            if member.arm == arm
            for loop in member.grid_loops
            if loop is not None
        ]
        return list(dict.fromkeys([*met, *range(len(self.grids[arm]))]))


def _renumbered(classes: Iterable[tuple[int | None, ...]]) -> tuple[tuple[int | None, ...], ...]:
    """The same classes, numbered in the order in which members have them."""
    numbers: dict[int, int] = {}
    return tuple(
        tuple(None if class_ is None else numbers.setdefault(class_, len(numbers)) for class_ in one) for one in classes
    )


def _reordered(grid_loops: tuple[int | None, ...], order: Sequence[int]) -> tuple[int | None, ...]:
    return tuple(None if loop is None else order.index(loop) for loop in grid_loops)


def _renamed(extent: Extent, names: Mapping[str, Dim]) -> Extent:
    if extent is None or isinstance(extent, int):
        return extent
    return substitute(extent, names) if all(item.name in names for item in symbols(extent)) else None


# against a body -------------------------------------------------------------------------------------------------------


def members_of(body: Block) -> list[Operation]:
    """The ops of a region's or entry's body that do something, in order: nothing free, no reshapes, not the return."""
    return [op for op in ops_of(body) if op.results and type(op) not in RESHAPES and kind(op) not in FREE]


def member_loops(op: Operation, shapes: ShapeAnalysis) -> tuple[Dim, ...]:
    """The extents of a member's loops: those of a structured op, the space of the result of one that moves data; any
    other op is opaque."""
    if is_generic(op):
        return StructuredOp(op).loops(shapes)
    return shapes.dims(op.results[0]) if kind(op) in _OVER_RESULT else ()


def require_match(loops: FusedLoops, body: Block, shapes: ShapeAnalysis, node: str | None = None) -> None:
    """Raises FuselineError (E0302) where the loops cannot be those of `body`; `node` is the dispatch."""
    members = members_of(body)
    if len(members) != len(loops.members):
        raise mismatch(f"it has {len(loops.members)} members, the body has {len(members)}", node)
    for number, (op, member) in enumerate(zip(members, loops.members, strict=True)):
        problem = _problem(loops, member, op, shapes)
        if problem:
            raise mismatch(f"member {number} ({op.name}): {problem}", node)
    for one in loops.online:
        _require_online(one, loops, node)
    for member, operand in loops.along:
        if not (0 <= member < len(members) and 0 <= operand < len(members[member].operands)):
            raise mismatch(f"there is no operand {operand} of member {member} to go along", node)
        if not _is_argument(members[member].operands[operand], body):
            raise mismatch(f"operand {operand} of member {member} is no tensor from outside", node)


def _is_argument(value: SSAValue, body: Block) -> bool:
    inside = isinstance(value, OpResult) and value.op.parent is body
    return isinstance(value.type, TensorType) and not inside


def _problem(loops: FusedLoops, member: MemberLoops, op: Operation, shapes: ShapeAnalysis) -> str:
    if not 0 <= member.arm < len(loops.grids):
        return f"there is no arm {member.arm}"
    if member.role is Role.VIEW and kind(op) is not Kind.SLICE:
        return "it is no slice, and so no view"
    if member.role is not Role.PLACED:
        return ""
    grid, extents = loops.grids[member.arm], member_loops(op, shapes)
    if len(extents) != len(member.grid_loops):
        return f"it has {len(extents)} loops, not {len(member.grid_loops)}"
    used = [loop for loop in member.grid_loops if loop is not None]
    if any(not 0 <= loop < len(grid) for loop in used) or len(set(used)) != len(used):
        return f"its grid loops {used} are not distinct loops of a grid of {len(grid)}"
    return next(_unequal(extents, member.grid_loops, grid), "")


def _unequal(extents: Sequence[Dim], grid_loops: Sequence[int | None], grid: Sequence[Extent]) -> Iterator[str]:
    """Loops that are known to run elsewhere than their grid loop: sizes that nobody knows are compared by
    `verify-each`."""
    for loop, (extent, at) in enumerate(zip(extents, grid_loops, strict=True)):
        if at is not None and isinstance(extent, int) and isinstance(grid[at], int) and extent != grid[at]:
            yield f"loop {loop} runs to {extent}, its grid loop to {grid[at]}"


def _require_online(one: OnlineReduction, loops: FusedLoops, node: str | None) -> None:
    _require_one_arm(one, loops, node)
    for member, loop in one.loops:
        placed = loops.members[member].grid_loops
        if not 0 <= loop < max(1, len(placed)) or (placed and placed[loop] is not None):
            raise mismatch(f"loop {loop} of member {member} is met block by block and is no inner loop", node)
    if one.points < 1:
        raise mismatch(f"an online reduction meets {one.points} points at a time", node)


def _require_one_arm(one: OnlineReduction, loops: FusedLoops, node: str | None) -> None:
    spoken_of = [*one.roles.all, *(member for member, _ in one.loops)]
    for member in spoken_of:
        if not 0 <= member < len(loops.members):
            raise mismatch(f"an online reduction speaks of member {member} of {len(loops.members)}", node)
    arms = sorted({loops.members[member].arm for member in spoken_of})
    if len(arms) > 1:
        raise mismatch(f"an online reduction speaks of members of the arms {arms}", node)


def mismatch(message: str, node: str | None) -> FuselineError:
    """The error of what `fuseline.loops` says of the dispatch `node`, and is not so."""
    return FuselineError(
        "E0302", f"{LOOPS_ATTRIBUTE}: {message}", node=node, hint="remove the attribute, or form the region again"
    )
