"""The functions of a program that have a body; executables hold functions of their own, which are left alone."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from fuseline.ir.fast.direct import body_of, ops_of


def functions(module: ModuleOp) -> Iterator[FuncOp]:
    """The functions of `module` in order, without declarations; passes may add and remove ops meanwhile."""
    for op in ops_of(body_of(module)):
        if isinstance(op, FuncOp) and not op.is_declaration:
            yield op
