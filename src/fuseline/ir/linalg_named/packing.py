"""`linalg.pack` and `linalg.unpack` (tiles laid out contiguously), and `linalg.softmax`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, IntegerAttr, ShapedType, TensorType, i64
from xdsl.dialects.utils import parse_dynamic_index_list_without_types, print_dynamic_index_list
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.linalg_named.base import parse_operands, parse_results
from fuseline.ir.linalg_named.elementwise import print_operands


def _parse_integers(parser: Parser, keyword: str) -> list[int] | None:
    """`keyword = [1, 0]`, None when the keyword is not there."""
    if not parser.parse_optional_keyword(keyword):
        return None
    parser.parse_punctuation("=")
    return parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer)


def _parse_tiles(parser: Parser) -> tuple[Sequence[SSAValue], Sequence[int]]:
    parser.parse_keyword("inner_tiles")
    parser.parse_punctuation("=")
    names, static = parse_dynamic_index_list_without_types(parser, dynamic_index=DYNAMIC_INDEX)
    return parser.resolve_operands(names, [IndexType()] * len(names), parser.pos), static


def _integers(values: Sequence[int]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, values)


def _parse_tiling(parser: Parser) -> tuple[dict[str, Attribute], Sequence[SSAValue]]:
    """`outer_dims_perm = [..] inner_dims_pos = [..] inner_tiles = [..]`."""
    permutation = _parse_integers(parser, "outer_dims_perm") or []
    positions = _parse_integers(parser, "inner_dims_pos")
    if positions is None:
        parser.raise_error("expected inner_dims_pos")
    tiles, static = _parse_tiles(parser)
    properties: dict[str, Attribute] = {
        "outer_dims_perm": _integers(permutation),
        "inner_dims_pos": _integers(positions),
        "static_inner_tiles": _integers(static),
    }
    return properties, tiles


def _print_tiling(printer: Printer, op: PackOp | UnPackOp) -> None:
    if op.outer_dims_perm is not None and len(op.outer_dims_perm):
        printer.print_string(" outer_dims_perm = ")
        with printer.in_square_brackets():
            printer.print_list(op.outer_dims_perm.get_values(), printer.print_int)
    printer.print_string(" inner_dims_pos = ")
    with printer.in_square_brackets():
        printer.print_list(op.inner_dims_pos.get_values(), printer.print_int)
    printer.print_string(" inner_tiles = ")
    print_dynamic_index_list(printer, DYNAMIC_INDEX, op.inner_tiles, op.static_inner_tiles.get_values())
    printer.print_string(" into ")
    printer.print_ssa_value(op.dest)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.source.type)
    printer.print_string(" -> ")
    printer.print_attribute(op.dest.type)


def _permutation(op: PackOp | UnPackOp, rank: int) -> tuple[int, ...]:
    written = op.outer_dims_perm.get_values() if op.outer_dims_perm is not None else ()
    return tuple(written) or tuple(range(rank))


def _rank(value: SSAValue) -> int:
    assert isinstance(value.type, ShapedType)
    return value.type.get_num_dims()


def _verify_tiling(op: PackOp | UnPackOp, rank: int, packed: int) -> None:
    if sorted(_permutation(op, rank)) != list(range(rank)):
        raise VerifyException(f"outer_dims_perm {list(_permutation(op, rank))} is no permutation of {rank} dimensions")
    positions = op.inner_dims_pos.get_values()
    if (
        len(set(positions)) != len(positions)
        or any(p < 0 or p >= rank for p in positions)
        or len(op.static_inner_tiles) != len(positions)
    ):
        raise VerifyException(f"inner_dims_pos {list(positions)} and inner_tiles do not describe tiles of rank {rank}")
    if packed != rank + len(positions):
        raise VerifyException(f"the packed rank is {packed}, expected {rank + len(positions)}")


@irdl_op_definition
class PackOp(IRDLOperation):
    """Dimensions `inner_dims_pos` are split into tiles, which move innermost; `padding_value` fills the last tiles."""

    name = "linalg.pack"
    source = operand_def()
    dest = operand_def()
    padding_value = opt_operand_def()
    inner_tiles = var_operand_def(IndexType)
    outer_dims_perm = opt_prop_def(DenseArrayBase.constr(i64))
    inner_dims_pos = prop_def(DenseArrayBase.constr(i64))
    static_inner_tiles = prop_def(DenseArrayBase.constr(i64))
    res = var_result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(NoMemoryEffect())

    def permutation(self) -> tuple[int, ...]:
        """The order of the outer dimensions."""
        return _permutation(self, _rank(self.source))

    def verify_(self) -> None:
        """Raises VerifyException where `outer_dims_perm` is no permutation of the outer dimensions, tiles are not one
        for each of different dimensions, or the packed rank is not the sum of both."""
        _verify_tiling(self, _rank(self.source), _rank(self.dest))

    @classmethod
    def parse(cls, parser: Parser) -> PackOp:
        """Reads the text of `print`. Raises ParseError for other text."""
        source = parser.parse_unresolved_operand()
        padding: list[SSAValue] = []
        if parser.parse_optional_keyword("padding_value"):
            with parser.in_parens():
                name = parser.parse_unresolved_operand()
                parser.parse_punctuation(":")
                padding.append(parser.resolve_operand(name, parser.parse_type()))
        properties, tiles = _parse_tiling(parser)
        ends, types, attributes = _parse_ends(parser, source)
        return cls.build(
            operands=[*ends, padding, tiles], result_types=[types], properties=properties, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        """`%source padding_value(%value : type) outer_dims_perm = [..] inner_dims_pos = [..] inner_tiles = [..] into
        %dest {attributes} : type -> type`."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        if self.padding_value is not None:
            printer.print_string(" padding_value(")
            printer.print_ssa_value(self.padding_value)
            printer.print_string(" : ")
            printer.print_attribute(self.padding_value.type)
            printer.print_string(")")
        _print_tiling(printer, self)


def _parse_ends(
    parser: Parser, source: UnresolvedOperand
) -> tuple[list[SSAValue], list[Attribute], dict[str, Attribute]]:
    """`into %dest {attributes} : source type -> dest type`."""
    parser.parse_keyword("into")
    dest = parser.parse_unresolved_operand()
    attributes = dict(parser.parse_optional_attr_dict())
    parser.parse_punctuation(":")
    source_type = parser.parse_type()
    parser.parse_punctuation("->")
    dest_type = parser.parse_type()
    ends: list[SSAValue] = [parser.resolve_operand(source, source_type), parser.resolve_operand(dest, dest_type)]
    return ends, [dest_type] if isinstance(dest_type, TensorType) else [], attributes


@irdl_op_definition
class UnPackOp(IRDLOperation):
    """The inverse of `linalg.pack`; what was padding is dropped."""

    name = "linalg.unpack"
    source = operand_def()
    dest = operand_def()
    inner_tiles = var_operand_def(IndexType)
    outer_dims_perm = opt_prop_def(DenseArrayBase.constr(i64))
    inner_dims_pos = prop_def(DenseArrayBase.constr(i64))
    static_inner_tiles = prop_def(DenseArrayBase.constr(i64))
    res = var_result_def(TensorType)
    traits = traits_def(NoMemoryEffect())

    def permutation(self) -> tuple[int, ...]:
        """The order of the outer dimensions."""
        return _permutation(self, _rank(self.dest))

    def verify_(self) -> None:
        """As that of `PackOp`, of the other operand."""
        _verify_tiling(self, _rank(self.dest), _rank(self.source))

    @classmethod
    def parse(cls, parser: Parser) -> UnPackOp:
        """Reads the text of `print`. Raises ParseError for other text."""
        source = parser.parse_unresolved_operand()
        properties, tiles = _parse_tiling(parser)
        ends, types, attributes = _parse_ends(parser, source)
        return cls.build(operands=[*ends, tiles], result_types=[types], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """The text of `PackOp.print`, without a padding value."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        _print_tiling(printer, self)


@irdl_op_definition
class SoftmaxOp(IRDLOperation):
    """`exp(x - max) / sum(exp(x - max))` along one dimension."""

    name = "linalg.softmax"
    input = operand_def()
    output = operand_def()
    dimension = prop_def(IntegerAttr)
    res = var_result_def(TensorType)
    traits = traits_def(NoMemoryEffect())

    def verify_(self) -> None:
        """Raises VerifyException for a dimension that the input does not have."""
        if not 0 <= self.dimension.value.data < _rank(self.input):
            raise VerifyException(f"dimension {self.dimension.value.data} of a tensor of rank {_rank(self.input)}")

    @classmethod
    def parse(cls, parser: Parser) -> SoftmaxOp:
        """Reads the text of `print`. Raises ParseError for other text."""
        attributes = parser.parse_optional_attr_dict()
        parser.parse_keyword("dimension")
        with parser.in_parens():
            dimension = parser.parse_integer()
        inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        properties = {"dimension": IntegerAttr(dimension, i64)}
        return cls.build(
            operands=[inputs[0], outputs[0]],
            result_types=[parse_results(parser)],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """`{attributes} dimension(1) ins(%x : type) outs(%y : type) -> types`."""
        printer.print_op_attributes(self.attributes)
        printer.print_string(f" dimension({self.dimension.value.data})")
        print_operands(printer, "ins", [self.input])
        print_operands(printer, "outs", [self.output])
        if self.res:
            printer.print_string(" -> ")
            printer.print_list(self.res.types, printer.print_attribute)


SHAPED_OPS = (PackOp, UnPackOp, SoftmaxOp)
