"""`iree_linalg_ext.custom_op` of IREE: tensor ops that are to be tiled together."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    param_def,
    prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.linalg_ext.base import ExtYieldOp, parse_types
from fuseline.ir.linalg_named.base import parse_operands
from fuseline.ir.linalg_named.elementwise import print_operands

_MAPS, _KINDS = "indexing_maps", "iterator_types"


@irdl_attr_definition
class IteratorTypeAttr(ParametrizedAttribute):
    """`#iree_linalg_ext.iterator_type<parallel>`."""

    name = "iree_linalg_ext.iterator_type"
    kind: StringAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """`<kind>`; any word is a kind."""
        with parser.in_angle_brackets():
            return [StringAttr(parser.parse_identifier())]

    def print_parameters(self, printer: Printer) -> None:
        """`<kind>`."""
        printer.print_string(f"<{self.kind.data}>")


@irdl_op_definition
class CustomOp(IRDLOperation):
    """What the body makes of the operands. It is written for tiles of them, of any size: all of an operand is one."""

    name = "iree_linalg_ext.custom_op"
    inputs = var_operand_def()
    outputs = var_operand_def(TensorType)
    res = var_result_def(TensorType)
    indexing_maps = prop_def(ArrayAttr)
    iterator_types = prop_def(ArrayAttr)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def verify_(self) -> None:
        """Raises VerifyException for a body that does not take a tile per operand and yield one per output, for tiles
        of another element type or rank than their tensor, and for results of other types than the outputs."""
        last, arguments = self.body.block.last_op, [argument.type for argument in self.body.block.args]
        if (
            not isinstance(last, ExtYieldOp)
            or len(arguments) != len(self.operands)
            or [value.type for value in self.outputs] != list(self.res.types)
        ):
            raise VerifyException(
                "the body takes a tile of each operand and yields one of each output, whose types the results have"
            )
        yielded = [value.type for value in last.values]
        if len(yielded) != len(self.res) or not all(
            map(_is_tile, (*arguments, *yielded), (*self.operand_types, *self.res.types))
        ):
            raise VerifyException("a tile has another element type or rank than its operand or result")

    @classmethod
    def parse(cls, parser: Parser) -> CustomOp:
        """Reads the text of `print`. Raises ParseError without indexing maps and iterator types."""
        attributes = dict(parser.parse_optional_attr_dict())
        properties = {name: attributes.pop(name) for name in (_MAPS, _KINDS) if name in attributes}
        if not all(isinstance(properties.get(name), ArrayAttr) for name in (_MAPS, _KINDS)):
            parser.raise_error(f"expected {_MAPS} and {_KINDS}")
        inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        body = parser.parse_region()
        types = parse_types(parser)
        op = cls.build(operands=[inputs, outputs], result_types=[types], properties=properties, regions=[body])
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        """`{indexing_maps, iterator_types, attributes} ins(..) outs(..) region -> types`."""
        printer.print_string(" ")
        printer.print_attr_dict({_MAPS: self.indexing_maps, _KINDS: self.iterator_types, **self.attributes})
        if self.inputs:
            print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_string(" -> ")
        printer.print_list(self.res.types, printer.print_attribute)


def _is_tile(tile: Attribute, whole: Attribute) -> bool:
    if not isinstance(tile, TensorType) or not isinstance(whole, TensorType):
        return tile == whole
    sizes = zip(tile.get_shape(), whole.get_shape(), strict=False)
    return (
        tile.get_element_type() == whole.get_element_type()
        and tile.get_num_dims() == whole.get_num_dims()
        and all(a < 0 or b < 0 or a == b for a, b in sizes)
    )
