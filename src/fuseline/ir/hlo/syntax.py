"""The form in which tools print StableHLO: operands, then settings by name, then types.

    stablehlo.pad %x, %zero, low = [1, 1], high = [0, 0], interior = [0, 0] : (tensor<..>, tensor<f32>) -> tensor<..>
    stablehlo.compare  LT, %x, %y,  FLOAT : (..) -> ..
    stablehlo.slice %x [0:4, 1:9:2] : (..) -> ..

One reader takes all ops of this kind; what is called differently in the generic form gets the name it has there
(`_NAMES`). Convolutions, reductions, loops and constants have a form of their own (`special_syntax.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, IntegerAttr, StringAttr, SymbolRefAttr, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.parser import UnresolvedOperand
from xdsl.utils.mlir_lexer import MLIRTokenKind

if TYPE_CHECKING:
    from xdsl.parser import Parser


@dataclass
class ParsedOp:
    """What an op is made of. `keywords` are words without a value, in order; `pairs` settings of two lists
    (`[1] x [0]`)."""

    unresolved: list[UnresolvedOperand] = field(default_factory=list[UnresolvedOperand])
    operands: Sequence[SSAValue] = ()
    results: Sequence[Attribute] = ()
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    regions: list[Region] = field(default_factory=list[Region])
    keywords: list[str] = field(default_factory=list[str])
    pairs: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict[str, tuple[list[int], list[int]]])


_NAMES = {
    ("broadcast_in_dim", "dims"): "broadcast_dimensions",
    ("dynamic_broadcast_in_dim", "dims"): "broadcast_dimensions",
    ("broadcast", "sizes"): "broadcast_sizes",
    ("transpose", "dims"): "permutation",
    ("reverse", "dims"): "dimensions",
    ("iota", "dim"): "iota_dimension",
    ("dynamic_iota", "dim"): "iota_dimension",
    ("concatenate", "dim"): "dimension",
    ("get_dimension_size", "dim"): "dimension",
    ("set_dimension_size", "dim"): "dimension",
    ("dynamic_slice", "sizes"): "slice_sizes",
    ("pad", "low"): "edge_padding_low",
    ("pad", "high"): "edge_padding_high",
    ("pad", "interior"): "interior_padding",
    ("einsum", "config"): "einsum_config",
    ("unary_einsum", "config"): "einsum_config",
    ("fft", "type"): "fft_type",
    ("fft", "length"): "fft_length",
    ("rng", "distribution"): "rng_distribution",
    ("rng_bit_generator", "algorithm"): "rng_algorithm",
}
_OF_ITS_OPERANDS = ("return", "optimization_barrier", "tuple")
"""Ops behind which the types of the operands are listed."""


def parse_short_form(parser: Parser, name: str) -> ParsedOp:
    """An op behind its name, up to its location. Raises ParseError."""
    mnemonic = name.partition(".")[2]
    parsed = ParsedOp()
    _parse_items(parser, mnemonic, parsed)
    parsed.attributes |= parser.parse_optional_attr_dict()
    _name_keywords(mnemonic, parsed)
    _parse_types(parser, mnemonic, parsed)
    return parsed


# -- operands and settings ---------------------------------------------------------------------------------------------


def _parse_items(parser: Parser, mnemonic: str, parsed: ParsedOp) -> None:
    while parser._current_token.kind not in (MLIRTokenKind.L_BRACE, MLIRTokenKind.COLON):  # pyright: ignore[reportPrivateUsage]
        if not _parse_item(parser, mnemonic, parsed):
            return
        parser.parse_optional_punctuation(",")


def _parse_item(parser: Parser, mnemonic: str, parsed: ParsedOp) -> bool:
    """Read one operand, setting or word; False where there is none."""
    operand = parser.parse_optional_unresolved_operand()
    if operand is not None:
        parsed.unresolved.append(operand)
        _parse_bounds(parser, mnemonic, parsed)
        return True
    symbol = parser.parse_optional_symbol_name()
    if symbol is not None:
        parsed.attributes["call_target_name"] = symbol
        parsed.unresolved += parse_operand_list(parser)
        return True
    text = parser.parse_optional_str_literal()
    if text is not None:
        parsed.attributes["name"] = StringAttr(text)
        return True
    word = parser.parse_optional_identifier()
    if word is None:
        return False
    if parser.parse_optional_punctuation("=") is None:
        parsed.keywords.append(word)
    else:
        parse_setting(parser, mnemonic, word, parsed)
    return True


def parse_operand_list(parser: Parser) -> list[UnresolvedOperand]:
    """`(%a, %b)`; nothing for what is no list."""
    if parser._current_token.kind is not MLIRTokenKind.L_PAREN:  # pyright: ignore[reportPrivateUsage]
        return []
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)


def _parse_bounds(parser: Parser, mnemonic: str, parsed: ParsedOp) -> None:
    """What follows an operand in brackets: `[first:last:step, ..]` of a slice, the number of an element of a tuple."""
    if parser._current_token.kind is not MLIRTokenKind.L_SQUARE:  # pyright: ignore[reportPrivateUsage]
        return
    if mnemonic != "slice":
        with parser.in_square_brackets():
            parsed.attributes["index"] = IntegerAttr(parser.parse_integer(), i64)
        return
    rows = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _bound(parser))
    for position, key in enumerate(("start_indices", "limit_indices", "strides")):
        parsed.attributes[key] = DenseArrayBase.from_list(i64, [row[position] for row in rows])


def _bound(parser: Parser) -> tuple[int, int, int]:
    first = parser.parse_integer()
    parser.parse_punctuation(":")
    last = parser.parse_integer()
    step = parser.parse_integer() if parser.parse_optional_punctuation(":") is not None else 1
    return first, last, step


def parse_setting(parser: Parser, mnemonic: str, key: str, parsed: ParsedOp) -> None:
    """The value behind `key =`: a list, two lists, a number, a word, a text, or whatever stands between `<` and `>`."""
    name = _NAMES.get((mnemonic, key), key)
    kind = parser._current_token.kind  # pyright: ignore[reportPrivateUsage]
    if kind is MLIRTokenKind.L_SQUARE:
        values = parse_values(parser)
        if parser.parse_optional_keyword("x") is not None:
            parsed.pairs[name] = ([int(v) for v in values], [int(v) for v in parse_values(parser)])
        elif all(isinstance(value, int) for value in values):
            parsed.attributes[name] = DenseArrayBase.from_list(i64, [int(value) for value in values])
        else:
            parsed.attributes[name] = StringAttr(" ".join(str(value) for value in values))
    elif kind is MLIRTokenKind.LESS:
        parsed.attributes[name] = StringAttr(parser._parse_dialect_symbol_body())  # pyright: ignore[reportPrivateUsage]
    else:
        parsed.attributes[name] = _single(parser)


def _single(parser: Parser) -> Attribute:
    word = parser.parse_optional_identifier()
    if word is not None:
        return StringAttr(word)
    text = parser.parse_optional_str_literal()
    return StringAttr(text) if text is not None else IntegerAttr(parser.parse_integer(), i64)


def parse_values(parser: Parser) -> list[int | str]:
    """`[1, 2]`, `[b, 0, 1, f]`, `[true, false]`: numbers and words."""

    def value() -> int | str:
        word = parser.parse_optional_identifier()
        return word if word is not None else parser.parse_integer(allow_boolean=False)

    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, value)


def _name_keywords(mnemonic: str, parsed: ParsedOp) -> None:
    """Words without a value, under the names that they have in the generic form; the lists of a product as one
    text."""
    if mnemonic in ("compare", "broadcast_compare"):
        for key, word in zip(("comparison_direction", "compare_type"), parsed.keywords, strict=False):
            parsed.attributes[key] = StringAttr(word)
    if mnemonic in ("dot_general", "dot"):
        parsed.attributes["dot_dimension_numbers"] = StringAttr(_product_text(parsed.pairs))
    if mnemonic == "composite" and "call_target_name" in parsed.attributes:
        parsed.attributes["name"] = parsed.attributes.pop("call_target_name")
    if mnemonic == "custom_call" and isinstance(parsed.attributes.get("call_target_name"), SymbolRefAttr):
        raise AssertionError("a symbol name is a text")


def _product_text(pairs: dict[str, tuple[list[int], list[int]]]) -> str:
    none: tuple[list[int], list[int]] = ([], [])
    batch, summed = pairs.get("batching_dims", none), pairs.get("contracting_dims", none)
    return (
        f"lhs_batching_dimensions = {batch[0]}, rhs_batching_dimensions = {batch[1]}, "
        f"lhs_contracting_dimensions = {summed[0]}, rhs_contracting_dimensions = {summed[1]}"
    )


# -- types -------------------------------------------------------------------------------------------------------------


def _parse_types(parser: Parser, mnemonic: str, parsed: ParsedOp) -> None:
    if parser.parse_optional_punctuation(":") is None:  # an op without operands and results
        if parsed.unresolved:
            parser.raise_error("expected ':' and the types of the operands")
        return
    types = parse_type_list(parser)
    resolve(parser, mnemonic, parsed, types)


def parse_type_list(parser: Parser) -> FunctionType | list[Attribute]:
    """`(types) -> types`, or types with commas between them."""
    function = parser.parse_optional_function_type()
    if function is not None:
        return function
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)


def resolve(parser: Parser, mnemonic: str, parsed: ParsedOp, types: FunctionType | list[Attribute]) -> None:
    """Operands and result types as the types behind the colon say."""
    count = len(parsed.unresolved)
    if isinstance(types, FunctionType):
        inputs, outputs = list(types.inputs.data), list(types.outputs.data)
    elif mnemonic in _OF_ITS_OPERANDS:
        inputs, outputs = list(types), [] if mnemonic == "return" else list(types)
        if mnemonic == "tuple" and len(types) == 1:
            parser.raise_error("tuples are not read")
    elif mnemonic == "select" and len(types) == 2:
        inputs, outputs = [types[0], types[1], types[1]], [types[1]]
    elif len(types) == 1:
        inputs, outputs = [types[0]] * count, [types[0]]
    else:
        parser.raise_error(f"{len(types)} types for {count} operands")
    parsed.operands = parser.resolve_operands(parsed.unresolved, inputs, parser.pos)
    parsed.results = outputs
