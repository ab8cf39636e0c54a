"""Blocked dispatches run with several numbers of threads in mind, hence several block sizes, and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.blocked.family import BlockedFamily
from fuseline.targets.cpu.families.family import Plan, Policy
from tests.kernels import Runner, arrays_for, assert_close

THREADS = (1, 2, 8)


def check(
    view: DispatchView,
    expected: Callable[..., Sequence[Any]],
    sizes: Mapping[str, int] | None = None,
    threads: Sequence[int] = THREADS,
) -> list[Plan]:
    """Run the dispatch between guard pages and compare with `expected(*arguments)`; the plans, one per number of
    threads."""
    plans: list[Plan] = []
    for count in threads:
        run = Runner(BlockedFamily(Policy(threads=count)), view)
        arrays = arrays_for(view, sizes)
        for at_end in (True, False):
            for found, wanted in zip(run(*arrays, sizes=sizes, at_end=at_end), expected(*arrays), strict=True):
                assert_close(found, wanted, bits=15)
        plans.append(run.plan)
    return plans
