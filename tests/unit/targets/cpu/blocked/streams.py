"""Attention of one head with everything that may stand between its parts, and what it should give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import math as mlir_math
from xdsl.ir import SSAValue

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import Body, dims_map, identity_map
from tests.graphs.program import Program
from tests.kernels import Array

from .programs import Size

Change = Callable[[Program, SSAValue], SSAValue]


class Values(NamedTuple):
    """The values of a head that a test may return, too."""

    scores: SSAValue
    top: SSAValue
    powers: SSAValue
    total: SSAValue
    weights: SSAValue
    product: SSAValue


def scaled_by(divide: bool = True, of: int = 0) -> Callable[[Body], SSAValue]:
    """Argument `of` divided by the other one, or multiplied by its reciprocal."""

    def body(b: Body) -> SSAValue:
        x, total = b.args[of], b.args[1 - of]
        if divide:
            return b.op(arith.DivfOp, x, total)
        return b.op(arith.MulfOp, x, b.op(arith.DivfOp, b.constant(1.0, total.type), total))

    return body


def head(
    queries: Size, keys: Size, depth: int, *more: Sequence[Size], scores: Change | None = None,
    weights: Change | None = None, split: bool = False,
    divide: Callable[[Body], SSAValue] | None = None, after: bool = False,
    results: Callable[[Values], Sequence[SSAValue]] | None = None,
    start: float = 0.0,
) -> DispatchView:  # fmt: skip
    """`softmax(q k^T) v` of [queries, depth], [keys, depth] and [keys, depth]; `more` arguments follow these.

    `scores` and `weights` put something behind each, `split` keeps difference and exponential apart, `after` divides
    the product and not the weights, which starts from `start`.
    """
    p = Program((queries, depth), (keys, depth), (keys, depth), *more)
    shape = (queries, keys)
    maps = [dims_map(3, [0, 2]), dims_map(3, [1, 2]), dims_map(3, [0, 1])]
    s = p.multiply_add(p.x[0], p.x[1], p.zeros(*shape), maps, "ppr")
    s = scores(p, s) if scores is not None else s
    top = p.reduce(s, combine=arith.MaximumfOp)
    powers = _powers(p, s, top, shape, split)
    total = p.reduce(powers)
    by = divide or scaled_by()
    w = powers if after else p.by_row(powers, total, by)
    w = weights(p, w) if weights is not None else w
    maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
    o = p.multiply_add(w, p.x[2], p.zeros(queries, depth, value=start), maps, "ppr")
    o = p.by_row(o, total, by) if after else o
    return p.dispatch(*(results(Values(s, top, powers, total, w, o)) if results is not None else [o]))


def _powers(p: Program, s: SSAValue, top: SSAValue, shape: tuple[Size, Size], split: bool) -> SSAValue:
    def exponential(b: Body) -> SSAValue:
        return b.op(mlir_math.ExpOp, b.op(arith.SubfOp, b.args[0], b.args[1]))

    if not split:
        return p.by_row(s, top, exponential)
    moved = p.by_row(s, top, lambda b: b.op(arith.SubfOp, b.args[0], b.args[1]))
    return p.elementwise([moved], p.empty(*shape), lambda b: b.op(mlir_math.ExpOp, b.args[0]), [identity_map(2)] * 2)


def with_argument(number: int, kind: Any, *shape: Size, dims: Sequence[int] = (0, 1)) -> Change:
    """An elementwise op with argument `number`, which is read at `dims`."""

    def change(p: Program, x: SSAValue) -> SSAValue:
        maps = [identity_map(2), dims_map(2, list(dims)), identity_map(2)]
        return p.elementwise([x, p.x[number]], p.empty(*shape), lambda b: b.op(kind, b.args[0], b.args[1]), maps)

    return change


def expected(
    q: Array, k: Array, v: Array, scores: Callable[[Array], Array] | None = None, weights: Array | None = None
) -> Array:
    """What `head` gives, in f64: NaN for rows of nothing but minus infinity, zeros without keys."""
    s = q.astype(np.float64) @ k.astype(np.float64).T
    s = scores(s) if scores is not None else s
    with np.errstate(invalid="ignore", over="ignore"):
        powers = np.exp(s - s.max(-1, keepdims=True, initial=-np.inf))
        w = powers / powers.sum(-1, keepdims=True)
        return (w if weights is None else w * weights) @ v.astype(np.float64)
