"""How a search goes on, on standard error: a live table on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.table import Table

from fuseline.cli.console import err
from fuseline.report.quantities import seconds
from fuseline.tuning.search import Watch

_SHOWN = 8
"""Trials in the table."""

_LINE_SECONDS = 10.0
"""Between lines in a pipe, where nothing better was found."""


class SearchProgress(Protocol):
    """What a search reports to."""

    def watch(self, now: Watch) -> None:
        """The search stands here."""
        ...

    def phase(self, phase: str, done: int, total: int) -> None:
        """Something beside the search is under way."""
        ...


class PlainProgress:
    """Lines: each trial that is the best so far, what failed first, and how it stands every ten seconds."""

    def __init__(self, console: Console) -> None:
        self._console, self._said, self._best = console, time.monotonic(), -1

    def watch(self, now: Watch) -> None:
        """A line where there is something to say."""
        best = now.trials.best
        better = now.told is not None and best is not None and best.number != self._best
        if better or time.monotonic() - self._said > _LINE_SECONDS:
            self._best = best.number if best is not None else -1
            self._said = time.monotonic()
            self._console.print(status_line(now))

    def phase(self, phase: str, done: int, total: int) -> None:
        """Nothing: what comes before the search is short."""


class LiveProgress:
    """A table that changes in place."""

    def __init__(self, live: Live, title: str) -> None:
        self._live, self._title = live, title

    def watch(self, now: Watch) -> None:
        """The last trials under the state of the search."""
        self._live.update(progress_table(now, self._title))

    def phase(self, phase: str, done: int, total: int) -> None:
        """One line in place of the table."""
        self._live.update(f"{self._title}: {phase} [{done}/{total}]" if total else f"{self._title}: {phase}")


@contextmanager
def search_progress(title: str) -> Generator[SearchProgress]:
    """The one that fits standard error."""
    console = err()
    if not console.is_terminal:
        yield PlainProgress(console)
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield LiveProgress(live, title)


def status_line(now: Watch) -> str:
    """Best so far, trials, failures, time left, in one line."""
    best = now.trials.best
    told = len(now.trials.trials)
    phrases = [f"{told} trials" + (f" of {now.budget.trials}" if now.budget.trials is not None else "")]
    if best is not None and best.relative is not None:
        shown = seconds(best.relative * now.trials.default_seconds())
        phrases.append(f"best {shown} ({100 * best.relative:.1f} % of the default, trial {best.number})")
    if failed := now.trials.count("failed", "wrong"):
        phrases.append(f"{failed} failed")
    if pruned := now.trials.count("pruned"):
        phrases.append(f"{pruned} given up")
    if now.running:
        phrases.append(f"{now.running} running")
    if now.budget.seconds is not None:
        phrases.append(f"{max(0.0, now.budget.seconds - now.seconds):.0f} s left")
    return ", ".join(phrases)


def progress_table(now: Watch, title: str) -> Table:
    """The last trials, under a line that says how the search stands."""
    table = Table(title=f"{title}: {status_line(now)}", title_justify="left", expand=True)
    table.add_column("trial", justify="right")
    table.add_column("state")
    table.add_column("time / default", justify="right")
    table.add_column("changes", overflow="ellipsis", no_wrap=True)
    best = now.trials.best
    for told in now.trials.trials[-_SHOWN:]:
        error = (told.outcome.error or {}).get("code", "")
        names = ", ".join(f"{name}={choice}" for name, choice in told.configuration.items()) or "the default"
        table.add_row(
            str(told.number),
            f"{told.outcome.state} {error}".strip(),
            f"{told.relative:.4f}" if told.relative is not None else "",
            names,
            style="bold green" if best is not None and told.number == best.number else None,
        )
    return table
