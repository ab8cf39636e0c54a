"""`iree_linalg_ext.attention` and `online_attention` of IREE, as text has it before it is tiled."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Self

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, TensorType
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.linalg_ext.base import ExtYieldOp, parse_types
from fuseline.ir.linalg_named.base import parse_operands
from fuseline.ir.linalg_named.elementwise import print_operands


class _AttentionOp(IRDLOperation, ABC):
    inputs = var_operand_def()
    outputs = var_operand_def(TensorType)
    res = var_result_def(TensorType)
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    OUTPUTS: ClassVar[int] = 1

    def verify_(self) -> None:
        maps = [entry.data for entry in self.indexing_maps.data]
        if len(self.inputs) not in (4, 5) or len(self.outputs) != self.OUTPUTS or len(maps) != len(self.operands):
            raise VerifyException(
                f"expected query, key, value, scale and perhaps a mask, {self.OUTPUTS} outputs, and a map for each of "
                f"them"
            )
        if [value.type for value in self.outputs] != list(self.res.types):
            raise VerifyException("a result has another type than its output")
        if len(self.body.block.args) != 1 or not isinstance(self.body.block.last_op, ExtYieldOp):
            raise VerifyException("the body takes a score and yields one")
        for map_, value in zip(maps, self.operands, strict=True):
            rank = value.type.get_num_dims() if isinstance(value.type, TensorType) else 0
            if len(map_.results) != rank or map_.num_dims != maps[0].num_dims:
                raise VerifyException("a map does not fit its operand")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        attributes = parser.parse_optional_attr_dict()
        maps = attributes.pop("indexing_maps", None)
        if not isinstance(maps, ArrayAttr):
            parser.raise_error("expected indexing_maps")
        inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        body = parser.parse_region()
        types = parse_types(parser)
        op = cls.build(
            operands=[inputs, outputs], result_types=[types], properties={"indexing_maps": maps}, regions=[body]
        )
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attr_dict({"indexing_maps": self.indexing_maps, **self.attributes})
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_string(" -> ")
        printer.print_list(self.res.types, printer.print_attribute)


@irdl_op_definition
class AttentionOp(_AttentionOp):
    """`softmax(body(query * key * scale) [+ mask]) * value`; the inputs are query, key, value, scale and, where there
    is one, the mask.

    A loop that neither the value nor the result names is summed in the scores, one that the value names and the result
    does not is that of the softmax. The body sees a score as f32.
    """

    name = "iree_linalg_ext.attention"


@irdl_op_definition
class OnlineAttentionOp(_AttentionOp):
    """Attention over some of the keys, which takes what others gave: the outputs are the sum of values so far, the
    largest score, and the sum of powers. The result is not divided by the sum of powers.
    """

    name = "iree_linalg_ext.online_attention"
    OUTPUTS: ClassVar[int] = 3
