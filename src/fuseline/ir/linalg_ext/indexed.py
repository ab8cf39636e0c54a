"""Ops that move elements to and from computed places: scatter, gather, and whole maps of indices."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, region_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.build import element_of
from fuseline.ir.linalg_ext.base import (
    BOOLEAN,
    NUMBERS,
    ExtOp,
    ExtYieldOp,
    check_sizes,
    parse_types,
    shape,
)


class _IndexedOp(ExtOp, ABC):
    """Slices of a tensor at places: `dimension_map` names the dimensions that an index has, the last dimension of the
    indices (none for one)."""

    @property
    def whole(self) -> SSAValue:
        """What has the slices."""
        raise NotImplementedError

    @property
    def slices(self) -> SSAValue:
        """The slices, one per index."""
        raise NotImplementedError

    @property
    def depth(self) -> int:
        """How many leading dimensions of `whole` an index names."""
        return len(self.numbers("dimension_map"))

    @property
    def batch(self) -> int:
        """How many dimensions the indices have, but for that of the index itself."""
        return len(shape(self.slices)) - (len(shape(self.whole)) - self.depth)

    def verify_form(self) -> None:
        whole, indices, slices = shape(self.whole), shape(self.inputs[1]), shape(self.slices)
        if (
            sorted(self.numbers("dimension_map")) != list(range(self.depth))
            or not 0 < self.depth <= len(whole)
            or self.batch < 0
        ):
            raise VerifyException("dimension_map names the leading dimensions, each once")
        check_sizes(slices[self.batch :], whole[self.depth :], "slices")
        single = self.depth == 1 and len(indices) == self.batch
        check_sizes(indices, slices[: self.batch] if single else (*slices[: self.batch], self.depth), "indices")
        if len(self.inputs) == 3:
            check_sizes(shape(self.inputs[2]), slices[: self.batch], "mask")
        if element_of(self.whole) != element_of(self.slices):
            raise VerifyException("the slices have another element type")


@irdl_op_definition
class ScatterOp(_IndexedOp):
    """The output with slices at computed places combined by the body, which sees an update and what is there, one after
    the other."""

    name = "iree_linalg_ext.scatter"
    WORDS: ClassVar[dict[str, str]] = {"dimension_map": NUMBERS, "unique_indices": BOOLEAN}
    COUNTS: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((2, 3), (1, 1))

    @property
    def whole(self) -> SSAValue:
        """The output."""
        return self.outputs[0]

    @property
    def slices(self) -> SSAValue:
        """The updates: the first input."""
        return self.inputs[0]

    def body_types(self) -> Sequence[Attribute]:
        """An update, and the element that it meets."""
        return [element_of(self.inputs[0])] * 2

    def yield_types(self) -> Sequence[Attribute]:
        """The element that is stored."""
        return [element_of(self.outputs[0])]


@irdl_op_definition
class GatherOp(_IndexedOp):
    """Slices of the first input at computed places; where a mask is false, the output as it was."""

    name = "iree_linalg_ext.gather"
    WORDS: ClassVar[dict[str, str]] = {"dimension_map": NUMBERS}
    COUNTS: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((2, 3), (1, 1))
    HAS_BODY: ClassVar[bool] = False

    @property
    def whole(self) -> SSAValue:
        """The source: the first input."""
        return self.inputs[0]

    @property
    def slices(self) -> SSAValue:
        """The output."""
        return self.outputs[0]


class MappedOp(IRDLOperation, ABC):
    """Elements moved between two tensors, as a body says of their indices: `%a into %b { .. } : type into type ->
    type`."""

    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    res = var_result_def(TensorType)
    body = region_def("single_block")

    def from_sizes(self) -> tuple[SSAValue, SSAValue]:
        """The tensor whose indices the body takes, and the one whose indices it yields."""
        raise NotImplementedError

    def verify_(self) -> None:
        """Raises VerifyException for a body that does not take the indices of one tensor and yield those of the other
        with one value more, and for a result of another type than `dest`."""
        taken, yielded = (len(shape(value)) for value in self.from_sizes())
        last = self.body.block.last_op
        if len(self.body.block.args) != taken or not isinstance(last, ExtYieldOp) or len(last.values) != yielded + 1:
            raise VerifyException(f"the body takes {taken} indices and yields {yielded}, and one value more")
        if [self.dest.type] != list(self.res.types) or last.values[-1].type != self.last_type():
            raise VerifyException("the types of the result, or of what the body yields last, do not fit")
        if any(str(value.type) != "index" for value in (*self.body.block.args, *last.values[:-1])):
            raise VerifyException("the body takes and yields indices")

    def last_type(self) -> Attribute:
        """The type of what the body yields last."""
        raise NotImplementedError

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Reads the text of `print`. Raises ParseError for other text."""
        attributes = parser.parse_optional_attr_dict()
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("into")
        dest = parser.parse_unresolved_operand()
        body: Region = parser.parse_region()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(source, parser.parse_type())
        parser.parse_keyword("into")
        into = parser.resolve_operand(dest, parser.parse_type())
        return cls.build(
            operands=[value, into], result_types=[parse_types(parser)], regions=[body], attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        """`{attributes} %source into %dest region : type into type -> types`."""
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(" into ")
        printer.print_ssa_value(self.dest)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" into ")
        printer.print_attribute(self.dest.type)
        printer.print_string(" -> ")
        printer.print_list(self.res.types, printer.print_attribute)


@irdl_op_definition
class MapLoadOp(MappedOp):
    """Each element of the result from where its indices say in the source, or a value where that is outside."""

    name = "iree_linalg_ext.map_load"

    def from_sizes(self) -> tuple[SSAValue, SSAValue]:
        """Indices of the result say where to read in the source."""
        return self.dest, self.source

    def last_type(self) -> Attribute:
        """An element: the value outside of the source."""
        return element_of(self.source)


@irdl_op_definition
class MapStoreOp(MappedOp):
    """Each element of the source to where its indices say in the result, unless the last value is false."""

    name = "iree_linalg_ext.map_store"

    def from_sizes(self) -> tuple[SSAValue, SSAValue]:
        """Indices of the source say where to write in the result."""
        return self.source, self.dest

    def last_type(self) -> Attribute:
        """i1: whether the element is written."""
        return i1
