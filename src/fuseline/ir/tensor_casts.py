"""Casts and comparisons of `arith` on whole tensors, which xDSL has for scalars only.

Each class stands in xDSL's place when text is read, and makes xDSL's own op of what is a scalar: in bodies there are no
others.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, TensorType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.scalar_ops import IndexCastUIOp

_FLAGS = ("nneg", "exact", "to_nearest_even")
"""What may stand behind the operand and changes no value that is defined."""


class OnTensors(IRDLOperation, ABC):
    """An op that is xDSL's of the same name on each element."""

    @classmethod
    def create(cls, operands: Sequence[SSAValue] = (), result_types: Sequence[Attribute] = (), **rest: Any) -> Any:
        """The op on tensors, or on scalars where the result is one."""
        if result_types and not isinstance(result_types[0], TensorType):
            return _SCALARS[cls.name].create(operands=operands, result_types=result_types, **rest)
        return super().create(operands=operands, result_types=result_types, **rest)

    def verify_(self) -> None:
        """Raises VerifyException unless operands and result are tensors of one shape."""
        shapes = {
            tuple(value.type.get_shape())
            for value in (*self.operands, *self.results)
            if isinstance(value.type, TensorType)
        }
        if len(shapes) != 1 or not all(isinstance(value.type, TensorType) for value in (*self.operands, *self.results)):
            raise VerifyException("operands and result must be tensors of one shape")


class _TensorCast(OnTensors, ABC):
    input = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Operation:  # pyright: ignore[reportIncompatibleMethodOverride]
        name = parser.parse_unresolved_operand()
        for flag in _FLAGS:
            parser.parse_optional_keyword(flag)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_characters("to")
        return cls.create(
            operands=[parser.resolve_operand(name, type_)], result_types=[parser.parse_type()], attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.input)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.input.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)


class _TensorComparison(OnTensors, ABC):
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    predicate = opt_prop_def(IntegerAttr)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Operation:  # pyright: ignore[reportIncompatibleMethodOverride]
        word = parser.parse_identifier()
        if word not in _WORDS[cls.name]:
            parser.raise_error(f"{word} is no comparison")
        parser.parse_punctuation(",")
        left = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        right = parser.parse_unresolved_operand()
        if parser.parse_optional_keyword("fastmath") is not None:
            with parser.in_angle_brackets():
                parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_identifier)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        result = TensorType(i1, type_.get_shape()) if isinstance(type_, TensorType) else i1
        operands = [parser.resolve_operand(name, type_) for name in (left, right)]
        properties = {"predicate": IntegerAttr(_WORDS[cls.name].index(word), i64)}
        return cls.create(operands=operands, result_types=[result], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        number = self.predicate.value.data if self.predicate is not None else 0
        printer.print_string(" " + _WORDS[self.name][number] + ", ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


def _on_tensors(scalar: type[Operation]) -> type[Operation]:
    base = _TensorComparison if scalar.name in _WORDS else _TensorCast
    made = type(f"Tensor{scalar.__name__}", (base,), {"name": scalar.name, "__doc__": scalar.__doc__})
    return irdl_op_definition(cast(type[OnTensors], made))


def scalar_op(kind: type[Operation]) -> type[Operation]:
    """What is done with each element by an op of this class."""
    return _SCALARS[kind.name] if issubclass(kind, OnTensors) else kind


_CASTS = (
    arith.ExtFOp,
    arith.TruncFOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.FPToSIOp,
    arith.FPToUIOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
    arith.IndexCastOp,
    arith.BitcastOp,
    IndexCastUIOp,
)
_WORDS = {
    arith.CmpiOp.name: list(arith.CMPI_COMPARISON_OPERATIONS),
    arith.CmpfOp.name: list(arith.CMPF_COMPARISON_OPERATIONS),
}
"""The predicates of each comparison, by number."""

_SCALARS: dict[str, type[Operation]] = {kind.name: kind for kind in (*_CASTS, arith.CmpiOp, arith.CmpfOp)}

ON_TENSORS: tuple[type[Operation], ...] = tuple(_on_tensors(kind) for kind in _SCALARS.values())
"""To be registered in place of xDSL's ops of these names."""


@irdl_op_definition
class BitcastOp(_TensorCast):
    """The bits of each element as another type."""

    name = "tensor.bitcast"


_SCALARS[BitcastOp.name] = arith.BitcastOp
