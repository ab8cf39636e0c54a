"""The skeleton of a kernel with a root op.

prepare()                                   once: rows of pad values and the like
for number in begin .. end:                 this thread's workgroups
    enter(number)                           what neighbours share, if any do
    workgroup(number)                       the family's: blocks, panels and tiles by the combinators
        starts = results.starts(..)         what a tile's accumulators start from
        ...                                 the reduction, in registers
        results.store(..)                   the epilogue on each vector of the tile

Neighbours that share something are a run: it is entered once, then its workgroups are numbered within it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from fuseline.analysis.structured import StructuredOp
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.combinators.split import in_runs
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import AnyIndex, point_at
from fuseline.targets.cpu.families.contraction.results import ResultPath
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.families.root.results import RootResults
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand


class RootKernel(ABC):
    """Builds the kernel of a plan; `lanes` elements of the root's result are a vector, and leave by `paths`. `rows`:
    the loops of the root along which the rows of a tile follow each other, `lane` that along which vectors run."""

    shared_by: int | None = None
    """How many neighbouring workgroups, a run, share what `enter` makes; None: each is by itself."""

    def __init__(
        self,
        plan: Plan,
        kernel: KernelBuilder,
        root: StructuredOp,
        paths: Sequence[ResultPath],
        lanes: int,
        *,
        rows: Sequence[int] = (),
        lane: int | None = None,
    ) -> None:
        self.kernel, self.root = kernel, root
        self.emitter = BodyEmitter(kernel, plan.view)
        self.buffers = self.emitter.buffers
        self.results = RootResults(self.emitter, root, paths, lanes, rows=rows, lane=lane)

    def emit(self) -> None:
        """Run the workgroups."""
        kernel = self.kernel
        self.prepare()
        if self.shared_by is None:
            kernel.loop(kernel.begin, kernel.end, 1, self._alone)
        else:
            in_runs(kernel, self.shared_by, (kernel.begin, kernel.end), self.enter, self.workgroup)

    def _alone(self, number: Operand) -> tuple[Operand, ...]:
        self.enter(number)
        return self.workgroup(number)

    def point_of(self, number: Operand, loops: Sequence[int], extents: Sequence[Dim]) -> list[AnyIndex]:
        """The root's loops where workgroup `number` of a grid of some `loops` is, the others at 0; `extents` of all."""
        at = self.buffers.coordinates(number, [*(extents[loop] for loop in loops), 1])
        return point_at(self.root.rank, dict(zip(loops, at, strict=False)))

    def prepare(self) -> None:
        """What is done once, before all workgroups."""
        return

    def enter(self, run: Operand) -> None:
        """What is done once for those workgroups of a run that are this thread's; a workgroup by itself is a run."""
        del run

    @abstractmethod
    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        """One workgroup: by its number in the grid, or in the run that was entered."""
