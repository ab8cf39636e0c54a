"""Host operators: what has no native lowering runs in Python through an executor that a higher layer registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from numpy.typing import NDArray

from fuseline.errors import FuselineError

Executor: TypeAlias = Callable[[bytes, Sequence[NDArray[Any] | None]], Sequence[NDArray[Any]]]
"""Runs a serialised node on its inputs (None: left out) and answers all its outputs in order."""

_executors: dict[str, Executor] = {}


def register(name: str, executor: Executor) -> None:
    """Make `executor` the one that host calls named `name` use; the last registration counts."""
    _executors[name] = executor


def executor(name: str) -> Executor:
    """The executor registered as `name`; raises FuselineError (E0503) where none is."""
    found = _executors.get(name)
    if found is None:
        hint = "install the onnx package and import fuseline, which registers it" if name == "onnx" else "register it with fuseline.runtime.host.register"
        raise FuselineError("E0503", f"the artifact needs the host executor {name!r}, which is not registered", hint=hint)
    return found
