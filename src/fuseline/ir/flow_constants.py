"""Constants of IREE's `flow` dialect."""

from __future__ import annotations

from abc import ABC
from typing import Self

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer


class _ConstantOp(IRDLOperation, ABC):
    value = opt_prop_def()
    res = var_result_def(TensorType)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        attributes = parser.parse_optional_attr_dict()
        value = parser.parse_attribute()
        type_ = getattr(value, "type", None)
        if parser.parse_optional_punctuation("->"):
            type_ = parser.parse_type()
        if not isinstance(type_, Attribute):
            parser.raise_error("expected a constant with a type")
        return cls.build(properties={"value": value}, result_types=[[type_]], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        if self.value is not None:
            printer.print_attribute(self.value)
        if self.name == DynamicConstantOp.name:
            printer.print_string(" -> ")
            printer.print_attribute(self.res[0].type)


@irdl_op_definition
class ConstantOp(_ConstantOp):
    """A constant."""

    name = "flow.tensor.constant"


@irdl_op_definition
class DynamicConstantOp(_ConstantOp):
    """A constant whose sizes IREE's compiler does not look at."""

    name = "flow.tensor.dynamic_constant"
