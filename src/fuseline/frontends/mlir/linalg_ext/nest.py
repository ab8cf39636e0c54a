"""Structured ops over loops that are counted through: each operand says which loops its dimensions are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import linalg
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.ir.build import PARALLEL, REDUCTION, Body, Emitter, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_empty
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.linalg_ext import ExtYieldOp

Placed = tuple[SSAValue, Sequence[int]]
"""A tensor and the loops that are its dimensions."""

Scalars = Callable[[Body], Sequence[SSAValue]]


class Nest:
    """Writes structured ops in place of `op`; `sized` are tensors whose dimensions say how long the loops are."""

    def __init__(self, op: Operation, sized: Sequence[Placed]) -> None:
        self.emit, self._sized = Emitter.before(op), list(sized)

    def also(self, value: SSAValue, loops: Sequence[int]) -> Placed:
        """`value`, whose dimensions say how long further loops are."""
        self._sized.append((value, loops))
        return value, loops

    def _position(self, loop: int) -> tuple[SSAValue, int]:
        found = [(value, loops.index(loop)) for value, loops in self._sized if loop in loops]
        return next(((value, axis) for value, axis in found if shape_of(value)[axis] != DYNAMIC_INDEX), found[0])

    def size(self, loop: int) -> SSAValue:
        """How long a loop is, as an index value."""
        return self.emit.dim(*self._position(loop))

    def sizes(self, loops: Sequence[int]) -> list[int]:
        """How long loops are, as types say it."""
        return [shape_of(value)[axis] for value, axis in map(self._position, loops)]

    def empty(self, loops: Sequence[int], element: Attribute) -> SSAValue:
        """An empty tensor over `loops`."""
        known = self.sizes(loops)
        dynamic = [self.size(loop) for loop, size in zip(loops, known, strict=True) if size == DYNAMIC_INDEX]
        return self.emit.add(create_empty(attributes.tensor_type(element, tuple(known)), dynamic)).tensor

    def each(
        self, inputs: Sequence[Placed], loops: Sequence[int], element: Attribute, body: Callable[[Body], SSAValue]
    ) -> SSAValue:
        """One element per iteration of `loops`."""
        return self.fold(inputs, [(self.empty(loops, element), loops)], loops, [], lambda b: [body(b)])[0]

    def fold(
        self,
        inputs: Sequence[Placed],
        inits: Sequence[Placed],
        kept: Sequence[int],
        folded: Sequence[int],
        body: Scalars,
    ) -> list[SSAValue]:
        """`inits` (over `kept`) with all iterations of `folded` taken in, in order; the body counts loops as they stand
        in `kept`, then `folded`."""
        loops = [*kept, *folded]
        maps = [
            AffineMap(len(loops), 0, tuple(AffineExpr.dimension(loops.index(loop)) for loop in read))
            for _, read in (*inputs, *inits)
        ]
        kinds = [PARALLEL] * len(kept) + [REDUCTION] * len(folded)
        return list(
            self.emit.generic([value for value, _ in inputs], [value for value, _ in inits], maps, kinds, body).results
        )

    def filled(self, loops: Sequence[int], element: Attribute, value: int) -> SSAValue:
        """One number everywhere."""
        return self.emit.fill(value, self.empty(loops, element))


def loop(b: Body, number: int) -> SSAValue:
    """The counter of a loop."""
    return b.add(linalg.ops.IndexOp(number)).result


def inlined(b: Body, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """What `block` yields for `arguments`."""
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    for op in ops_of(block):
        if isinstance(op, ExtYieldOp):
            return [values.get(value, value) for value in op.values]
        b.add(op.clone(values))
    return []


def elements(values: Sequence[SSAValue]) -> list[Attribute]:
    """The element types of tensors."""
    return [element_of(value) for value in values]
