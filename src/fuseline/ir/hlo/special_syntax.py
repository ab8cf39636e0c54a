"""Ops that have a printed form of their own: constants, convolutions, reductions, loops, the mesh of a sharding.

stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (..) -> ..
stablehlo.reduce(%x init: %a), (%y init: %b) across dimensions = [1] : (..) -> (..)
 reducer(%p: .., %q: ..) (%r: .., %s: ..)  { .. }
stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<4xf32> cond { .. } do { .. }
stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {..} : (..) -> ..
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FunctionType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Block, Region
from xdsl.parser import UnresolvedOperand
from xdsl.utils.mlir_lexer import MLIRTokenKind

from fuseline.ir.hlo.syntax import ParsedOp, parse_operand_list, parse_setting, parse_type_list, parse_values, resolve

if TYPE_CHECKING:
    from xdsl.parser import Parser


def _constant(parser: Parser) -> ParsedOp:
    attributes = parser.parse_optional_attr_dict()
    value = parser.parse_attribute()
    type_ = getattr(value, "type", None)
    if not isinstance(type_, TensorType):
        parser.raise_error("a constant must have a tensor type")
    if parser.parse_optional_punctuation(":") is not None:  # a shape that differs from the elements' one
        type_ = parser.parse_type()
    return ParsedOp(results=[type_], attributes={**attributes, "value": value})


# -- convolutions ------------------------------------------------------------------------------------------------------


_WINDOW = {"stride": "window_strides", "lhs_dilate": "lhs_dilation", "rhs_dilate": "rhs_dilation"}


def _convolution(parser: Parser) -> ParsedOp:
    parsed = ParsedOp(unresolved=parse_operand_list(parser))
    parser.parse_keyword("dim_numbers")
    parser.parse_punctuation("=")
    parsed.attributes["dimension_numbers"] = StringAttr(_dimension_numbers(parser))
    parser.parse_punctuation(",")
    parser.parse_keyword("window")
    parser.parse_punctuation("=")
    parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _window_setting(parser, parsed))
    parsed.attributes |= parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    resolve(parser, "convolution", parsed, parse_type_list(parser))
    return parsed


def _dimension_numbers(parser: Parser) -> str:
    """`[b, 0, f]x[0, i, o]->[b, 0, f]`, as that text."""
    lists = [_names(parser)]
    parser.parse_keyword("x")
    lists.append(_names(parser))
    parser.parse_punctuation("->")
    lists.append(_names(parser))
    return f"[{lists[0]}]x[{lists[1]}]->[{lists[2]}]"


def _names(parser: Parser) -> str:
    return ", ".join(str(value) for value in parse_values(parser))


def _window_setting(parser: Parser, parsed: ParsedOp) -> None:
    key = parser.parse_identifier()
    parser.parse_punctuation("=")
    if key == "pad":
        rows = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_values(parser))
        type_ = TensorType(i64, [len(rows), 2])
        numbers = [int(value) for row in rows for value in row]
        parsed.attributes["padding"] = DenseIntOrFPElementsAttr.from_list(type_, numbers)
    elif key == "reverse":
        flags = [value in ("true", 1) for value in parse_values(parser)]
        parsed.attributes["window_reversal"] = DenseArrayBase.from_list(i64, [int(flag) for flag in flags])
    else:
        parse_setting(parser, "convolution", _WINDOW.get(key, key), parsed)


# -- reductions --------------------------------------------------------------------------------------------------------


def _reduce(parser: Parser) -> ParsedOp:
    pairs = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _reduced(parser))
    applied = _applied(parser)
    parser.parse_keyword("across")
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=")
    parsed = ParsedOp(unresolved=[*(value for value, _ in pairs), *(init for _, init in pairs)])
    parsed.attributes["dimensions"] = DenseArrayBase.from_list(i64, [int(value) for value in parse_values(parser)])
    parsed.attributes |= parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    types = parse_type_list(parser)
    if not isinstance(types, FunctionType):
        parser.raise_error("expected the types of the operands and of the results")
    resolve(parser, "reduce", parsed, types)
    parsed.regions = [_region_of(parser, applied, parsed) if applied is not None else _reducer(parser, len(pairs))]
    return parsed


def _reduced(parser: Parser) -> tuple[UnresolvedOperand, UnresolvedOperand]:
    with parser.in_parens():
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("init")
        parser.parse_punctuation(":")
        return value, parser.parse_unresolved_operand()


def _applied(parser: Parser) -> str | None:
    """The op that `applies` names; None where a reducer follows the types."""
    return parser.parse_identifier() if parser.parse_optional_keyword("applies") is not None else None


def _region_of(parser: Parser, name: str, parsed: ParsedOp) -> Region:
    """The region that applies one op to two elements."""
    element = parsed.operands[-1].type
    kind = parser.ctx.get_optional_op(name)
    returned = parser.ctx.get_optional_op("stablehlo.return")
    if kind is None or returned is None:
        parser.raise_error(f"Operation {name} is not registered")
    block = Block(arg_types=[element, element])
    op = kind.create(operands=list(block.args), result_types=[element])
    block.add_ops([op, returned.create(operands=list(op.results))])
    return Region(block)


def _reducer(parser: Parser, count: int) -> Region:
    """`reducer(%p: .., %q: ..) (..) {..}`: two arguments for each operand; all former ones come first in the region."""
    parser.parse_keyword("reducer")
    groups = [
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _argument(parser)) for _ in range(count)
    ]
    if any(len(group) != 2 for group in groups):
        parser.raise_error("a reducer has two arguments for each operand")
    return parser.parse_region([*(group[0] for group in groups), *(group[1] for group in groups)])


def _argument(parser: Parser) -> Parser.Argument:
    argument = parser.parse_argument()
    parser.parse_optional_location()
    return argument


# -- loops -------------------------------------------------------------------------------------------------------------


def _while(parser: Parser) -> ParsedOp:
    names: list[Any] = []
    parsed = ParsedOp()

    def carried() -> None:
        names.append(parser.parse_argument(expect_type=False))
        parser.parse_punctuation("=")
        parsed.unresolved.append(parser.parse_unresolved_operand())

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, carried)
    types: list[Attribute] = []
    if parser.parse_optional_punctuation(":") is not None:
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parsed.operands = parser.resolve_operands(parsed.unresolved, types, parser.pos)
    parsed.results = types
    if parser.parse_optional_keyword("attributes") is not None:
        parsed.attributes |= parser.parse_optional_attr_dict()
    for word in ("cond", "do"):
        parser.parse_keyword(word)
        arguments = [name.resolve(type_) for name, type_ in zip(names, types, strict=True)]
        parsed.regions.append(parser.parse_region(arguments))
    return parsed


def _mesh(parser: Parser) -> ParsedOp:
    """`sdy.mesh @mesh = <["x"=2]>`: how many devices there are, which is not looked at."""
    name = parser.parse_symbol_name()
    parser.parse_punctuation("=")
    if parser._current_token.kind is not MLIRTokenKind.LESS:  # pyright: ignore[reportPrivateUsage]
        parser.raise_error("expected the axes of the mesh")
    text = parser._parse_dialect_symbol_body()  # pyright: ignore[reportPrivateUsage]
    return ParsedOp(attributes={**parser.parse_optional_attr_dict(), "sym_name": name, "mesh": StringAttr(text)})


def _sharded(parser: Parser) -> ParsedOp:
    """`sdy.sharding_constraint %x <@mesh, [..]> : type`."""
    parsed = ParsedOp(unresolved=[parser.parse_unresolved_operand()])
    parsed.attributes["sharding"] = StringAttr(parser._parse_dialect_symbol_body())  # pyright: ignore[reportPrivateUsage]
    parser.parse_punctuation(":")
    resolve(parser, "sharding_constraint", parsed, parse_type_list(parser))
    return parsed


SPECIAL: dict[str, Callable[[Any], ParsedOp]] = {
    "stablehlo.constant": _constant,
    "chlo.constant": _constant,
    "stablehlo.convolution": _convolution,
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.reduce": _reduce,
    "stablehlo.while": _while,
    "sdy.mesh": _mesh,
    "sdy.sharding_constraint": _sharded,
}
"""The readers of ops behind their names."""
