"""clone-reads: a slice or pad per reader, so that each may read the tensor below in place.

    x ──> slice ──┬─> pad ──> convolution            x ──> slice ──> pad ──> convolution
                  └─> add                     =>     x ──> slice ──> add

Neither computes anything, so both may be repeated wherever they are read. Contiguous slices are views already
(`analysis/views.py`) and stay as they are; what the caller gets is stored once. Copies that no reader took in are one
again after `merge-equal-regions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from fuseline.analysis.views import is_view
from fuseline.ir.fast.direct import insert_before, ops_of, result_of, set_operand, users_of_value


@dataclass(frozen=True)
class CloneReadsPass(ModulePass):
    """Has no options."""

    name = "clone-reads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.body.blocks:
                for inner in reversed(
                    ops_of(function.body.block)
                ):  # a pad of a slice first: then the slice has as many readers
                    if type(inner) in (tensor.ExtractSliceOp, tensor.PadOp) and not is_view(inner):
                        _clone(inner)


def _clone(read: Operation) -> None:
    """The first reader keeps `read`; where one is no dispatch, that one does."""
    readers = sorted(dict.fromkeys(users_of_value(result_of(read))), key=_computes)
    for reader in readers[1:]:
        if _computes(reader):
            _give_own(read, reader)


def _computes(reader: Operation) -> bool:
    """Whether `reader` becomes part of a dispatch, rather than handing the value to the caller or to a host
    operator."""
    return not isinstance(reader, func.ReturnOp | func.CallOp)


def _give_own(read: Operation, reader: Operation) -> None:
    copy = read.clone()
    insert_before(copy, read)
    for i, operand in enumerate(reader.operands):
        if operand is result_of(read):
            set_operand(reader, i, copy.results[0])


EXPORT = CloneReadsPass
