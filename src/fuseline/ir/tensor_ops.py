"""Ops of `tensor` that xDSL lacks and MLIR programs contain."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, region_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.tensor_casts import BitcastOp


@irdl_op_definition
class GenerateOp(IRDLOperation):
    """A tensor whose elements a body computes from where they are; `sizes` are its unknown sizes."""

    name = "tensor.generate"
    sizes = var_operand_def(IndexType)
    res = result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Raises VerifyException unless every unknown size is given, and the body takes an index per dimension and
        yields."""
        assert isinstance(self.res.type, TensorType)
        unknown = sum(size < 0 for size in self.res.type.get_shape())
        if unknown != len(self.sizes):
            raise VerifyException(f"{unknown} sizes are unknown, {len(self.sizes)} are given")
        if len(self.body.block.args) != self.res.type.get_num_dims() or not isinstance(
            self.body.block.last_op, tensor.YieldOp
        ):
            raise VerifyException("the body takes an index per dimension and yields an element")

    @classmethod
    def parse(cls, parser: Parser) -> GenerateOp:
        """Reads the text of `print`. Raises ParseError for other text."""
        position = parser.pos
        names = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        sizes = parser.resolve_operands(names or [], [IndexType()] * len(names or []), position)
        body = parser.parse_region()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(operands=sizes, result_types=[parser.parse_type()], regions=[body], attributes=attributes)

    def print(self, printer: Printer) -> None:
        """`%sizes region {attributes} : type`."""
        printer.print_string(" ")
        printer.print_list(self.sizes, printer.print_ssa_value)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.res.type)


Tensor = Dialect("tensor", [*tensor.Tensor.operations, GenerateOp, BitcastOp], list(tensor.Tensor.attributes))
"""xDSL's dialect and what it lacks."""
