"""Between which places indexing maps read, as sizes: the least and the greatest value of an affine expression over its
loops."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from fuseline.analysis.indexing_maps import dims_of
from fuseline.evaluation.access import evaluate_expression, loop_indices
from fuseline.ir import dim as d
from fuseline.ir.affine_forms import AffineForm, affine_form
from fuseline.ir.dim import Dim

MOST_POINTS = 1 << 16
"""Points at which an expression is looked at one by one."""


class PositionRange(NamedTuple):
    """No value lies outside of `low..high`. `met`: both ends are values, where every loop runs at all."""

    low: Dim
    high: Dim
    met: bool


def position_range(expression: AffineExpr, extents: Sequence[Dim]) -> PositionRange | None:
    """The range of an expression over loops from 0 to `extents`, exclusively, of which none is 0; None for one that is
    not affine.

    It is met but where loops occur more than once or a remainder takes only some values, and those loops are symbolic
    or many.
    """
    form = affine_form(expression)
    if form is None:
        return None
    found = _of_form(form, extents)
    return found if found.met else _counted(form.expression, extents) or found


def _of_form(form: AffineForm, extents: Sequence[Dim]) -> PositionRange:
    low: Dim = form.constant
    high: Dim = form.constant
    seen, met = set[int](), True
    for term, coefficient in form.terms.items():
        term_range, loops = _of_term(term, extents), dims_of(term)
        ends = d.mul(term_range.low, coefficient), d.mul(term_range.high, coefficient)
        low, high = d.add(low, ends[coefficient < 0]), d.add(high, ends[coefficient > 0])
        met = met and term_range.met and not seen & loops
        seen |= loops
    return PositionRange(low, high, met)


def _of_term(term: AffineExpr, extents: Sequence[Dim]) -> PositionRange:
    if isinstance(term, AffineDimExpr):
        return PositionRange(0, d.sub(extents[term.position], 1), True)
    assert isinstance(term, AffineBinaryOpExpr) and isinstance(term.rhs, AffineConstantExpr)
    inner, divisor = affine_form(term.lhs), term.rhs.value
    assert inner is not None
    whole = _of_form(inner, extents)
    if term.kind is AffineBinaryOpKind.FloorDiv:
        return PositionRange(d.floor_div(whole.low, divisor), d.floor_div(whole.high, divisor), whole.met)
    return _remainder(inner, whole, divisor)


def _remainder(form: AffineForm, whole: PositionRange, divisor: int) -> PositionRange:
    """The rest of a form whose numbers are less than the divisor: in steps of what divides them all."""
    step = gcd(divisor, *form.terms.values())
    least, most = form.constant % step, divisor - step + form.constant % step
    met = whole.met and least == form.constant and list(form.terms.values()) == [step]
    return PositionRange(least, d.minimum(whole.high, most), met)


def _counted(expression: AffineExpr, extents: Sequence[Dim]) -> PositionRange | None:
    """The range of an expression at few points, by looking at all of them."""
    loops = sorted(dims_of(expression))
    sizes = [size for loop in loops if isinstance(size := extents[loop], int)]
    if len(sizes) < len(loops) or prod(sizes) > MOST_POINTS or 0 in sizes:
        return None
    positions = dict(zip(loops, loop_indices(sizes), strict=True))
    values = np.asarray(evaluate_expression(expression, [positions.get(loop) for loop in range(len(extents))]))
    return PositionRange(int(values.min()), int(values.max()), True)
