"""What a compile spends its time on: spans of phases, passes, steps and kernels, while somebody records them.

    with recording() as timeline:                  in the compiler, wherever something begins and ends:
        fuseline.compile(model, cache=False)           with span("pass", "canonicalize"): ...
    timeline.spans

Nobody records: `span` looks at one variable. Forks hand theirs back with their answers (`forked`, `taken`), on the
clock of their parent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import get_ident
from typing import Any, NamedTuple


class Span(NamedTuple):
    """Something that took time, from `begin` to `end` in nanoseconds of `time.perf_counter_ns`, in a thread (`ident`)
    of a process (`pid`). `error`: what ended it, where that was an exception."""

    category: str
    name: str
    begin: int
    end: int
    pid: int = 0
    ident: int = 0
    details: dict[str, Any] = {}  # noqa: RUF012 - never changed
    error: str = ""


class Timeline:
    """Spans in the order of their ends."""

    def __init__(self) -> None:
        self.spans: list[Span] = []


_current: ContextVar[Timeline | None] = ContextVar("timeline", default=None)
_NOTHING = nullcontext()


@contextmanager
def recording() -> Generator[Timeline]:
    """Record the spans of this context in a timeline of its own."""
    timeline = Timeline()
    token = _current.set(timeline)
    try:
        yield timeline
    finally:
        _current.reset(token)


def span(category: str, name: str, **details: Any) -> AbstractContextManager[None]:
    """The time that the block takes, on the timeline that is recorded, if one is."""
    timeline = _current.get()
    return _NOTHING if timeline is None else _span(timeline, category, name, details)


@contextmanager
def _span(timeline: Timeline, category: str, name: str, details: dict[str, Any]) -> Generator[None]:
    begin, error = time.perf_counter_ns(), ""
    try:
        yield
    except BaseException as problem:
        error = f"{type(problem).__name__}: {problem}"
        raise
    finally:
        end = time.perf_counter_ns()
        timeline.spans.append(Span(category, name, begin, end, os.getpid(), get_ident(), details, error))


def forked() -> None:
    """Begin with no spans, in a fork: its parent has them."""
    timeline = _current.get()
    if timeline is not None:
        timeline.spans = []


def taken() -> list[Span]:
    """The spans since the last call, in a fork that hands them to its parent."""
    timeline = _current.get()
    if timeline is None:
        return []
    found, timeline.spans = timeline.spans, []
    return found


def add(spans: Iterable[Span]) -> None:
    """Take over what a fork has recorded."""
    timeline = _current.get()
    if timeline is not None:
        timeline.spans += spans
