"""The loop classes of a body by op and by value, as `fuseline.loops` numbers them: what code generation names loops
by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.moves import MOVES, affine_sources
from fuseline.analysis.operand_reads import operand_reads
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.dispatch.fused_loops import FusedLoops, members_of
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir.dim import Dim


class BodyClasses:
    """The classes of a body of one arm: `of_op(op)[i]` is that of a loop, `of_value(v)[i]` that of the loops that step
    along a dimension (None for size 1, whose coordinate is 0). `extents` are those of the classes asked for.

    A dimension that no member's loop steps along is a class of its own.
    """

    def __init__(self, loops: FusedLoops, body: Block, shapes: ShapeAnalysis) -> None:
        self.shapes, self._loops = shapes, loops
        self.extents: dict[LoopRef, Dim] = {}
        self._of_value: dict[SSAValue, list[LoopRef | None]] = {}
        self._numbers = dict(zip(members_of(body), loops.classes, strict=True))

    @property
    def grid(self) -> tuple[LoopRef, ...]:
        """The classes of the grid's loops, loops of extent 1 aside."""
        at = [(classes, one.grid_loops) for classes, one in zip(self._loops.classes, self._loops.members, strict=True)]
        grid = range(len(self._loops.grids[0]))
        found = [next((c[g.index(loop)] for c, g in at if loop in g), None) for loop in grid]
        return tuple(class_ for class_ in found if class_ is not None)

    def of_op(self, op: Operation) -> list[LoopRef | None]:
        """The class of each loop of a structured op."""
        assert is_generic(op)
        sizes = StructuredOp(op).loops(self.shapes)
        return self._moving([self._of_loop(op, loop) for loop in range(len(sizes))], sizes)

    def of_value(self, value: SSAValue) -> list[LoopRef | None]:
        """The class of each dimension."""
        if value not in self._of_value:
            sizes = self.shapes.dims(value)
            known = self._of_maker(value)
            if len(known) < len(sizes):
                known = {**self._of_readers(value), **known}
            self._of_value[value] = self._moving([known.get(axis, (value, axis)) for axis in range(len(sizes))], sizes)
        return self._of_value[value]

    def _of_maker(self, value: SSAValue) -> dict[int, LoopRef]:
        """The classes of the loops that write along dimensions; for what no member makes, those of what it is moved
        from."""
        if not isinstance(value, OpResult):
            return {}
        op = value.op
        if is_generic(op):
            steps = enumerate(StructuredOp(op).output_maps[value.index].results)
            return {axis: self._of_loop(op, step.position) for axis, step in steps if isinstance(step, AffineDimExpr)}
        if self._numbers.get(op):
            return {axis: self._of_loop(op, axis) for axis in range(len(self._numbers[op]))}
        moved = [(self._of_maker(one.value), one.at) for one in affine_sources(op, self.shapes) or ()]
        return {
            step.position: known[axis]
            for known, at in reversed(moved)
            for axis, step in enumerate(at)
            if isinstance(step, AffineDimExpr) and axis in known
        }

    def _of_readers(self, value: SSAValue) -> dict[int, LoopRef]:
        """The classes of the loops that read along dimensions, where that is one."""
        found: dict[int, set[LoopRef]] = {}
        for op in {use.operation for use in value.uses}:
            if not is_generic(op) and type(op) not in MOVES:
                continue
            loops = self._loops_of(op)
            for read, at in operand_reads(op, self.shapes):
                for axis, step in enumerate(at or ()) if read is value else ():
                    if isinstance(step, AffineDimExpr) and step.position in loops:
                        found.setdefault(axis, set()).add(loops[step.position])
        return {axis: classes.pop() for axis, classes in found.items() if len(classes) == 1}

    def _loops_of(self, op: Operation) -> Mapping[int, LoopRef]:
        """The classes of the loops that an op reads over: of its own, or along its result."""
        if is_generic(op):
            return {loop: class_ for loop, class_ in enumerate(self.of_op(op)) if class_ is not None}
        return self._of_maker(op.results[0]) if self._numbers.get(op) else self._of_readers(op.results[0])

    def _of_loop(self, op: Operation, loop: int) -> LoopRef:
        numbers = self._numbers.get(op)
        number = numbers[loop] if numbers else None
        return (op, loop) if number is None else number

    def _moving(self, names: Sequence[LoopRef], sizes: Sequence[Dim]) -> list[LoopRef | None]:
        self.extents.update((name, size) for name, size in zip(names, sizes, strict=True) if size != 1)
        return [None if size == 1 else name for name, size in zip(names, sizes, strict=True)]
