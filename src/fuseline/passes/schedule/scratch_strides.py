"""How much scratch each thread needs in each wave: that of the dispatch that needs most, as a thread is in one of them
at a time.

Scratch is dead between workgroups, so it lies in the arena like a transient that lives for its wave, where what other
waves need has room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fuseline.program.schedule import SCRATCH_ALIGNMENT
from fuseline.program.steps import DispatchStep, Step, flat_steps

ScratchOf = Callable[[DispatchStep], int]
"""Answers how many bytes of scratch a thread needs for a dispatch."""


def scratch_strides(steps: Sequence[Step], scratch: ScratchOf) -> Mapping[int, int]:
    """Bytes for each thread, by wave, of the waves that need any; a loop is in one wave, with all that it repeats."""
    found: dict[int, int] = {}
    for step in steps:
        needed = max((scratch(one) for one in flat_steps([step]) if isinstance(one, DispatchStep)), default=0)
        stride = -(-needed // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
        if stride > found.get(step.wave, 0):
            found[step.wave] = stride
    return found
