"""Kernels that walk one axis of the result in order, line by line: running totals, and updates at computed places.

Lanes run along the innermost axis of the result where every lane may take the same step of the walk; a workgroup is a
block of that axis at one point of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import StructuredOp
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.families.nests.lane_loops import LaneLoop
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BITS, Operand, Value

VECTORS_PER_WORKGROUP = 4
"""Vectors of the innermost axis that one workgroup walks."""

Walk = Callable[[list[AnyIndex], int, Operand | None], None]
"""`(loops, lanes, active)`: one line, from the first step to the last; `loops` are those of the root, the walked ones
still 0."""


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


def walk_lines(
    kernel: KernelBuilder, buffers: DispatchBuffers, plan: LinesPlan, root: StructuredOp, dtype: str, walk: Walk
) -> None:
    """Run the workgroups: `walk` each line of each block, in vectors of elements of `dtype`."""

    def workgroup(number: Operand) -> tuple[()]:
        *outer, block = buffers.coordinates(number, plan.grid)
        loops: list[AnyIndex] = [Index(0)] * root.rank
        for loop, at in zip(plan.outer, outer, strict=True):
            loops[loop] = Index(at)
        if plan.lane is None:
            walk(loops, 1, None)
        else:
            _walk_block(kernel, buffers, plan, plan.lane, loops, block, dtype, walk)
        return ()

    kernel.loop(kernel.begin, kernel.end, 1, workgroup)


def _walk_block(
    kernel: KernelBuilder,
    buffers: DispatchBuffers,
    plan: LinesPlan,
    lane: int,
    loops: Sequence[AnyIndex],
    block: Operand,
    dtype: str,
    walk: Walk,
) -> None:
    first = kernel.mul(block, plan.block)
    last = kernel.min(kernel.add(first, plan.block), buffers.operand(plan.extents[lane]))

    def lines(starts: list[Operand], lanes: int, active: Operand | None, _: tuple[Value, ...]) -> tuple[()]:
        here = list(loops)
        here[lane] = Index(starts[0], 1 if lanes > 1 else 0)
        walk(here, lanes, active)
        return ()

    LaneLoop(kernel, plan.lanes, masked=max(BITS[dtype], 8) in kernel.machine.masked_bits).run(first, last, lines)
