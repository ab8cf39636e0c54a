"""How two groups become one: merging keeps the grid loops that correspond along every edge between them and makes the
others inner.

Loops made inner are **demoted**: they run inside a workgroup, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.structured import Kind
from fuseline.ir.dim import Dim
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.group_body import Renumbering
from fuseline.passes.fusion.joint_group import JointGroup
from fuseline.passes.fusion.node import Node, Read


@dataclass(frozen=True)
class Alignment:
    """Which grid loops of a producer and a consumer group correspond. `demoted_*` are grid loops of extent other than 1
    that do not."""

    pairs: tuple[tuple[int, int], ...]
    demoted_producer: frozenset[int]
    demoted_consumer: frozenset[int]

    @property
    def exact(self) -> bool:
        """Whether no loop has to become serial."""
        return not self.demoted_producer and not self.demoted_consumer


class _Matcher:
    """Pairs grid loops one to one; whatever contradicts is dropped from both sides."""

    def __init__(self) -> None:
        self.partner: dict[int, int] = {}
        self.bad_producer: set[int] = set()
        self.bad_consumer: set[int] = set()

    def pair(self, mine: int, theirs: int) -> None:
        known = self.partner.get(mine)
        if known is None and theirs not in self.partner.values():
            self.partner[mine] = theirs
        elif known != theirs:
            self.bad_producer.add(mine)
            self.bad_consumer.add(theirs)

    def result(self) -> list[tuple[int, int]]:
        return [
            (p, c) for p, c in sorted(self.partner.items()) if p not in self.bad_producer and c not in self.bad_consumer
        ]


def align(producer: Group, consumer: Group) -> Alignment:
    """The correspondence of grid loops that every edge between the two groups agrees on."""
    matcher = _Matcher()
    for read in consumer.reads_from(producer):
        assert read.producer is not None
        placed = [] if producer.is_inlined(read.producer) else _placed_reads(read, consumer)
        if not placed:
            _refuse_all(matcher, producer, consumer)
        for one in placed:
            _match_read(matcher, producer, consumer, one)
    pairs = _equal_extents(matcher.result(), producer, consumer)
    mine, theirs = {p for p, _ in pairs}, {c for _, c in pairs}
    return Alignment(
        tuple(pairs),
        frozenset(g for g, extent in enumerate(producer.grid) if extent != 1 and g not in mine),
        frozenset(g for g, extent in enumerate(consumer.grid) if extent != 1 and g not in theirs),
    )


def _placed_reads(read: Read, group: Group) -> list[Read]:
    """The reads that placed members of `group` make of a value, through a pad that they read in place, or rows that
    each of them evaluates; none where another op is read in place."""
    if not group.is_inlined(read.consumer):
        return [read]
    if read.consumer.kind is not Kind.PAD and (read.consumer.kind is not Kind.ELEMENTWISE or group.heavy):
        return []
    inside = [further for further in read.consumer.readers if further.consumer in group.member_set]
    if read.consumer.kind is Kind.PAD and any(group.is_inlined(further.consumer) for further in inside):
        return []
    if not all(_in_step(further) for further in inside):
        return []
    found = [_placed_reads(_composed(read, further), group) for further in inside]
    return [one for reads in found for one in reads] if all(found) else []


def _in_step(read: Read) -> bool:
    """Whether the reader's loops are as long as those that write what it reads: sizes with names of their own are not
    known to be equal."""
    assert read.producer is not None
    written = read.producer.written[read.producer.result_index(read.value)]
    return all(
        loop is None
        or not isinstance(at, AffineDimExpr)
        or read.producer.loops[loop] == read.consumer.loops[at.position]
        for loop, at in zip(written, read.coordinates, strict=True)
    )


def _composed(read: Read, further: Read) -> Read:
    """What `further`, a read of a result of the op that reads, asks of the value that op reads."""
    written = read.consumer.written[read.consumer.result_index(further.value)]
    at = {loop: step for loop, step in zip(written, further.coordinates, strict=True) if loop is not None}
    coordinates = tuple(at.get(c.position) if isinstance(c, AffineDimExpr) else None for c in read.coordinates)
    return replace(read, consumer=further.consumer, coordinates=coordinates)


def _equal_extents(pairs: Iterable[tuple[int, int]], producer: Group, consumer: Group) -> list[tuple[int, int]]:
    return [(p, c) for p, c in pairs if producer.grid[p] == consumer.grid[c]]


def _refuse_all(matcher: _Matcher, producer: Group, consumer: Group) -> None:
    matcher.bad_producer.update(range(len(producer.grid)))
    matcher.bad_consumer.update(range(len(consumer.grid)))


def _match_read(matcher: _Matcher, producer: Group, consumer: Group, read: Read) -> None:
    assert read.producer is not None
    source, target = producer.grid_loops(read.producer), consumer.grid_loops(read.consumer)
    written = read.producer.written[read.producer.result_index(read.value)]
    for loop, coordinate in zip(written, read.coordinates, strict=True):
        grid = source[loop] if loop is not None else None
        wanted = target[coordinate.position] if isinstance(coordinate, AffineDimExpr) else None
        if grid is not None and wanted is not None:
            matcher.pair(grid, wanted)
        elif grid is not None:
            matcher.bad_producer.add(grid)
        elif coordinate is not None:
            matcher.bad_consumer.update(g for d in dims_of(coordinate) if (g := target[d]) is not None)
        else:
            matcher.bad_consumer.update(range(len(consumer.grid)))


def merged(producer: Group, consumer: Group, alignment: Alignment) -> Group:
    """Both groups as one over the loops that correspond (unit loops fall away)."""
    mine: dict[int | None, int] = {p: i for i, (p, _) in enumerate(alignment.pairs)}
    theirs: dict[int | None, int] = {c: i for i, (_, c) in enumerate(alignment.pairs)}
    numbers = _changed(mine, producer), _changed(theirs, consumer)
    return JointGroup(producer, consumer, tuple([producer.grid[p] for p, _ in alignment.pairs]), numbers)


def _changed(numbers: Renumbering, group: Group) -> Renumbering | None:
    """None where all grid loops keep their number."""
    same = len(numbers) == len(group.grid) and all([old == new for old, new in numbers.items()])
    return None if same else numbers


def inline_into(producer: Group, consumer: Group) -> Group:
    """The consumer's group with all of the producer's members read in place."""
    return JointGroup(producer, consumer, consumer.grid, in_place=producer)


def cut_behind(producer: Group, consumer: Group) -> Group:
    """The producer's group with slices of its results: no loops of their own, they say what of a result is stored."""
    return JointGroup(producer, consumer, producer.grid, in_place=consumer)


def joined(arms: Sequence[Group]) -> Group:
    """Independent groups as the arms of one."""
    grid_loop_of = {node: loops for arm in arms for node, loops in arm.grid_loop_of.items()}
    return Group(
        _members(arms),
        (),
        grid_loop_of,
        {node for arm in arms for node in arm.inlined},
        tuple(arm.plain for arm in arms),
    )


def side_by_side(arms: Sequence[Group], numbers: Sequence[Mapping[int, int]], grid: tuple[Dim, ...]) -> Group:
    """Independent groups as one over `grid`: `numbers[i]` says which of its loops a grid loop of arm `i` is; the others
    run inside."""
    grid_loop_of = {
        node: tuple(None if at is None else number.get(at) for at in loops)
        for arm, number in zip(arms, numbers, strict=True)
        for node, loops in arm.grid_loop_of.items()
    }
    online = tuple(stream for arm in arms for stream in arm.online)
    return Group(_members(arms), grid, grid_loop_of, {node for arm in arms for node in arm.inlined}, online=online)


def _members(groups: Iterable[Group]) -> list[Node]:
    """The members of all, in program order."""
    return sorted((node for group in groups for node in group.members), key=lambda node: node.position)
