"""What independent parts of a dispatch have in common: arguments that several of them walk, so that one walk may serve
all.

    %a = relu(%x); %b = sigmoid(%x)         the loops of both follow %x: one grid, and each element of %x is read once
    %a = relu(%x); %b = sum of its rows     the sum is gathered on the way along the row

Within a part an argument joins nothing: softmax reads its rows twice, and the second walk begins when the first has
ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, OpResult
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.moves import plain_pairs
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic, splat_value, tensor_operands

Node = tuple[Any, int]
Links = list[tuple[Node, Node]]


def sibling_links(
    arguments: Sequence[BlockArgument], ops: Sequence[Operation], shapes: ShapeAnalysis
) -> Iterator[Links]:
    """For each argument that several parts walk: its dimensions, each with the loop or result dimension that steps
    along it."""
    parts = _parts(ops)
    for argument in (one for one in arguments if isinstance(one.type, TensorType)):
        readers = [op for op in ops if argument in op.operands]
        if len({parts(op) for op in readers}) > 1:
            yield [link for op in readers for link in _steps(op, argument, shapes)]


def _parts(ops: Sequence[Operation]) -> Callable[[Operation], Operation]:
    """The representative of the ops that an op hangs together with through values made inside."""
    parent: dict[Operation, Operation] = {}

    def root(op: Operation) -> Operation:
        while (above := parent.get(op, op)) is not op:
            op = above
        return op

    known = set(ops)
    for op in ops:
        for value in tensor_operands(op):
            if (
                isinstance(value, OpResult)
                and value.op in known
                and splat_value(value) is None
                and tensor_operands(value.op)
            ):
                parent[root(value.op)] = root(op)
    return root


def _steps(op: Operation, argument: BlockArgument, shapes: ShapeAnalysis) -> Iterator[tuple[Node, Node]]:
    if not is_generic(op):
        yield from (
            ((argument, axis), (op.results[0], made))
            for source, axis, made in plain_pairs(op, shapes)
            if source is argument
        )
        return
    structured = StructuredOp(op)
    for value, map_ in zip(structured.inputs, structured.input_maps, strict=True):
        for axis, expr in enumerate(map_.results) if value is argument else ():
            if isinstance(expr, AffineDimExpr):
                yield (argument, axis), (op, expr.position)
