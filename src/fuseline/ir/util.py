"""IREE's `util.func` and `util.return`, read as `func.func` and `func.return`: IREE's own test programs are written with them."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import Dialect, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, region_def, var_operand_def
from xdsl.parser import Parser


@irdl_op_definition
class UtilFuncOp(IRDLOperation):
    """`util.func public @name(%a: type) -> type { ... }`; parsing it makes a `func.func`, so none is ever in the IR."""

    name = "util.func"
    body = region_def()

    @classmethod
    def parse(cls, parser: Parser) -> Operation:  # pyright: ignore[reportIncompatibleMethodOverride]
        return func.FuncOp.parse(parser)


@irdl_op_definition
class UtilReturnOp(IRDLOperation):
    """`util.return %a : type`; parsing it makes a `func.return`."""

    name = "util.return"
    values = var_operand_def()

    @classmethod
    def parse(cls, parser: Parser) -> Operation:  # pyright: ignore[reportIncompatibleMethodOverride]
        return func.ReturnOp.parse(parser)


Util = Dialect("util", [UtilFuncOp, UtilReturnOp], [])
