"""Running sums and products: a reduction over the lower (or upper) triangle of two equal loops, made in one walk that
keeps the total so far.

    out[.., i, ..] = init + sum over j <= i of element[.., j, ..]
            (or j < i, j >= i, j > i; any op that combines in any order)

Lanes run along the innermost axis of the result where that is not the walked one; a workgroup is a block of it at one
point of the other axes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fuseline.analysis.structured import StructuredOp, is_generic, splat_value
from fuseline.analysis.walks import Scan
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
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


@dataclass(frozen=True, slots=True)
class RunningTotal:
    """The root as a running combination: `form` says along which loops, `combiner` with what."""

    form: Scan
    combiner: Combiner

    @property
    def root(self) -> StructuredOp:
        """The reduction."""
        return self.form.root

    @property
    def reduced(self) -> int:
        """The loop over what is combined."""
        return self.root.reduction[0]


@dataclass(frozen=True, kw_only=True)
class ScanPlan(LinesPlan):
    """A scan with its results."""

    scan: RunningTotal
    paths: tuple[ResultPath, ...]


def running_total(view: DispatchView) -> RunningTotal | Refusal:
    """The root of `view` as a scan, or why it is none."""
    root = view.root_view
    found = combiners(root.op) if root is not None and is_generic(root.op) else None
    if root is None or found is None or len(found) != 1 or len(root.reduction) != 1:
        return Refusal("not-a-scan", "the root does not combine elements along one loop")
    if dtype_of(root.op.results[0].type) != found[0].dtype or found[0].dtype == "i1":
        return Refusal("element-type", "the result does not keep the running total as it is")
    form = view.idiom
    if not isinstance(form, Scan) or splat_value(form.neutral) != found[0].neutral:
        return Refusal("not-a-scan", "what counts is not decided by the order of two loops")
    return RunningTotal(form, found[0])


class _ScanKernel(LinesKernel):
    def __init__(self, plan: ScanPlan, kernel: KernelBuilder) -> None:
        super().__init__(plan, kernel, plan.scan.root, plan.paths, plan.scan.combiner.dtype)
        self.scan = plan.scan

    def walk(self, loops: list[AnyIndex], lanes: int, active: Operand | None) -> None:
        """All elements along the walked loop, in order."""
        kernel, scan = self.kernel, self.scan
        extent = self.buffers.operand(self.lines.extents[scan.form.walked])
        start = self.results.start(loops, active, lanes=lanes)

        def step(i: Operand, total: Value) -> tuple[Value]:
            at = kernel.sub(kernel.sub(extent, 1), i) if scan.form.reverse else i
            here = list(loops)
            here[scan.form.walked] = here[scan.reduced] = Index(at)
            element = BodyPoint(self.emitter, scan.root, here, lanes, active).value(scan.form.element)
            after = scan.combiner.combine(kernel, total, kernel.splat(element, lanes))
            self.results.finish(here, active, after if scan.form.inclusive else total)
            return (after,)

        kernel.loop(0, extent, 1, step, [start])


class ScanFamily(Family):
    """Takes running sums, products, minima and maxima along one axis, in any element type that keeps its sums."""

    name = "scan"
    kernel_type = _ScanKernel

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan where the root is a scan."""
        scan = running_total(view)
        if isinstance(scan, Refusal):
            return scan
        paths = lone_root_paths(view, scan.root)
        if isinstance(paths, Refusal):
            return paths
        extents = scan.root.loops(view.shapes)
        if 0 in extents:
            return NEVER_RUNS
        outer, lane = line_loops(scan.root, extents, scan.form.walked)
        lanes = machine.lanes(scan.combiner.dtype) if lane is not None else 1
        plan = ScanPlan(
            view=view, workgroups=0, scan=scan, outer=outer, lane=lane, lanes=lanes, extents=extents, paths=tuple(paths)
        )
        return replace(plan, workgroups=d.product(plan.grid), notes={"lanes": lanes})


EXPORT = ScanFamily
