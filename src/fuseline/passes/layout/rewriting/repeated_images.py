"""An image whose pixels are repeated, beside what a window makes: it is read at places that are computed.

    relu(window(y) + collapse(repeated(x)))         repeated: (h, w, c) -> (h, 2, w, 2, c)
            =>
    relu(window(y) + g)                             g[i, j, c] = x[i floordiv 2, j floordiv 2, c]

In the shape in which the pixels are repeated the addition could not follow the window, whose loops traverse whole
rows. A nearest upsampling added to a convolution is the common case (T.-Y. Lin et al., Feature Pyramid Networks,
2017); behind a contraction the loops are split instead (`sink-collapse-shapes`). An argument keeps the order in which
the caller has it: beside a convolution, whose vectors are of channels, it must be small.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import WINDOWS, Kind, StructuredOp, kind, producer_of
from fuseline.ir.build import Body, Emitter, element_of
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim, product
from fuseline.ir.fast.direct import operands_of
from fuseline.ir.provenance import carry
from fuseline.passes.layout.rewriting.broadcasts import broadcast_source
from fuseline.passes.layout.rewriting.free_reshapes import is_free
from fuseline.passes.layout.rewriting.generics import set_input
from fuseline.passes.layout.rewriting.permutation import is_shared
from fuseline.passes.layout.rewriting.scope import Scope

_MOST_OPS_BACK = 8
"""Ops between a window and what is added to it: a bias, a norm, an activation."""

_FOLLOWING = (Kind.ELEMENTWISE, Kind.TRANSPOSE, Kind.COPY)


def read_repeated_images(scope: Scope, op: linalg.ops.GenericOp) -> bool:
    """Replace the repeated images that `op`, an elementwise op, reads beside the result of a window; whether there were
    any."""
    windows = [window for value in op.inputs if (window := _window_behind(value)) is not None]
    if kind(op) is not Kind.ELEMENTWISE or not windows:
        return False
    most = scope.ctx.target.costs.crossed_elements if Kind.CONVOLUTION in windows else None
    found = False
    for position, value in enumerate(op.inputs):
        made = _computed_reads(scope, op, value, most)
        if made is not None:
            set_input(op, position, made, StructuredOp(op).input_maps[position])
            found = True
    return found


def _window_behind(value: SSAValue) -> Kind | None:
    """The window that makes `value`, for one reader alone all the way."""
    for _ in range(_MOST_OPS_BACK):
        if type(value) is not OpResult or is_shared(value):
            return None
        if (what := kind(value.op)) in WINDOWS:
            return what
        if what not in _FOLLOWING:
            return None
        value = operands_of(value.op)[0]
    return None


def _computed_reads(scope: Scope, reader: Operation, value: SSAValue, most: int | None) -> SSAValue | None:
    """`value` with the same elements, read from what it repeats; None where it is no repeated image, or that of an
    argument of more than `most` elements."""
    flat = producer_of(value)
    repeated = broadcast_source(flat.src) if type(flat) is tensor.CollapseShapeOp else None
    if type(flat) is not tensor.CollapseShapeOp or repeated is None:
        return None
    source, map_ = repeated
    if most is not None and is_free(source) and _elements(scope, source) > most:
        return None
    sizes, groups = scope.dims(flat.src), groups_of(flat)
    read = [expr.position for expr in map_.results if type(expr) is AffineDimExpr]
    places = [_place(sizes, groups, axis) for axis in read]
    if any(place is None for place in places):
        return None

    def read_source(b: Body) -> SSAValue:
        at = [_coordinate(b, *place) for place in places if place is not None]
        return b.op(tensor.ExtractOp, source, at, element_of(source))

    emit = Emitter.before(reader)
    made = emit.elementwise([], emit.empty_like(value), read_source)
    assert isinstance(flat.src, OpResult) and isinstance(made, OpResult)
    carry([flat.src.op, flat], [made.op])
    return made


def _elements(scope: Scope, value: SSAValue) -> int:
    return assumed_size(product(scope.dims(value)))


def _place(sizes: Sequence[Dim], groups: Sequence[Sequence[int]], axis: int) -> tuple[int, int] | None:
    """The loop over the group of `axis`, and how many of its steps stay at one element; None where others of the group
    lie outside of `axis`, or the steps are not known."""
    loop = next(number for number, group in enumerate(groups) if axis in group)
    group = groups[loop]
    outside, inside = ([sizes[a] for a in group if (a < axis) == side and a != axis] for side in (True, False))
    if any(size != 1 for size in outside) or not all(isinstance(size, int) for size in inside):
        return None
    return loop, prod(size for size in inside if isinstance(size, int))


def _coordinate(b: Body, loop: int, steps: int) -> SSAValue:
    at = b.op(linalg.ops.IndexOp, loop)
    return at if steps == 1 else b.op(arith.DivUIOp, at, b.constant(steps, IndexType()))
