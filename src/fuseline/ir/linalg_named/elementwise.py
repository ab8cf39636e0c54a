"""`linalg.elementwise <kind>`: one scalar function over operands that maps may transpose or broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AffineMapAttr, AnyFloat, ArrayAttr, FloatAttr, ShapedType
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, BlockArgument, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from fuseline.ir.linalg_named.base import WordAttr, add, cast_to, multiply, parse_operands, parse_results

Function = Callable[..., SSAValue]


def _float_or(
    float_op: Callable[..., arith.FloatingPointLikeBinaryOperation],
    integer_op: Callable[..., arith.SignlessIntegerBinaryOperation],
) -> Function:
    return lambda a, b: (float_op if isinstance(a.type, AnyFloat) else integer_op)(a, b).result


def _unary(op: Callable[..., math.FloatingPointLikeUnaryMathOperation]) -> Function:
    return lambda a: op(a).result


def _reciprocal(a: SSAValue) -> SSAValue:
    one = arith.ConstantOp(FloatAttr(1.0, a.type)).result  # pyright: ignore[reportArgumentType, reportCallIssue]
    return arith.DivfOp(one, a).result


KINDS: dict[str, Function] = {
    "exp": _unary(math.ExpOp),
    "log": _unary(math.LogOp),
    "abs": _unary(math.AbsFOp),
    "ceil": _unary(math.CeilOp),
    "floor": _unary(math.FloorOp),
    "negf": lambda a: arith.NegfOp(a).result,
    "reciprocal": _reciprocal,
    "round": _unary(math.RoundOp),
    "sqrt": _unary(math.SqrtOp),
    "rsqrt": _unary(math.RsqrtOp),
    "square": lambda a: multiply(a, a),
    "tanh": _unary(math.TanhOp),
    "erf": _unary(math.ErfOp),
    "add": add,
    "sub": _float_or(arith.SubfOp, arith.SubiOp),
    "mul": multiply,
    "div": _float_or(arith.DivfOp, arith.DivSIOp),
    "div_unsigned": lambda a, b: arith.DivUIOp(a, b).result,
    "max_signed": _float_or(arith.MaximumfOp, arith.MaxSIOp),
    "min_signed": _float_or(arith.MinimumfOp, arith.MinSIOp),
    "max_unsigned": _float_or(arith.MaximumfOp, arith.MaxUIOp),
    "min_unsigned": _float_or(arith.MinimumfOp, arith.MinUIOp),
    "powf": lambda a, b: math.PowFOp(a, b).result,
    "select": lambda c, a, b: arith.SelectOp(c, a, b).result,
}
"""The scalar function of each kind, on operands already in the output's type."""


_FUNCTIONS: dict[str, Function] = {**KINDS, "copy": lambda a: a}


def function_body(inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], kind: str, unsigned: bool = False) -> Region:
    """`kind` (of `KINDS`, or `copy`) of the operands, each in the type of the output (but for the condition of a
    select). Raises TypeError where it reads another number of them."""
    wanted = len(signature(_FUNCTIONS[kind]).parameters)
    if len(inputs) != wanted:
        raise TypeError(f"{kind} reads {wanted} operands, not {len(inputs)}")

    @Builder.implicit_region(NamedOperation.body_arg_types((*inputs, *outputs)))
    def region(args: tuple[BlockArgument, ...]) -> None:
        operands = args[: len(inputs)]
        keep = 1 if kind == "select" else 0
        out = args[-1].type
        YieldOp(_FUNCTIONS[kind](*operands[:keep], *(cast_to(value, out, unsigned) for value in operands[keep:])))

    return region


@irdl_attr_definition
class ElementwiseKindAttr(WordAttr):
    """`#linalg.elementwise_kind<add>`."""

    name = "linalg.elementwise_kind"


@irdl_op_definition
class ElementwiseOp(NamedOperation):
    """`linalg.elementwise <add> indexing_maps = [..] ins(..) outs(..) -> type`; the maps default to identities."""

    name = "linalg.elementwise"
    kind = prop_def(ElementwiseKindAttr)
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], kind: str = "add") -> Region:
        """The body of `function_body`."""
        return function_body(inputs, outputs, kind)

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        """The maps of the op itself."""
        return [attribute.data for attribute in self.indexing_maps]

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        """All loops are parallel."""
        return ArrayAttr((IteratorTypeAttr.parallel(),) * self.indexing_maps.data[0].data.num_dims)

    @classmethod
    def parse(cls, parser: Parser) -> ElementwiseOp:
        """Maps that the text leaves out are identities. Raises ParseError for a kind that is not in `KINDS`, and other
        text."""
        with parser.in_angle_brackets():
            kind = parser.parse_identifier()
        if kind not in KINDS:
            parser.raise_error(f"unknown elementwise kind {kind}; there are {', '.join(KINDS)}")
        maps: Attribute | None = None
        if parser.parse_optional_keyword("indexing_maps"):
            parser.parse_punctuation("=")
            maps = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict()
        inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        results = parse_results(parser)
        maps = maps if maps is not None else _identities(outputs[-1], len(inputs) + len(outputs))
        return cls.build(
            operands=[inputs, outputs],
            result_types=[results],
            properties={"kind": ElementwiseKindAttr(kind), "indexing_maps": maps},
            attributes=attributes,
            regions=[cls.get_hidden_region(inputs, outputs, kind)],
        )

    def print(self, printer: Printer) -> None:
        """`<kind> indexing_maps = [..] {attributes} ins(..) outs(..) -> types`, without maps that are identities."""
        printer.print_string(f" <{self.kind.data}>")
        if self.indexing_maps != _identities(self.outputs[-1], len(self.operands)):
            printer.print_string(" indexing_maps = ")
            printer.print_attribute(self.indexing_maps)
        printer.print_op_attributes(self.attributes)
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        printer.print_string(" -> ")
        printer.print_list(self.res.types, printer.print_attribute)


def _identities(output: SSAValue, count: int) -> ArrayAttr[AffineMapAttr]:
    assert isinstance(output.type, ShapedType)
    return ArrayAttr([AffineMapAttr(AffineMap.identity(output.type.get_num_dims()))] * count)


def print_operands(printer: Printer, keyword: str, values: Sequence[SSAValue]) -> None:
    """` ins(%a, %b : type, type)`."""
    printer.print_string(f" {keyword}(")
    printer.print_list(values, printer.print_ssa_value)
    printer.print_string(" : ")
    printer.print_list([value.type for value in values], printer.print_attribute)
    printer.print_string(")")
