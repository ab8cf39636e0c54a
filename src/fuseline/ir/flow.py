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

from xdsl.dialects.builtin import ArrayAttr, IndexType, SymbolRefAttr
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.fast import attributes
from fuseline.ir.flow_executables import ExecutableEndOp, ExecutableExportOp, ExecutableOp
from fuseline.ir.flow_text import parse_count, parse_shaped_types, parse_workload, print_shaped_types, require_dims


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

    def verify_(self) -> None:
        """Raises VerifyException where a size of a result is missing, or the body takes arguments or does not return
        the results."""
        require_dims("result", self.res.types, self.result_dims)
        if self.body.block.args:
            raise VerifyException("its body takes arguments, which nobody gives it")
        end = self.body.block.last_op
        if type(end) is not ReturnOp or list(end.values.types) != list(self.res.types):
            raise VerifyException("its body does not end with flow.return of its results")

    def print(self, printer: Printer) -> None:
        """`[workload] -> (types{sizes}) attributes {..} region`, then ` count(arguments) -> (index, index, index)
        region` if there is a count."""
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
        """Reads the text of `print`. Raises ParseError where that is not there."""
        workload = parse_workload(parser)
        parser.parse_punctuation("->")
        types, dims = parse_shaped_types(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(types, dims, parser.parse_region(), workload)
        if parser.parse_optional_keyword("count") is not None:
            op.add_region(parse_count(parser))
        if attributes is not None:
            op.attributes |= attributes.data
        return op


@lru_cache(maxsize=1 << 12)
def entry_points(executable: str, entry: str) -> ArrayAttr[SymbolRefAttr]:
    """What a dispatch calls: `@executable::@entry`."""
    return ArrayAttr([SymbolRefAttr(executable, [entry])])


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

    def verify_(self) -> None:
        """Raises VerifyException where a size of an argument or a result is missing."""
        require_dims("argument", self.arguments.types, self.argument_dims)
        require_dims("result", self.res.types, self.result_dims)

    @property
    def executable(self) -> str:
        """The symbol of the executable."""
        return self.entry_points.data[0].root_reference.data

    @property
    def entry(self) -> str:
        """The symbol of the entry point inside the executable."""
        return self.entry_points.data[0].nested_references.data[0].data

    def print(self, printer: Printer) -> None:
        """`@executable::@entry[workload](arguments) {attributes} : (types{sizes}) -> (types{sizes})`."""
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
        """Reads the text of `print`. Raises ParseError for a callee that is no `@executable::@entry`, and for types
        that do not fit the arguments."""
        symbol = parser.parse_attribute()
        if not isinstance(symbol, SymbolRefAttr):
            parser.raise_error("expected @executable::@entry")
        workload = parse_workload(parser)
        names = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types, argument_dims = parse_shaped_types(parser)
        arguments = parser.resolve_operands(names, types, position)
        parser.parse_punctuation("->")
        results, result_dims = parse_shaped_types(parser)
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
