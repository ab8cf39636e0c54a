"""The part of IREE's `flow` dialect that dispatch formation needs, with IREE's syntax and meaning.

    %r = flow.dispatch.region -> (tensor<4x?xf32>{%n}) { ... flow.return %x : tensor<4x?xf32> }

    flow.executable private @main_dispatch_0 {
      flow.executable.export public @main_dispatch_0_matmul
      builtin.module { func.func @main_dispatch_0_matmul(...) ... }
    }
    %r = flow.dispatch @main_dispatch_0::@main_dispatch_0_matmul(%a, %n)
        : (tensor<4x?xf32>{%n}, index) -> tensor<4x?xf32>{%n}

Source: IREE, `compiler/src/iree/compiler/Dialect/Flow/IR/FlowOps.td` (syntax); ours carries plain tensors into an
executable's function, where IREE carries dispatch tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IndexType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    NoTerminator,
    SingleBlockImplicitTerminator,
    SymbolOpInterface,
    SymbolTable,
)

from fuseline.ir.fast import attributes


def dynamic_count(type_: Attribute) -> int:
    """How many sizes of a type are unknown at compile time."""
    return sum(size == DYNAMIC_INDEX for size in type_.get_shape()) if isinstance(type_, TensorType) else 0


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
    type_ = parser.parse_type()
    if not dynamic_count(type_):
        return type_, []
    return type_, parser.parse_comma_separated_list(Parser.Delimiter.BRACES, parser.parse_unresolved_operand)


def _parse_shaped_types(parser: Parser) -> tuple[list[Attribute], Sequence[SSAValue]]:
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
    if type_ is None:
        return None
    if not dynamic_count(type_):
        return type_, []
    return type_, parser.parse_comma_separated_list(Parser.Delimiter.BRACES, parser.parse_unresolved_operand)


def _parse_workload(parser: Parser) -> list[SSAValue]:
    names = parser.parse_optional_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    return [parser.resolve_operand(name, IndexType()) for name in names or ()]


def _parse_count(parser: Parser) -> Region:
    """How many workgroups there are, of a workload: `(%w: index) -> (index, index, index) { ... }`."""
    arguments = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_argument)
    parser.parse_punctuation("->")
    parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
    return parser.parse_region(arguments)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Yields the results of a dispatch region."""

    name = "flow.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, values: Sequence[SSAValue]) -> None:
        Operation.__init__(self, operands=values)


@irdl_op_definition
class DispatchRegionOp(IRDLOperation):
    """Ops that will share one dispatch; values from outside are captured. `result_dims` are the unknown sizes of the
    results, in order."""

    name = "flow.dispatch.region"
    result_dims = var_operand_def(IndexType)
    workload = var_operand_def(IndexType)
    res = var_result_def()
    body = region_def("single_block")
    workgroup_count = var_region_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def()

    def __init__(
        self, types: Sequence[Attribute], dims: Sequence[SSAValue], body: Region, workload: Sequence[SSAValue] = ()
    ) -> None:
        segments: dict[str, Attribute] = {"operandSegmentSizes": attributes.segments((len(dims), len(workload)))}
        Operation.__init__(self, operands=[*dims, *workload], result_types=types, properties=segments, regions=[body])

    def print(self, printer: Printer) -> None:
        if self.workload:
            with printer.in_square_brackets():
                printer.print_list(self.workload, printer.print_ssa_value)
        printer.print_string(" -> ")
        print_shaped_types(printer, list(self.res.types), self.result_dims)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)
        for count in self.workgroup_count:
            printer.print_string(" count")
            with printer.in_parens():
                printer.print_list(count.block.args, printer.print_block_argument)
            printer.print_string(" -> (index, index, index) ")
            printer.print_region(count, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> DispatchRegionOp:
        workload = _parse_workload(parser)
        parser.parse_punctuation("->")
        types, dims = _parse_shaped_types(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(types, dims, parser.parse_region(), workload)
        if parser.parse_optional_keyword("count") is not None:
            op.add_region(_parse_count(parser))
        if attributes is not None:
            op.attributes |= attributes.data
        return op


@irdl_op_definition
class ExecutableEndOp(IRDLOperation):
    """Ends an executable's block; never printed."""

    name = "flow.executable_end"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


@lru_cache(maxsize=1 << 12)
def entry_points(executable: str, entry: str) -> ArrayAttr[SymbolRefAttr]:
    """What a dispatch calls: `@executable::@entry`."""
    return ArrayAttr([SymbolRefAttr(executable, [entry])])


@lru_cache(maxsize=8)
def _word(text: str) -> StringAttr:
    return StringAttr(text)


def _visibility(word: str | None) -> dict[str, Attribute]:
    return {"sym_visibility": _word(word)} if word else {}


def _parse_visibility(parser: Parser) -> StringAttr | None:
    word = parser.parse_optional_visibility_keyword()
    return word if isinstance(word, StringAttr) else None


@irdl_op_definition
class ExecutableExportOp(IRDLOperation):
    """Names the function of the executable's inner module that dispatches call."""

    name = "flow.executable.export"
    sym_name = prop_def(SymbolNameConstraint())
    function_ref = prop_def(SymbolRefAttr)
    sym_visibility = opt_prop_def(StringAttr)
    workgroup_count = var_region_def()
    traits = traits_def(SymbolOpInterface())

    def __init__(self, sym_name: str, visibility: str | None = "public") -> None:
        properties: dict[str, Attribute] = {"sym_name": StringAttr(sym_name), "function_ref": SymbolRefAttr(sym_name)}
        Operation.__init__(self, properties=properties | _visibility(visibility))

    def print(self, printer: Printer) -> None:
        if self.sym_visibility is not None:
            printer.print_string(f" {self.sym_visibility.data}")
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> ExecutableExportOp:
        visibility = _parse_visibility(parser)
        op = cls(parser.parse_symbol_name().data, visibility.data if visibility else None)
        op.attributes |= parser.parse_optional_attr_dict()
        return op


@irdl_op_definition
class ExecutableOp(IRDLOperation):
    """One code body and its entry point; several dispatches may share it."""

    name = "flow.executable"
    sym_name = prop_def(SymbolNameConstraint())
    sym_visibility = opt_prop_def(StringAttr)
    body = region_def("single_block")
    traits = lazy_traits_def(
        lambda: (
            IsolatedFromAbove(),
            SymbolTable(),
            SymbolOpInterface(),
            SingleBlockImplicitTerminator(ExecutableEndOp),
        )
    )

    def __init__(
        self,
        sym_name: str,
        operations: Sequence[Operation],
        visibility: str | None = "private",
        body: Region | None = None,
    ) -> None:
        properties: dict[str, Attribute] = {"sym_name": StringAttr(sym_name)}
        region = body if body is not None else Region(Block([*operations, ExecutableEndOp.create()]))
        Operation.__init__(self, properties=properties | _visibility(visibility), regions=[region])

    def print(self, printer: Printer) -> None:
        if self.sym_visibility is not None:
            printer.print_string(f" {self.sym_visibility.data}")
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_block_terminators=False)

    @classmethod
    def parse(cls, parser: Parser) -> ExecutableOp:
        visibility = _parse_visibility(parser)
        name = parser.parse_symbol_name().data
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(name, (), visibility.data if visibility else None, parser.parse_region())
        for trait in op.get_traits_of_type(SingleBlockImplicitTerminator):
            _ensure_end(op, trait)
        if attributes is not None:
            op.attributes |= attributes.data
        return op


def _ensure_end(op: ExecutableOp, trait: Any) -> None:
    block = op.body.block
    if block.last_op is None or not isinstance(block.last_op, ExecutableEndOp):
        block.add_op(ExecutableEndOp())
    del trait


@irdl_op_definition
class DispatchOp(IRDLOperation):
    """One launch of an executable's entry point. Operands: tensors, then the index values the code needs; `*_dims` say
    unknown sizes."""

    name = "flow.dispatch"
    workload = var_operand_def(IndexType)
    arguments = var_operand_def()
    argument_dims = var_operand_def(IndexType)
    result_dims = var_operand_def(IndexType)
    entry_points = prop_def(ArrayAttr[SymbolRefAttr])
    res = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(NoTerminator())

    def __init__(
        self,
        executable: str,
        entry: str,
        arguments: Sequence[SSAValue],
        types: Sequence[Attribute],
        *,
        argument_dims: Sequence[SSAValue] = (),
        result_dims: Sequence[SSAValue] = (),
        workload: Sequence[SSAValue] = (),
    ) -> None:
        groups = (workload, arguments, argument_dims, result_dims)
        properties: dict[str, Attribute] = {
            "entry_points": entry_points(executable, entry),
            "operandSegmentSizes": attributes.segments(tuple([len(group) for group in groups])),
        }
        Operation.__init__(
            self, operands=[value for group in groups for value in group], result_types=types, properties=properties
        )

    @property
    def executable(self) -> str:
        """The symbol of the executable."""
        return self.entry_points.data[0].root_reference.data

    @property
    def entry(self) -> str:
        """The symbol of the entry point inside the executable."""
        return self.entry_points.data[0].nested_references.data[0].data

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.entry_points.data[0])
        if self.workload:
            with printer.in_square_brackets():
                printer.print_list(self.workload, printer.print_ssa_value)
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        print_shaped_types(printer, list(self.arguments.types), self.argument_dims)
        printer.print_string(" -> ")
        print_shaped_types(printer, list(self.res.types), self.result_dims)

    @classmethod
    def parse(cls, parser: Parser) -> DispatchOp:
        symbol = parser.parse_attribute()
        if not isinstance(symbol, SymbolRefAttr):
            parser.raise_error("expected @executable::@entry")
        workload = _parse_workload(parser)
        names = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types, argument_dims = _parse_shaped_types(parser)
        arguments = parser.resolve_operands(names, types, position)
        parser.parse_punctuation("->")
        results, result_dims = _parse_shaped_types(parser)
        entry = symbol.nested_references.data[0].data
        op = cls(
            symbol.root_reference.data,
            entry,
            arguments,
            results,
            argument_dims=argument_dims,
            result_dims=result_dims,
            workload=workload,
        )
        op.attributes |= attributes
        return op


@irdl_attr_definition
class HostType(ParametrizedAttribute, TypeAttribute):
    """A value that only host operators handle: strings, 8-bit floats, sequences, tensors of unknown rank. Ours; IREE
    has no such type."""

    name = "flow.host"


Flow = Dialect(
    "flow", [ReturnOp, DispatchRegionOp, ExecutableEndOp, ExecutableExportOp, ExecutableOp, DispatchOp], [HostType]
)
