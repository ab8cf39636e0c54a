"""What torch-mlir puts around tensor programs: assertions about sizes, and globals of `ml_program`.

%ok = arith.cmpi eq, %dim, %dim_0 : index        =>        a note: ops that traverse both sizes with one loop check that
cf.assert %ok, "mismatched size for broadcast"             they are equal in every run
"""

from __future__ import annotations

from xdsl.dialects import arith, cf, ml_program, tensor
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, OpResult, SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_constant
from fuseline.ir.provenance import replace
from fuseline.ir.text import text_location


def take_assertions_out(main: FuncOp, ctx: CompilerContext) -> None:
    """Leave no `cf.assert`. Raises FuselineError: E0306 for one about data, E0302 for one that never holds."""
    for op in [op for op in main.walk() if isinstance(op, cf.AssertOp)]:
        place, known = text_location(op.location), _known(op.arg)
        if known is False:
            raise FuselineError("E0302", f"cf.assert: it never holds: {op.msg.data}", node=place)
        if known is None and not _is_of_sizes(op.arg):
            raise unsupported(
                op, f"what is asserted depends on data: {op.msg.data}", "hand over the program without it"
            )
        if known is None:
            ctx.records.notes.append(
                f"{place}: an assertion about sizes is left to the ops that need it: {op.msg.data}"
            )
        op.detach()
        op.erase()


def _known(value: SSAValue) -> bool | None:
    """The truth value of a constant, None for what is computed."""
    if not isinstance(value, OpResult) or not isinstance(value.op, arith.ConstantOp):
        return None
    return bool(value.op.value.value.data) if isinstance(value.op.value, IntegerAttr) else None


def _is_of_sizes(value: SSAValue) -> bool:
    """Whether a number is made of sizes and constants alone."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        here = pending.pop()
        if here in seen:
            continue
        seen.add(here)
        if isinstance(here, BlockArgument):
            if here.type != attributes.INDEX:
                return False
        elif isinstance(here, OpResult) and here.op.name.startswith("arith."):
            pending += here.op.operands
        elif not isinstance(here, OpResult) or not isinstance(here.op, tensor.DimOp):
            return False
    return True


def take_globals_in(module: ModuleOp) -> None:
    """Constants of `ml_program` where they are read; globals that nothing reads are gone. Raises FuselineError: E0306
    for a read of one that a run may change, or that the text has not."""
    found = {op.sym_name.data: op for op in module.ops if isinstance(op, ml_program.GlobalOp)}
    for op in [op for op in module.walk() if isinstance(op, ml_program.GlobalLoadConstantOp)]:
        name = op.global_attr.string_value()
        given = found.get(name)
        if given is None or given.is_mutable is not None or given.value is None:
            raise unsupported(op, f"@{name} is no constant")
        replace(op, [create_constant(given.value, op.result.type)])
    for op in found.values():
        op.detach()
        op.erase()
