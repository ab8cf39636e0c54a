"""A schedule that overwrites, after every step, all memory that nothing needs any more: what reads it all the same
shows.

It is for tests (`CompileOptions.poison`): a program must give the same numbers with and without. What is live is read
off the graph, step by step, not off the plan of transients, which only says where it lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fuseline.ir.dim import Dim
from fuseline.passes.schedule.main_graph import Buffer, Node
from fuseline.program.schedule import PoisonStep, Slot, Step


def poison_dead_memory(steps: Sequence[Step], nodes: Sequence[Node], slots: Mapping[Buffer, Slot]) -> Iterator[Step]:
    """`steps` (one for each of `nodes`, in the same order) with a PoisonStep before the first and behind each."""
    lives = _lives(nodes)
    yield PoisonStep((), steps[0].wave if steps else 0, begins=True)
    for number, step in enumerate(steps):
        yield step
        yield PoisonStep(
            tuple(_extents((buffer for buffer, (first, last) in lives.items() if first <= number < last), slots)),
            step.wave,
        )


def _lives(nodes: Iterable[Node]) -> dict[Buffer, tuple[int, int]]:
    """The first and the last node that touches each transient."""
    lives: dict[Buffer, tuple[int, int]] = {}
    for number, node in enumerate(nodes):
        for use in (*node.reads, *node.writes):
            if use.buffer.segment == "arena":
                lives[use.buffer] = lives.get(use.buffer, (number, number))[0], number
    return lives


def _extents(buffers: Iterable[Buffer], slots: Mapping[Buffer, Slot]) -> Iterator[tuple[Dim, Dim]]:
    for buffer in buffers:
        yield slots[buffer].offset, buffer.bytes
