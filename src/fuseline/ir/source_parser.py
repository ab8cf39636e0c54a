"""xDSL's parser as MLIR text needs it: places in the text as locations, names as they are written, large splats as one
number."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar, cast

from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyFloat,
    ComplexType,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.parser import Parser
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from fuseline.ir.build import LARGE_SPLAT
from fuseline.ir.context import CompilerContext
from fuseline.ir.semi_affine import SemiAffineParser
from fuseline.ir.splats import splat_attribute

_SPLAT = re.compile(r"<\s*[-\w.+]+\s*>\s*:")

ListElementT = TypeVar("ListElementT")


class LineIndex:
    """Lines and columns of offsets into a text whose first line has the number `first_line`."""

    def __init__(self, text: str, first_line: int) -> None:
        self.text, self._first_line = text, first_line
        self._newlines = [match.start() for match in re.finditer("\n", text)]

    def line_and_column(self, position: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self._newlines, position - 1)
        start = self._newlines[line - 1] + 1 if line else 0
        return line + self._first_line, position - start + 1

    def shown(self, line: int) -> str:
        """The text of a line, shortened."""
        lines = self.text.splitlines()
        return lines[line - self._first_line].strip()[:120] if line - self._first_line < len(lines) else ""


_LINE_END = 1000
"""Letters behind an op in which its location is looked for: a line break, and the space before the next op."""


class _Bits(Parser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """An element written in hexadecimal digits, as MLIR writes infinities and NaN."""

    def to_type(self, parser: Any, type: Any) -> Any:
        """The element in a type; a float has these bits."""
        if not isinstance(type, AnyFloat):
            return super().to_type(parser, type)
        size = type.compile_time_size
        if int(cast(int, self.value)).bit_length() > 8 * size:
            parser.raise_error(f"more bits than {type} has", at_position=self.span)
        return type.unpack(int(cast(int, self.value)).to_bytes(size, "little"), 1)[0]


class SourceParser(Parser):
    """xDSL's parser, with source places as locations and resource names left as they are."""

    def __init__(self, ctx: CompilerContext, text: str, source: str, line_index: LineIndex) -> None:
        super().__init__(ctx, text, source)
        self._beside: list[dict[str, Attribute]] = []
        self._source, self._line_index, self._spelled = StringAttr(source), line_index, ctx.spelled

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        if len(values) == 1 and values[0].name_hint != name and not name.isdecimal():
            self._spelled[values[0]] = name  # xDSL takes `_0` at the end for a number of its own

    def parse_operation(self) -> Operation:
        """An op whose location, unless the text says one, is where it stands; so is that of a body which a named op
        implies."""
        position = self._current_token.span.start
        self._beside.append({})
        op = super().parse_operation()
        op.attributes |= self._beside.pop()
        if op.location == UNKNOWN_LOC and not self._says_unknown():
            line, column = self._line_index.line_and_column(position)
            op.location = FileLineColLoc(self._source, IntAttr(line), IntAttr(column))
        if op.regions and op.name.startswith("linalg."):
            _locate_implied_body(op)
        return op

    def parse_optional_str_literal(self) -> str | None:
        """A text; one with letters beyond ASCII too, which xDSL prints byte by byte and reads as bytes."""
        found = super().parse_optional_str_literal()
        if found is not None:
            return found
        start = self._current_token.span.start
        data = super().parse_optional_bytes_literal()
        try:
            return None if data is None else data.decode("utf-8")
        except UnicodeDecodeError:
            self._resume_from(start)
            return None

    def parse_optional_characters(self, text: str) -> str | None:
        """Some letters; before the operands of a `linalg.generic`, which xDSL looks for so, may be attributes beside
        those that it must have."""
        if text == "ins" and self._beside and self._current_token.kind is MLIRTokenKind.L_BRACE:
            self._beside[-1] |= self.parse_optional_attr_dict()
        return super().parse_optional_characters(text)

    def parse_affine_map(self) -> AffineMap:
        """A map, in which sizes may be multiplied with each other."""
        return SemiAffineParser(self._parser_state).parse_affine_map()

    def _says_unknown(self) -> bool:
        """Whether the text of an op that was just read says that nothing is known of where it comes from."""
        end = self._current_token.span.start
        return self._line_index.text[max(0, end - _LINE_END) : end].rstrip().endswith("loc(unknown)")

    def _parse_location(self) -> LocationAttr:
        """A location; of a range (`"f.py":4:21 to :50`) where it starts."""
        location = super()._parse_location()
        if isinstance(location, FileLineColLoc) and self.parse_optional_keyword("to") is not None:
            self.parse_optional_integer(allow_boolean=False, allow_negative=False)
            self.parse_punctuation(":")
            self.parse_integer(allow_boolean=False, allow_negative=False)
        return location

    def parse_comma_separated_list(
        self, delimiter: Parser.Delimiter, parse: Callable[[], ListElementT], context_msg: str = ""
    ) -> list[ListElementT]:
        """A list as MLIR prints it where xDSL reads another form of it."""
        # xDSL's linalg.generic prints several result types in parentheses, as MLIR does, and reads them without; its
        # scf.if wants parentheses around one, which iree-opt leaves out.
        if (
            delimiter is Parser.Delimiter.NONE
            and parse == self.parse_attribute
            and self._current_token.kind is MLIRTokenKind.L_PAREN
        ):
            delimiter = Parser.Delimiter.PAREN
        elif (
            delimiter is Parser.Delimiter.PAREN
            and parse == self.parse_type
            and self._current_token.kind is not MLIRTokenKind.L_PAREN
        ):
            return [parse()]
        return super().parse_comma_separated_list(delimiter, parse, context_msg)

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:
        """A dense attribute; a splat of `LARGE_SPLAT` elements or more stays one number. `type` is None where it
        follows the elements."""
        start = self._current_token.span.start
        found = self._parse_large_splat() if type is None and _SPLAT.match(self._line_index.text, start) else None
        if found is None:
            self._resume_from(start)
        return found if found is not None else super().parse_dense_int_or_fp_elements_attr(type)

    def _parse_large_splat(self) -> DenseIntOrFPElementsAttr | None:
        """One number for a large tensor, kept as that number: xDSL writes each element out."""
        self.parse_punctuation("<")
        literal = self._parse_tensor_literal()
        self.parse_punctuation(">")
        self.parse_punctuation(":")
        type_ = self._parse_dense_literal_type()
        element = type_.get_element_type()
        if (
            not isinstance(type_, TensorType)
            or prod(type_.get_shape()) < LARGE_SPLAT
            or isinstance(literal, str)
            or isinstance(element, ComplexType)
        ):
            return None
        return splat_attribute(cast(Attribute, type_), cast(Any, literal[0][0].to_type(self, element)))

    def _parse_tensor_literal_element(self) -> Parser._TensorLiteralElement:
        """A number of a dense attribute; hexadecimal digits are the bits of a float."""
        found = super()._parse_tensor_literal_element()
        text = found.span.text
        return _Bits(found.is_negative, found.value, found.span) if text.startswith(("0x", "0X")) else found

    def _parse_dialect_resource_handle(self, dialect_name: str, interface: OpAsmDialectInterface) -> str:
        del dialect_name, interface  # xDSL keeps one storage per process and renames what it has seen before
        return self.parse_identifier(" for resource handle")


def _locate_implied_body(op: Operation) -> None:
    """Give the ops of a body that the text does not spell out (of a named op) the location of the op."""
    for inner in op.walk():
        if inner.location == UNKNOWN_LOC:
            inner.location = op.location
