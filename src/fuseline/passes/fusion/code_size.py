"""How much code a group would be: about how many operations its kernel has, counted without writing it.

A kernel evaluates a value once per point at which something asks for it. What is read at the loops of its reader costs
one evaluation more only where another reader asks elsewhere; a concat, a shifted slice or a gather asks elsewhere every
time, so chains of them double:

    %b = concat(%a[1:], %a[:1])      two points of %a for each point of %b
    %c = concat(%b[1:], %b[:1])      four                     of %c

Sums (which are stored) and what leaves the group are evaluated once, wherever they are read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import BORDERED, Node, Read, node_operations

NOTHING: Mapping[str, int] = {}


def over_limit(group: Group, target: TargetDescription, lowered: Mapping[str, int] = NOTHING) -> WhyNot | None:
    """The refusal of a group of several ops that would be more code than the target takes, None where it is not.

    `lowered`: limits of their own, by the name of a node, for what came out longer than estimated when it was emitted.
    """
    limits = [lowered[node.name] for node in group.members if node.name in lowered] if lowered else []
    limit = min([target.code_limit, *limits]) if target.code_limit else min(limits, default=0)
    if group.size < 2 or not limit:
        return None
    count = operations(group, limit)
    if count <= limit:
        return None
    why = f"the target takes {limit:,}" if not limits else f"the kernel of more than {limit:,} came out too long"
    numbers = {"operations": float(count), "limit_operations": float(limit)}
    return WhyNot("code-limit", f"about {count:,} operations or more, {why}", group.root.name, numbers)


def operations(group: Group, limit: int) -> int:
    """About how many operations a kernel of `group` has; counting ends where it is clear that they are more than
    `limit`."""
    total = group.body_operations
    if total > limit or not (group.reduces or group.reads_elsewhere):
        return total
    return _Points(group, limit).operations()


_PICKED = tuple(f"pick {number}" for number in range(64))

Point = tuple[int, ...]
"""The values of an op's loops, each by a number that stands for how it is computed."""


@dataclass
class _Points:
    """The points at which each member of a group is evaluated."""

    group: Group
    limit: int
    numbers: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    apart: set[int] = field(default_factory=set[int])
    """Numbers of coordinates at which lanes go their own ways."""

    def operations(self) -> int:
        """The operations of all evaluations, at least as far as they stay within the limit."""
        points: dict[Node, dict[Point, None]] = {}
        total = 0
        for node in sorted(self.group.members, key=lambda node: -node.position):
            mine = points[node] = (
                dict.fromkeys([self._own(node)]) if self._is_stored(node) else dict.fromkeys(self._asked(node, points))
            )
            total += len(mine) * node_operations(node)
            if total > self.limit:
                break
        return total

    def _is_stored(self, node: Node) -> bool:
        inside = self.group.member_set
        return (
            (node.reduces and node not in self.group.inlined)
            or node.escapes
            or any(read.consumer not in inside for read in node.readers)
        )

    def _own(self, node: Node) -> Point:
        grid_loops = self.group.grid_loop_of.get(node, (None,) * len(node.loops))
        return tuple(
            [
                self._number(("grid", grid) if grid is not None else (id(node), loop))
                for loop, grid in enumerate(grid_loops)
            ]
        )

    def _asked(self, node: Node, points: dict[Node, dict[Point, None]]) -> Iterator[Point]:
        for read in node.readers:
            for point in points.get(read.consumer, ()):
                yield from [self._through(node, read, point, way) for way in self._ways(read, point)]

    def _ways(self, read: Read, point: Point) -> tuple[str, ...]:
        """How often a reader asks, for one point of its own: each element that a body picks is another.

        Along the lanes, a border is met by a run of lanes or lane by lane: two evaluations. Lanes that are apart stay
        apart.
        """
        reader = read.consumer
        if reader.captured and read.coordinates and not any(read.coordinates):
            return _PICKED[: max(1, reader.picks)]
        if reader.kind not in BORDERED or read.coordinates[-1:] != (None,):
            return ("run",)
        return ("lanes",) if point[-1] in self.apart else ("run", "lanes")

    def _through(self, node: Node, read: Read, point: Point, way: str) -> Point:
        """The loops of `node` that make the element that a reader at `point` asks for."""
        written = node.written[node.result_index(read.value)]
        loops = [self._number(())] * len(node.loops)
        for axis, coordinate in enumerate(read.coordinates):
            loop = written[axis] if axis < len(written) else None
            if loop is None:
                continue
            if isinstance(coordinate, AffineDimExpr) and not read.regrouped:
                loops[loop] = point[coordinate.position]
            elif isinstance(coordinate, AffineConstantExpr):
                loops[loop] = self._number(coordinate.value)
            else:
                loops[loop] = self._computed(read, axis, point, way)
        return tuple(loops)

    def _computed(self, read: Read, axis: int, point: Point, way: str) -> int:
        coordinate = read.coordinates[axis]
        number = self._number((id(read) if coordinate is None else str(coordinate), axis, point, way))
        if way == "lanes" or any(loop in self.apart for loop in point):
            self.apart.add(number)
        return number

    def _number(self, how: Hashable) -> int:
        return self.numbers.setdefault(how, len(self.numbers))
