"""The memory of a session's runs: as many workspaces as runs were ever under way at once, up to a limit."""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress
from time import monotonic

from fuseline.runtime.execution import Workspace

RELEASE_AFTER_S = 5.0
"""Seconds after which memory that runs side by side needed, and nobody needs any more, goes back to the system."""


LOOK_AGAIN_S = 1.0
"""Seconds after which a run that waits for memory looks whether there is any: who was interrupted tells nobody."""


class WorkspacePool:
    """Workspaces, at most `most`; who finds none waits. The one used last is given out first, so that those which are
    not needed stay untouched. One is kept for good, the others go when nobody has used them for `RELEASE_AFTER_S`.

    What counts is what exists: a workspace that an interrupted run (Ctrl-C between two operations) did not give back
    leaves room for another one.
    """

    def __init__(self, most: int) -> None:
        self.idle: list[Workspace] = []
        self._most = most
        self._made: weakref.WeakSet[Workspace] = weakref.WeakSet()
        self._waiting = 0
        self._lock = threading.Lock()  # taken by `with`, which no signal can come between; a condition's own `with` is
        self._changed = threading.Condition(self._lock)  # Python, and a lock that it took might stay taken
        self._timer: threading.Timer | None = None

    def take(self) -> Workspace:
        """One that nobody else uses until it is given back. Raises FuselineError (E0405) without memory."""
        try:  # list operations are atomic, so that the usual case takes no lock
            return self.idle.pop()
        except IndexError:
            return self._make_or_wait()

    def give(self, workspace: Workspace) -> None:
        """Take one back."""
        workspace.used = monotonic()
        self.idle.append(workspace)
        if self._waiting:
            with self._lock:
                self._changed.notify()
        elif len(self.idle) > 1 and self._timer is None:
            self._look_later()

    def add(self, workspace: Workspace) -> None:
        """Have one that was made elsewhere."""
        self._made.add(workspace)
        self.idle.append(workspace)

    def release(self, unused_for: float = 0.0, keep: int = 0) -> None:
        """Forget idle workspaces, but for `keep` of them, which have not been used for so many seconds."""
        before = monotonic() - unused_for
        with self._lock, suppress(IndexError):  # a run may take the last one meanwhile
            while len(self.idle) > keep and self.idle[0].used <= before:
                gone = self.idle.pop(0)
                gone.executions.clear()  # which may hold their workspace: its memory would wait for the next collection
                self._made.discard(gone)
                self._changed.notify()

    def _make_or_wait(self) -> Workspace:
        with self._lock:
            self._waiting += 1
            try:
                while True:
                    try:
                        return self.idle.pop()
                    except IndexError:
                        if len(self._made) < self._most:
                            break
                        self._changed.wait(LOOK_AGAIN_S)
            finally:
                self._waiting -= 1
            made = Workspace()
            self._made.add(made)
            return made

    def _look_later(self) -> None:
        with self._lock:
            if self._timer is not None:
                return
            timer = threading.Timer(RELEASE_AFTER_S, _look, [weakref.ref(self)])
            timer.daemon = True
            with suppress(RuntimeError):  # no thread can be had, or the interpreter ends: the next run tries again
                timer.start()
                self._timer = timer

    def look(self) -> None:
        """Release what has been idle for long, and look again while there is more than is kept."""
        with self._lock:
            self._timer = None
        self.release(RELEASE_AFTER_S, keep=1)
        if len(self.idle) > 1:
            self._look_later()


def _look(pool: weakref.ref[WorkspacePool]) -> None:
    """A timer must not keep the memory of a session that is gone."""
    found = pool()
    if found is not None:
        found.look()
