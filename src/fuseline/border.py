"""The border of the interface: whatever leaves it is a FuselineError. What nobody foresaw becomes E0901 with the node,
the phase and the place.

KeyboardInterrupt and SystemExit pass as they are; the original exception stays behind the coded one (`raise .. from`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import ParamSpec, TypeVar

from fuseline.errors import FuselineError, MissingPackageError, OutOfMemoryError

_HINT = (
    "this is a bug in fuseline: the same command with `--report-bug FILE` writes what we need (the model without "
    "its weights, options, versions)"
)
_EXTRAS = {
    "onnxruntime": "bench",
    "openvino": "bench",
    "torch": "torch",
    "jax": "jax",
    "cryptography": "sign",
    "distributed": "tune",
}
_COMPILER = frozenset(
    {"xdsl", "llvmlite", "onnx", "onnx_ir", "click", "rich", "msgspec", "jinja2", "platformdirs", "ml_dtypes"}
)
_MOST_NODES = 3
_MOST_SHOWN = 400
"""Characters of the message of an exception that nobody expected."""


P = ParamSpec("P")
T = TypeVar("T")


class border:
    """Around a piece of work (as a decorator or in `with`): an exception without a code leaves it as a FuselineError
    that names `phase`.

    Raises FuselineError: E0405 in place of a MemoryError, E0503 of a missing package, E0901 of anything else.
    """

    def __init__(self, phase: str) -> None:
        self.phase = phase
        self._call: CodeType | None = None

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """`function` with this border around it; arguments that it does not take are E0501."""

        def bordered(*args: P.args, **kwargs: P.kwargs) -> T:
            with self:
                return function(*args, **kwargs)

        self._call = bordered.__code__
        return wraps(function)(bordered)

    def __enter__(self) -> border:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(problem, FuselineError):
            _complete(problem, self.phase)
        elif (
            isinstance(problem, TypeError)
            and trace is not None
            and trace.tb_next is None
            and trace.tb_frame.f_code is self._call
        ):
            raise FuselineError("E0501", str(problem)) from problem
        elif isinstance(problem, Exception):
            raise coded(problem, self.phase) from problem


def coded(problem: Exception, phase: str, *, node: str | None = None) -> FuselineError:
    """The coded error for an exception; `node` is named where no op at work says better."""
    if isinstance(problem, FuselineError):
        return _complete(problem, phase)
    if isinstance(problem, MemoryError) or _is_beyond_memory(problem):
        return OutOfMemoryError(
            "E0405", f"no memory left: {problem}".rstrip(": "), node=node, hint="use smaller sizes", phase=phase
        )
    if isinstance(problem, ModuleNotFoundError) and problem.name is not None:
        found = _missing_package(problem.name, phase)
        if found is not None:
            return found
    message = f"{type(problem).__name__}: {_short(str(problem))}" + _place(problem)
    return FuselineError("E0901", message, node=node or _node_at_work(problem), hint=_HINT, phase=phase)


def _short(text: str) -> str:
    """As much of a message as a terminal shows: a missing key may be a whole graph in words."""
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + " .."


def _complete(error: FuselineError, phase: str) -> FuselineError:
    """An internal error raised by name says where and what to do as well."""
    if error.code == "E0901":
        error.phase, error.hint = error.phase or phase, error.hint or _HINT
    return error


def _is_beyond_memory(problem: Exception) -> bool:
    """Whether NumPy was asked for more than addresses reach, which is a ValueError there
    (numpy/_core/src/multiarray/ctors.c, iterators.c)."""
    return isinstance(problem, ValueError) and str(problem).startswith(
        ("array is too big", "Maximum allowed", "iterator is too large", "broadcast dimensions too large")
    )


def _missing_package(name: str, phase: str) -> FuselineError | None:
    package = name.partition(".")[0]
    if package == __name__.partition(".")[0]:
        message = f"{name} is part of the compiler: only the runtime is installed here"
        hint = "pip uninstall fuseline-runtime, then pip install fuseline"
        return MissingPackageError("E0503", message, hint=hint, phase=phase)
    if package in _COMPILER:
        message = f"this part of fuseline needs the package {package}: only the runtime is installed here"
        return MissingPackageError("E0503", message, hint="pip install fuseline, with its dependencies", phase=phase)
    if package in _EXTRAS:
        extra = _EXTRAS[package]
        return MissingPackageError(
            "E0503", f"the package {package} is not installed", hint=f"pip install 'fuseline[{extra}]'", phase=phase
        )
    return None


def _frames(problem: BaseException) -> Iterator[tuple[FrameType, int]]:
    """Frames and their lines, from where it was raised outwards."""
    found: list[tuple[FrameType, int]] = []
    trace = problem.__traceback__
    while trace is not None:
        found.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return reversed(found)


def _place(problem: Exception) -> str:
    """The innermost line of our own."""
    root = str(Path(__file__).parent)
    ours = (
        (Path(frame.f_code.co_filename), line)
        for frame, line in _frames(problem)
        if frame.f_code.co_filename.startswith(root)
    )
    path, line = next(ours, (None, 0))
    return f" (at {path.name}:{line})" if path is not None else ""


def _node_at_work(problem: Exception) -> str | None:
    """The source nodes of the op that the innermost function with one was looking at; None where the compiler is not
    even loaded."""
    provenance, xdsl = sys.modules.get("fuseline.ir.provenance"), sys.modules.get("xdsl.ir")
    if provenance is None or xdsl is None:
        return None
    for frame, _ in _frames(problem):
        for value in frame.f_locals.values():
            nodes = provenance.provenance(value) if isinstance(value, xdsl.Operation) else ()
            if 0 < len(nodes) <= _MOST_NODES:
                return ", ".join(nodes)
    return None
