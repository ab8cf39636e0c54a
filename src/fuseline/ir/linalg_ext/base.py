"""What ops of IREE's `iree_linalg_ext` have in common: words with a value, `ins`, `outs`, a body, the types of the
results.

    iree_linalg_ext.scan dimension(1) inclusive(true) ins(%a : type) outs(%b, %acc : type, type) { .. } -> type, type

Source: IREE, `compiler/src/iree/compiler/Dialect/LinalgExt/IR/LinalgExtOps.td`. Only tensors are read, no memrefs.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DenseArrayBase, IntegerAttr, TensorType, UnitAttr, i1, i64
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.build import element_of
from fuseline.ir.linalg_named.base import parse_operands
from fuseline.ir.linalg_named.elementwise import print_operands

FLAG, NUMBER, BOOLEAN, NUMBERS = "flag", "dimension(1)", "inclusive(true)", "dimension_map = [0, 1]"
LISTED, ROWS = "image_dimensions([1, 2])", "output_sizes = [[1], [3, 4]]"
"""How a word is written."""


_KINDS: dict[str, type[Attribute]] = {NUMBERS: DenseArrayBase, LISTED: DenseArrayBase, ROWS: ArrayAttr}


@irdl_op_definition
class ExtYieldOp(IRDLOperation):
    """Ends a body."""

    name = "iree_linalg_ext.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"


class ExtOp(IRDLOperation, ABC):
    """Words, inputs, outputs, a body over elements. `WORDS` says how each word is written, `COUNTS` how many inputs and
    outputs there may be."""

    inputs = var_operand_def()
    outputs = var_operand_def(TensorType)
    base = var_operand_def()
    res = var_result_def(TensorType)
    regions_ = var_region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    WORDS: ClassVar[dict[str, str]] = {}
    COUNTS: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((0, 99), (1, 99))
    HAS_BODY: ClassVar[bool] = True

    @property
    def block(self) -> Block:
        """The body."""
        return self.regions_[0].block

    def number(self, word: str) -> int:
        """The value of a word that is a number, or 1 for true and 0 for false."""
        value = self.attributes[word]
        assert isinstance(value, IntegerAttr)
        return abs(value.value.data) if value.type == i1 else value.value.data  # true, of one bit with a sign, is -1

    def numbers(self, word: str) -> tuple[int, ...]:
        """The value of a word that is a list."""
        value = self.attributes[word]
        assert isinstance(value, DenseArrayBase)
        return tuple(int(number) for number in value.get_values())

    def body_types(self) -> Sequence[Attribute]:
        """The types of the arguments of the body."""
        return [element for value in self.outputs for element in [element_of(value)] * 2]

    def verify_(self) -> None:
        """Raises VerifyException for other numbers of inputs and outputs than `COUNTS` allow, results of other types
        than the outputs, a word without its value, and a body that is missing, not expected, or of other types."""
        for (least, most), values, word in zip(
            self.COUNTS, (self.inputs, self.outputs), ("inputs", "outputs"), strict=True
        ):
            if not least <= len(values) <= most:
                raise VerifyException(
                    f"{len(values)} {word}, expected {least}" + (f" to {most}" if most > least else "")
                )
        if [value.type for value in self.outputs] != list(self.res.types):
            raise VerifyException("a result has another type than its output")
        for word, kind in self.WORDS.items():
            if kind is not FLAG and not isinstance(self.attributes.get(word), _KINDS.get(kind, IntegerAttr)):
                raise VerifyException(f"expected {word}")
        if len(self.regions_) != self.HAS_BODY:
            raise VerifyException("expected a body" if self.HAS_BODY else "expected no body")
        if self.HAS_BODY:
            self._verify_body()
        self.verify_form()

    def _verify_body(self) -> None:
        wanted, found = list(self.body_types()), [argument.type for argument in self.block.args]
        if wanted != found or not isinstance(self.block.last_op, ExtYieldOp):
            raise VerifyException(f"the body takes ({', '.join(map(str, wanted))}) and ends with iree_linalg_ext.yield")
        if [value.type for value in self.block.last_op.values] != list(self.yield_types()):
            raise VerifyException(f"the body yields ({', '.join(map(str, self.yield_types()))})")

    def yield_types(self) -> Sequence[Attribute]:
        """The types of what the body yields: a comparison."""
        return [i1]

    def verify_form(self) -> None:
        """Raises VerifyException for operands that do not fit each other."""

    def dimension(self, rank: int) -> int:
        """The word `dimension`; raises VerifyException where a tensor of `rank` has no such dimension."""
        axis = self.number("dimension")
        if not 0 <= axis < rank:
            raise VerifyException(f"dimension {axis} of a tensor of rank {rank}")
        return axis

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Reads the text of `print`, with words in any order or among the attributes. Raises ParseError for other
        text."""
        attributes = dict(parser.parse_optional_attr_dict())
        for _ in cls.WORDS:
            word = next(
                (word for word in cls.WORDS if word not in attributes and parser.parse_optional_keyword(word)), None
            )
            if word is not None:
                attributes[word] = _parse_word(parser, cls.WORDS[word])
        inputs, outputs, base = (parse_operands(parser, keyword) for keyword in ("ins", "outs", "index_base"))
        region = parser.parse_optional_region()
        types = parse_types(parser)
        return cls.build(
            operands=[inputs, outputs, base],
            result_types=[types],
            attributes=attributes,
            regions=[[region] if region is not None else []],
        )

    def print(self, printer: Printer) -> None:
        """`{attributes} words ins(..) outs(..) index_base(..) region -> types`, without what is empty."""
        rest = {name: value for name, value in self.attributes.items() if name not in self.WORDS}
        if rest:
            printer.print_string(" ")
            printer.print_attr_dict(rest)
        for word in self.WORDS:
            if word in self.attributes:
                printer.print_string(f" {self._word(word)}")
        for keyword, values in (("ins", self.inputs), ("outs", self.outputs), ("index_base", self.base)):
            if values:
                print_operands(printer, keyword, values)
        for region in self.regions_:
            printer.print_string(" ")
            printer.print_region(region)
        if self.res:
            printer.print_string(" -> " if self.HAS_BODY or self.WORDS else " : ")
            printer.print_list(self.res.types, printer.print_attribute)

    def _word(self, word: str) -> str:
        kind = self.WORDS[word]
        if kind is NUMBERS:
            return f"{word} = [{', '.join(map(str, self.numbers(word)))}]"
        if kind is LISTED:
            return f"{word}([{', '.join(map(str, self.numbers(word)))}])"
        if kind is ROWS:
            rows = cast("ArrayAttr[DenseArrayBase[Any]]", self.attributes[word])
            return f"{word} = [{', '.join(str(list(row.get_values())) for row in rows)}]"
        if kind is BOOLEAN:
            return f"{word}({'true' if self.number(word) else 'false'})"
        return word if kind is FLAG else f"{word}({self.number(word)})"


def _parse_word(parser: Parser, kind: str) -> Attribute:
    if kind is FLAG:
        return UnitAttr()
    if kind is NUMBERS:
        parser.parse_punctuation("=")
        return _parse_numbers(parser)
    if kind is ROWS:
        parser.parse_punctuation("=")
        return ArrayAttr(parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, lambda: _parse_numbers(parser)))
    with parser.in_parens():
        if kind is LISTED:
            return _parse_numbers(parser)
        return (
            BoolAttr.from_bool(parser.parse_boolean())
            if kind is BOOLEAN
            else IntegerAttr(parser.parse_integer(allow_boolean=False), i64)
        )


def _parse_numbers(parser: Parser) -> DenseArrayBase[Any]:
    numbers = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer)
    return DenseArrayBase.from_list(i64, numbers)


def parse_types(parser: Parser) -> list[Attribute]:
    """The types of the results, none where the text has none."""
    if not parser.parse_optional_punctuation("->") and not parser.parse_optional_punctuation(":"):
        return []
    return list(parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type))


def shape(value: SSAValue) -> tuple[int, ...]:
    """The sizes of a tensor; raises VerifyException for anything else."""
    if not isinstance(value.type, TensorType):
        raise VerifyException(f"{value.type} is no tensor")
    return tuple(value.type.get_shape())


def check_sizes(left: Sequence[int], right: Sequence[int], what: str) -> None:
    """Raises VerifyException where sizes that are known differ, or their number."""
    if len(left) != len(right) or any(a >= 0 and b >= 0 and a != b for a, b in zip(left, right, strict=True)):
        raise VerifyException(f"{what}: sizes {list(left)} and {list(right)} differ")


def without(sizes: Sequence[int], axis: int) -> tuple[int, ...]:
    """`sizes` but that of `axis`."""
    return (*sizes[:axis], *sizes[axis + 1 :])
