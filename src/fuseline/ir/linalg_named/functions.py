"""`linalg.exp`, `linalg.add` and the other named ops that apply one scalar function to each element, as MLIR spelled
them before `linalg.elementwise`.

They take the place of xDSL's, which know half of them, and whose bodies do not convert.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.linalg.abstract_ops import ElementwiseOperation
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, opt_prop_def, prop_def
from xdsl.parser import Parser

from fuseline.ir.linalg_named.base import TypeFn, TypeFnAttr, WordAttr, parse_operands, parse_results
from fuseline.ir.linalg_named.elementwise import KINDS, function_body

_BY_NAME = {
    **{name: name for name in ("exp", "log", "abs", "ceil", "floor", "negf", "reciprocal", "round", "sqrt", "rsqrt")},
    **{name: name for name in ("square", "tanh", "erf", "add", "sub", "mul", "div", "div_unsigned", "powf", "select")},
    "max": "max_signed",
    "min": "min_signed",
    "copy": "copy",
}
"""The kind that each name stands for."""


class FunctionOp(ElementwiseOperation, ABC):
    """`linalg.exp {attributes} ins(..) outs(..) -> type`: tensors of one shape; elements are converted to the type of
    the result first."""

    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True
    KIND: ClassVar[str]
    cast = opt_prop_def(TypeFnAttr)

    @classmethod
    def kind(cls, properties: dict[str, Attribute]) -> str:
        """Which of `KINDS` is applied."""
        return cls.KIND

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        """The body with conversions of signed numbers."""
        return function_body(inputs, outputs, cls.KIND)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Raises ParseError for text that is not of the syntax above, and for a function that is not known."""
        attributes = dict(parser.parse_optional_attr_dict())
        inputs, outputs = parse_operands(parser, "ins"), parse_operands(parser, "outs")
        results = parse_results(parser)
        own = {name: attributes.pop(name) for name in ("fun", "cast") if name in attributes}
        kind = cls.kind(own)
        if kind not in KINDS and kind != cls.KIND:
            parser.raise_error(f"unknown function {kind}; there are {', '.join(KINDS)}")
        region = function_body(inputs, outputs, kind, own.get("cast") == TypeFnAttr(TypeFn.CAST_UNSIGNED))
        return cls.build(
            operands=[inputs, outputs], result_types=[results], properties=own, attributes=attributes, regions=[region]
        )


def _named(spelled: str, function: str) -> type[FunctionOp]:
    @irdl_op_definition
    class NamedFunctionOp(FunctionOp):
        name = f"linalg.{spelled}"
        KIND: ClassVar[str] = function

    return NamedFunctionOp


@irdl_attr_definition
class UnaryFnAttr(WordAttr):
    """`#linalg.unary_fn<exp>`."""

    name = "linalg.unary_fn"


@irdl_attr_definition
class BinaryFnAttr(WordAttr):
    """`#linalg.binary_fn<add>`."""

    name = "linalg.binary_fn"


class _ChosenFunctionOp(FunctionOp, ABC):
    @classmethod
    def kind(cls, properties: dict[str, Attribute]) -> str:
        chosen = properties.setdefault("fun", cls.default())
        return chosen.data if isinstance(chosen, UnaryFnAttr | BinaryFnAttr) else str(chosen)

    @classmethod
    def default(cls) -> Attribute:
        """The function where the text names none."""
        return UnaryFnAttr(cls.KIND)


@irdl_op_definition
class ElemwiseUnaryOp(_ChosenFunctionOp):
    """The function of one operand that `fun` names."""

    name = "linalg.elemwise_unary"
    KIND: ClassVar[str] = "exp"
    fun = prop_def(UnaryFnAttr)


@irdl_op_definition
class ElemwiseBinaryOp(_ChosenFunctionOp):
    """The function of two operands that `fun` names."""

    name = "linalg.elemwise_binary"
    KIND: ClassVar[str] = "add"
    fun = prop_def(BinaryFnAttr)

    @classmethod
    def default(cls) -> Attribute:
        """Sums."""
        return BinaryFnAttr(cls.KIND)


FUNCTIONS = (*(_named(spelled, kind) for spelled, kind in _BY_NAME.items()), ElemwiseUnaryOp, ElemwiseBinaryOp)
"""All of them."""

FUNCTION_ATTRIBUTES = (UnaryFnAttr, BinaryFnAttr)
"""The attributes that say which function."""
