"""An attribute kept as its text: `#stablehlo.gather<offset_dims = [1], ..>`, `#stablehlo<precision DEFAULT>`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Data
from xdsl.utils.mlir_lexer import MLIRTokenKind

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


class TextAttribute(Data[str]):
    """`data` is what stands behind the name: between the brackets of the first form, up to the end of the second."""

    name = "stablehlo.?"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """The text in either form; the bracket that ends the second is left to the parser."""
        token = parser._current_token  # pyright: ignore[reportPrivateUsage]
        if token.kind is MLIRTokenKind.LESS:
            return parser._parse_dialect_symbol_body()  # pyright: ignore[reportPrivateUsage]
        start = token.span.start
        end = parser._raw_scan_balanced(start)  # pyright: ignore[reportPrivateUsage]
        parser._resume_from(end)  # pyright: ignore[reportPrivateUsage]
        return parser.lexer.input.content[start:end]

    def print_parameter(self, printer: Printer) -> None:
        """The text in brackets."""
        with printer.in_angle_brackets():
            printer.print_string(self.data)
