"""What it takes to evaluate an element through the ops that make it, where a concat is among them: only the part that
holds the element is evaluated.

    [cos(a), b * s + t]      2 parts of one length: half of the operations of each
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from xdsl.dialects import tensor
from xdsl.ir import Block, Operation, SSAValue

from fuseline.analysis.cost import operations
from fuseline.analysis.operand_reads import operand_reads
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.costs import assumed_size


def operations_of_element(value: SSAValue, chain: Sequence[Operation], shapes: ShapeAnalysis, lanes: int) -> float:
    """Arithmetic operations of one evaluation of an element of `value` by `chain`, the ops that make it: of an op in
    parts of concats as many as they have of the elements, none more often than once. Vectors have `lanes` elements, of
    which the last of a row are evaluated as well.

    Example: an operation on a third of the elements and one on all of them are 1 1/3.
    """
    if not any(isinstance(op, tensor.ConcatOp) for op in chain):
        return sum(operations(op) for op in chain)
    return sum(share * operations(op) for op, share in _shares(value, chain, shapes, lanes))


def _shares(
    value: SSAValue, chain: Sequence[Operation], shapes: ShapeAnalysis, lanes: int
) -> Iterator[tuple[Operation, float]]:
    """Of how many of the elements each op of the chain is evaluated, those that read it before it."""
    read = {op: [made.owner for made, _ in operand_reads(op, shapes, moves=False)] for op in chain}
    waiting = Counter(made for each in read.values() for made in each)
    shares = defaultdict[Operation | Block, float](float, {value.owner: 1.0})
    ready = [op for op in chain if op is value.owner]
    while ready:
        op = ready.pop()
        share = min(1.0, shares[op])
        yield op, share
        for number, made in enumerate(read[op]):
            if isinstance(made, Operation) and made in read:
                shares[made] += share * _part(op, number, shapes, lanes)
                waiting[made] -= 1
                ready += [made] * (waiting[made] == 0)


def _part(op: Operation, number: int, shapes: ShapeAnalysis, lanes: int) -> float:
    """At how many of an op's points it evaluates what it reads as operand `number`."""
    if not isinstance(op, tensor.ConcatOp):
        return 1.0
    axis = op.dim.value.data
    whole, mine = (assumed_size(shapes.dims(one)[axis]) for one in (op.result, op.inputs[number]))
    along_lanes = axis == len(shapes.dims(op.result)) - 1
    return min(1.0, (-(-mine // lanes) * lanes if along_lanes else mine) / max(whole, 1))
