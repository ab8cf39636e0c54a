"""Argument reductions along memory (ArgMax, ArgMin): every lane keeps an element and its place, the lanes are compared
at the end.

    lanes     0 1 2 3 0 1 2 3 0 ..       each lane goes over its own elements in order, several vectors side by side
    at last   halves against halves      whichever replaces the other; of two that are equal to each other, the first
                                         (or the last)

Whether one of two is kept is asked of the body in both directions: where each replaces the other the body prefers the
later, where neither does the earlier. Reductions across memory are the loop nest's, whose lanes run along the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.walks import Selection
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.body_point import BodyPoint
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.plan import unsupported_members
from fuseline.targets.cpu.families.contraction.results import ResultPath, result_paths
from fuseline.targets.cpu.families.family import Family, Plan, Refusal
from fuseline.targets.cpu.families.nests.lane_loops import LaneLoop
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BITS, Operand, Value

VECTORS = 4
"""Vectors side by side: a comparison takes several cycles until the next may follow it."""

Kept: TypeAlias = "tuple[Value, Value]"
"""Elements and their places, lane by lane."""


@dataclass(frozen=True, kw_only=True)
class SelectionPlan(Plan):
    """The loops beside the reduced one form the grid; `dtype` of the elements, `lanes` of them at a time, `vectors`
    side by side."""

    selection: Selection
    outer: tuple[int, ...]
    extents: tuple[Dim, ...]
    paths: tuple[ResultPath, ...]
    dtype: str
    lanes: int
    vectors: int


class _SelectionKernel:
    def __init__(self, plan: SelectionPlan, kernel: KernelBuilder) -> None:
        self.plan, self.kernel, self.selection = plan, kernel, plan.selection
        self.root = plan.selection.root
        self.emitter = BodyEmitter(kernel, plan.view)
        self.buffers = self.emitter.buffers
        self.masked = max(BITS[plan.dtype], 8) in kernel.machine.masked_bits
        reduced = plan.extents[self.root.reduction[0]]
        bound = d.upper_bound(reduced)
        self.position_dtype = "i64" if BITS[plan.dtype] == 64 or bound is None or bound >= 1 << 31 else "i32"

    def emit(self) -> None:
        """One workgroup per point of the grid."""

        def workgroup(number: Operand) -> tuple[()]:
            grid = tuple(self.plan.extents[loop] for loop in self.plan.outer) or (1,)
            loops: list[AnyIndex] = [Index(0)] * self.root.rank
            for loop, at in zip(self.plan.outer, self.buffers.coordinates(number, grid), strict=False):
                loops[loop] = Index(at)
            self._store(loops, *self._line(loops))
            return ()

        self.kernel.loop(self.kernel.begin, self.kernel.end, 1, workgroup)

    def _line(self, loops: list[AnyIndex]) -> Kept:
        """What is kept of one line, one lane wide."""
        kernel, plan = self.kernel, self.plan
        start = self._start(loops)
        begin = [kernel.splat(value, plan.lanes) for value in start]

        def visit(starts: list[Operand], lanes: int, active: Operand | None, state: tuple[Value, ...]) -> list[Value]:
            out = list(state)
            for number, first in enumerate(starts):
                at = 2 * (number if lanes == plan.lanes else plan.vectors)  # what no vector holds is kept behind them
                out[at : at + 2] = self._step(loops, first, lanes, active, (out[at], out[at + 1]))
            return out

        extent = self.buffers.operand(plan.extents[self.root.reduction[0]])
        loop = LaneLoop(kernel, plan.lanes, unroll=plan.vectors, masked=self.masked)
        final = loop.run(0, extent, visit, [*(begin * plan.vectors), *([] if self.masked else start)])
        pairs = [(final[i], final[i + 1]) for i in range(0, len(final), 2)]
        return self._joined([self._across(self._joined(pairs[: plan.vectors])), *pairs[plan.vectors :]])

    def _start(self, loops: list[AnyIndex]) -> list[Value]:
        """The inits of both results."""
        values: list[Value] = []
        for result in (self.selection.kept, self.selection.position):
            index = self.emitter.through(self.root.output_maps[result], loops, 1)
            values.append(self.emitter.value_at(self.root.outputs[result], index, 1))
        return [values[0], self.kernel.cast(values[1], self.position_dtype)]

    def _step(self, loops: list[AnyIndex], first: Operand, lanes: int, active: Operand | None, kept: Kept) -> Kept:
        kernel, here = self.kernel, list(loops)
        here[self.root.reduction[0]] = Index(first, 1 if lanes > 1 else 0)
        body = BodyPoint(self.emitter, self.root, here, lanes, active, self._accumulators(kept))
        element = kernel.splat(body.value(self.root.body.args[self.selection.element]), lanes)
        replaces = kernel.splat(body.value(self.selection.replaces), lanes)
        if active is not None and lanes > 1:
            replaces = kernel.bitand(replaces, kernel.mask(active, lanes))
        position = kernel.cast(kernel.as_value(first), self.position_dtype)
        if lanes > 1:
            position = kernel.add(kernel.splat(position, lanes), kernel.iota(lanes, self.position_dtype))
        return kernel.select(replaces, element, kept[0]), kernel.select(replaces, position, kept[1])

    def _accumulators(self, kept: Kept) -> list[Value]:
        return [kept[0], kept[1]] if self.selection.kept == 0 else [kept[1], kept[0]]

    # two of them ------------------------------------------------------------------------------------------------------

    def _joined(self, kept: Sequence[Kept]) -> Kept:
        """The one of all, lane by lane."""
        first, *rest = kept
        for other in rest:
            first = self._better(first, other)
        return first

    def _across(self, kept: Kept) -> Kept:
        """The one of all lanes, halves first."""
        while kept[0].type.lanes > 1:
            half = kept[0].type.lanes // 2
            low, high = (
                (self.kernel.lanes(kept[0], at, half), self.kernel.lanes(kept[1], at, half)) for at in (0, half)
            )
            kept = self._better(low, high)
        return kept

    def _better(self, a: Kept, b: Kept) -> Kept:
        kernel = self.kernel
        b_replaces, a_replaces = self._replaces(b, a), self._replaces(a, b)
        later = kernel.select(b_replaces, kernel.compare("gt", b[1], a[1]), kernel.compare("lt", b[1], a[1]))
        takes = kernel.select(kernel.xor(a_replaces, b_replaces), b_replaces, later)
        return kernel.select(takes, b[0], a[0]), kernel.select(takes, b[1], a[1])

    def _replaces(self, new: Kept, old: Kept) -> Value:
        """Whether the body would keep `new` where it has kept `old`."""
        lanes = new[0].type.lanes
        loops: list[AnyIndex] = [Index(0)] * self.root.rank
        body = BodyPoint(
            self.emitter,
            self.root,
            loops,
            lanes,
            None,
            self._accumulators(old),
            inputs={self.selection.element: new[0]},
        )
        return self.kernel.splat(body.value(self.selection.replaces), lanes)

    def _store(self, loops: list[AnyIndex], value: Value, position: Value) -> None:
        results = self.root.op.results
        wide = self.kernel.cast(position, "i64")
        self.emitter.known[results[self.selection.kept]] = lambda index, lanes, active: value
        self.emitter.known[results[self.selection.position]] = lambda index, lanes, active: wide
        for path in self.plan.paths:
            index = path.index(self.buffers, loops, 1)
            path.store(self.buffers, index, self.emitter.value_at(path.value, index, 1), None)


class SelectionFamily(Family):
    """Takes argument reductions whose elements lie side by side in memory along the reduced loop."""

    name = "selection"
    kernel_type = _SelectionKernel

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan where the root is an argument reduction."""
        root = view.root_view
        found = view.idiom
        if root is None or not isinstance(found, Selection):
            return Refusal("not-a-selection", "the root does not keep an element and its place")
        dtype, extents = dtype_of(root.inputs[found.element].type), root.loops(view.shapes)
        if dtype not in ("f32", "f64", "i32", "i64") or dtype_of(root.op.results[found.position].type) != "i64":
            return Refusal("element-type", f"elements are {dtype}")
        last = root.input_maps[found.element].results[-1:]
        if last != (AffineDimExpr(root.reduction[0]),):
            return Refusal("across-memory", "elements do not lie side by side along the reduced loop")
        if any(extent == 0 for extent in extents):
            return Refusal("empty", "a loop never runs")
        if unsupported_members(view, root.op):
            return Refusal("second-reduction", "an op reduces beside the root")
        paths = result_paths(view)
        if isinstance(paths, Refusal):
            return paths
        outer, lanes = tuple(loop for loop in root.parallel if extents[loop] != 1), machine.lanes(dtype)
        plan = SelectionPlan(
            view=view, workgroups=d.product(extents[loop] for loop in outer), selection=found, outer=outer,
            extents=extents, paths=tuple(paths),
            dtype=dtype, lanes=lanes,
            vectors=max(1, min(VECTORS, assumed_size(extents[root.reduction[0]]) // (2 * lanes))),
        )  # fmt: skip
        return replace(plan, notes={"lanes": lanes, "vectors": plan.vectors})


EXPORT = SelectionFamily
