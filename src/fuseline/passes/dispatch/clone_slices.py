"""clone-slices: a slice per reader, so that each may read the sliced tensor in place.

    x ──> slice ──┬─> pad ──> convolution            x ──> slice ──> pad ──> convolution
                  └─> add                     =>     x ──> slice ──> add

A slice computes nothing, so it may be repeated wherever it is read. Contiguous ones are views already (`analysis/views.py`) and stay as they are;
what the caller gets is stored once. Copies that no reader took in are one again after `merge-equal-regions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from fuseline.analysis.views import is_view
from fuseline.ir.direct import insert_before, ops_of, set_operand, users_of_value


@dataclass(frozen=True)
class CloneSlicesPass(ModulePass):
    """Has no options."""

    name = "clone-slices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.body.blocks:
                for inner in ops_of(function.body.block):
                    if type(inner) is tensor.ExtractSliceOp and not is_view(inner):
                        _clone(inner)


def _clone(cut: tensor.ExtractSliceOp) -> None:
    """The first reader keeps `cut`; where one is no dispatch, that one does."""
    readers = list(dict.fromkeys(users_of_value(cut.result)))
    readers.sort(key=_computes)
    for reader in readers[1:] if len(readers) > 1 else ():
        if _computes(reader):
            _give_own(cut, reader)


def _computes(reader: Operation) -> bool:
    """Whether `reader` becomes part of a dispatch, rather than handing the slice to the caller or to a host operator."""
    return not isinstance(reader, func.ReturnOp | func.CallOp)


def _give_own(cut: tensor.ExtractSliceOp, reader: Operation) -> None:
    copy = cut.clone()
    insert_before(copy, cut)
    for i, operand in enumerate(reader.operands):
        if operand is cut.result:
            set_operand(reader, i, copy.result)


EXPORT = CloneSlicesPass
