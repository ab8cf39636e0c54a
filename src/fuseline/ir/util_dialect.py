"""IREE's `util` dialect, as far as programs that IREE prints contain it.

`util.func`, `util.return` and `util.call` are read as those of `func`; barriers, constants and globals stay until a
frontend has resolved them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import func
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from fuseline.ir.util_globals import (
    GlobalAddressOp,
    GlobalLoadIndirectOp,
    GlobalLoadOp,
    GlobalOp,
    GlobalStoreOp,
    PointerType,
)


def _read_as(op: type[Operation]) -> Any:
    """The parser of an op that `util` has under a name of its own: what it reads is the op of `func`, so none of them
    is ever in the IR."""
    return classmethod(lambda cls, parser: op.parse(parser))


@irdl_op_definition
class UtilFuncOp(IRDLOperation):
    """`util.func public @name(%a: type) -> type { ... }`."""

    name = "util.func"
    body = region_def()
    parse = _read_as(func.FuncOp)


@irdl_op_definition
class UtilReturnOp(IRDLOperation):
    """`util.return %a : type`."""

    name = "util.return"
    values = var_operand_def()
    parse = _read_as(func.ReturnOp)


@irdl_op_definition
class UtilCallOp(IRDLOperation):
    """`util.call @name(%a) : (type) -> type`."""

    name = "util.call"
    arguments = var_operand_def()
    parse = _read_as(func.CallOp)


@irdl_op_definition
class OptimizationBarrierOp(IRDLOperation):
    """Hands its operands on, and keeps IREE's compiler from looking through."""

    name = "util.optimization_barrier"
    values = var_operand_def()
    res = var_result_def()

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[values], result_types=[[value.type for value in values]])

    @classmethod
    def parse(cls, parser: Parser) -> OptimizationBarrierOp:
        """Reads the text of `print`. Raises ParseError for another number of types than of values."""
        position = parser.pos
        names = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict()
        types = (
            parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
            if parser.parse_optional_punctuation(":")
            else []
        )
        op = cls(parser.resolve_operands(names or [], types, position))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        """`%values {attributes} : types`."""
        printer.print_string(" ")
        printer.print_list(self.values, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.values.types, printer.print_attribute)


@irdl_op_definition
class UnfoldableConstantOp(IRDLOperation):
    """A constant that IREE's compiler does not look into."""

    name = "util.unfoldable_constant"
    value = prop_def()
    res = result_def()

    def __init__(self, value: Attribute, type_: Attribute) -> None:
        super().__init__(properties={"value": value}, result_types=[type_])

    @classmethod
    def parse(cls, parser: Parser) -> UnfoldableConstantOp:
        """Reads the text of `print`. Raises ParseError for a value without a type."""
        attributes = parser.parse_optional_attr_dict()
        value = parser.parse_attribute()
        type_ = getattr(value, "type", None)
        if not isinstance(type_, Attribute):
            parser.raise_error("expected a constant with a type")
        op = cls(value, type_)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        """`{attributes} value : type`."""
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_attribute(self.value)


@irdl_attr_definition
class InlineNeverAttr(ParametrizedAttribute):
    """`#util.inline.never`: says something to IREE's inliner, and nothing of what is computed."""

    name = "util.inline.never"


@irdl_attr_definition
class InlineAlwaysAttr(ParametrizedAttribute):
    """`#util.inline.always`: likewise."""

    name = "util.inline.always"


Util = Dialect(
    "util",
    [
        UtilFuncOp,
        UtilReturnOp,
        UtilCallOp,
        OptimizationBarrierOp,
        UnfoldableConstantOp,
        GlobalOp,
        GlobalLoadOp,
        GlobalAddressOp,
        GlobalStoreOp,
        GlobalLoadIndirectOp,
    ],
    [PointerType, InlineNeverAttr, InlineAlwaysAttr],
)
