"""Which ops of two compiles are the same, where names or parts of the model changed between them.

ids         of one graph, or of a part of it that nothing before it changed      contraction.5a86abaa
names       of one kind and the same source nodes, in order                       contraction /layer.0/MatMul
structure   one kind over the same loops between like neighbours, in the order of the program
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from fuseline.report.records import CompileRecord

_NEW = "+"
"""Stands before the keys of ops that only the second compile has."""


class Op(NamedTuple):
    """An op of a compile: what it does, over which loops (empty where the record does not say), its source nodes, and
    the ops that it reads and is read by, by bare id."""

    kind: str
    loops: tuple[str, ...]
    nodes: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


Label = Callable[[str, Op], Hashable]


def bare(id: str) -> str:
    """An id without the kind before it, which plans may leave out."""
    return id.rpartition(".")[2]


def matched_ops(before: CompileRecord, after: CompileRecord) -> dict[str, str]:
    """For every op of `after`, by bare id, the bare id of the same op of `before`, or a key that no op of it has."""
    old, new = ops_of(before), ops_of(after)
    found = {id: id for id in new if id in old}
    if before.fingerprint and before.fingerprint == after.fingerprint:
        return {id: found.get(id, _NEW + id) for id in new}  # one graph: ids mean the same, and nothing else does
    _pair(found, _left(old, found.values()), _left(new, found), lambda id, op: (op.kind, op.nodes) if op.nodes else id)
    loops = bool(before.fusion_nodes and after.fusion_nodes)
    for depth, sized in ((2, loops), (0, loops), (2, False)):
        _align(found, _Surroundings(old, sized, depth), _Surroundings(new, sized, depth))
    return {id: found.get(id, _NEW + id) for id in new}


def ops_of(record: CompileRecord) -> dict[str, Op]:
    """The ops of a compile in the order of its program, as far as the record tells."""
    kinds, nodes = dict[str, str](), dict[str, tuple[str, ...]]()
    loops = {bare(id): node.loops for id, node in record.fusion_nodes.items()}
    for id, kind, names in _mentioned(record):
        kinds[id] = kinds.get(id) or kind
        nodes[id] = nodes.get(id) or names
    reads, readers = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for decision in record.decisions:
        if not decision.arms:
            reads[bare(decision.consumer)].append(bare(decision.producer))
            readers[bare(decision.producer)].append(bare(decision.consumer))
    return {
        id: Op(kinds[id], loops.get(id, ()), nodes[id], tuple(reads.get(id, ())), tuple(readers.get(id, ())))
        for id in kinds
    }


def _mentioned(record: CompileRecord) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for id, node in record.fusion_nodes.items():
        yield bare(id), node.kind, node.nodes
    for member in (member for dispatch in record.dispatches for member in dispatch.members):
        yield bare(member.id), member.kind, member.nodes
    for one in record.decisions:
        yield bare(one.producer), one.producer_op, one.producer_nodes
        yield bare(one.consumer), one.consumer_op, one.consumer_nodes


def _left(ops: Mapping[str, Op], matched: Iterable[str]) -> dict[str, Op]:
    taken = set(matched)
    return {id: op for id, op in ops.items() if id not in taken}


def _pair(found: dict[str, str], old: Mapping[str, Op], new: Mapping[str, Op], label: Label) -> None:
    """Match what has one label on both sides, in order."""
    waiting = defaultdict[Hashable, list[str]](list)
    for id, op in reversed(list(old.items())):
        waiting[label(id, op)].append(id)
    for id, op in new.items():
        if waiting.get(label(id, op)):
            found[id] = waiting[label(id, op)].pop()


class _Surroundings:
    """Labels of ops: the op itself, and its neighbours up to `depth` steps away."""

    def __init__(self, ops: Mapping[str, Op], sized: bool, depth: int) -> None:
        self.ops = ops
        self.labels: dict[str, Hashable] = {id: (op.kind, op.loops if sized else ()) for id, op in ops.items()}
        for _ in range(depth):
            self.labels = {id: self._wider(id, op) for id, op in ops.items()}

    def _wider(self, id: str, op: Op) -> int:
        sides = (sorted(hash(self.labels[other]) for other in ids if other in self.labels) for ids in op[3:])
        return hash((self.labels[id], *(tuple(side) for side in sides)))


def _align(found: dict[str, str], old: _Surroundings, new: _Surroundings) -> None:
    """Match runs of what is left that have the same labels in the same order."""
    first: Sequence[str] = list(_left(old.ops, found.values()))
    second: Sequence[str] = list(_left(new.ops, found))
    labels = [old.labels[id] for id in first], [new.labels[id] for id in second]
    for block in SequenceMatcher(None, *labels, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            found[second[block.b + step]] = first[block.a + step]
