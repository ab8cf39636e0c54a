"""Knobs that are an option of a compile: how much dispatches share, and threads."""

from __future__ import annotations

from fuseline.compile_options import CHOICES, CompileOptions
from fuseline.tuning.knob import Knob

DEDUP, THREADS = "dedup", "threads"


def dedup_knob(given: str = CompileOptions.dedup) -> Knob:
    """Every level, the one that a compile has by default first.

    >>> dedup_knob().choices
    ('constants', 'none', 'exact', 'shapes')
    """
    others = [level for level in CHOICES["dedup"] if level != given]
    return Knob(DEDUP, "dedup", (given, *others), "how much dispatches share code")


def threads_knob(threads: int) -> Knob | None:
    """Powers of two below what a compile takes by default; None where there is nothing to choose.

    >>> threads_knob(6).choices, threads_knob(1)
    (('6', '4', '2', '1'), None)
    """
    below = [1 << power for power in reversed(range(threads.bit_length())) if 1 << power < threads]
    return Knob(THREADS, "threads", (str(threads), *map(str, below)), "threads of a run") if below else None
