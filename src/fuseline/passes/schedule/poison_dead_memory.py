"""A schedule that overwrites, after every step, all memory that nothing needs any more: what reads it all the same
shows.

It is for tests (`CompileOptions.poison`): a program must give the same numbers with and without. What is live is read
off the dependencies, step by step, not off the plan of transients, which only says where it lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fuseline.ir.dim import Dim
from fuseline.passes.schedule.dependencies import StepNeeds, live_waves
from fuseline.program.steps import PoisonStep, Step


def poison_dead_memory(
    steps: Sequence[Step], needs: Sequence[StepNeeds], sizes: Sequence[Dim], offsets: Sequence[Dim]
) -> Iterator[Step]:
    """`steps` with a PoisonStep before the first and behind each; `sizes` and `offsets` (bytes) are those of the
    transients that they need."""
    lives = live_waves(needs, range(len(steps)))
    yield PoisonStep((), steps[0].wave if steps else 0, begins=True)
    for number, step in enumerate(steps):
        yield step
        kept = [transient for transient, (first, last) in lives.items() if first <= number < last]
        yield PoisonStep(tuple((offsets[transient], sizes[transient]) for transient in kept), step.wave)
