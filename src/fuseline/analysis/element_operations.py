"""What it takes to evaluate an element through the ops that make it: where a concat is among them, only the part that
holds the element is evaluated, and what a body picks by indices as often as it picks.

    [cos(a), b * s + t]            2 parts of one length: half of the operations of each
    y[i] = t[k[i]] + t[l[i]]       1 operation, and twice those that make an element of t
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.cost import operations
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import body_ops, is_generic
from fuseline.ir.costs import assumed_size

FINDING = 5
"""Operations that it takes to find an element where a vector is evaluated by itself: an index, an address, a load. A
dispatch that interpolates pixels walks along them, and finds each once. Measured with AVX2, 1 and 2 threads, time of a
convolution that evaluates the last step of a linear resize to that of two dispatches: 40x40 pixels of 72 channels 1.10
to 1.15, 56x56 of 16 1.14 to 1.16, 28x28 of 32 .96 and .97, 14x14 of 128 in windows of 5x5 .93 to .96; of a cubic one
1.09 and 1.11; of both steps of a linear one 1.04 to 1.8."""


def operations_of_element(value: SSAValue, chain: Sequence[Operation], shapes: ShapeAnalysis, lanes: int) -> float:
    """Arithmetic operations of one evaluation of an element of `value` by `chain`, the ops that make it: of an op in
    parts of concats as many as they have of the elements, and where it is picked once per place. Vectors have `lanes`
    elements, of which the last of a row are evaluated as well.

    Example: an operation on a third of the elements and one on all of them are 1 1/3.
    """
    if not any(isinstance(op, tensor.ConcatOp) or _picked(op) for op in chain):
        return sum(operations(op) for op in chain)
    return sum(share * (operations(op) + _finding(op)) for op, share in _shares(value, chain, shapes, lanes))


def _finding(op: Operation) -> int:
    """What it takes to find all that a body picks but one element, which is a load like any other's."""
    return FINDING * max(0, sum(_picked(op).values()) - 1)


def _shares(
    value: SSAValue, chain: Sequence[Operation], shapes: ShapeAnalysis, lanes: int
) -> Iterator[tuple[Operation, float]]:
    """How often each op of the chain is evaluated for an element, those that read it before it: of how many of the
    elements, at each of the places where they read it."""
    inside = set(chain)
    waiting = Counter(read.value.op for op in chain for read in _reads(op) if isinstance(read.value, OpResult))
    shares, places = defaultdict[Operation, float](float), defaultdict[Operation, _Places](_Places)
    ready = [value.op] if isinstance(value, OpResult) and value.op in inside else []
    shares.update((op, 1.0) for op in ready)
    places.update((op, _Places(1)) for op in ready)
    while ready:
        op = ready.pop()
        most = places[op].most
        share = min(float(most), shares[op])
        yield op, share
        for number, read in enumerate(_reads(op)):
            made = read.value.owner
            if isinstance(made, Operation) and made in inside:
                shares[made] += share * (read.picked or _part(op, number, shapes, lanes))
                places[made] = places[made].read(most, read.picked)
                waiting[made] -= 1
                ready += [made] * (waiting[made] == 0)


@dataclass(frozen=True, slots=True)
class _Places:
    """At how many places an op is read for an element: `own` by those that read it where they are evaluated themselves,
    all of them at the same ones, `picked` by bodies that pick its elements."""

    own: int = 0
    picked: int = 0

    @property
    def most(self) -> int:
        return self.own + self.picked

    def read(self, count: int, picked: int) -> _Places:
        """With a reader at so many places, that picks so many elements if any."""
        own = self.own if picked else max(self.own, count)
        return _Places(own, self.picked + count * picked)


@dataclass(frozen=True, slots=True)
class _Read:
    """A tensor that an op reads, and how many elements its body picks of it; 0 where it is an operand."""

    value: SSAValue
    picked: int = 0


def _reads(op: Operation) -> list[_Read]:
    """The tensors that an op reads, operands first."""
    operands = [_Read(operand) for operand in op.operands if isinstance(operand.type, TensorType)]
    return operands + [_Read(value, picks) for value, picks in _picked(op).items()]


def _picked(op: Operation) -> Mapping[SSAValue, int]:
    """The tensors that the body of an op picks elements of, and how many of each."""
    inner = body_ops(op) if is_generic(op) else ()
    return Counter(one.tensor for one in inner if isinstance(one, tensor.ExtractOp))


def _part(op: Operation, number: int, shapes: ShapeAnalysis, lanes: int) -> float:
    """At how many of an op's points it evaluates what it reads as operand `number`."""
    if not isinstance(op, tensor.ConcatOp):
        return 1.0
    axis = op.dim.value.data
    whole, mine = (assumed_size(shapes.dims(one)[axis]) for one in (op.result, op.inputs[number]))
    along_lanes = axis == len(shapes.dims(op.result)) - 1
    return min(1.0, (-(-mine // lanes) * lanes if along_lanes else mine) / max(whole, 1))
