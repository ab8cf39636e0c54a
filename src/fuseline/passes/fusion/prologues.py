"""What roots pay for reading through producers, asked for again and again while groups grow: looked up by the ops that
are read through."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import Operation

from fuseline.analysis.producers import producers_of
from fuseline.analysis.prologue import prologue
from fuseline.analysis.prologue_kind import Prologue
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp
from fuseline.ir.costs import ASSUMED_COSTS, MachineCosts


class Prologues:
    """The prologues of the roots of one graph."""

    def __init__(self, shapes: ShapeAnalysis) -> None:
        self.shapes = shapes
        self._known: dict[tuple[Operation, int, tuple[Operation, ...], MachineCosts, int], Prologue] = {}

    def chain(self, root: StructuredOp, position: int, members: Collection[Operation]) -> tuple[Operation, ...]:
        """The ops that make input `position` of `root`, back to what is stored if `members` are not."""
        return tuple(producers_of(root.inputs[position], members))

    def through(
        self,
        root: StructuredOp,
        position: int,
        chain: tuple[Operation, ...],
        costs: MachineCosts = ASSUMED_COSTS,
        threads: int = 1,
    ) -> Prologue:
        """How `root` would read the input through `chain`, all of what `chain()` answered; `costs` of the machine,
        `threads` that share the work."""
        key = root.op, position, chain, costs, threads
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = prologue(root, position, frozenset(chain), self.shapes, costs, threads=threads)
        return found
