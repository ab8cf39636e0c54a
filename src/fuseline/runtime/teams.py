"""The teams of this process: one for a run that is alone, more where runs of several threads go side by side."""

from __future__ import annotations

import os
import threading

from fuseline.runtime.memory import CodePages
from fuseline.runtime.processors import allowed_processors
from fuseline.runtime.team import Team

_teams: list[Team] = []
_making = threading.Lock()


def chosen_team(code: CodePages, worker: int, *, pin: bool) -> Team:
    """A team that is free, or the first one where none is and no more may be made. The caller takes its `lock` for the
    run, by `with`, so that no signal comes between: what an interrupted run left locked would stay so for ever.

    There are at most as many as pairs of processors. The first caller's image and `pin` shape the first team, the only
    one whose workers are pinned: nobody can say which processors are free when several are at work.
    """
    return _free_team() or _another(code, worker, pin=pin)


def _free_team() -> Team | None:
    """A team that nobody uses now, None where all are busy. Who is overtaken waits for one run."""
    return next((team for team in _teams if not team.lock.locked()), None)


def _another(code: CodePages, worker: int, *, pin: bool) -> Team:
    with _making:
        found = _free_team()
        if found is not None:
            return found
        if _teams and len(_teams) >= len(allowed_processors()) // 2:
            return _teams[0]
        made = Team(code, worker, pin=pin and not _teams)
        _teams.append(made)
        return made


def _forget() -> None:
    """A forked child has none of its parent's threads: the next run makes a new team."""
    global _making
    _teams.clear()
    _making = threading.Lock()


os.register_at_fork(after_in_child=_forget)
