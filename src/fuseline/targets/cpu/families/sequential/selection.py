"""Argument reductions along memory (ArgMax, ArgMin): every lane keeps an element and its place, the lanes are compared
at the end.

    lanes     0 1 2 3 0 1 2 3 0 ..       each lane goes over its own elements in order, several vectors side by side
    at last   halves against halves      whichever replaces the other; of two that are equal to each other, the first
                                         (or the last)

Whether one of two is kept is asked of the body in both directions: where each replaces the other the body prefers the
later, where neither does the earlier. Reductions across memory are the loop nest's, whose lanes run along the results.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.walks import Selection
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.combinators.lanes import Kept, LaneLoop, is_masked
from fuseline.targets.cpu.emit.body_point import BodyPoint
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index, point_at
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.results import ResultPath, lone_root_paths
from fuseline.targets.cpu.families.family import NEVER_RUNS, Family, Plan, Refusal
from fuseline.targets.cpu.families.root.kernel import RootKernel
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BITS, Operand, Value

VECTORS = 4
"""Vectors side by side: a comparison takes several cycles until the next may follow it."""


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


class _SelectionKernel(RootKernel):
    """What is kept are elements and their places, lane by lane."""

    def __init__(self, plan: SelectionPlan, kernel: KernelBuilder) -> None:
        super().__init__(plan, kernel, plan.selection.root, plan.paths, 1)
        self.plan, self.selection, self.reduced = plan, plan.selection, plan.selection.root.reduction[0]
        bound = d.upper_bound(plan.extents[self.reduced])
        self.position_dtype = "i64" if BITS[plan.dtype] == 64 or bound is None or bound >= 1 << 31 else "i32"

    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        """One line."""
        kernel, plan = self.kernel, self.plan
        loops = self.point_of(number, plan.outer, plan.extents)
        element, place = (
            self.results.start(loops, None, result=result) for result in (self.selection.kept, self.selection.position)
        )
        line = LaneLoop(kernel, plan.lanes, unroll=plan.vectors, masked=is_masked(kernel, plan.dtype))
        element, place = line.keep(
            0,
            self.buffers.operand(plan.extents[self.reduced]),
            (element, kernel.cast(place, self.position_dtype)),
            partial(self._step, loops),
            self._joined,
        )
        self.results.finish(loops, None, *self._in_order((element, kernel.cast(place, "i64"))))
        return ()

    def _step(self, loops: list[AnyIndex], first: Operand, lanes: int, active: Operand | None, kept: Kept) -> Kept:
        kernel, here = self.kernel, list(loops)
        here[self.reduced] = Index(first, 1 if lanes > 1 else 0)
        body = BodyPoint(self.emitter, self.root, here, lanes, active, self._in_order(kept))
        element = kernel.splat(body.value(self.root.body.args[self.selection.element]), lanes)
        replaces = kernel.splat(body.value(self.selection.replaces), lanes)
        if active is not None and lanes > 1:
            replaces = kernel.bitand(replaces, kernel.mask(active, lanes))
        place = kernel.cast(kernel.as_value(first), self.position_dtype)
        if lanes > 1:
            place = kernel.add(kernel.splat(place, lanes), kernel.iota(lanes, self.position_dtype))
        return self._either(replaces, (element, place), kept)

    def _joined(self, a: Kept, b: Kept) -> Kept:
        kernel = self.kernel
        b_replaces, a_replaces = self._replaces(b, a), self._replaces(a, b)
        later = kernel.select(b_replaces, kernel.compare("gt", b[1], a[1]), kernel.compare("lt", b[1], a[1]))
        return self._either(kernel.select(kernel.xor(a_replaces, b_replaces), b_replaces, later), b, a)

    def _replaces(self, new: Kept, old: Kept) -> Value:
        """Whether the body would keep `new` where it has kept `old`."""
        lanes, inputs = new[0].type.lanes, {self.selection.element: new[0]}
        loops = point_at(self.root.rank, {})
        body = BodyPoint(self.emitter, self.root, loops, lanes, None, self._in_order(old), inputs)
        return self.kernel.splat(body.value(self.selection.replaces), lanes)

    def _either(self, first: Value, a: Kept, b: Kept) -> Kept:
        return tuple(self.kernel.select(first, x, y) for x, y in zip(a, b, strict=True))

    def _in_order(self, kept: Kept) -> Kept:
        """As the root has its results."""
        return kept if self.selection.kept == 0 else kept[::-1]


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
        if 0 in extents:
            return NEVER_RUNS
        paths = lone_root_paths(view, root)
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
