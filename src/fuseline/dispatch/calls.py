"""How often a program launches each of its executables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.ir.flow import DispatchOp, ExecutableOp


def call_counts(entries: Sequence[FuncOp]) -> list[int]:
    """Per entry function, how many dispatches of its program name its executable; 1 for a function that stands
    alone."""
    homes = [_home(entry) for entry in entries]
    counts: dict[ModuleOp, Counter[str]] = {}
    for home in homes:
        if home is not None and home[0] not in counts:
            counts[home[0]] = _counted(home[0])
    return [counts[home[0]][home[1]] if home is not None else 1 for home in homes]


def _home(entry: FuncOp) -> tuple[ModuleOp, str] | None:
    """The program of an entry function and the name of its executable."""
    op: Operation | None = entry
    while op is not None and not isinstance(op, ExecutableOp):
        op = op.parent_op()
    program = op.parent_op() if op is not None else None
    return (program, op.sym_name.data) if isinstance(op, ExecutableOp) and isinstance(program, ModuleOp) else None


def _counted(program: ModuleOp) -> Counter[str]:
    functions = (op for op in program.ops if isinstance(op, FuncOp))
    calls = (op for function in functions for op in function.walk() if isinstance(op, DispatchOp))
    return Counter(call.entry_points.data[0].root_reference.data for call in calls)
