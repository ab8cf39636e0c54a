"""`@main` after outlining -> a `Schedule`: read, order, place transients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim
from fuseline.ir.flow import DispatchOp
from fuseline.passes.schedule.main_graph import Buffer, LoopBody, MainGraph, Node, TensorUse
from fuseline.passes.schedule.order_dispatches import (
    earliest_waves,
    live_waves,
    makers_in,
    needs_of,
    number_transients,
    waves_of,
)
from fuseline.passes.schedule.plan_transients import Transient, plan_transients
from fuseline.passes.schedule.poison_dead_memory import poison_dead_memory
from fuseline.passes.schedule.read_main import read_main
from fuseline.program.schedule import (
    CopyStep,
    DispatchStep,
    HostStep,
    LoopStep,
    Operand,
    Schedule,
    SizesStep,
    Slot,
    Step,
    Walk,
)

InPlace = Callable[[DispatchOp], Mapping[int, int]]
"""Answers for a dispatch which result (by index) may overwrite which tensor operand (by index)."""


def build_schedule(
    ctx: CompilerContext, module: ModuleOp, *, in_place: InPlace | None = None, poison: bool = False
) -> Schedule:
    """The schedule of `@main` in `module`, which must be outlined; with `poison` it overwrites dead memory after every
    step.

    Raises FuselineError (E0305) for what is not schedulable.
    """
    graph = read_main(ctx, module)
    transients, waves = number_transients(graph.nodes), waves_of(graph)
    live = live_waves(needs_of(graph.nodes, transients), waves)
    known_at = {symbol: waves[number] for symbol, number in makers_in(graph).items()}
    lives = [Transient(buffer.bytes, *live[i]) for i, buffer in enumerate(transients)]
    plan = plan_transients(lives, _in_place(graph, transients, in_place), known_at)
    slots = {buffer: Slot("arena", 0, offset) for buffer, offset in zip(transients, plan.offsets, strict=True)}
    order = sorted(range(len(waves)), key=lambda i: (waves[i], i))
    renumbered = {wave: rank for rank, wave in enumerate(sorted(set(waves)))}
    steps = [_step(graph.nodes[i], renumbered[waves[i]], slots, plan.bytes_at(waves[i])) for i in order]
    if poison:
        steps = list(poison_dead_memory(steps, [graph.nodes[i] for i in order], slots))
    symbols = {s.name: (s.lo, s.hi) for s in _symbols(graph)}
    constants = tuple(graph.constants)
    borders = tuple(graph.inputs), tuple(graph.outputs)
    return Schedule(
        *borders,
        tuple(steps),
        constants,
        plan.bytes,
        symbols,
        tuple(ctx.requirements.values()),
        plan.bytes_at(-1),
        graph.slots,
    )


def _in_place(graph: MainGraph, transients: Mapping[Buffer, int], in_place: InPlace | None) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for node in graph.nodes if in_place is not None else ():
        if isinstance(node.op, DispatchOp) and in_place is not None:
            reads = {i: read.buffer for i, read in enumerate(node.reads) if read.offset == 0}
            named = [
                (node.writes[result].buffer, reads[operand])
                for result, operand in in_place(node.op).items()
                if operand in reads
            ]
            pairs += [(transients[w], transients[r]) for w, r in named if w in transients and r in transients]
    return pairs


def _step(node: Node, wave: int, slots: Mapping[Buffer, Slot], arena_bytes: Dim) -> Step:
    if node.loop is not None:
        return LoopStep(node.loop.trips, tuple(_body_steps(node.loop, slots)), wave, node.label, node.nodes)
    reads, writes = (tuple(_operand(use, slots) for use in uses) for uses in (node.reads, node.writes))
    if node.host is None:
        return _native_step(node, wave, reads, writes)
    return HostStep(*node.host, reads, writes, wave, node.label, arena_bytes, node.nodes)


def _native_step(
    node: Node, wave: int, reads: tuple[Operand, ...], writes: tuple[Operand, ...]
) -> DispatchStep | SizesStep | CopyStep:
    if isinstance(node.op, DispatchOp):
        return DispatchStep(node.op.executable, node.op.entry, reads, writes, node.sizes, wave, node.label, node.nodes)
    if node.op is not None:
        return SizesStep(tuple(size for _, size in node.sizes), writes[0], wave, node.label)
    return CopyStep(reads[0], writes[0], wave, node.label)


def _body_steps(loop: LoopBody, slots: Mapping[Buffer, Slot]) -> Iterator[DispatchStep | SizesStep | CopyStep]:
    """What a loop does in an iteration, by wave."""
    waves = earliest_waves(needs_of(loop.nodes, {}))
    for number in sorted(range(len(waves)), key=lambda i: (waves[i], i)):
        node = loop.nodes[number]
        reads, writes = (tuple(_moving_operand(use, loop, slots) for use in uses) for uses in (node.reads, node.writes))
        yield _native_step(node, waves[number], reads, writes)


def _moving_operand(use: TensorUse, loop: LoopBody, slots: Mapping[Buffer, Slot]) -> Operand:
    """An operand inside a loop, with its walk where it is at the border of the loop's body."""
    route = loop.routes.get((use.buffer.segment, use.buffer.index))
    if route is None:
        return _operand(use, slots)
    special = None
    if route.special is not None:
        buffer, offset = route.special
        special = _slot(buffer, d.add(offset, use.offset), slots)
    walk = Walk(route.stride, route.lag, route.alternates, special, route.at)
    return Operand(
        _slot(route.buffer, d.add(route.offset, use.offset), slots), use.dims, use.dtype, use.element_bytes, walk
    )


def _operand(use: TensorUse, slots: Mapping[Buffer, Slot]) -> Operand:
    return Operand(_slot(use.buffer, use.offset, slots), use.dims, use.dtype, use.element_bytes)


def _slot(buffer: Buffer, offset: Dim, slots: Mapping[Buffer, Slot]) -> Slot:
    """The place `offset` bytes into a buffer."""
    slot = slots.get(buffer) or Slot(buffer.segment, buffer.index)
    return replace(slot, offset=d.add(slot.offset, offset))


def _symbols(graph: MainGraph) -> set[d.Symbol]:
    sizes = [size for boundary in (*graph.inputs, *graph.outputs) for size in boundary.dims]
    sizes += [size for node in graph.nodes for _, size in node.sizes]
    sizes += [size for node in graph.nodes for use in (*node.reads, *node.writes) for size in use.dims]
    return {symbol for size in sizes for symbol in d.symbols(size)}
