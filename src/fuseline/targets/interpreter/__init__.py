"""The interpreter target: NumPy runs a program at any phase. Slow, exact, and the reference for every other target.

A module of any phase: `Interpreter(module, ctx).run(feeds)`. A compiled program: `create()` as the pipeline's target,
which interprets the schedule (its order, its arena, its constants) with NumPy in place of kernels.
"""

from __future__ import annotations

from fuseline.errors import FuselineError
from fuseline.targets.interpreter.module import Interpreter
from fuseline.targets.interpreter.session import InterpretedProgram, InterpretedSession
from fuseline.targets.interpreter.target import InterpreterTarget
from fuseline.targets.target import Target

__all__ = ["InterpretedProgram", "InterpretedSession", "Interpreter", "InterpreterTarget", "create"]


def create(variant: str | None = None, threads: int | None = None, numerics: str = "default") -> Target:
    """The target `interpreter`; raises E0501 for a variant, of which it has none."""
    if variant is not None:
        raise FuselineError("E0501", f"the interpreter has no variant {variant!r}")
    del threads  # NumPy decides
    return InterpreterTarget(numerics)
