"""Named ops as declarations: a loop specification and a body.

    n oh ow c / kh kw : n oh+kh ow+kw c, kh kw c -> n oh ow c

Left of `/` the parallel loops, then the reduction loops; each operand lists its dimensions. `oh+kh` is `oh * stride +
kh * dilation` of the window dimension in question. Loop order and bodies follow MLIR's LinalgNamedStructuredOps.yaml.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from functools import cache
from typing import ClassVar, NamedTuple, Self, TypeVar

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseIntElementsAttr,
    IndexType,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, BlockArgument, Data, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import irdl_attr_definition, opt_prop_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum


class TypeFn(StrEnum):
    """How narrower operands widen to the output's type."""

    CAST_SIGNED = "cast_signed"
    CAST_UNSIGNED = "cast_unsigned"


@irdl_attr_definition
class TypeFnAttr(EnumAttribute[TypeFn]):
    """`#linalg.type_fn<cast_signed>`."""

    name = "linalg.type_fn"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TypeFn:
        """`<cast_signed>` or `<cast_unsigned>`; raises ParseError for another word."""
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        """`<cast_signed>` or `<cast_unsigned>`."""
        with printer.in_angle_brackets():
            super().print_parameter(printer)


class WordAttr(Data[str], ABC):
    """An attribute that is one word: `#linalg.elementwise_kind<add>`."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """`<word>`; raises ParseError where no word stands."""
        with parser.in_angle_brackets():
            return parser.parse_identifier()

    def print_parameter(self, printer: Printer) -> None:
        """`<word>`."""
        with printer.in_angle_brackets():
            printer.print_string(self.data)


class Loops(NamedTuple):
    """A specification, read: loop names, how many are parallel, and each operand's dimensions as `(loop, window loop or
    None)`."""

    names: tuple[str, ...]
    parallel: int
    operands: tuple[tuple[tuple[int, int | None], ...], ...]

    def maps(self, strides: Sequence[int] = (), dilations: Sequence[int] = ()) -> list[AffineMap]:
        """The indexing maps; the i-th window dimension of an operand uses `strides[i]` and `dilations[i]`."""
        return [AffineMap(len(self.names), 0, tuple(_expressions(dims, strides, dilations))) for dims in self.operands]

    def kinds(self) -> list[IteratorType]:
        """Parallel or reduction, per loop."""
        return [IteratorType.PARALLEL if d < self.parallel else IteratorType.REDUCTION for d in range(len(self.names))]


def _expressions(
    dims: Sequence[tuple[int, int | None]], strides: Sequence[int], dilations: Sequence[int]
) -> list[AffineExpr]:
    out: list[AffineExpr] = []
    window = 0
    for loop, tap in dims:
        if tap is None:
            out.append(AffineExpr.dimension(loop))
            continue
        out.append(AffineExpr.dimension(loop) * strides[window] + AffineExpr.dimension(tap) * dilations[window])
        window += 1
    return out


@cache
def read_loops(text: str) -> Loops:
    """The loops a specification describes.

    >>> read_loops("m n / k : m k, k n -> m n").operands
    (((0, None), (2, None)), ((2, None), (1, None)), ((0, None), (1, None)))
    """
    domain, _, operands = text.partition(":")
    parallel, _, reduction = domain.partition("/")
    names = (*parallel.split(), *reduction.split())
    where = {name: d for d, name in enumerate(names)}
    ins, _, outs = operands.partition("->")

    def dimension(word: str) -> tuple[int, int | None]:
        loop, _, tap = word.partition("+")
        return where[loop], where[tap] if tap else None

    sides = [*ins.split(","), outs]
    return Loops(names, len(parallel.split()), tuple(tuple(dimension(word) for word in side.split()) for side in sides))


def cast_to(value: SSAValue, type_: Attribute, unsigned: bool = False) -> SSAValue:
    """`value` as `type_`, by the conversion that linalg's `cast_signed` (or `cast_unsigned`) names; emits at the
    implicit builder."""
    source = value.type
    if source == type_:
        return value
    if isinstance(source, AnyFloat):
        return _cast_float(value, source, type_, unsigned)
    if isinstance(type_, AnyFloat):
        return (arith.UIToFPOp if unsigned else arith.SIToFPOp)(value, type_).result
    if isinstance(source, IndexType) or isinstance(type_, IndexType):
        return arith.IndexCastOp(value, type_).result
    assert isinstance(source, IntegerType) and isinstance(type_, IntegerType)
    if source.width.data > type_.width.data:
        return arith.TruncIOp(value, type_).result
    return (arith.ExtUIOp if unsigned else arith.ExtSIOp)(value, type_).result


def _cast_float(value: SSAValue, source: AnyFloat, type_: Attribute, unsigned: bool) -> SSAValue:
    if isinstance(type_, AnyFloat):
        return (arith.ExtFOp if type_.bitwidth > source.bitwidth else arith.TruncFOp)(value, type_).result
    assert isinstance(type_, IntegerType)
    return (arith.FPToUIOp if unsigned else arith.FPToSIOp)(value, type_).result


def add(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """A sum in the operands' type; booleans are or-ed."""
    kind = (
        arith.AddfOp if isinstance(lhs.type, AnyFloat) else arith.OrIOp if lhs.type == IntegerType(1) else arith.AddiOp
    )
    return kind(lhs, rhs).result


def multiply(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """A product in the operands' type; booleans are and-ed."""
    kind = (
        arith.MulfOp if isinstance(lhs.type, AnyFloat) else arith.AndIOp if lhs.type == IntegerType(1) else arith.MuliOp
    )
    return kind(lhs, rhs).result


DeclaredT = TypeVar("DeclaredT", bound="DeclaredOp")


class DeclaredOp(NamedOperation, ABC):
    """A named op given by `LOOPS` and `scalar`."""

    LOOPS: ClassVar[str]
    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True

    @classmethod
    def scalar(cls, args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
        """The element to yield, from the operands' elements (the output's last); emits at the implicit builder."""
        raise TypeError(f"{cls.name} declares no body")

    @classmethod
    def get_hidden_region(
        cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], unsigned: bool = False
    ) -> Region:
        """The body that `scalar` emits, with an argument per operand."""

        @Builder.implicit_region(cls.body_arg_types((*inputs, *outputs)))
        def region(args: tuple[BlockArgument, ...]) -> None:
            YieldOp(cls.scalar(args, unsigned))

        return region

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        """The maps of `LOOPS`."""
        return read_loops(self.LOOPS).maps()

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        """The kinds of the loops of `LOOPS`."""
        return ArrayAttr(IteratorTypeAttr(kind) for kind in read_loops(self.LOOPS).kinds())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Raises ParseError for text that `parse_named` does not read."""
        return parse_named(cls, parser, {})


def parse_operands(parser: Parser, keyword: str) -> list[SSAValue]:
    """`ins(%a, %b : type, type)` or the same with outs; nothing when the keyword is not there."""
    if not parser.parse_optional_characters(keyword):
        return []
    parser.parse_punctuation("(")
    names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    position = parser.pos
    types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return list(parser.resolve_operands(names, types, position))


def parse_results(parser: Parser) -> list[Attribute]:
    """`-> type` or `-> (type, type)`; none when there is no arrow."""
    if not parser.parse_optional_punctuation("->"):
        return []
    types = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
    return list(types) if types is not None else [parser.parse_type()]


def parse_named(cls: type[DeclaredT], parser: Parser, properties: dict[str, Attribute]) -> DeclaredT:
    """The common syntax `{attributes} ins(..) outs(..) -> types` of an op whose leading properties were parsed
    already."""
    attributes = {**properties, **parser.parse_optional_attr_dict()}
    inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
    results = parse_results(parser)
    known = cls.get_irdl_definition().properties
    own = {name: value for name, value in attributes.items() if name in known}
    rest = {name: value for name, value in attributes.items() if name not in known}
    unsigned = attributes.get("cast") == TypeFnAttr(TypeFn.CAST_UNSIGNED)
    region = cls.get_hidden_region(inputs, outputs, unsigned)
    return cls.build(
        operands=[inputs, outputs], result_types=[results], properties=own, attributes=rest, regions=[region]
    )


class WindowOp(DeclaredOp, ABC):
    """A named op with `strides` and `dilations`, one number per window dimension; both default to 1, and MLIR's generic
    form leaves out what its text did not say."""

    strides = opt_prop_def(DenseIntElementsAttr)
    dilations = opt_prop_def(DenseIntElementsAttr)

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        """The maps of `LOOPS`, with the strides and dilations of the op."""
        strides, dilations = (given or self._ones() for given in (self.strides, self.dilations))
        return read_loops(self.LOOPS).maps(strides.get_values(), dilations.get_values())

    @classmethod
    def _ones(cls) -> DenseIntElementsAttr:
        count = sum(tap is not None for _, tap in read_loops(cls.LOOPS).operands[0])
        return DenseIntElementsAttr.from_list(TensorType(i64, [count]), [1] * count)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Strides and dilations that the text leaves out are 1. Raises ParseError for text that `parse_named` does not
        read."""
        ones = cls._ones()
        return parse_named(cls, parser, {"strides": ones, "dilations": ones})


class CastingOp(DeclaredOp, ABC):
    """A named op whose operands may widen unsigned (`cast`)."""

    cast = opt_prop_def(TypeFnAttr)


class MappedOp(CastingOp, ABC):
    """A named op whose default indexing maps may be replaced (transposed or broadcast operands). The generic form of
    MLIR before it had such maps leaves them out."""

    indexing_maps = opt_prop_def(ArrayAttr[AffineMapAttr])

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        """The maps of the op itself."""
        return [attribute.data for attribute in self.indexing_maps or self.default_maps()]

    @classmethod
    def default_maps(cls) -> ArrayAttr[AffineMapAttr]:
        """The maps that need not be written."""
        return ArrayAttr(AffineMapAttr(map_) for map_ in read_loops(cls.LOOPS).maps())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Maps that the text leaves out are the default ones. Raises ParseError for text that `parse_named` does not
        read."""
        maps: Attribute = cls.default_maps()
        if parser.parse_optional_keyword("indexing_maps"):
            parser.parse_punctuation("=")
            maps = parser.parse_attribute()
        return parse_named(cls, parser, {"indexing_maps": maps})

    def print(self, printer: Printer) -> None:
        """`indexing_maps = [..]` where they are not the default ones, then the common syntax."""
        if self.indexing_maps not in (None, self.default_maps()):
            printer.print_string(" indexing_maps = ")
            printer.print_attribute(self.indexing_maps)
        super().print(printer)
