"""The part of IREE's `iree_tensor_ext` dialect that hands tensors on."""

from __future__ import annotations

from abc import ABC
from typing import Self

from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from fuseline.ir.flow_text import parse_shaped_type


class ComputeBarrierOp(IRDLOperation, ABC):
    """Hands a tensor on; reshapes do not move past it in IREE. `dims` are its unknown sizes."""

    value = operand_def(TensorType)
    dims = var_operand_def(IndexType)
    res = result_def(TensorType)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Reads the text of `print`. Raises ParseError for other text."""
        name = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_, dims = parse_shaped_type(parser)
        parser.parse_punctuation("->")
        sizes = [parser.resolve_operand(dim, IndexType()) for dim in dims]
        return cls.create(
            operands=[parser.resolve_operand(name, type_), *sizes],
            result_types=[parser.parse_type()],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """`%value {attributes} : type{sizes} -> type`."""
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        if self.dims:
            printer.print_string("{")
            printer.print_list(self.dims, printer.print_ssa_value)
            printer.print_string("}")
        printer.print_string(" -> ")
        printer.print_attribute(self.res.type)


@irdl_op_definition
class ComputeBarrierStartOp(ComputeBarrierOp):
    """Where computation begins."""

    name = "iree_tensor_ext.compute_barrier.start"


@irdl_op_definition
class ComputeBarrierEndOp(ComputeBarrierOp):
    """Where computation ends."""

    name = "iree_tensor_ext.compute_barrier.end"


TensorExt = Dialect("iree_tensor_ext", [ComputeBarrierStartOp, ComputeBarrierEndOp], [])
