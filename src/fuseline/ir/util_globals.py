"""Globals of IREE's dialect `util`: values of the module, read and changed by name or through a pointer."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, SymbolNameConstraint, SymbolRefAttr, UnitAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """`!util.ptr<type>`: where a global lies."""

    name = "util.ptr"
    target: Attribute = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """`<type>`."""
        with parser.in_angle_brackets():
            return [parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        """`<type>`."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.target)


@irdl_op_definition
class GlobalOp(IRDLOperation):
    """A value of the module, `mutable` where a run may change it; without `value` it is given from outside."""

    name = "util.global"
    sym_name = prop_def(SymbolNameConstraint())
    type = prop_def()
    value = opt_prop_def()
    mutable = opt_prop_def(UnitAttr)
    sym_visibility = opt_prop_def(StringAttr)
    traits = traits_def(SymbolOpInterface())

    @classmethod
    def parse(cls, parser: Parser) -> GlobalOp:
        """Reads the text of `print`. Raises ParseError where neither a type nor a value with one stands."""
        visibility = parser.parse_optional_visibility_keyword()
        mutable = parser.parse_optional_keyword("mutable") is not None
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        attributes = parser.parse_optional_attr_dict()
        value = parser.parse_attribute() if parser.parse_optional_punctuation("=") else None
        properties["type"] = _type_after(parser, value)
        properties |= {"mutable": UnitAttr()} if mutable else {}
        properties |= {"value": value} if value is not None else {}
        properties |= {"sym_visibility": visibility} if isinstance(visibility, StringAttr) else {}
        return cls.create(properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """`visibility mutable @name {attributes} = value : type`; a value that has a type says it itself."""
        words = [
            self.sym_visibility.data if self.sym_visibility is not None else "",
            "mutable" if self.mutable is not None else "",
        ]
        printer.print_string("".join(f" {word}" for word in words if word) + " ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_op_attributes(self.attributes)
        if self.value is not None:
            printer.print_string(" = ")
            printer.print_attribute(self.value)
        if getattr(self.value, "type", None) is None:
            printer.print_string(" : ")
            printer.print_attribute(self.type)


def _type_after(parser: Parser, value: Attribute | None) -> Attribute:
    """The type of a global: behind a colon, or that of its value."""
    if parser.parse_optional_punctuation(":"):
        return parser.parse_type()
    type_ = getattr(value, "type", None)
    return type_ if isinstance(type_, Attribute) else parser.raise_error("expected the type of the global")


def _parse_global(parser: Parser) -> SymbolRefAttr:
    parser.parse_optional_keyword("immutable")
    symbol = parser.parse_attribute()
    return symbol if isinstance(symbol, SymbolRefAttr) else parser.raise_error("expected @global")


@irdl_op_definition
class GlobalLoadOp(IRDLOperation):
    """The value of a global."""

    name = "util.global.load"
    target = prop_def(SymbolRefAttr, prop_name="global")
    res = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> GlobalLoadOp:
        """Reads the text of `print`, `immutable` before the symbol too. Raises ParseError for what is no symbol."""
        symbol = _parse_global(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(properties={"global": symbol}, attributes=attributes, result_types=[parser.parse_type()])

    def print(self, printer: Printer) -> None:
        """`@global {attributes} : type`."""
        printer.print_string(" ")
        printer.print_attribute(self.target)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.res.type)


@irdl_op_definition
class GlobalAddressOp(IRDLOperation):
    """Where a global lies."""

    name = "util.global.address"
    target = prop_def(SymbolRefAttr, prop_name="global")
    res = result_def(PointerType)
    assembly_format = "$global attr-dict `:` type($res)"


@irdl_op_definition
class GlobalStoreOp(IRDLOperation):
    """Changes a global."""

    name = "util.global.store"
    value = operand_def()
    target = prop_def(SymbolRefAttr, prop_name="global")

    @classmethod
    def parse(cls, parser: Parser) -> GlobalStoreOp:
        """Reads the text of `print`. Raises ParseError for what is no symbol."""
        name = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        symbol = _parse_global(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(
            operands=[parser.resolve_operand(name, parser.parse_type())],
            properties={"global": symbol},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """`%value, @global {attributes} : type`."""
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        printer.print_attribute(self.target)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)


@irdl_op_definition
class GlobalLoadIndirectOp(IRDLOperation):
    """The value of the global at an address."""

    name = "util.global.load.indirect"
    address = operand_def(PointerType)
    res = result_def()
    assembly_format = "$address attr-dict `:` type($address) `->` type($res)"
