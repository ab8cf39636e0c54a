"""Where text goes: results to standard output, progress and errors to standard error; plain under a pipe or
NO_COLOR."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np
from rich.console import Console, RenderableType
from rich.text import Text

from fuseline.errors import ERROR_TITLES, FuselineError

SCHEMA_VERSION = 1
STANDARD_OUTPUT = "standard output"
"""As errors call it."""

_PIPE_WIDTH = 1000  # a table in a pipe is never cut to a terminal's width


class Progress(Protocol):
    """What a long piece of work reports to: `phase` is a few words, `done` of `total` steps."""

    def __call__(self, phase: str, done: int, total: int) -> None:
        """`phase` begins; `done` steps of `total` are over."""
        ...


_captured: ContextVar[list[str] | None] = ContextVar("captured", default=None)


class _Lines(io.StringIO):
    """A file whose lines go to a list."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def write(self, text: str) -> int:
        self._lines += [line for line in text.splitlines() if line.strip()]
        return len(text)


@contextmanager
def captured() -> Generator[list[str]]:
    """What this thread would print to standard error is added to a list, line by line: for work whose terminal is
    elsewhere."""
    lines: list[str] = []
    token = _captured.set(lines)
    try:
        yield lines
    finally:
        _captured.reset(token)


def out() -> Console:
    """The console for results."""
    return Console(highlight=False, emoji=False, markup=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)


def err() -> Console:
    """The console for progress and errors."""
    lines = _captured.get()
    if lines is not None:
        return Console(file=_Lines(lines), width=_PIPE_WIDTH, highlight=False, emoji=False, markup=False)
    return Console(stderr=True, highlight=False, emoji=False, markup=False, soft_wrap=True)


def say(content: RenderableType | list[str] | tuple[str, ...]) -> None:
    """Prints text lines or a table to standard output."""
    if isinstance(content, list | tuple):
        content = "\n".join(content)
    with standard_output():
        out().print(content, soft_wrap=isinstance(content, str))


def emit(command: str, content: Mapping[str, Any]) -> None:
    """Prints one JSON document in the envelope that every command shares."""
    document = {"version": SCHEMA_VERSION, "command": command, **content}
    text = json.dumps(document, indent=2, default=_plain) + "\n"
    with standard_output():
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def standard_output() -> Generator[None]:
    """Around what is written there. Raises FuselineError (E0502) where it cannot be (a full disk); a reader that has
    left stays a BrokenPipeError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_standard_output()
        raise FuselineError(
            "E0502", f"cannot write: {error.strerror or error}", node=STANDARD_OUTPUT, hint="give another place"
        ) from error


def forget_standard_output() -> None:
    """Drop what is still to be written, so that the interpreter does not try again as it exits."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, sys.stdout.fileno())
        finally:
            os.close(nowhere)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value)


def warn(lines: Iterable[str]) -> None:
    """Prints what the user should know of a compile that succeeded, to standard error."""
    for line in lines:
        err().print(Text.assemble(("warning: ", "bold yellow"), line))


def note(line: str) -> None:
    """Prints a line beside the result, to standard error."""
    err().print(line)


def show_error(error: FuselineError, *, as_json: bool, command: str) -> None:
    """One block: code and title, where, why, what to do; or the same as JSON, unless that cannot be written."""
    if as_json and error.node != STANDARD_OUTPUT:
        with suppress(FuselineError):  # then it is said as text
            emit(command, {"error": error.to_json()})
            return
    block = Text(f"error {error.code}", style="bold red")
    block.append(f": {ERROR_TITLES[error.code]}", style="bold")
    rows = (
        ("at", error.node),
        ("in", error.phase),
        ("why", error.message),
        ("try", error.hint),
        ("more", f"fuseline errors {error.code}"),
    )
    for label, text in rows:
        if text:
            block.append(f"\n  {label:<5}", style="cyan")
            block.append(text.replace("\n", "\n       "), style="not bold")
    err().print(block)


@contextmanager
def progress(title: str) -> Generator[Progress]:
    """A status line on standard error while work is under way; silent when that is not a terminal."""
    console = err()
    if not console.is_terminal:
        yield lambda phase, done, total: None
        return
    with console.status(title) as status:

        def report(phase: str, done: int, total: int) -> None:
            status.update(f"{title}: {phase} [{done}/{total}]" if total else f"{title}: {phase}")

        yield report
