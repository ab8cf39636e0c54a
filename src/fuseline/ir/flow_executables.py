"""The executables of the `flow` dialect: symbols that hold the code of dispatches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import StringAttr, SymbolNameConstraint, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_region_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, SingleBlockImplicitTerminator, SymbolOpInterface, SymbolTable


@irdl_op_definition
class ExecutableEndOp(IRDLOperation):
    """Ends an executable's block; never printed."""

    name = "flow.executable_end"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


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
        """`visibility @name {attributes}`; the function has the name of the export."""
        if self.sym_visibility is not None:
            printer.print_string(f" {self.sym_visibility.data}")
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> ExecutableExportOp:
        """Reads the text of `print`. Raises ParseError without a name."""
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
        """`visibility @name attributes {..} region`, without the end of the block."""
        if self.sym_visibility is not None:
            printer.print_string(f" {self.sym_visibility.data}")
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_block_terminators=False)

    @classmethod
    def parse(cls, parser: Parser) -> ExecutableOp:
        """Reads the text of `print`. A block without an end gets one. Raises ParseError without a name or a region."""
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
