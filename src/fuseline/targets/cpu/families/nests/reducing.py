"""Reductions at a point: several vectors of parallel points side by side, or the lanes along a reduction loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from xdsl.dialects import linalg
from xdsl.ir import SSAValue

from fuseline.analysis.structured import StructuredOp
from fuseline.targets.cpu.combinators.lanes import LaneLoop
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.body_point import BodyPoint, narrowed, widened
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.emit.long_sums import LONG, summed
from fuseline.targets.cpu.emit.shortcuts import keep_total
from fuseline.targets.cpu.families.combining import Combiner, adds_floats
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

Visit = Callable[[Mapping[int, Operand], Sequence[Value]], Sequence[Value]]
"""`(reduction loops, carried) -> carried`"""

UNROLL_LIMIT = 12
"""Windows of at most this many taps are written out."""


def reduce_together(
    e: BodyEmitter, reductions: Sequence[tuple[StructuredOp, Sequence[AnyIndex]]], lanes: int, active: Operand | None
) -> list[list[Value]]:
    """The results of reductions at points of their parallel loops, each `lanes` wide, in one traversal over the
    reduction loops of all, which are as many and as long, in order."""
    first = reductions[0][0]
    extents = [(loop, e.buffers.operand(first.loops(e.view.shapes)[loop])) for loop in first.reduction]
    inits = [_starts(e, view, point, lanes, active) for view, point in reductions]

    def at_tap(taps: Mapping[int, Operand], accumulators: Sequence[Value]) -> list[Value]:
        out: list[Value] = []
        for (view, point), start in zip(reductions, inits, strict=True):
            own = dict(zip(view.reduction, (taps[loop] for loop in first.reduction), strict=True))
            loops = [Index(own[i]) if i in own else c for i, c in enumerate(point)]
            held = accumulators[len(out) : len(out) + len(start)]
            out += [
                e.kernel.splat(v, lanes) for v in BodyPoint(e, view, loops, lanes, active, held, wide=True).yields()
            ]
        return out

    adds = all(adds_floats(view.op) for view, _ in reductions)
    flat = [value for start in inits for value in start]
    totals = iter((sum_up if adds else for_each_point)(e, extents, {}, flat, at_tap))
    return [
        [narrowed(e.kernel, next(totals), dtype_of(value.type)) for value in view.outputs] for view, _ in reductions
    ]


def _starts(
    e: BodyEmitter, view: StructuredOp, point: Sequence[AnyIndex], lanes: int, active: Operand | None
) -> list[Value]:
    starts = zip(view.outputs, view.output_maps, strict=True)
    return [widened(e.kernel, e.value_at(init, e.through(map_, point, lanes), lanes, active)) for init, map_ in starts]


def sum_up(
    e: BodyEmitter,
    loops: Sequence[tuple[int, Operand]],
    taps: Mapping[int, Operand],
    sums: Sequence[Value],
    visit: Visit,
) -> Sequence[Value]:
    """`for_each_point` where what is carried are sums of floats: long ones are added up in parts."""
    counts = [extent for _, extent in loops if isinstance(extent, int)]
    if not loops or (len(counts) == len(loops) and prod(counts) < LONG):
        return for_each_point(e, loops, taps, sums, visit)
    (loop, extent), rest = loops[0], loops[1:]
    inner = [size for _, size in rest if isinstance(size, int)]
    terms = (extent if isinstance(extent, int) else None, prod(inner) if len(inner) == len(rest) else None)
    return summed(e.kernel, (0, extent), terms, sums, lambda i, held: sum_up(e, rest, {**taps, loop: i}, held, visit))


def for_each_point(
    e: BodyEmitter,
    loops: Sequence[tuple[int, Operand]],
    taps: Mapping[int, Operand],
    carried: Sequence[Value],
    visit: Visit,
) -> Sequence[Value]:
    """`visit` every point of the loops `(number, extent)` with carried values; short static windows are written out."""
    if not loops:
        return visit(taps, carried)
    (loop, extent), rest = loops[0], loops[1:]
    if _is_short(loops):
        assert isinstance(extent, int)
        for i in range(extent):
            carried = for_each_point(e, rest, {**taps, loop: i}, carried, visit)
        return carried
    return e.kernel.loop(
        0, extent, 1, lambda i, *state: for_each_point(e, rest, {**taps, loop: i}, state, visit), carried
    )


def _is_short(loops: Sequence[tuple[int, Operand]]) -> bool:
    total = 1
    for _, extent in loops:
        if not isinstance(extent, int):
            return False
        total *= extent
    return total <= UNROLL_LIMIT


class LaneReduction:
    """Accumulators of one reduction whose lanes run along a reduction loop: `unroll` vectors per result, and a scalar
    where the rest of the loop is scalar."""

    def __init__(
        self, e: BodyEmitter, op: linalg.ops.GenericOp, combiners: Sequence[Combiner], lane_loop: LaneLoop
    ) -> None:
        self.e, self.view, self.lane_loop = e, StructuredOp(op), lane_loop
        self.combiners = [replace(c, rule=keep_total) if c.op in e.shortcuts else c for c in combiners]
        self.width = lane_loop.vectors + lane_loop.scalars

    def initial(self) -> list[Value]:
        """Identities, for every accumulator of every result."""
        kernel, out = self.e.kernel, list[Value]()
        for combiner in self.combiners:
            out += [combiner.identity(kernel, self.lane_loop.lanes)] * self.lane_loop.vectors
            out += [combiner.identity(kernel, 1)] * self.lane_loop.scalars
        return out

    def update(
        self, state: Sequence[Value], points: Sequence[Sequence[AnyIndex]], lanes: int, active: Operand | None
    ) -> list[Value]:
        """The accumulators after the elements at `points`, each `lanes` wide."""
        out = list(state)
        for number, point in enumerate(points):
            body = BodyPoint(self.e, self.view, point, lanes, active, [], wide=True)
            for i, combiner in enumerate(self.combiners):
                at = i * self.width + self.lane_loop.place(number, lanes)
                out[at] = combiner.combine(self.e.kernel, out[at], self._element(body, combiner, lanes, active))
        return out

    def _element(self, body: BodyPoint, combiner: Combiner, lanes: int, active: Operand | None) -> Value:
        kernel = self.e.kernel
        element = kernel.splat(body.value(combiner.element), lanes)
        if active is None or lanes == 1:
            return element
        return kernel.select(kernel.mask(active, lanes), element, combiner.identity(kernel, lanes))

    def finish(self, state: Sequence[Value], point: Sequence[AnyIndex]) -> list[Value]:
        """The results at a point of the parallel loops: inits and accumulators combined."""
        kernel, out = self.e.kernel, list[Value]()
        count = self.lane_loop.vectors
        for i, combiner in enumerate(self.combiners):
            partials = list(state[i * self.width : (i + 1) * self.width])
            vectors = partials[:count]
            while len(vectors) > 1:
                half = (len(vectors) + 1) // 2
                vectors = [
                    combiner.combine(kernel, *vectors[n : n + half + 1 : half])
                    if n + half < len(vectors)
                    else vectors[n]
                    for n in range(half)
                ]
            total = [combiner.across(kernel, v) for v in vectors] + partials[count:]
            init: SSAValue = self.view.outputs[i]
            value = widened(kernel, self.e.value_at(init, self.e.through(self.view.output_maps[i], point, 1), 1))
            for partial in total:
                value = combiner.combine(kernel, value, partial)
            out.append(narrowed(kernel, value, dtype_of(init.type)))
        return out
