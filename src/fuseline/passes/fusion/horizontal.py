"""Horizontal merges: groups that do not depend on each other become the arms of one dispatch.

    x ──> q_proj                      concat <── conv 1x1
    x ──> k_proj     one launch              <── conv 3x3     each arm writes its slice of the result
    x ──> v_proj

An arm keeps its own grid; the grids are laid end to end, without a barrier between them. What is saved is a launch and
a barrier each, a second traversal over a shared operand, and, for a concat, the copy. Nothing gets slower: threads
share the joint grid more evenly than two small ones. Groups at the same depth of the partition never depend on each
other, and joining them keeps every depth. A second pass over the levels finds what was joined as a whole: what is small
goes beside two that share an operand and are small, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import HEAVY, Kind, is_constant
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import product
from fuseline.ir.element_types import element_bytes
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.group_order import GroupOrder
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.stacked_concats import only_stacks

MOST_ROWS_DOWN = 64
"""Rows down which several reductions are made at once: 64 x 3,136 take .83 to .88 of the time of two dispatches on one
thread and on two, 128 x 2,048 1.05 to 1.35, 256 x 196 1.16 to 1.28. Along rows they take .83 to .94."""

CONCAT_SLICES, SHARED_OPERAND, SAME_SPACE, SMALL = "concat-slices", "shared-operand", "same-space", "small-ops"

WAITING_SHARE = 8
"""Of what stays in a core's caches, the part that may wait there for a reader: what runs meanwhile has the rest. What
runs itself may keep more there (`passes/dispatch/band_height.py`)."""

Takes = Callable[["HorizontalMerge"], bool]
"""Whether a target takes the arms of a merge in one dispatch."""

Keys = Callable[[Group], "list[Hashable]"]
"""What groups must have in common to become arms of one dispatch."""


@dataclass(frozen=True)
class HorizontalMerge:
    """Groups that become arms of one dispatch, and by which rule."""

    rule: str
    groups: tuple[Group, ...]


class Levels:
    """Depths of groups: the longest path from the program's inputs."""

    def __init__(self, groups: Iterable[Group], order: GroupOrder) -> None:
        self.order = order
        self.depth: dict[Group, int] = {}
        for group in groups:
            self._visit(group)

    def _visit(self, group: Group) -> None:
        stack = [group]
        while stack:
            top = stack[-1]
            if top in self.depth:
                stack.pop()
                continue
            before = self.order.producers(top)
            waiting = [other for other in before if other not in self.depth]
            if waiting:
                stack += waiting
                continue
            self.depth[top] = 1 + max((self.depth[other] for other in before), default=-1)
            stack.pop()


# concats --------------------------------------------------------------------------------------------------------------


def concat_merge(group: Group, order: GroupOrder) -> HorizontalMerge | WhyNot | None:
    """The producers of a concat (or of concats of concats) that stands alone, with it; None for any other group."""
    if any(node.kind is not Kind.CONCAT for node in group.members):
        return None
    concat = group.root
    writers = {writer for read in group.outside_reads() if (writer := _writer(read, order.group_of)) is not None}
    if not writers:
        return WhyNot(
            "no-rule", "no part of the concat is made by a dispatch that could write it in place", concat.name
        )
    chosen = sorted(writers, key=lambda g: g.key)
    least = min(2, len(chosen)) if _needs_no_dispatch(group, order) else 1
    while len(chosen) >= least:
        early = _early_writer(chosen, group, order)
        if early is None:
            return HorizontalMerge(CONCAT_SLICES, (*_flat(chosen), group))
        chosen.remove(early)
    return WhyNot("cycle", "the parts of the concat depend on each other", concat.name)


def _writer(read: Read, group_of: Mapping[Node, Group]) -> Group | None:
    """The group that could write a part of a concat in place: it makes the part, in the part's own layout."""
    if read.producer is None or read.regrouped:
        return None
    group = group_of[read.producer]
    return group if group.fusable and read.producer not in group.inlined else None


def _needs_no_dispatch(group: Group, order: GroupOrder) -> bool:
    """Whether a concat is memory for all its parts (`elide-concats`): one writer of several gains nothing then, and
    would copy the parts of the others."""
    reads = list(group.outside_reads())
    made = all(_writer(read, order.group_of) is not None for read in reads)
    return only_stacks(group) and made and len({read.value for read in reads}) == len(reads)


def _flat(groups: Iterable[Group]) -> list[Group]:
    return [arm for group in groups for arm in (group.arms or (group,))]


def _early_writer(chosen: Sequence[Group], concat: Group, order: GroupOrder) -> Group | None:
    """A writer that leads to another one, or over a group outside to the concat: it cannot run beside the others. The
    one that it leads to can, and would be in its way outside as well."""
    inside = {*chosen, concat}
    last = max(order.position[group] for group in inside)
    for writer in chosen:
        seen: set[Group] = set()
        stack = [g for g in order.consumers(writer) if g is not concat]
        while stack:
            group = stack.pop()
            if group in inside:
                return writer
            if group not in seen and order.position[group] <= last:
                seen.add(group)
                stack += order.consumers(group)
    return None


# levels ---------------------------------------------------------------------------------------------------------------


def level_merges(
    groups: Sequence[Group],
    order: GroupOrder,
    target: TargetDescription,
    takes: Takes,
    kinds: Collection[str] = (SHARED_OPERAND, SAME_SPACE, SMALL),
) -> list[HorizontalMerge]:
    """Disjoint merges of groups at equal depth: roots that share an operand, then what runs over one space, then what
    is small, then what reads one value elementwise; what computes elements of what a root reads, beside it. `takes`:
    whether the target takes a merge. `kinds`: which of the three are done."""
    depth = Levels(groups, order).depth
    levels: dict[int, list[Group]] = defaultdict(list)
    for group in sorted(groups, key=lambda g: g.key):
        if group.fusable:
            levels[depth[group]].append(group)
    merges: list[HorizontalMerge] = []
    for level in levels.values():
        rest, mine = list(level), list[HorizontalMerge]()
        for rule, keys in (
            (SHARED_OPERAND, _operands),
            (SAME_SPACE, _space),
            (SMALL, lambda group: _small(group, target)),
            (SHARED_OPERAND, _elementwise_operands),
            (SHARED_OPERAND, _reduced_operands),
        ):
            found = _bucketed(rule, rest, keys, takes) if rule in kinds else []
            taken = {node for merge in found for arm in merge.groups for node in arm.members}
            rest = [group for group in rest if taken.isdisjoint(group.members)]
            mine += found
        if SHARED_OPERAND in kinds:
            wanted = {group for group in level if _is_wanted(group, depth, order, target)}
            mine = _beside_roots(mine, [(group,) for group in rest], wanted, takes)
        merges += mine
    return merges


def _beside_roots(
    merges: Sequence[HorizontalMerge],
    rest: Sequence[tuple[Group, ...]],
    wanted: Set[Group],
    takes: Takes,
) -> list[HorizontalMerge]:
    """The merges of a level, those with roots grown by what computes elements of something that the roots read: groups
    of `rest`, or merges of such. Some of it must be `wanted`."""
    found: dict[tuple[Group, ...], str] = {merge.groups: merge.rule for merge in merges}
    units = (*found, *rest)
    roots = {unit: {value for group in unit for value in _operands(group)} for unit in units}
    for unit in [unit for unit in units if not wanted.isdisjoint(unit)]:
        keys = {key for group in unit for key in _elementwise_operands(group)}
        sharing = [one for one, read in roots.items() if one != unit and not keys.isdisjoint(read)]
        grown = [(one, (*_flat(one), *_flat(unit))) for one in sharing if unit in roots]
        for beside, groups in grown:
            if takes(HorizontalMerge(SHARED_OPERAND, groups)):
                read = roots[beside] | roots[unit]
                roots = {one: value for one, value in roots.items() if one not in (beside, unit)} | {groups: read}
                found = {one: rule for one, rule in found.items() if one not in (beside, unit)}
                found[groups] = SHARED_OPERAND
                break
    return [HorizontalMerge(rule, groups) for groups, rule in found.items()]


def _is_wanted(group: Group, depth: Mapping[Group, int], order: GroupOrder, target: TargetDescription) -> bool:
    """Whether what a group makes may be made as early as it can be: it is read next, or is so little that it stays in a
    cache until then. A large one would only lie there, and take memory that others could have."""
    if any(depth.get(reader) == depth[group] + 1 for reader in order.consumers(group)):
        return True
    return bool(order.consumers(group)) and _made_bytes(group) <= target.costs.cached_bytes // WAITING_SHARE


def _made_bytes(group: Group) -> int:
    """Bytes of the results of elementwise members, about: as many as they have points."""
    results = set(group.results())
    made = ((node, value) for node in group.members for value in node.op.results if value in results)
    return sum(assumed_size(product((*node.loops, element_bytes(value)))) for node, value in made)


def _bucketed(rule: str, groups: Sequence[Group], keys: Keys, takes: Takes) -> list[HorizontalMerge]:
    buckets: dict[Hashable, list[Group]] = {}
    for group in groups:
        for key in keys(group):
            buckets.setdefault(key, []).append(group)
    merges: list[HorizontalMerge] = []
    taken: set[Group] = set()
    for bucket in sorted(buckets.values(), key=len, reverse=True):
        rest = [group for group in bucket if group not in taken]
        for chosen in _runs(rest, lambda run: takes(HorizontalMerge(rule, tuple(_flat(run))))):
            taken.update(chosen)
            merges.append(HorizontalMerge(rule, tuple(_flat(chosen))))
    return merges


def _runs(groups: Sequence[Group], takes: Callable[[Sequence[Group]], bool]) -> list[list[Group]]:
    """Runs of groups that the target takes together; those of two or more."""
    runs: list[list[Group]] = []
    for group in groups:
        if runs and takes([*runs[-1], group]):
            runs[-1].append(group)
        else:
            runs.append([group])
    return [run for run in runs if len(run) > 1]


def _operands(group: Group) -> list[Hashable]:
    """What the roots of a group read, constants aside."""
    mine = set(group.members)
    reads = [read for node in group.members if node.kind in HEAVY for read in _through_pulled(node, group)]
    return list({read.value: None for read in reads if read.producer not in mine and not is_constant(read.value)})


def _elementwise_operands(group: Group) -> list[Hashable]:
    """What a group reads that only computes elements, constants aside."""
    if group.heavy or group.reduces or not group.grid:
        return []
    return list({read.value: None for read in group.outside_reads() if not is_constant(read.value)})


def _reduced_operands(group: Group) -> list[Hashable]:
    """What a group reads that only reduces, along rows or down a few, constants aside, with its grid: groups with the
    same of both are made in one walk (`shared_argument.py`)."""
    if group.heavy or group.reducing_count != 1 or group.is_sequential or not group.grid:
        return []
    if any(node.idiom is not None for node in group.members):  # a kernel of its own makes that
        return []
    reads = [read for read in group.outside_reads() if not is_constant(read.value)]
    return list({(read.value, group.grid): None for read in reads if any(map(_is_walked_once, _walks(read, group)))})


def _walks(read: Read, group: Group) -> Iterable[Read]:
    """The reads by which what `read` reads is reduced, where a member that computes elements of it, for a reduction
    alone, is between."""
    if read.consumer.reduces:
        return [read]
    further = read.consumer.readers
    return further if all(one.consumer.reduces and one.consumer in group.member_set for one in further) else []


def _is_walked_once(read: Read) -> bool:
    """Whether rows are reduced along memory, or so few that several results take no columns from each other."""
    node, at = read.consumer, read.coordinates
    reduced = {loop for loop, iterator in enumerate(node.iterators) if iterator == "reduction"}
    if at and isinstance(at[-1], AffineDimExpr) and at[-1].position in reduced:
        return True
    return assumed_size(product(node.loops[loop] for loop in reduced)) <= MOST_ROWS_DOWN


def _through_pulled(node: Node, group: Group) -> Iterable[Read]:
    """The reads of a node, and of what it reads in place."""
    for read in node.reads:
        if read.producer in group.inlined:
            yield from _through_pulled(read.producer, group)
        else:
            yield read


def _space(group: Group) -> list[Hashable]:
    """The space of a group without a root."""
    return [] if group.heavy or group.reduces or not group.grid else [group.grid]


def _small(group: Group, target: TargetDescription) -> list[Hashable]:
    """Groups that wait for nothing but their launch; of unknown sizes what is computed along one loop (places and
    weights along an axis), as large as is assumed."""
    if not all(node.points is not None or _is_along_one_loop(node) for node in group.members):
        return []
    sizes = [assumed_size(product(node.loops)) for node in group.members]
    return [SMALL] if all(size <= target.costs.serial_elements for size in sizes) else []


def _is_along_one_loop(node: Node) -> bool:
    return node.kind is Kind.ELEMENTWISE and sum(loop != 1 for loop in node.loops) == 1
