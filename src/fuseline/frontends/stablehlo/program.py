"""A StableHLO module as a program: `frontends/mlir` hands it over where the text holds such ops."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.tensors import NoNativeLowering
from fuseline.frontends.stablehlo.calls import inline_calls
from fuseline.frontends.stablehlo.importer import Importer
from fuseline.ir.context import CompilerContext
from fuseline.ir.text import text_location


def read_stablehlo(module: ModuleOp, main: FuncOp, ctx: CompilerContext) -> ModuleOp:
    """The program of `main` as linalg on tensors, like that of an ONNX model. Raises FuselineError: E0302, E0305,
    E0306 and E0107 that name an op and its location."""
    if len(main.body.blocks) != 1:
        where = text_location(main.location)
        raise FuselineError("E0306", f"@{main.sym_name.data} has {len(main.body.blocks)} blocks", node=where)
    inline_calls(module, main)
    given = set(ctx.resources)
    try:
        found = Importer(ctx).run(main)
    except NoNativeLowering as error:  # outside of any op: a result that has no form
        raise FuselineError("E0306", error.detail, node=text_location(main.location)) from error
    for name in given:  # what the program holds of them has names of its own
        ctx.resources.pop(name, None)
    return found
