"""The constants in the bodies of a dispatch that could be operands of it instead: numbers that elementwise bodies
compute with.

Those of reductions stay: what makes a sum a contraction or a mean is read off its body. So does what an op yields,
where something lies (`index`), and NaN, which no minimum has a fast form for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from xdsl.dialects import linalg
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.ir.fast.direct import body_of, operands_of, ops_of

Number: TypeAlias = IntegerAttr[Any] | FloatAttr[Any]
"""The attribute of a scalar constant."""

_FLOATS = (BFloat16Type, Float16Type, Float32Type, Float64Type)
_WIDTHS = (8, 16, 32, 64)


class BodyConstant(NamedTuple):
    """Operand `position` of `reader`, an op in the body of `member`, is the constant `value`."""

    member: linalg.ops.GenericOp
    reader: Operation
    position: int
    value: Number

    @property
    def place(self) -> tuple[Operation, int]:
        """The operand, as `structural_key` erases it."""
        return self.reader, self.position


def body_constants(entry: FuncOp) -> list[BodyConstant]:
    """The constants in the elementwise bodies of an entry function, one for each operand that reads one, in order."""
    members = (op for op in ops_of(body_of(entry)) if is_generic(op))
    return [found for op in members if not StructuredOp(op).reduction for found in _of_member(op)]


def _of_member(member: linalg.ops.GenericOp) -> Iterator[BodyConstant]:
    for op in ops_of(body_of(member)):
        if type(op) is linalg.ops.YieldOp or op.regions:
            continue
        for position, value in enumerate(operands_of(op)):
            number = _number(value)
            if number is not None:
                yield BodyConstant(member, op, position, number)


def _number(value: SSAValue) -> Number | None:
    if type(value) is not OpResult or type(value.op) is not ConstantOp or not _is_loadable(value.type):
        return None
    number = value.op.value
    if isinstance(number, FloatAttr):
        return number if number.value.data == number.value.data else None
    return number if isinstance(number, IntegerAttr) else None


def _is_loadable(type_: Attribute) -> bool:
    """Whether kernels load elements of this type from memory."""
    return isinstance(type_, _FLOATS) or (isinstance(type_, IntegerType) and type_.width.data in _WIDTHS)
