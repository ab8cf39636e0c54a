"""The function that a dispatch of an executable runs."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.flow import ExecutableOp


def entry_of(executable: ExecutableOp) -> FuncOp:
    """The entry function of an executable. Raises E0302 where it has none."""
    for op in ops_inside(executable):
        if type(op) is FuncOp:
            return op
    raise FuselineError("E0302", "an executable has no function", node=executable.sym_name.data)
