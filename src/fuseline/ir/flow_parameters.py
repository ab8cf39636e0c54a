"""Parameters of IREE's `flow` dialect: constants by name, whose bytes an archive holds that is read when the program is
loaded.

    flow.tensor.constant #flow.parameter.named<"model"::"fc.weight"> : tensor<10x256xf32>

Source: IREE, `compiler/src/iree/compiler/Dialect/Flow/IR/FlowAttrs.td`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@irdl_attr_definition
class NamedParameterAttr(ParametrizedAttribute):
    """`<"scope"::"key"> : type`: the tensor called `key` in the archive that is given for `scope`."""

    name = "flow.parameter.named"
    scope: StringAttr = param_def()
    key: StringAttr = param_def()
    type: Attribute = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Reads the text of `print_parameters`. Raises ParseError where that is not there."""
        with parser.in_angle_brackets():
            scope = parser.parse_str_literal()
            for _ in "::":
                parser.parse_punctuation(":")
            key = parser.parse_str_literal()
        parser.parse_punctuation(":")
        return [StringAttr(scope), StringAttr(key), parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        """The names, then the type."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.scope.data)
            printer.print_string("::")
            printer.print_string_literal(self.key.data)
        printer.print_string(" : ")
        printer.print_attribute(self.type)
