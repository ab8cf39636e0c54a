"""`@main` after outlining -> a `Schedule`: read, order, place transients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from fuseline.analysis.schedule import CopyStep, DispatchStep, HostStep, Operand, Schedule, SizesStep, Slot, Step
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim
from fuseline.ir.flow import DispatchOp
from fuseline.passes.schedule.order_dispatches import live_waves, makers_in, needs_of, number_transients, waves_of
from fuseline.passes.schedule.plan_transients import Transient, plan_transients
from fuseline.passes.schedule.read_main import Buffer, MainGraph, Node, TensorUse, read_main

InPlace = Callable[[DispatchOp], Mapping[int, int]]
"""Answers for a dispatch which result (by index) may overwrite which tensor operand (by index)."""


def build_schedule(ctx: CompilerContext, module: ModuleOp, *, in_place: InPlace | None = None) -> Schedule:
    """The schedule of `@main` in `module`, which must be outlined. Raises FuselineError (E0305) for what is not schedulable."""
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
    symbols = {s.name: (s.lo, s.hi) for s in _symbols(graph)}
    constants = tuple(graph.constants)
    borders = tuple(graph.inputs), tuple(graph.outputs)
    return Schedule(*borders, tuple(steps), constants, plan.bytes, symbols, tuple(ctx.requirements.values()), plan.bytes_at(-1), graph.slots)


def _in_place(graph: MainGraph, transients: Mapping[Buffer, int], in_place: InPlace | None) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for node in graph.nodes if in_place is not None else ():
        if isinstance(node.op, DispatchOp) and in_place is not None:
            reads = {i: read.buffer for i, read in enumerate(node.reads) if read.offset == 0}
            named = [(node.writes[result].buffer, reads[operand]) for result, operand in in_place(node.op).items() if operand in reads]
            pairs += [(transients[w], transients[r]) for w, r in named if w in transients and r in transients]
    return pairs


def _step(node: Node, wave: int, slots: Mapping[Buffer, Slot], arena_bytes: Dim) -> Step:
    reads, writes = (tuple(_operand(use, slots) for use in uses) for uses in (node.reads, node.writes))
    if isinstance(node.op, DispatchOp):
        return DispatchStep(node.op.executable, node.op.entry, reads, writes, node.sizes, wave, node.label, node.nodes)
    if node.host is not None:
        return HostStep(*node.host, reads, writes, wave, node.label, arena_bytes, node.nodes)
    if node.op is not None:
        return SizesStep(tuple(size for _, size in node.sizes), writes[0], wave, node.label)
    return CopyStep(reads[0], writes[0], wave, node.label)


def _operand(use: TensorUse, slots: Mapping[Buffer, Slot]) -> Operand:
    slot = slots.get(use.buffer) or Slot(use.buffer.segment, use.buffer.index)
    return Operand(replace(slot, offset=d.add(slot.offset, use.offset)), use.dims, use.dtype, use.element_bytes)


def _symbols(graph: MainGraph) -> set[d.Symbol]:
    sizes = [size for boundary in (*graph.inputs, *graph.outputs) for size in boundary.dims]
    sizes += [size for node in graph.nodes for _, size in node.sizes]
    sizes += [size for node in graph.nodes for use in (*node.reads, *node.writes) for size in use.dims]
    return {symbol for size in sizes for symbol in d.symbols(size)}
