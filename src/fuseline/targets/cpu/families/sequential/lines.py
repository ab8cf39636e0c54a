"""Kernels that walk one axis of the result in order, line by line: running totals, and updates at computed places.

Lanes run along the innermost axis of the result where every lane may take the same step of the walk; a workgroup is a
block of that axis at one point of the others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import StructuredOp
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.combinators.lanes import LaneLoop, is_masked
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index, point_at
from fuseline.targets.cpu.families.contraction.results import ResultPath
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.families.root.kernel import RootKernel
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

VECTORS_PER_WORKGROUP = 4
"""Vectors of the innermost axis that one workgroup walks."""


@dataclass(frozen=True, kw_only=True)
class LinesPlan(Plan):
    """The loops of a walk: `outer` ones form the grid, `lane` runs across the lanes in blocks (None: nothing does)."""

    outer: tuple[int, ...]
    lane: int | None
    lanes: int
    extents: tuple[Dim, ...]

    @property
    def block(self) -> int:
        """Elements of the lane axis per workgroup."""
        return VECTORS_PER_WORKGROUP * self.lanes

    @property
    def grid(self) -> tuple[Dim, ...]:
        """Extents of the grid, slowest first."""
        return (
            *(self.extents[loop] for loop in self.outer),
            d.ceil_div(self.extents[self.lane], self.block) if self.lane is not None else 1,
        )


def line_loops(
    root: StructuredOp, extents: Sequence[Dim], walked: int, moving: Collection[int] = ()
) -> tuple[tuple[int, ...], int | None]:
    """The loops of the grid and the one across the lanes: neither is `walked`, nor are lanes along what the step of a
    walk depends on (`moving`)."""
    written = [
        expr.position
        for expr in root.output_maps[0].results
        if isinstance(expr, AffineDimExpr) and extents[expr.position] != 1
    ]
    lane = written[-1] if written and written[-1] != walked and written[-1] not in moving else None
    return tuple(loop for loop in written if loop not in (walked, lane)), lane


class LinesKernel(RootKernel):
    """Builds the kernel of a plan, whose vectors are of elements of `dtype`."""

    def __init__(
        self, plan: LinesPlan, kernel: KernelBuilder, root: StructuredOp, paths: Sequence[ResultPath], dtype: str
    ) -> None:
        super().__init__(plan, kernel, root, paths, plan.lanes)
        self.lines, self.masked = plan, is_masked(kernel, dtype)

    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        """Each line of a block, in vectors."""
        kernel, plan = self.kernel, self.lines
        *outer, block = self.buffers.coordinates(number, plan.grid)
        loops = point_at(self.root.rank, dict(zip(plan.outer, outer, strict=True)))
        if plan.lane is None:
            self.walk(loops, 1, None)
            return ()
        lane, first = plan.lane, kernel.mul(block, plan.block)
        last = kernel.min(kernel.add(first, plan.block), self.buffers.operand(plan.extents[lane]))

        def lines(starts: list[Operand], lanes: int, active: Operand | None, _: tuple[Value, ...]) -> tuple[()]:
            here = list(loops)
            here[lane] = Index(starts[0], 1 if lanes > 1 else 0)
            self.walk(here, lanes, active)
            return ()

        LaneLoop(kernel, plan.lanes, masked=self.masked).run(first, last, lines)
        return ()

    @abstractmethod
    def walk(self, loops: list[AnyIndex], lanes: int, active: Operand | None) -> None:
        """One line, from the first step to the last; `loops` are those of the root, the walked ones still 0."""
