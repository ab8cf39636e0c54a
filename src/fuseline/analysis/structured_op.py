"""A `linalg.generic` as a value: loops with their kinds and extents, operands with their maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard, cast

from xdsl.dialects import linalg
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import body_of, operands_of
from fuseline.ir.fast.identity import by_identity

_ITERATORS = {kind: str(kind.value) for kind in linalg.attrs.IteratorType}


@by_identity
def maps_in(attribute: Attribute) -> tuple[AffineMap, ...]:
    """The map of every operand in the `indexing_maps` of a structured op."""
    return tuple([entry.data for entry in cast(ArrayAttr[AffineMapAttr], attribute).data])


@by_identity
def iterators_in(attribute: Attribute) -> tuple[str, ...]:
    """The kind of every loop in the `iterator_types` of a structured op."""
    return tuple([_ITERATORS[entry.data] for entry in cast(ArrayAttr[linalg.attrs.IteratorTypeAttr], attribute).data])


class StructuredOp:
    """A view of a `linalg.generic` (on tensors): loops, iterator kinds and the map of each operand (inputs, then
    outputs).

    `input_maps[i]` takes the loops to the coordinates of `inputs[i]`; maps of results are `output_maps`. Make a new
    view after a rewrite.
    """

    __slots__ = ("_extents", "input_count", "iterators", "maps", "op")

    def __init__(self, op: linalg.ops.GenericOp) -> None:
        self.op = op
        self.maps: tuple[AffineMap, ...] = maps_in(op.properties["indexing_maps"])
        """All operand maps in operand order."""
        self.iterators: tuple[str, ...] = iterators_in(op.properties["iterator_types"])
        """`"parallel"` or `"reduction"` per loop."""
        self.input_count = len(self.maps) - (len(op.results) or len(op.outputs))
        """How many of the operands are read."""
        self._extents: tuple[ShapeAnalysis, tuple[Dim, ...]] | None = None

    @property
    def rank(self) -> int:
        """How many loops there are."""
        return len(self.iterators)

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """The tensors that are read."""
        return self.operands[: self.input_count]

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        """The tensors that results start from (inits)."""
        return self.operands[self.input_count :]

    @property
    def operands(self) -> tuple[SSAValue, ...]:
        """The inputs, then the outputs."""
        return tuple(operands_of(self.op))

    @property
    def input_maps(self) -> tuple[AffineMap, ...]:
        """Maps of the inputs."""
        return self.maps[: self.input_count]

    @property
    def output_maps(self) -> tuple[AffineMap, ...]:
        """Maps of the results."""
        return self.maps[self.input_count :]

    @property
    def parallel(self) -> tuple[int, ...]:
        """The parallel loops, in order."""
        return tuple([i for i, kind in enumerate(self.iterators) if kind == "parallel"])

    @property
    def reduction(self) -> tuple[int, ...]:
        """The reduction loops, in order."""
        return tuple([i for i, kind in enumerate(self.iterators) if kind == "reduction"])

    @property
    def body(self) -> Block:
        """The scalar computation; one argument per operand."""
        return body_of(self.op)

    def loops(self, shapes: ShapeAnalysis) -> tuple[Dim, ...]:
        """The extent of every loop, read off the first operand that spells it as a plain dimension; of a reduction, off
        the first one that spells it as a number, where one does. Raises ValueError if none does."""
        if self._extents is None or self._extents[0] is not shapes:
            self._extents = shapes, self._spelled(shapes)
        return self._extents[1]

    def _spelled(self, shapes: ShapeAnalysis) -> tuple[Dim, ...]:
        found = extents_of(self.maps, [shapes.dims(value) for value in operands_of(self.op)], self.rank)
        if None in found:
            raise ValueError(f"loop {found.index(None)} of {self.op.name} has no extent")
        for loop in self.reduction:
            if not isinstance(found[loop], int):
                found[loop] = next(self._numbers(shapes, loop), found[loop])
        return tuple([size for size in found if size is not None])

    def _numbers(self, shapes: ShapeAnalysis, loop: int) -> Iterator[int]:
        """The numbers that operands spell a loop with: where another one says a symbol, the program requires that they
        are equal."""
        for map_, value in zip(self.maps, operands_of(self.op), strict=True):
            for expr, size in zip(map_.results, shapes.dims(value), strict=True):
                if type(expr) is AffineDimExpr and expr.position == loop and isinstance(size, int):
                    yield size


def extents_of(maps: Sequence[AffineMap], sizes: Sequence[Sequence[Dim]], rank: int) -> list[Dim | None]:
    """The extent of each of `rank` loops, read off the first operand (of `sizes`, read through `maps`) that spells it;
    None where none does."""
    found: list[Dim | None] = [None] * rank
    for map_, dims in zip(maps, sizes, strict=True):
        for expr, size in zip(map_.results, dims, strict=True):
            if type(expr) is AffineDimExpr and found[expr.position] is None:
                found[expr.position] = size
    return found


def input_count(op: linalg.ops.GenericOp) -> int:
    """How many operands of `op` are inputs: on tensors every other one has a result."""
    results = len(op.results)
    return len(operands_of(op)) - results if results else len(op.inputs)


def is_generic(op: Operation | Any) -> TypeGuard[linalg.ops.GenericOp]:
    """Whether `op` is a `linalg.generic`."""
    return (
        type(op) is linalg.ops.GenericOp
    )  # no class derives from it, and xDSL's classes are slow to ask about derivation
