"""Many mutants of a kind, in children with a limit of memory; what is bad is listed once per kind of badness."""

from __future__ import annotations

import logging
import re
import resource
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.isolate import Answer, run_isolated
from tests.fuzz.mutants.work import bases, work_mutant

MEMORY = 12 << 30
"""Bytes of address space for a child: code generators and libraries reserve a few GiB of it without use."""

BATCH = 50
PROGRESS = 30.0
"""Seconds between two lines that say how far a run is."""


@dataclass(slots=True)
class Outcomes:
    """Counts by what became of a mutant, the first seed of each kind of badness, and the most memory that a child had
    (MiB)."""

    counts: Counter[str] = field(default_factory=Counter[str])
    bad: dict[str, int] = field(default_factory=dict[str, int])
    memory: int = 0

    def to_json(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return {"counts": dict(self.counts), "bad": self.bad, "memory": self.memory}

    def summary(self) -> str:
        """One line."""
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.counts.most_common())
        return f"{self.counts.total()} files: {counts}; {len(self.bad)} kinds of bad ones; at most {self.memory} MiB"


def run_mutants(
    kind: str, first: int, count: int, say: Callable[[str], None], seconds: float | None = None, limit: float = 60.0
) -> Outcomes:
    """Mutants `first` to `first + count` of a kind, as many as `seconds` allow; each may take `limit` seconds."""
    start, outcomes = time.monotonic(), Outcomes()
    bases()
    told = start
    for at in range(first, first + count, BATCH):
        if seconds is not None and time.monotonic() - start > seconds:
            break
        items = [(kind, seed) for seed in range(at, min(at + BATCH, first + count))]
        for answer in run_isolated(items, _work, seconds=limit, batch=BATCH):
            _take(outcomes, answer, say)
        if time.monotonic() - told > PROGRESS:
            told = time.monotonic()
            say(f"{kind} {at + len(items)}: {outcomes.summary()}")
    return outcomes


def _work(item: tuple[str, int], stage: Callable[[str], None]) -> tuple[str, int]:
    """What became of a mutant, and the most memory so far (MiB). Readers of models log what is wrong with them: that is
    no news here."""
    logging.disable(logging.WARNING)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    return work_mutant(item, stage), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _take(outcomes: Outcomes, answer: Answer, say: Callable[[str], None]) -> None:
    failure = f"BAD: {answer.failure} {re.sub(r'^[a-z]+ [0-9]+', '', answer.stage)}"
    result, memory = answer.value if answer.value is not None else (failure, 0)
    outcomes.memory = max(outcomes.memory, memory)
    bad = result.startswith("BAD")
    outcomes.counts["bad" if bad else result] += 1
    alike = re.sub(r"\[[^]]*\]|[0-9]+", "#", result)[:120]
    if bad and alike not in outcomes.bad:
        outcomes.bad[alike] = answer.item[1]
        say(f"{answer.item[0]} {answer.item[1]}: {result[:400]}")
