"""What the ops `flow.tensor.*` of IREE have in common: how they are written.

Source: IREE, `compiler/src/iree/compiler/Dialect/Flow/IR/FlowOps.td` (syntax): operands, indices in brackets, a type
with its unknown sizes, the type of the result where it is another, a word with an attribute.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from math import prod
from typing import ClassVar, Self

from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, opt_prop_def, var_operand_def, var_result_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.flow_text import dynamic_count, parse_shaped_type


class FlowTensorOp(IRDLOperation, ABC):
    """An op on tensors. `values` are what it works on, `indices` where, `lengths` how far; sizes follow for the source
    and for the result."""

    values = var_operand_def()
    indices = var_operand_def(IndexType)
    lengths = var_operand_def(IndexType)
    source_dims = var_operand_def(IndexType)
    result_dims = var_operand_def(IndexType)
    target = opt_prop_def()
    res = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    COUNT: ClassVar[int] = 1
    INDEXED: ClassVar[bool] = False
    ARROW: ClassVar[bool] = False
    WORD: ClassVar[str | None] = None

    def verify_(self) -> None:
        """Raises VerifyException for other than `COUNT` operands and one result, an index too few or too many, lengths
        that are not one per index, and unknown sizes that are not all given."""
        if len(self.values) != self.COUNT or len(self.res) != 1:
            raise VerifyException(f"expected {self.COUNT} operands and a result")
        if self.INDEXED and len(self.indices) != rank(self.indexed.type):
            raise VerifyException(f"{len(self.indices)} indices for {self.indexed.type}")
        if self.lengths and len(self.lengths) != len(self.indices):
            raise VerifyException("as many lengths as indices are wanted")
        for type_, dims in self._shaped():
            if dynamic_count(type_) != len(dims):
                raise VerifyException(f"{type_} has {dynamic_count(type_)} unknown sizes, {len(dims)} are given")
        self.verify_form()

    def verify_form(self) -> None:
        """Raises VerifyException for types that do not fit each other."""

    @property
    def indexed(self) -> SSAValue:
        """The tensor that the indices are of: the last operand."""
        return self.values[-1]

    def _shaped(self) -> list[tuple[Attribute, Sequence[SSAValue]]]:
        source: list[tuple[Attribute, Sequence[SSAValue]]] = (
            [(self.values[0].type, self.source_dims)] if self.ARROW else []
        )
        return [*source, (self._result_shape(), self.result_dims)]

    def _result_shape(self) -> Attribute:
        return self.res[0].type

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Reads the text of `print`. Raises ParseError where something of it is missing."""
        names = [parser.parse_unresolved_operand() for _ in range(min(cls.COUNT, 1))]
        for _ in range(1, cls.COUNT):
            parser.parse_punctuation(",")
            names.append(parser.parse_unresolved_operand())
        indices, lengths = _parse_indices(parser) if cls.INDEXED else ([], [])
        parser.parse_punctuation(":")
        type_, dims = parse_shaped_type(parser)
        result, result_dims = _parse_result(parser) if cls.ARROW else (type_, dims)
        properties: dict[str, Attribute] = {}
        if cls.WORD is not None:
            parser.parse_keyword(cls.WORD)
            properties["target"] = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        kinds = cls.types_of_operands(type_, result)
        values = [parser.resolve_operand(name, kind) for name, kind in zip(names, kinds, strict=True)]
        groups = [
            [parser.resolve_operand(name, IndexType()) for name in group]
            for group in (indices, lengths, dims if cls.ARROW else [], result_dims)
        ]
        op = cls.build(operands=[values, *groups], result_types=[[cls.result_type(result)]], properties=properties)
        op.attributes |= attributes.data if attributes is not None else {}
        return op

    @classmethod
    def types_of_operands(cls, source: Attribute, result: Attribute) -> list[Attribute]:
        """The types of the operands, of those that the text has."""
        del result
        return [source] * cls.COUNT

    @classmethod
    def result_type(cls, shaped: Attribute) -> Attribute:
        """The type of the result, of the last one that the text has."""
        return shaped

    def print(self, printer: Printer) -> None:
        """`operands[indices for lengths] : type{sizes} -> type{sizes} word target attributes {..}`, as far as the class
        has each."""
        if self.values:
            printer.print_string(" ")
            printer.print_list(self.values, printer.print_ssa_value)
        if self.indices:
            with printer.in_square_brackets():
                printer.print_list(self.indices, printer.print_ssa_value)
                if self.lengths:
                    printer.print_string(" for ")
                    printer.print_list(self.lengths, printer.print_ssa_value)
        for start, (type_, dims) in zip((" : ", " -> "), self._shaped(), strict=False):
            printer.print_string(start)
            printer.print_attribute(type_)
            if dims:
                with printer.in_braces():
                    printer.print_list(dims, printer.print_ssa_value)
        if self.WORD is not None and self.target is not None:
            printer.print_string(f" {self.WORD} ")
            printer.print_attribute(self.target)
        printer.print_op_attributes(self.attributes, print_keyword=True)


def rank(type_: Attribute) -> int:
    """How many dimensions a type has; -1 for no tensor."""
    return type_.get_num_dims() if isinstance(type_, TensorType) else -1


def element(type_: Attribute) -> Attribute:
    """The element type of a tensor, else the type."""
    return type_.get_element_type() if isinstance(type_, TensorType) else type_


def count(type_: Attribute) -> int | None:
    """How many elements a type has, None where that is unknown."""
    return prod(type_.get_shape()) if isinstance(type_, TensorType) and not dynamic_count(type_) else None


def _parse_indices(parser: Parser) -> tuple[list[UnresolvedOperand], list[UnresolvedOperand]]:
    if not parser.parse_optional_punctuation("["):
        return [], []
    indices = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
    lengths: list[UnresolvedOperand] = []
    if parser.parse_optional_keyword("for"):
        lengths = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation("]")
    return indices, lengths


def _parse_result(parser: Parser) -> tuple[Attribute, list[UnresolvedOperand]]:
    parser.parse_punctuation("->")
    if parser.parse_optional_unresolved_operand() is not None:
        parser.parse_keyword("as")
    return parse_shaped_type(parser)
