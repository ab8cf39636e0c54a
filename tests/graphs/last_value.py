"""The value that a function written as MLIR text makes last."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from fuseline.ir.context import new_context


def last_value(text: str) -> SSAValue:
    """The first result of the op before the return of the first function in `text`."""
    module = Parser(new_context(), text).parse_module()
    entry = next(op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    last = entry.body.block.last_op
    assert last is not None and last.prev_op is not None
    return last.prev_op.results[0]
