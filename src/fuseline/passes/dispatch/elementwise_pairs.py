"""Which elementwise ops of a dispatch can be one op: one reads the other, alone, at its own points.

What stays apart: what others read, too, or what is returned; what is read at other points than the reader's own (a
broadcast would evaluate it many times, a window read it somewhere else); what the grid evaluates once and the reader,
evaluated where it is read, may several times; what follows a reduction, where the reader waits for a later one: it is
made with what it follows; a body that starts from its inits; the parts of a softmax that may stream
(`analysis/online_softmax.py` tells them by op); what only moves data, gathers or reduces, which is told by form.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import linalg
from xdsl.ir import Block, Operation, OpResult
from xdsl.ir.affine import AffineMap

from fuseline.analysis.online_softmax import online_softmaxes
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, is_reduction, kind, tensor_operands
from fuseline.analysis.structured_op import extents_of
from fuseline.dispatch.fused_loops import FusedLoops, MemberLoops, Role, members_of
from fuseline.ir.fast.direct import body_of, ops_of
from fuseline.passes.dispatch.merged_body import merged_reads
from fuseline.passes.layout.rewriting.generics import plain_loops

Generic = linalg.ops.GenericOp


@dataclass(frozen=True)
class Apart:
    """Why two ops stay two: a code and what it is about."""

    code: str
    detail: str


class ElementwisePairs:
    """Asked about ops of `body`. `said`: what its entry says of the loops of its members, if it does."""

    def __init__(self, shapes: ShapeAnalysis, body: Block, said: FusedLoops | None) -> None:
        self._shapes, members = shapes, members_of(body)
        self._placed: dict[Operation, MemberLoops] = dict(zip(members, said.members, strict=True)) if said else {}
        self._streams: set[Operation] = {op for chain in online_softmaxes(members) for op in chain.ops}
        self._last = _last_reductions(body)

    def loops(self, producer: Generic, consumer: Generic) -> tuple[int, ...] | Apart:
        """For each loop of `producer` the loop of `consumer` that it is, where one op can stand for both."""
        for op in (producer, consumer):
            if kind(op) is not Kind.ELEMENTWISE:
                return Apart("not-elementwise", f"a {kind(op).value} is told by its form")
            if op in self._streams:
                return Apart("online-softmax", "the parts of a softmax that may stream are told by op")
        if self._last[producer] not in (None, self._last[consumer]):
            return Apart("later-reduction", "it follows a reduction, and its reader a later one")
        found = read_point(producer, consumer)
        return found if isinstance(found, Apart) else self._placing(producer, consumer, found)

    def _placing(self, producer: Generic, consumer: Generic, loops: tuple[int, ...]) -> tuple[int, ...] | Apart:
        """`loops`, where the op in place of both is evaluated where `producer` was, over the extents of `consumer`."""
        made, read = self._placed.get(producer), self._placed.get(consumer)
        if made is not None and read is not None and made.role is Role.PLACED:
            if read.role is not Role.PLACED:
                return Apart("recompute", "it is evaluated once, its reader wherever that is read")
            if made.grid_loops != tuple(read.grid_loops[loop] for loop in loops):
                return Apart("grid", "it is in the grid by other loops than its reader")
        first, second = StructuredOp(producer), StructuredOp(consumer)
        operands = [*merged_reads(first, second, loops), *zip(second.outputs, second.output_maps, strict=True)]
        sizes = [self._shapes.dims(value) for value, _ in operands]
        if extents_of([map_ for _, map_ in operands], sizes, second.rank) != list(second.loops(self._shapes)):
            return Apart("sizes", "its operands spell the loops by other sizes than its reader's")
        return loops

    def merged(self, consumer: Operation, new: Operation) -> None:
        """`new` stands where `consumer` stood, and for what it read."""
        self._last[new] = self._last.pop(consumer)
        if consumer in self._placed:
            self._placed[new] = self._placed.pop(consumer)


def read_point(producer: Generic, consumer: Generic) -> tuple[int, ...] | Apart:
    """For each loop of `producer` the loop of `consumer` that reads along it, where `consumer` alone reads it and is at
    one point of it at each of its own."""
    first, second = StructuredOp(producer), StructuredOp(consumer)
    if any(argument.first_use is not None for argument in body_of(producer).args[first.input_count :]):
        return Apart("inits", "its body starts from its inits")
    found: set[tuple[int, ...]] = set()
    for result, written in zip(producer.results, first.output_maps, strict=True):
        for use in result.uses:
            if use.operation is not consumer or use.index >= second.input_count:
                return Apart("multi-use", f"{use.operation.name} reads it, too")
            at = _step(written, second.maps[use.index], first.rank, second.rank)
            if at is None:
                return Apart("indexing-map", f"written by {written}, read by {second.maps[use.index]}")
            found.add(at)
    if len(found) != 1:
        return Apart("indexing-map", "it is read at several points at a time")
    return found.pop()


def _step(written: AffineMap, read: AffineMap, made: int, reads: int) -> tuple[int, ...] | None:
    """For each of `made` loops that write by one map the one of `reads` loops that reads by the other; None where they
    are not the same loops in some order."""
    writing, reading = plain_loops(written), plain_loops(read)
    if writing is None or reading is None or not len(writing) == made == reads:
        return None
    return tuple(reading[writing.index(loop)] for loop in range(made))


def _last_reductions(body: Block) -> dict[Operation, int | None]:
    """For each op the number of the last op that reduces among those that it depends on, itself included; None for
    none."""
    found: dict[Operation, int | None] = {}
    for number, op in enumerate(ops_of(body)):
        read = [found[value.op] for value in tensor_operands(op) if isinstance(value, OpResult)]
        behind = [one for one in read if one is not None]
        found[op] = number if is_reduction(op) else max(behind, default=None)
    return found
