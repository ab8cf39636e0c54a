"""`@main` after outlining -> a `Schedule`: read, order, place transients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp

from fuseline.analysis.schedule import CopyStep, DispatchStep, HostStep, Operand, Schedule, Slot, Step
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim
from fuseline.ir.flow import DispatchOp
from fuseline.passes.schedule.order_dispatches import StepNeeds, live_waves, order_dispatches
from fuseline.passes.schedule.plan_transients import Transient, plan_transients
from fuseline.passes.schedule.read_main import Buffer, MainGraph, Node, TensorUse, read_main

NOMINAL_SIZE = 128
"""Value of an unbounded symbol when live bytes of two orders are compared; it decides nothing else."""

InPlace = Callable[[DispatchOp], Mapping[int, int]]
"""Answers for a dispatch which result (by index) may overwrite which tensor operand (by index)."""


def build_schedule(ctx: CompilerContext, module: ModuleOp, *, in_place: InPlace | None = None) -> Schedule:
    """The schedule of `@main` in `module`, which must be outlined. Raises FuselineError (E0305) for what is not schedulable."""
    graph = read_main(ctx, module)
    transients = _numbered(use.buffer for node in graph.nodes for use in (*node.reads, *node.writes))
    needs = _needs(graph.nodes, transients)
    waves = order_dispatches(needs, [_nominal(buffer.bytes) for buffer in transients])
    live = live_waves(needs, waves)
    plan = plan_transients([Transient(buffer.bytes, *live[i]) for i, buffer in enumerate(transients)], _in_place(graph, transients, in_place))
    slots = {buffer: Slot("arena", 0, offset) for buffer, offset in zip(transients, plan.offsets, strict=True)}
    order = sorted(range(len(waves)), key=lambda i: (waves[i], i))
    renumbered = {wave: rank for rank, wave in enumerate(sorted(set(waves)))}
    steps = [_step(graph.nodes[i], renumbered[waves[i]], slots) for i in order]
    symbols = {s.name: (s.lo, s.hi) for s in _symbols(graph)}
    return Schedule(tuple(graph.inputs), tuple(graph.outputs), tuple(steps), tuple(graph.constants), plan.bytes, symbols)


def _numbered(buffers: Iterable[Buffer]) -> dict[Buffer, int]:
    """The transients among `buffers`, numbered in order of appearance."""
    numbers: dict[Buffer, int] = {}
    for buffer in buffers:
        if buffer.segment == "arena":
            numbers.setdefault(buffer, len(numbers))
    return numbers


def _needs(nodes: Sequence[Node], transients: Mapping[Buffer, int]) -> list[StepNeeds]:
    writer: dict[Buffer, int] = {}
    out: list[StepNeeds] = []
    for number, node in enumerate(nodes):
        after = sorted({writer[use.buffer] for use in node.reads if use.buffer in writer})
        reads, writes = ([transients[u.buffer] for u in uses if u.buffer in transients] for uses in (node.reads, node.writes))
        out.append(StepNeeds(tuple(after), tuple(reads), tuple(writes), node.host is not None))
        writer |= {use.buffer: number for use in node.writes}
    return out


def _nominal(size: Dim) -> int:
    if isinstance(size, int):
        return size
    return d.evaluate(size, {s.name: s.hi if s.hi is not None else max(s.lo, NOMINAL_SIZE) for s in d.symbols(size)})


def _in_place(graph: MainGraph, transients: Mapping[Buffer, int], in_place: InPlace | None) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for node in graph.nodes if in_place is not None else ():
        if isinstance(node.op, DispatchOp) and in_place is not None:
            named = [(node.writes[result].buffer, node.reads[operand].buffer) for result, operand in in_place(node.op).items()]
            pairs += [(transients[w], transients[r]) for w, r in named if w in transients and r in transients]
    return pairs


def _step(node: Node, wave: int, slots: Mapping[Buffer, Slot]) -> Step:
    reads, writes = (tuple(_operand(use, slots) for use in uses) for uses in (node.reads, node.writes))
    if isinstance(node.op, DispatchOp):
        return DispatchStep(node.op.executable, node.op.entry, reads, writes, node.sizes, wave, node.label, node.nodes)
    if node.host is not None:
        return HostStep(*node.host, reads, writes, wave, node.label)
    return CopyStep(reads[0], writes[0], wave, node.label)


def _operand(use: TensorUse, slots: Mapping[Buffer, Slot]) -> Operand:
    buffer = use.buffer
    return Operand(slots.get(buffer) or Slot(buffer.segment, buffer.index), use.dims, use.dtype, use.element_bytes)


def _symbols(graph: MainGraph) -> set[d.Symbol]:
    sizes = [size for boundary in (*graph.inputs, *graph.outputs) for size in boundary.dims]
    sizes += [size for node in graph.nodes for _, size in node.sizes]
    sizes += [size for node in graph.nodes for use in (*node.reads, *node.writes) for size in use.dims]
    return {symbol for size in sizes for symbol in d.symbols(size)}
