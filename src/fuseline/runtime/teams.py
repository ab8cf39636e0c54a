"""The teams of this process: one for a run that is alone, more where runs of several threads go side by side."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

from fuseline.runtime.memory import CodePages
from fuseline.runtime.processors import allowed_processors
from fuseline.runtime.team import Team

_teams: list[Team] = []
_making = threading.Lock()


@contextmanager
def borrowed_team(code: CodePages, worker: int, *, pin: bool) -> Generator[Team]:
    """A team that nobody else uses, its `lock` held meanwhile; who finds none free where no more may be made waits.

    There are at most as many as pairs of processors. The first caller's image and `pin` shape the first team, the only
    one whose workers are pinned: nobody can say which processors are free when several are at work.
    """
    team = _free_team() or _another(code, worker, pin=pin)
    try:
        yield team
    finally:
        team.lock.release()


def _free_team() -> Team | None:
    """A team whose lock has been taken for the caller, None where all are busy."""
    return next((team for team in _teams if team.lock.acquire(blocking=False)), None)


def _another(code: CodePages, worker: int, *, pin: bool) -> Team:
    with _making:
        found = _free_team()
        if found is not None:
            return found
        if not _teams or len(_teams) < len(allowed_processors()) // 2:
            made = Team(code, worker, pin=pin and not _teams)
            made.lock.acquire()
            _teams.append(made)
            return made
    team = _teams[0]
    team.lock.acquire()
    return team


def _forget() -> None:
    """A forked child has none of its parent's threads: the next run makes a new team."""
    global _making
    _teams.clear()
    _making = threading.Lock()


os.register_at_fork(after_in_child=_forget)
