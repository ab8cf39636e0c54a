"""Types with their unknown sizes, workloads and counts, as the ops of the `flow` dialect print and read them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, TensorType
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


def dynamic_count(type_: Attribute) -> int:
    """How many sizes of a type are unknown at compile time."""
    return sum(size == DYNAMIC_INDEX for size in type_.get_shape()) if isinstance(type_, TensorType) else 0


def require_dims(what: str, types: Sequence[Attribute], dims: Sequence[SSAValue]) -> None:
    """Raise VerifyException where `dims` are not one for each unknown size of `types`, which are of a `what` each."""
    unknown = sum(map(dynamic_count, types))
    if unknown != len(dims):
        raise VerifyException(f"{len(dims)} sizes are given for the {unknown} unknown ones of its {what}s")


def print_shaped_types(printer: Printer, types: Sequence[Attribute], dims: Sequence[SSAValue]) -> None:
    """Print types in parentheses, each tensor with its unknown sizes: `(tensor<4x?xf32>{%n})`."""
    rest = list(dims)

    def one(type_: Attribute) -> None:
        printer.print_attribute(type_)
        count = dynamic_count(type_)
        if count:
            printer.print_string("{")
            printer.print_list(rest[:count], printer.print_ssa_value)
            printer.print_string("}")
            del rest[:count]

    with printer.in_parens():
        printer.print_list(types, one)


def parse_shaped_type(parser: Parser) -> tuple[Attribute, list[UnresolvedOperand]]:
    """A type, and the operands that are its unknown sizes: `tensor<4x?xf32>{%n}`."""
    return _with_dims(parser, parser.parse_type())


def _with_dims(parser: Parser, type_: Attribute) -> tuple[Attribute, list[UnresolvedOperand]]:
    """`type_` with the operands that follow in braces, one for each unknown size."""
    count = dynamic_count(type_)
    if not count:
        return type_, []
    position = parser.pos
    dims = parser.parse_comma_separated_list(Parser.Delimiter.BRACES, parser.parse_unresolved_operand)
    if len(dims) != count:
        parser.raise_error(f"{count} sizes expected, one for each `?`", position, parser.pos)
    return type_, dims


def parse_shaped_types(parser: Parser) -> tuple[list[Attribute], Sequence[SSAValue]]:
    """Types in parentheses, or one without, and their unknown sizes, as `print_shaped_types` prints them."""
    if parser.parse_optional_punctuation("("):
        parsed = (
            parser.parse_optional_undelimited_comma_separated_list(
                lambda: _optional_shaped(parser), lambda: parse_shaped_type(parser)
            )
            or []
        )
        parser.parse_punctuation(")")
    else:
        parsed = [parse_shaped_type(parser)]
    dims = [parser.resolve_operand(dim, IndexType()) for _, names in parsed for dim in names]
    return [type_ for type_, _ in parsed], dims


def _optional_shaped(parser: Parser) -> tuple[Attribute, list[UnresolvedOperand]] | None:
    type_ = parser.parse_optional_type()
    return None if type_ is None else _with_dims(parser, type_)


def parse_workload(parser: Parser) -> list[SSAValue]:
    """The index values in square brackets, none where no bracket stands."""
    names = parser.parse_optional_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    return [parser.resolve_operand(name, IndexType()) for name in names or ()]


def parse_count(parser: Parser) -> Region:
    """How many workgroups there are, of a workload: `(%w: index) -> (index, index, index) { ... }`."""
    arguments = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_argument)
    parser.parse_punctuation("->")
    parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
    return parser.parse_region(arguments)
