"""The skeleton of a kernel with a root op.

prepare()                                   once: rows of pad values and the like
for number in begin .. end:                 this thread's workgroups
    workgroup(number)                       the family's: blocks, panels and tiles by the combinators
        starts = results.starts(..)         what a tile's accumulators start from
        ...                                 the reduction, in registers
        results.store(..)                   the epilogue on each vector of the tile
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from fuseline.analysis.structured import StructuredOp
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.families.contraction.results import ResultPath
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.families.root.results import RootResults
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand


class RootKernel(ABC):
    """Builds the kernel of a plan; `lanes` elements of the root's result are a vector, and leave by `paths`."""

    def __init__(
        self, plan: Plan, kernel: KernelBuilder, root: StructuredOp, paths: Sequence[ResultPath], lanes: int
    ) -> None:
        self.kernel, self.root = kernel, root
        self.emitter = BodyEmitter(kernel, plan.view)
        self.buffers = self.emitter.buffers
        self.results = RootResults(self.emitter, root, paths, lanes)

    def emit(self) -> None:
        """Run the workgroups."""
        self.prepare()
        self.kernel.loop(self.kernel.begin, self.kernel.end, 1, self.workgroup)

    def prepare(self) -> None:
        """What is done once, before all workgroups."""
        return

    @abstractmethod
    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        """One workgroup of the grid."""
