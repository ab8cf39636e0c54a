"""Host operators: what has no native lowering runs in Python through an executor that a higher layer registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError
from fuseline.runtime.program import HostCall, HostTensor

Array = NDArray[Any]

Executor: TypeAlias = Callable[[bytes, Sequence[Any]], Sequence[Any]]
"""Runs a serialised node on its inputs (None: left out; read-only for the executor) and answers all its outputs in order.

Values are arrays, or what `fuseline.runtime.held` keeps: lists, dicts, None.
"""

_executors: dict[str, Executor] = {}


def register(name: str, executor: Executor) -> None:
    """Make `executor` the one that host calls named `name` use; the last registration counts."""
    _executors[name] = executor


def executor(name: str) -> Executor:
    """The executor registered as `name`; raises FuselineError (E0503) where none is."""
    found = _executors.get(name)
    if found is None:
        known = "install the onnx package and load the artifact with fuseline.load, which registers it"
        hint = known if name == "onnx" else "register it with fuseline.runtime.host.register"
        raise FuselineError("E0503", f"the artifact needs the host executor {name!r}, which is not registered", hint=hint)
    return found


def call(step: HostCall, operands: Sequence[Any]) -> list[Any]:
    """What the executor answers for `step`, one value per result of the step: an array, or anything where the result is held.

    Raises FuselineError: E0503 without the executor, E0107 where an answer is missing.
    """
    answers = executor(step.executor)(step.node, operands)
    if len(answers) < len(step.outputs):
        raise FuselineError("E0107", f"host operator answered {len(answers)} results of {len(step.outputs)}", node=step.label)
    return [answer if is_held(tensor) else np.asarray(answer) for answer, tensor in zip(answers, step.outputs, strict=False)]


def is_held(tensor: HostTensor | None) -> bool:
    """Whether an operand or result is passed by reference."""
    return tensor is not None and tensor.place.segment == "held"


def store(label: str, target: Array, answer: Array) -> None:
    """Put an answer where it was planned to be; raises FuselineError (E0107) where it has another shape or kind than was planned."""
    if answer.shape != target.shape:
        raise FuselineError("E0107", f"host operator answered shape {answer.shape}, planned was {target.shape}", node=label)
    if not np.can_cast(answer.dtype, target.dtype, "same_kind"):
        raise FuselineError("E0107", f"host operator answered dtype {answer.dtype}, planned was {target.dtype}", node=label)
    np.copyto(target, answer)
