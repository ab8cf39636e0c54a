"""Facts about `@main` and what it calls, as the schedule reads them."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import IndexType, ModuleOp, TensorType
from xdsl.ir import Operation

from fuseline.analysis.views import is_view
from fuseline.errors import FuselineError
from fuseline.ir.flow import ExecutableOp
from fuseline.passes.schedule.main_border import arguments_of
from fuseline.program.bitcasts import is_bitcast_view
from fuseline.program.fills import is_fill_step


def main_function(module: ModuleOp) -> func.FuncOp:
    """The program's function: `@main`, or the only function with a body. Raises FuselineError (E0305) where there is
    neither."""
    bodies = [op for op in module.ops if isinstance(op, func.FuncOp) and len(op.body.blocks) == 1]
    named = [op for op in bodies if op.sym_name.data == "main"] or bodies
    if len(named) != 1:
        raise FuselineError("E0305", "the module has no function @main with one block")
    return named[0]


def computes_nothing(op: Operation) -> bool:
    """Whether the op needs no step: views, bitcasts, constants, empties, the return, and index arithmetic, which sizes
    already express."""
    if is_view(op) or is_bitcast_view(op):
        return True
    if isinstance(op, arith.ConstantOp | tensor.EmptyOp | tensor.DimOp | func.ReturnOp):
        return True
    if isinstance(op, tensor.ExtractOp):
        return all(is_fill_step(use.operation) for use in op.result.uses)
    return not any(isinstance(value.type, TensorType) for value in (*op.operands, *op.results))


def entry_size_names(executable: ExecutableOp, entry: str) -> Iterator[str]:
    """The names of the sizes that an entry function takes as arguments."""
    for function in executable.body.walk():
        if isinstance(function, func.FuncOp) and function.sym_name.data == entry:
            for argument, said in zip(function.body.block.args, arguments_of(function), strict=True):
                if isinstance(argument.type, IndexType):
                    yield said.text("name") or f"arg{argument.index}"
