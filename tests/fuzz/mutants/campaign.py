"""Many mutants of a kind, in children with a limit of memory; what is bad is listed once per kind of badness."""

from __future__ import annotations

import re
import resource
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fuzz.isolate import Answer, run_isolated
from tests.fuzz.mutants.work import bases, work_mutant

MEMORY = 12 << 30
BATCH = 50


@dataclass(slots=True)
class Outcomes:
    """Counts by what became of a mutant, and the first seed of each kind of badness."""

    counts: Counter[str] = field(default_factory=Counter[str])
    bad: dict[str, int] = field(default_factory=dict[str, int])


def run_mutants(kind: str, first: int, count: int, say: Callable[[str], None], seconds: float | None = None, limit: float = 60.0) -> Outcomes:
    """Mutants `first` to `first + count` of a kind, as many as `seconds` allow; each may take `limit` seconds."""
    start, outcomes = time.monotonic(), Outcomes()
    bases()
    for at in range(first, first + count, BATCH):
        if seconds is not None and time.monotonic() - start > seconds:
            break
        items = [(kind, seed) for seed in range(at, min(at + BATCH, first + count))]
        for answer in run_isolated(items, _work, seconds=limit, batch=BATCH):
            _take(outcomes, answer, say)
    return outcomes


def _work(item: tuple[str, int], stage: Callable[[str], None]) -> str:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    return work_mutant(item, stage)


def _take(outcomes: Outcomes, answer: Answer, say: Callable[[str], None]) -> None:
    result = answer.value if answer.value is not None else f"BAD: {answer.failure} {re.sub(r'^[a-z]+ [0-9]+', '', answer.stage)}"
    bad = result.startswith("BAD")
    outcomes.counts["bad" if bad else result] += 1
    alike = re.sub(r"\[[^]]*\]|[0-9]+", "#", result)[:120]
    if bad and alike not in outcomes.bad:
        outcomes.bad[alike] = answer.item[1]
        say(f"{answer.item[0]} {answer.item[1]}: {result[:400]}")
