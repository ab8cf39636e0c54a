"""order-dispatches: which steps run together and in which order: waves, with a barrier between them.

A wave holds steps that do not depend on each other. Both orders below need as many waves as the longest chain of
dependencies, the least possible; they differ in how long tensors live:

    earliest: each step as soon as its operands are there     (frees inputs early)
    latest:   each step just before its first consumer        (does not hold results early)

The one whose live bytes peak lower is taken; of equal peaks, the one that holds less on the whole. The pass puts the
ops of `@main` in that order; the schedule is computed from any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim
from fuseline.passes.schedule.main_graph import Buffer, MainGraph, Node, TensorUse
from fuseline.passes.schedule.read_main import main_function, read_main


@dataclass(frozen=True, slots=True)
class StepNeeds:
    """What ordering must know of a step: the steps it depends on (all earlier in the list), the buffers it reads and
    writes (by number), and whether it must be alone (a host call returns to Python, a loop has waves of its own:
    nothing may run beside them)."""

    after: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    alone: bool = False


def order_dispatches(steps: Sequence[StepNeeds], buffer_bytes: Sequence[int]) -> list[int]:
    """The wave of each step; `buffer_bytes` is 0 for what takes no transient memory. `steps` must be in a topological
    order.

    >>> a, b = StepNeeds((), (), (0,)), StepNeeds((), (), (1,))
    >>> order_dispatches([a, b, StepNeeds((0, 1), (0, 1), ())], [4, 4])
    [0, 0, 1]
    """
    orders = [_separated(steps, waves) for waves in (earliest_waves(steps), latest_waves(steps))]
    return min(orders, key=lambda waves: _burden(live_bytes(steps, waves, buffer_bytes)))


def earliest_waves(steps: Sequence[StepNeeds]) -> list[int]:
    """Each step in the first wave after those of the steps it depends on."""
    waves: list[int] = []
    for step in steps:
        waves.append(max((waves[i] + 1 for i in step.after), default=0))
    return waves


def latest_waves(steps: Sequence[StepNeeds]) -> list[int]:
    """Each step in the last wave before those of the steps that depend on it."""
    last = max(earliest_waves(steps), default=0)
    waves = [last] * len(steps)
    for number in range(len(steps) - 1, -1, -1):
        for before in steps[number].after:
            waves[before] = min(waves[before], waves[number] - 1)
    return waves


def _separated(steps: Sequence[StepNeeds], waves: Sequence[int]) -> list[int]:
    """The same order with every step that must be alone in a wave of its own, before the others of its wave."""
    keys = [
        (wave, number if step.alone else len(steps))
        for number, (step, wave) in enumerate(zip(steps, waves, strict=True))
    ]
    rank = {key: position for position, key in enumerate(sorted(set(keys)))}
    return [rank[key] for key in keys]


def live_bytes(steps: Sequence[StepNeeds], waves: Sequence[int], buffer_bytes: Sequence[int]) -> list[int]:
    """For each wave the sum of the buffers that are live in it."""
    change = [0] * (max(waves, default=-1) + 2)
    for buffer, (first, last) in live_waves(steps, waves).items():
        change[first] += buffer_bytes[buffer]
        change[last + 1] -= buffer_bytes[buffer]
    return list(accumulate(change))[:-1]


def _burden(live: Sequence[int]) -> tuple[int, int, int]:
    return len(live), max(live, default=0), sum(live)


def live_waves(steps: Sequence[StepNeeds], waves: Sequence[int]) -> dict[int, tuple[int, int]]:
    """First and last wave of each buffer that a step touches."""
    found: dict[int, tuple[int, int]] = {}
    for step, wave in zip(steps, waves, strict=True):
        for buffer in (*step.reads, *step.writes):
            first, last = found.get(buffer, (wave, wave))
            found[buffer] = min(first, wave), max(last, wave)
    return found


# the graph of @main ---------------------------------------------------------------------------------------------------


def number_transients(nodes: Iterable[Node]) -> dict[Buffer, int]:
    """The transients that steps touch, numbered in order of appearance."""
    numbers: dict[Buffer, int] = {}
    for node in nodes:
        for use in (*node.reads, *node.writes):
            if use.buffer.segment == "arena":
                numbers.setdefault(use.buffer, len(numbers))
    return numbers


def symbol_makers(nodes: Sequence[Node], given: Iterable[str]) -> dict[str, int]:
    """The host call (by number) that is the first to know each symbol which is not `given` by the inputs."""
    known, makers = set(given), dict[str, int]()
    for number, node in enumerate(nodes):
        for use in node.writes if node.host is not None else ():
            for symbol in (symbol.name for size in use.dims for symbol in d.symbols(size)):
                if symbol not in known:
                    makers.setdefault(symbol, number)
    return makers


def needs_of(
    nodes: Sequence[Node], transients: Mapping[Buffer, int], makers: Mapping[str, int] | None = None
) -> list[StepNeeds]:
    """What ordering must know of each node: it comes after those that write what it reads, and after those that make
    its sizes known."""
    writers: dict[Buffer, list[tuple[int, TensorUse]]] = {}
    out: list[StepNeeds] = []
    for number, node in enumerate(nodes):
        sizes = {symbol for _, size in node.sizes for symbol in d.symbols(size)}
        sizes |= {symbol for use in (*node.reads, *node.writes) for size in use.dims for symbol in d.symbols(size)}
        makes = {(makers or {}).get(symbol.name, number) for symbol in sizes} - {number}
        after = sorted(
            makes
            | {number for use in node.reads for number, made in writers.get(use.buffer, ()) if not _apart(use, made)}
        )
        reads, writes = (
            tuple(transients[u.buffer] for u in uses if u.buffer in transients) for uses in (node.reads, node.writes)
        )
        out.append(StepNeeds(tuple(after), reads, writes, node.alone))
        for use in node.writes:
            writers.setdefault(use.buffer, []).append((number, use))
    return out


def _apart(a: TensorUse, b: TensorUse) -> bool:
    """Whether two tensors of one buffer are known to lie in different parts of it."""
    if a.offset == b.offset:
        return False
    gaps = (d.lower_bound(d.sub(d.sub(late.offset, early.offset), _bytes(early))) for early, late in ((a, b), (b, a)))
    return any(gap is not None and gap >= 0 for gap in gaps)


def _bytes(use: TensorUse) -> Dim:
    return d.mul(d.product(use.dims), use.element_bytes)


def makers_in(graph: MainGraph) -> dict[str, int]:
    """`symbol_makers` of `@main`."""
    given = {symbol.name for boundary in graph.inputs for size in boundary.dims for symbol in d.symbols(size)}
    return symbol_makers(graph.nodes, given)


def waves_of(graph: MainGraph) -> list[int]:
    """The wave of each node of `@main`."""
    transients = number_transients(graph.nodes)
    return order_dispatches(
        needs_of(graph.nodes, transients, makers_in(graph)), [assumed_size(buffer.bytes) for buffer in transients]
    )


@dataclass(frozen=True)
class OrderDispatchesPass(ModulePass):
    """Sort the dispatches and host calls of `@main` by wave; everything else stays as early as what it needs allows."""

    name = "order-dispatches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Reorder `@main`; raises FuselineError (E0305) where it is not outlined."""
        assert isinstance(ctx, CompilerContext)
        graph, block = read_main(ctx, op), main_function(op).body.block
        ranked = sorted(zip(waves_of(graph), range(len(graph.nodes)), strict=True))
        steps = [step for _, number in ranked if (step := graph.nodes[number].op) is not None]
        _sort(block, steps)


def _sort(block: Block, steps: Sequence[Operation]) -> None:
    """Put `steps` in order behind each other, each preceded by what it needs and has not been placed yet."""
    placed: set[Operation] = set()
    for step in (*steps, *block.ops):
        _place(block, step, placed)


def _place(block: Block, op: Operation, placed: set[Operation]) -> None:
    if op in placed or op.parent is not block:
        return
    placed.add(op)
    for operand in op.operands:
        if isinstance(operand.owner, Operation):
            _place(block, operand.owner, placed)
    op.detach()
    block.add_op(op)


EXPORT = OrderDispatchesPass
