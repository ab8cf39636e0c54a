"""A structured op as the interpreter takes it: arrays, maps, loops and body, and which ops of the body a value
needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.evaluation.access import from_loops, loop_indices, loop_sizes, loop_view
from fuseline.evaluation.program import Array, Scope


@dataclass
class Nest:
    """A structured op with its operands at hand: everything is indexed by loops."""

    op: Operation
    block: Block
    maps: list[AffineMap]
    sizes: list[int]
    reductions: list[int]
    outputs: list[Array]
    scope: Scope

    @property
    def rank(self) -> int:
        """The number of loops."""
        return len(self.sizes)

    @property
    def accumulators(self) -> Sequence[SSAValue]:
        """The body's arguments that stand for output elements."""
        return self.block.args[len(self.maps) - len(self.outputs) :]

    @property
    def yielded(self) -> Sequence[SSAValue]:
        """What the body yields, one value per output."""
        assert self.block.last_op is not None
        return self.block.last_op.operands

    def full_rank(self, value: Array) -> Array:
        """A body value with one dimension per loop (a scalar gets extent 1 everywhere)."""
        value = np.asarray(value)
        return value if value.ndim == self.rank else value.reshape((1,) * self.rank)

    def output_view(self, k: int) -> Array:
        """The initial elements of output k, indexed by loops."""
        return loop_view(self.outputs[k], self.maps[len(self.maps) - len(self.outputs) + k], self.sizes)

    def stored(self, k: int, value: Array) -> Array:
        """Output k with `value` (over the loops) in it."""
        return from_loops(
            self.full_rank(value), self.maps[len(self.maps) - len(self.outputs) + k], self.sizes, self.outputs[k]
        )


def nest_of(
    op: Operation,
    block: Block,
    maps: list[AffineMap],
    kinds: Sequence[IteratorType],
    operands: Sequence[SSAValue],
    outputs: int,
    scope: Scope,
) -> Nest:
    """The nest of an op that is given in parts; raises ValueError (OutOfBounds) where maps and operands disagree."""
    arrays = [np.asarray(scope[operand]) for operand in operands]
    sizes = loop_sizes(maps, [array.shape for array in arrays], len(kinds))
    inner = Scope(scope.program, scope, loop_indices(sizes))
    inputs = len(arrays) - outputs
    views = [loop_view(array, map_, sizes) for array, map_ in zip(arrays[:inputs], maps[:inputs], strict=True)]
    inner.bind(block.args[:inputs], views)
    reductions = [d for d, kind in enumerate(kinds) if kind is not IteratorType.PARALLEL]
    return Nest(op, block, maps, sizes, reductions, arrays[inputs:], inner)


def needed_ops(block: Block, values: Iterable[SSAValue]) -> list[Operation]:
    """The ops of a body that `values` depend on, in order."""
    wanted = set(values)
    kept: list[Operation] = []
    for op in reversed(list(block.ops)):
        if any(result in wanted for result in op.results):
            kept.append(op)
            for nested in op.walk():
                wanted.update(nested.operands)
    return kept[::-1]
