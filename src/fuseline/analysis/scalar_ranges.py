"""Between which numbers the integers of a body lie, as sizes: what a place can be before anything runs.

A range encloses every value that the integer takes. Where it is `met`, both ends are values for some data, so that what
does not hold for an end does not hold for the program. Numbers that a type may not hold wrap around: of those nothing
is known but their type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from fuseline.analysis.range_rules import ANYTHING, RULES, VAGUE, ScalarRange, fits, of_bits
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp
from fuseline.evaluation.constants import integers_of
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim

_VIEWS = (tensor.ExpandShapeOp, tensor.CollapseShapeOp, tensor.CastOp, tensor.ExtractSliceOp)
"""What has no element that its source has not."""

_OUTSIDE = frozenset(
    {"arith.addi", "arith.subi", "arith.muli", "arith.floordivsi", "arith.divsi", "arith.maxsi", "arith.minsi"}
)
"""What sizes are computed with outside of bodies."""

NARROW = 32
"""Data of fewer bits lies in the range of its type; of wider data nothing is known, as if it were any number."""


@dataclass
class ScalarRanges:
    """Ranges of the integers in the body of `view`; `resources` are the arrays behind constants.

    `assumed`: sizes that have to fit so many bits for the ranges to be right, since a symbol without a bound was put
    into less than 64.
    """

    shapes: ShapeAnalysis
    view: StructuredOp
    resources: Mapping[str, NDArray[Any]]
    assumed: list[tuple[Dim, int]] = field(default_factory=list[tuple[Dim, int]])
    _known: dict[SSAValue, ScalarRange] = field(default_factory=dict[SSAValue, ScalarRange])

    def of(self, value: SSAValue) -> ScalarRange:
        """The range of an integer or an index. Those of a body are looked at in its order, so that chains may have any
        length."""
        if value not in self._known and isinstance(value, OpResult) and value.op.parent_block() is self.view.body:
            for result in (result for op in self.view.body.ops for result in op.results):
                if result not in self._known:
                    self._known[result] = self._fitting(result)
                if result is value:
                    break
        elif value not in self._known:
            self._known[value] = self._fitting(value)
        return self._known[value]

    def _fitting(self, value: SSAValue) -> ScalarRange:
        found, bits = self._compute(value), _bits(value.type)
        if bits == 0 or fits(found, bits):
            return found
        ends = [end for end in (found.low, found.high) if end is not None]
        if bits < NARROW or any(isinstance(end, int) for end in ends):
            return of_bits(bits)
        self.assumed += [(end, bits) for end in ends]
        return found

    def _compute(self, value: SSAValue) -> ScalarRange:
        if isinstance(value, BlockArgument):
            return self._argument(value)
        if not isinstance(value, OpResult):
            return VAGUE
        op = value.op
        if isinstance(op, linalg.ops.IndexOp):
            loop = op.dim.value.data
            return ScalarRange(0, d.sub(self.view.loops(self.shapes)[loop], 1), True, frozenset([(loop, 1)]))
        if isinstance(op, arith.ConstantOp):
            number = op.value.value.data if isinstance(op.value, IntegerAttr) else None
            return VAGUE if number is None else ScalarRange(number, number, True)
        if isinstance(op, tensor.ExtractOp):
            return self._element(op.tensor, _bits(value.type))
        if self._is_size(op):
            size = self.shapes.index(value)
            return ScalarRange(size, size, True)
        rule: Callable[..., ScalarRange] | None = RULES.get(type(op))
        return (
            VAGUE
            if rule is None
            else rule(*(self.of(operand) for operand in op.operands), bits=_bits(op.operands[0].type))
        )

    def _is_size(self, op: Operation) -> bool:
        return isinstance(op, tensor.DimOp) or (op.parent_block() is not self.view.body and op.name in _OUTSIDE)

    def _argument(self, argument: BlockArgument) -> ScalarRange:
        """An element of an operand of the op; of the numbers that a reduction has so far nothing is known."""
        bits, inputs = _bits(argument.type), self.view.input_count
        if isinstance(argument.owner.parent_op(), FuncOp) and isinstance(argument.type, IndexType):
            size = self.shapes.index(argument)  # a size that the caller gives
            return ScalarRange(size, size, True)
        if argument.owner is not self.view.body or bits == 0 or argument.index >= inputs:
            return VAGUE
        found = self._element(self.view.operands[argument.index], bits)
        return replace(ANYTHING, varies=frozenset([(argument, 1)])) if found == VAGUE else found

    def _element(self, value: SSAValue, bits: int) -> ScalarRange:
        """An element of a tensor: of a constant what it holds, of anything else what its type does."""
        found = _stored(value, self.resources) if bits else None
        if found is not None:
            return ScalarRange(*found, False)
        return of_bits(bits) if bits < NARROW else VAGUE


def _bits(type_: Attribute) -> int:
    """How wide an integer is; 0 for what is none."""
    if isinstance(type_, IndexType):
        return 64
    return type_.width.data if isinstance(type_, IntegerType) else 0


def _stored(value: SSAValue, resources: Mapping[str, NDArray[Any]]) -> tuple[int, int] | None:
    """The least and the greatest element of a constant, or of what it is seen as."""
    while isinstance(value, OpResult) and isinstance(value.op, _VIEWS):
        value = value.op.operands[0]
    if not isinstance(value, OpResult) or not isinstance(value.op, arith.ConstantOp):
        return None
    array = integers_of(value.op.value, resources)
    return None if array is None or not array.size else (int(array.min()), int(array.max()))
