"""Scatters: updates combined into places that are computed, in one walk over the updates.

    out[.., i, ..] = init + sum over e of (place[.., e, ..] == i ? element[.., e, ..] : 0)

or the last element of each place in the stead of the sum. A result itself holds the running totals. Lanes run along
its innermost axis where every lane has the same place; a workgroup is a block of that axis at one point of the others,
so no two workgroups write to the same element. Places outside the result are passed over. Places, elements and inits
are evaluated where the walk comes by, through what computes them in the dispatch. What follows point by point
(an epilogue) is computed from the totals of a line when its walk is over, and may take their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import StructuredOp, splat_value
from fuseline.analysis.walks import Scatter, loops_behind
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.targets.cpu.combinators.lanes import LaneLoop
from fuseline.targets.cpu.emit.body_point import BodyPoint
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.combining import Combiner, combiners
from fuseline.targets.cpu.families.contraction.results import ResultPath, lone_root_paths
from fuseline.targets.cpu.families.family import NEVER_RUNS, Family, Plan, Refusal
from fuseline.targets.cpu.families.sequential.lines import LinesKernel, LinesPlan, line_loops
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

Point = Callable[[list[AnyIndex], int, "Operand | None"], None]
"""`(loops, lanes, active)`: where the loops of the root are, for so many lanes, of which so many are live (None:
all)."""

HALVES = ("f16", "bf16")
"""What is put in its place, and never added up."""


@dataclass(frozen=True, kw_only=True)
class ScatterPlan(LinesPlan):
    """A scatter, its totals of type `dtype` kept by `combiner` (None: replaced) where `path` puts them; `epilogue` are
    the results that are written from them afterwards: what is computed from them, and they themselves at a second
    place (returned and a slice of a concat)."""

    scatter: Scatter
    combiner: Combiner | None
    dtype: str
    path: ResultPath
    epilogue: tuple[ResultPath, ...]


def totals_path(root: StructuredOp, paths: Sequence[ResultPath]) -> ResultPath | None:
    """The result that holds the totals of `root`: its own, else the first of their type; None where there is none."""
    total = root.op.results[0]
    own = [path for path in paths if path.value is total]
    alike = [path for path in paths if dtype_of(path.value.type) == dtype_of(total.type)]
    return next(iter((*own, *alike)), None)


class _ScatterKernel(LinesKernel):
    def __init__(self, plan: ScatterPlan, kernel: KernelBuilder) -> None:
        super().__init__(plan, kernel, plan.scatter.root, plan.epilogue, plan.dtype)
        self.plan, self.scatter = plan, plan.scatter

    def walk(self, loops: list[AnyIndex], lanes: int, active: Operand | None) -> None:
        """The inits, then every update in order."""
        kernel, scatter, root = self.kernel, self.scatter, self.scatter.root
        reduced, extent = root.reduction[0], self.buffers.operand(self.plan.extents[scatter.scattered])

        def update(e: Operand) -> None:
            turn = self._at(loops, reduced, e)
            index = kernel.cast(BodyPoint(self.emitter, root, turn, 1, None).value(scatter.position), "i64")
            inside = kernel.bitand(kernel.compare("ge", index, 0), kernel.compare("lt", index, extent))

            def hit() -> tuple[()]:
                within = kernel.max(kernel.min(index, kernel.sub(extent, 1)), 0)
                self._combine(self._at(turn, scatter.scattered, within), lanes, active)
                return ()

            kernel.when(inside, hit)

        self._start(loops, lanes, active, extent)
        kernel.loop(0, self.buffers.operand(self.plan.extents[reduced]), 1, update)
        if self.plan.epilogue:
            self._each_point(loops, lanes, active, extent, self._finish)

    def _start(self, loops: list[AnyIndex], lanes: int, active: Operand | None, extent: Operand) -> None:
        """The inits of a line."""

        def init(here: list[AnyIndex], lanes: int, active: Operand | None) -> None:
            self._store(here, self.results.start(here, active, lanes=lanes), active)

        self._each_point(loops, lanes, active, extent, init)

    def _each_point(
        self, loops: list[AnyIndex], lanes: int, active: Operand | None, extent: Operand, point: Point
    ) -> None:
        """Every point of a line: in vectors along it where no lanes run across."""
        scattered, kernel = self.scatter.scattered, self.kernel

        def along(starts: list[Operand], lanes: int, active: Operand | None, _: tuple[Value, ...]) -> tuple[()]:
            step = Index(starts[0], 1 if lanes > 1 else 0)
            point([step if i == scattered else at for i, at in enumerate(loops)], lanes, active)
            return ()

        if self.plan.lane is None and self._is_innermost(scattered):
            LaneLoop(kernel, kernel.machine.lanes(self.plan.dtype), masked=self.masked).run(0, extent, along)
        else:

            def each(i: Operand) -> tuple[()]:
                point(self._at(loops, scattered, i), lanes, active)
                return ()

            kernel.loop(0, extent, 1, each)

    def _is_innermost(self, loop: int) -> bool:
        """Whether neighbours along the loop are neighbours in the result."""
        coordinates, written = self.plan.path.coordinates, self.scatter.root.output_maps[0].results
        return bool(coordinates) and coordinates[-1] == loop and written[-1] == AffineDimExpr(loop)

    def _combine(self, here: list[AnyIndex], lanes: int, active: Operand | None) -> None:
        """One update, at the place that `here` names."""
        path, buffers, combiner = self.plan.path, self.buffers, self.plan.combiner
        element = BodyPoint(self.emitter, self.scatter.root, here, lanes, active).value(self.scatter.element)
        if combiner is None:
            self._store(here, self.kernel.splat(element, lanes), active)
            return
        total = path.load(buffers, here, lanes, active)
        self._store(here, combiner.combine(self.kernel, total, self.kernel.splat(element, lanes)), active)

    def _finish(self, here: list[AnyIndex], lanes: int, active: Operand | None) -> None:
        """What follows from the total at a point."""
        self.results.finish(here, active, self.plan.path.load(self.buffers, here, lanes, active))

    def _store(self, here: Sequence[AnyIndex], value: Value, active: Operand | None) -> None:
        lanes = value.type.lanes
        self.plan.path.store(self.buffers, self.plan.path.index(self.buffers, here, lanes), value, active)

    @staticmethod
    def _at(loops: Sequence[AnyIndex], loop: int, index: Operand) -> list[AnyIndex]:
        return [Index(index) if i == loop else at for i, at in enumerate(loops)]


class ScatterFamily(Family):
    """Takes scatters of any element type that keeps its sums, with what it reads through producers and what follows
    from it point by point."""

    name = "scatter"
    kernel_type = _ScatterKernel

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan where the root is a scatter."""
        root = view.root_view
        scatter = view.idiom
        if root is None or not isinstance(scatter, Scatter):
            return Refusal("not-a-scatter", "the root does not combine elements into places")
        (combiner,) = combiners(root.op) or [None]
        if scatter.neutral is not None and (combiner is None or splat_value(scatter.neutral) != combiner.neutral):
            return Refusal("not-a-scatter", "what does not hit a place counts")
        dtype = dtype_of(root.op.results[0].type)
        if combiner is not None and (dtype in (*HALVES, "i1") or dtype != combiner.dtype):
            return Refusal("element-type", "the result does not keep the running total as it is")
        paths = lone_root_paths(view, root)
        if isinstance(paths, Refusal):
            return paths
        totals = totals_path(root, paths)
        if totals is None:
            return Refusal("epilogue", "no result could hold the totals meanwhile")
        return self._plan(view, machine, (scatter, combiner), (totals, paths))

    def _plan(
        self,
        view: DispatchView,
        machine: Machine,
        form: tuple[Scatter, Combiner | None],
        ways: tuple[ResultPath, Sequence[ResultPath]],
    ) -> Plan | Refusal:
        (scatter, combiner), (path, paths) = form, ways
        root, dtype = scatter.root, dtype_of(scatter.root.op.results[0].type)
        extents = root.loops(view.shapes)
        if any(extents[loop] == 0 for loop in root.parallel):
            return NEVER_RUNS
        outer, lane = line_loops(root, extents, scatter.scattered, loops_behind(root, scatter.position))
        lanes = machine.lanes(dtype) if lane is not None else 1
        plan = ScatterPlan(
            view=view,
            workgroups=0,
            scatter=scatter,
            combiner=combiner,
            dtype=dtype,
            outer=outer,
            lane=lane,
            lanes=lanes,
            extents=extents,
            path=path,
            epilogue=tuple(one for one in paths if one is not path or one.value is not root.op.results[0]),
        )
        return replace(plan, workgroups=d.product(plan.grid), notes={"lanes": lanes})


EXPORT = ScatterFamily
