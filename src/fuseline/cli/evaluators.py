"""What runs the trials of `fuseline tune`: this machine, or the workers of a cluster (`--scheduler`)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fuseline.cli.console import note

if TYPE_CHECKING:
    from fuseline.tuning.setting import SearchSetting
    from fuseline.tuning.trial import Evaluator


@contextmanager
def evaluators(
    scheduler: str | None, kind: str | None, threads: int
) -> Generator[Callable[[SearchSetting], Evaluator]]:
    """A function that makes an evaluator for a search, each with new processes. All of them share one connection to
    `scheduler`, which is closed at the end; who does not take part is said once. `threads`: of a trial.

    Raises E1101 where no scheduler answers; the function raises E1102 where no worker can take part.
    """
    if scheduler is None:
        from fuseline.tuning.local_evaluator import LocalEvaluator

        yield LocalEvaluator
        return
    from fuseline.cluster.connect import connected
    from fuseline.cluster.evaluator import ClusterEvaluator

    told = set[str]()

    def once(line: str) -> None:
        if line not in told:
            told.add(line)
            note(line)

    with connected(scheduler, cores=threads) as client:
        yield lambda setting: ClusterEvaluator(setting, client, kind=kind, notice=once)
