"""Work and traffic of ops, for tables and for weighing merges: operations and bytes, as `Dim`s."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.idioms import idiom_of
from fuseline.analysis.ranks import Rank
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, body_ops, is_generic
from fuseline.analysis.walks import Scatter, Selection, scalars_behind
from fuseline.ir.dim import Dim, mul, product, upper_bound
from fuseline.ir.element_types import element_bytes

TRANSCENDENTAL_OPS = 10
"""Arithmetic operations that one exp, tanh, erf or the like counts for: the length of its polynomial."""

ASSUMED_LEVELS = 10
"""Levels of merging of a row whose length has no bound."""


def flops(op: Operation, shapes: ShapeAnalysis) -> Dim:
    """Arithmetic operations of a structured op (a multiply-add is two); 0 for anything that only moves data.

    A scan, scatter or rank counts as the walk that makes it, not as the reduction it is written as.
    """
    if not is_generic(op):
        return 0
    view = StructuredOp(op)
    extents = view.loops(shapes)
    walked = _walked_flops(view, extents)
    return mul(product(extents), operations(op)) if walked is None else walked


def _walked_flops(view: StructuredOp, extents: Sequence[Dim]) -> Dim | None:
    form = idiom_of(view, extents)
    if form is None or isinstance(form, Selection):  # a selection is done as it is written
        return None
    if isinstance(form, Rank):  # rows are sorted: a comparison per element and level of merging
        length = upper_bound(extents[form.ranked])
        return mul(_without(extents, view.reduction[0]), max(1, (length or 1 << ASSUMED_LEVELS).bit_length() - 1))
    if isinstance(form, Scatter):
        return mul(_without(extents, form.scattered), 1 + _weight_behind(view, form.element))
    return mul(_without(extents, form.walked), 1 + _weight_behind(view, form.element))


def _without(extents: Sequence[Dim], loop: int) -> Dim:
    return product(extent for i, extent in enumerate(extents) if i != loop)


def _weight_behind(view: StructuredOp, value: SSAValue) -> int:
    """The operations of the body that make `value`."""
    makers = {scalar.owner for scalar in scalars_behind(view, value)}
    return sum(_weight(op) for op in makers if isinstance(op, Operation) and op.parent_block() is view.body)


def operations(op: Operation) -> int:
    """Arithmetic operations per point of a structured op; 0 for anything that only moves data."""
    return sum(_weight(inner) for inner in body_ops(op)) if is_generic(op) else 0


def _weight(op: Operation) -> int:
    if not is_operation(op):
        return 0
    return TRANSCENDENTAL_OPS if is_function(op) else 1


def is_operation(op: Operation) -> bool:
    """Whether a scalar op computes, rather than reads or says where: index arithmetic does not vary from lane to lane,
    or it is what a gather takes anyway."""
    if op.name.startswith("tensor.") or op.name in ("linalg.index", "arith.index_cast"):
        return False
    return not any(isinstance(value.type, IndexType) for value in (*op.operands, *op.results))


def is_function(op: Operation) -> bool:
    """Whether a scalar op is an exp, tanh, erf or the like, which takes a polynomial rather than an instruction."""
    cheap = isinstance(op, math.AbsFOp | math.SqrtOp | math.FloorOp | math.CeilOp | math.RoundEvenOp | math.FmaOp)
    return op.name.startswith("math.") and not cheap


def num_bytes(value: SSAValue, shapes: ShapeAnalysis) -> Dim:
    """The size of a tensor in bytes (one byte for i1, eight for index); 0 for a scalar."""
    if not isinstance(value.type, TensorType):
        return 0
    return mul(product(shapes.dims(value)), element_bytes(value))
