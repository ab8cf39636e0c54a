"""What is computed from the totals of a walk when they are final.

result[i] = total[i]             while the walk lasts, in a result of the totals' own type
result[i] = f(result[i], ..)     afterwards, and every other result likewise
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuseline.analysis.structured import StructuredOp
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import AnyIndex
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.results import ResultPath
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

Point = Callable[[list[AnyIndex], int, "Operand | None"], None]
"""`(loops, lanes, active)`: where the loops of a root are, for so many lanes, of which so many are live (None: all)."""


def totals_path(root: StructuredOp, paths: Sequence[ResultPath]) -> ResultPath | None:
    """The result that holds the totals of `root`: its own, else the first of their type; None where there is none."""
    total = root.op.results[0]
    own = [path for path in paths if path.value is total]
    alike = [path for path in paths if dtype_of(path.value.type) == dtype_of(total.type)]
    return next(iter((*own, *alike)), None)


class WalkEpilogue:
    """The results `paths` of a dispatch around `root`, whose totals lie where `totals` puts them."""

    def __init__(
        self, emitter: BodyEmitter, root: StructuredOp, totals: ResultPath, paths: Sequence[ResultPath]
    ) -> None:
        self.emitter, self.buffers, self.totals, self.paths = emitter, emitter.buffers, totals, paths
        self._total: Value | None = None
        if paths:
            emitter.known[root.op.results[0]] = self._held

    def _held(self, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        del index, lanes, active
        assert self._total is not None
        return self._total

    def finish(self, loops: list[AnyIndex], lanes: int, active: Operand | None) -> None:
        """Read the total at a point, then compute and store what follows from it."""
        buffers, totals = self.buffers, self.totals
        index = buffers.placed(totals.box, totals.index(buffers, loops, lanes), lanes)
        self._total = buffers.load(buffers.result(totals.position), index, lanes, active)
        for path in self.paths:
            index = path.index(buffers, loops, lanes)
            path.store(buffers, index, self.emitter.value_at(path.value, index, lanes, active), active)
