"""What it takes to evaluate an element through the ops that make it, where a concat is among them: only the part that
holds the element is evaluated.

    [cos(a), b * s + t]      2 parts of one length: half of the operations of each
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.cost import operations
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import captured_tensors
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
    inside = set(chain)
    waiting = Counter(made.op for op in chain for made in _read(op) if isinstance(made, OpResult))
    shares = defaultdict[Operation, float](float)
    ready = [value.op] if isinstance(value, OpResult) and value.op in inside else []
    shares.update((op, 1.0) for op in ready)
    while ready:
        op = ready.pop()
        share = min(1.0, shares[op])
        yield op, share
        for number, made in enumerate(_read(op)):
            if isinstance(made, OpResult) and made.op in inside:
                shares[made.op] += share * _part(op, number, shapes, lanes)
                waiting[made.op] -= 1
                ready += [made.op] * (waiting[made.op] == 0)


def _read(op: Operation) -> list[SSAValue]:
    """The tensors that an op reads."""
    read = [operand for operand in op.operands if isinstance(operand.type, TensorType)]
    return [*read, *(captured_tensors(op) if op.regions else ())]


def _part(op: Operation, number: int, shapes: ShapeAnalysis, lanes: int) -> float:
    """At how many of an op's points it evaluates what it reads as operand `number`."""
    if not isinstance(op, tensor.ConcatOp):
        return 1.0
    axis = op.dim.value.data
    whole, mine = (assumed_size(shapes.dims(one)[axis]) for one in (op.result, op.inputs[number]))
    along_lanes = axis == len(shapes.dims(op.result)) - 1
    return min(1.0, (-(-mine // lanes) * lanes if along_lanes else mine) / max(whole, 1))
