"""write-transposed: inside executables, the transposition of what a dispatch computes is an elementwise op that writes
in another order.

    %r = generic {relu} %m           %r = generic {relu} %m
    %t = transpose %r [1, 0]   =>    %t = generic (read (j, i), written (i, j)) %r
    return %r, %t                    return %r, %t

So a kernel stores a value in both orders while it has it, as a result or as a part of a concat that is one. A
transposition of what lies in memory already stays: it is read where that lies, or is a copy of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult
from xdsl.passes import ModulePass

from fuseline.analysis.structured import is_generic
from fuseline.dispatch.executable_entry import entry_of
from fuseline.ir.fast.direct import last_of, operand_of, operands_of, ops_of
from fuseline.ir.flow import ExecutableOp
from fuseline.ir.provenance import replace
from fuseline.passes.cleanup.generalize_named_ops import generalized


@dataclass(frozen=True)
class WriteTransposedPass(ModulePass):
    """Has no options."""

    name = "write-transposed"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the entry of every executable."""
        del ctx
        for executable in op.ops:
            if type(executable) is ExecutableOp:
                _rewrite(entry_of(executable))


def _rewrite(entry: FuncOp) -> None:
    body = entry.body.block
    end = last_of(body)
    assert end is not None
    returned = [value.op for value in operands_of(end) if isinstance(value, OpResult)]
    concats = [op for op in returned if type(op) is tensor.ConcatOp]
    parts = [value.op for op in concats for value in op.inputs if isinstance(value, OpResult)]
    leaving = {*returned, *parts}
    for op in ops_of(body):
        if op in leaving and _turns_what_is_computed(op):
            new = generalized(op)
            assert new is not None
            new.attributes.update(op.attributes)
            replace(op, [new])


def _turns_what_is_computed(op: Operation) -> bool:
    if type(op) is not linalg.ops.TransposeOp:
        return False
    source = operand_of(op, 0)
    return isinstance(source, OpResult) and is_generic(source.op)


EXPORT = WriteTransposedPass
