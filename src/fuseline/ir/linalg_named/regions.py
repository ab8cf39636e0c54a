"""Ops with a written body: `linalg.map` and `linalg.reduce`, long form and `{ arith.addf }` shorthand."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, ShapedType, TensorType, i64
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import (
    IRDLOperation,
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.linalg_named.base import parse_operands
from fuseline.ir.linalg_named.elementwise import print_operands


def _element(type_: Attribute) -> Attribute:
    return type_.get_element_type() if isinstance(type_, TensorType) else type_


def _rank(value: SSAValue) -> int:
    assert isinstance(value.type, ShapedType)
    return value.type.get_num_dims()


def _parse_shorthand(parser: Parser) -> tuple[str, dict[str, Attribute]] | None:
    """`{ arith.addf }`, with attributes where the payload has some."""
    if not parser.parse_optional_punctuation("{"):
        return None
    name = parser.parse_identifier()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation("}")
    return name, dict(attributes)


def _payload(
    parser: Parser, shorthand: tuple[str, dict[str, Attribute]], args: Sequence[Attribute], operands: Sequence[int]
) -> Region:
    """The body that applies one op to the block arguments `operands` and yields its result."""
    name, attributes = shorthand
    definition = parser.ctx.get_optional_op(name)
    if definition is None:
        parser.raise_error(f"unknown payload operation {name}")
    block = Block(arg_types=args)
    values = [block.args[i] for i in operands]
    op = definition.create(operands=values, result_types=[values[-1].type], properties=attributes)
    block.add_ops([op, YieldOp(op.results[0])])
    return Region(block)


def _parse_body(parser: Parser) -> Region:
    return parser.parse_region(parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_argument))


def _print_body(printer: Printer, region: Region) -> None:
    printer.print_string("\n")
    with printer.in_parens():
        printer.print_list(region.block.args, printer.print_block_argument)
    printer.print_string(" ")
    printer.print_region(region, print_entry_block_args=False)


@irdl_op_definition
class MapOp(IRDLOperation):
    """A body over tensors of one shape; the body also sees the output's element, last."""

    name = "linalg.map"
    inputs = var_operand_def()
    init = operand_def()
    res = var_result_def()
    mapper = region_def("single_block")

    @property
    def outputs(self) -> Sequence[SSAValue]:
        """The output operand."""
        return (self.init,)

    @property
    def body(self) -> Region:
        """The scalar computation."""
        return self.mapper

    def loops(self) -> tuple[list[AffineMap], list[IteratorType]]:
        """Indexing maps and iterator types, as the generic form has them."""
        rank = _rank(self.init)
        return [AffineMap.identity(rank)] * len(self.operands), [IteratorType.PARALLEL] * rank

    def verify_(self) -> None:
        """Raises VerifyException unless the body takes an element of each operand."""
        if len(self.mapper.block.args) != len(self.operands):
            raise VerifyException(f"expected {len(self.operands)} body arguments, got {len(self.mapper.block.args)}")

    @classmethod
    def parse(cls, parser: Parser) -> MapOp:
        """Reads the text of `print`, or `{ op }` in place of a body of one op. Raises ParseError for other text."""
        shorthand = _parse_shorthand(parser)
        inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        attributes = parser.parse_optional_attr_dict()
        if shorthand is not None:
            region = _payload(parser, shorthand, [_element(v.type) for v in (*inputs, *outputs)], range(len(inputs)))
        else:
            region = _parse_body(parser)
        types = [value.type for value in outputs if isinstance(value.type, TensorType)]
        return cls.build(operands=[inputs, outputs[0]], result_types=[types], regions=[region], attributes=attributes)

    def print(self, printer: Printer) -> None:
        """`ins(..) outs(..) {attributes}`, then the arguments of the body and the body on a line of their own."""
        if self.inputs:
            print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        printer.print_op_attributes(self.attributes)
        _print_body(printer, self.mapper)


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """A body folded over `dimensions`, for any number of inputs; takes the place of xDSL's, which knows one input and
    no shorthand."""

    name = "linalg.reduce"
    inputs = var_operand_def()
    inits = var_operand_def()
    res = var_result_def()
    combiner = region_def("single_block")
    dimensions = prop_def(DenseArrayBase.constr(i64))
    irdl_options = (SameVariadicOperandSize(),)

    @property
    def outputs(self) -> Sequence[SSAValue]:
        """The output operands."""
        return self.inits

    @property
    def body(self) -> Region:
        """The scalar computation."""
        return self.combiner

    def loops(self) -> tuple[list[AffineMap], list[IteratorType]]:
        """Indexing maps and iterator types, as the generic form has them."""
        rank, reduced = _rank(self.inputs[0]), set(self.dimensions.get_values())
        kept = AffineMap(rank, 0, tuple(AffineExpr.dimension(d) for d in range(rank) if d not in reduced))
        kinds = [IteratorType.REDUCTION if d in reduced else IteratorType.PARALLEL for d in range(rank)]
        return [AffineMap.identity(rank)] * len(self.inputs) + [kept] * len(self.inits), kinds

    def verify_(self) -> None:
        """Raises VerifyException for dimensions that do not increase within the rank, outputs of another rank than the
        rest, and a body that does not take an element of each operand."""
        rank, reduced = _rank(self.inputs[0]), self.dimensions.get_values()
        if sorted(set(reduced)) != list(reduced) or any(d < 0 or d >= rank for d in reduced):
            raise VerifyException(f"dimensions {list(reduced)} do not increase within rank {rank}")
        if any(_rank(init) != rank - len(reduced) for init in self.inits):
            raise VerifyException("the output's rank is not the input's less the dimensions reduced")
        if len(self.combiner.block.args) != len(self.operands):
            raise VerifyException(f"expected {len(self.operands)} body arguments, got {len(self.combiner.block.args)}")

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        """Reads the text of `print`, or `{ op }` in place of a body of one op. Raises ParseError for other text."""
        shorthand = _parse_shorthand(parser)
        inputs, inits = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        parser.parse_keyword("dimensions")
        parser.parse_punctuation("=")
        dimensions = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer)
        attributes = parser.parse_optional_attr_dict()
        if shorthand is not None:
            region = _payload(parser, shorthand, [_element(v.type) for v in (*inputs, *inits)], (1, 0))
        else:
            region = _parse_body(parser)
        types = [value.type for value in inits if isinstance(value.type, TensorType)]
        properties = {"dimensions": DenseArrayBase.from_list(i64, dimensions)}
        return cls.build(
            operands=[inputs, inits],
            result_types=[types],
            regions=[region],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """`ins(..) outs(..) dimensions = [..] {attributes}`, then the arguments of the body and the body on a line of
        their own."""
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.inits)
        printer.print_string(" dimensions = ")
        with printer.in_square_brackets():
            printer.print_list(self.dimensions.get_values(), printer.print_int)
        printer.print_op_attributes(self.attributes)
        _print_body(printer, self.combiner)


REGION_OPS = (MapOp, ReduceOp)
