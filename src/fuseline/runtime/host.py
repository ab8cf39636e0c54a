"""Host operators: what has no native lowering runs in Python through an executor that a higher layer registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError
from fuseline.runtime.ownership import Boxed, lend, take

Array = NDArray[Any]

Executor: TypeAlias = Callable[[bytes, Sequence[Any]], Sequence[Any]]
"""Runs a serialised node on its inputs (None: left out) and answers all its outputs in order.

Values are arrays, or what `fuseline.runtime.boxed` keeps: lists, dicts, None. Inputs are lent: read-only, and good
while the call lasts; an answer may lie in their memory. Arrays that an executor keeps itself and answers more than once
must be read-only.
"""

Chooser: TypeAlias = Callable[[bytes], str]
"""Names the package that runs a serialised node."""

_executors: dict[str, tuple[Executor, Chooser | None]] = {}


def register(name: str, executor: Executor, package: Chooser | None = None) -> None:
    """Make `executor` the one that host calls named `name` use; the last registration counts. `package` names what runs
    a node."""
    _executors[name] = executor, package


def executor(name: str) -> Executor:
    """The executor registered as `name`; raises FuselineError (E0503) where none is."""
    return _registered(name)[0]


def package_of(name: str, node: bytes) -> str:
    """What runs `node` for the executor called `name`: a package's name, or that of the executor. Raises E0503 where
    there is none."""
    package = _registered(name)[1]
    return name if package is None else package(node)


def _registered(name: str) -> tuple[Executor, Chooser | None]:
    found = _executors.get(name)
    if found is None:
        known = "install the onnx package and load the artifact with fuseline.load, which registers it"
        hint = known if name == "onnx" else "register it with fuseline.runtime.host.register"
        raise FuselineError(
            "E0503", f"the artifact needs the host executor {name!r}, which is not registered", hint=hint
        )
    return found


class Call(NamedTuple):
    """One call of a host operator: `label` names its node in errors, `boxed` says for each result whether it is to be
    boxed."""

    executor: str
    node: bytes
    label: str
    boxed: Sequence[bool]


def call(step: Call, operands: Sequence[Boxed | Array | None], lent: Sequence[Array]) -> list[Any]:
    """What the executor answers, one value per result: `Boxed` where it is to be boxed, else an array.

    `lent` are the operands that lie in memory which the program uses again: an answer that is to be boxed does not stay
    there, an array may, and is good until they change. Raises FuselineError that names the node: E0503 without the
    executor, E0107 where an answer is missing or is no array, E0106 for an exception in the executor, and what the
    executor raises itself.
    """
    answers = _answers(step, [lend(operand) for operand in operands])
    if len(answers) < len(step.boxed):
        raise FuselineError(
            "E0107", f"host operator answered {len(answers)} results of {len(step.boxed)}", node=step.label
        )
    return [
        take(answer, lent) if boxed else _array(answer, step.label)
        for answer, boxed in zip(answers, step.boxed, strict=False)
    ]


def _answers(step: Call, operands: Sequence[Any]) -> Sequence[Any]:
    run = executor(step.executor)
    try:
        return run(step.node, operands)
    except FuselineError as error:
        if error.node is not None:
            raise
        raise FuselineError(error.code, error.message, node=step.label, hint=error.hint) from error
    except MemoryError:
        raise
    except Exception as error:  # an executor may raise anything
        detail = f"the host executor {step.executor!r} failed: {type(error).__name__}: {error}"
        raise FuselineError("E0106", detail, node=step.label) from error


def _array(answer: Any, label: str) -> Array:
    try:
        return np.asarray(answer)
    except ValueError as error:  # rows of different lengths
        raise FuselineError(
            "E0107", f"host operator answered a {type(answer).__name__}, planned was an array: {error}", node=label
        ) from error


def store(label: str, target: Array, answer: Array) -> None:
    """Put an answer where it was planned to be; raises FuselineError (E0107) where it has another shape, or elements
    that are no numbers of the planned kind and range (floats are rounded)."""
    if answer.shape != target.shape:
        raise FuselineError(
            "E0107", f"host operator answered shape {answer.shape}, planned was {target.shape}", node=label
        )
    if not np.can_cast(answer.dtype, target.dtype, "same_kind"):
        raise FuselineError(
            "E0107", f"host operator answered dtype {answer.dtype}, planned was {target.dtype}", node=label
        )
    np.copyto(target, answer)
    if not _holds(target.dtype, answer.dtype) and (target != answer).any():
        raise FuselineError(
            "E0107", f"host operator answered {answer.dtype} numbers that no {target.dtype} is", node=label
        )


def _holds(wide: np.dtype[Any], narrow: np.dtype[Any]) -> bool:
    """Whether each number of `narrow` is one of `wide`, or is rounded to one."""
    return wide.kind not in "iu" or np.can_cast(narrow, wide, "safe")
