"""What quantises rounds as it becomes an integer, after it is bounded: one instruction in place of three.

    int(min(max(round(x) + z, low), high))      as      nearest(min(max(x, low - z), high - z)) + z

Bounds and offset are whole numbers, and rounding is monotone, so that both are the same. A NaN becomes the bound that
it meets first either way. Where kernels are shared, offsets are operands, and added before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f32, i32
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.stored_integers import constant_of
from fuseline.analysis.structured import body_ops, is_generic
from fuseline.ir.fast.direct import operand_of, operands_of, users_of_value
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value

MOST = 1 << 20
"""Bounds further from 0 than this are not looked at: up to here floats and their sums are exact."""

Rules = Mapping[Operation, partial[Value]]


def rounding_rules(ops: Iterable[Operation]) -> Rules:
    """How the ops are computed that round, bound and convert, by op."""
    inside = (inner for op in ops if is_generic(op) for inner in body_ops(op))
    ends = [inner for inner in inside if type(inner) is arith.FPToSIOp and inner.results[0].type == i32]
    return {op: rule for end in ends for op, rule in _rules(end)}


def _rules(end: arith.FPToSIOp) -> Iterator[tuple[Operation, partial[Value]]]:
    """Those of one conversion; none where it does not round what is bounded."""
    bounds, value = _bounds(operand_of(end, 0))
    shift, rounded = _shifted(value)
    kinds = {type(op) for op, _, _ in bounds}
    numbers = [number for _, _, number in bounds] + ([shift[2]] if shift is not None else [])
    if kinds != {arith.MaxnumfOp, arith.MinnumfOp} or len(bounds) != len(kinds):
        return
    if rounded is None or not all(number == round(number) and abs(number) < MOST for number in numbers):
        return
    offset = shift[2] if shift is not None else 0.0
    yield rounded, partial(_operand, position=0)
    if shift is not None:
        yield shift[0], partial(_operand, position=shift[1])
    for op, position, number in bounds:
        yield op, partial(_bounded, position=position, number=number - offset, upper=type(op) is arith.MinnumfOp)
    yield end, partial(_nearest, offset=int(offset))


_Step = tuple[Operation, int, float]
"""An op, the position of the operand that is computed, and the other one, a number."""


def _bounds(value: SSAValue) -> tuple[list[_Step], SSAValue]:
    """The two ops that bound `value`, the last first, and what they bound."""
    found: list[_Step] = []
    for _ in range(2):
        step = _step(value, (arith.MaxnumfOp, arith.MinnumfOp))
        if step is None:
            break
        found.append(step)
        value = operand_of(step[0], step[1])
    return found, value


def _shifted(value: SSAValue) -> tuple[_Step | None, Operation | None]:
    """The sum with a number that `value` is, if it is one, and the op that rounds before."""
    shift = _step(value, (arith.AddfOp,))
    value = operand_of(shift[0], shift[1]) if shift is not None else value
    return shift, value.op if type(value) is OpResult and _is_alone(value, math.RoundEvenOp) else None


def _step(value: SSAValue, kinds: tuple[type[Operation], ...]) -> _Step | None:
    if type(value) is not OpResult or not _is_alone(value, *kinds):
        return None
    numbers = [constant_of(operand) for operand in operands_of(value.op)]
    known = [i for i, number in enumerate(numbers) if isinstance(number, FloatAttr)]
    number = numbers[known[0]] if len(known) == 1 else None
    return (value.op, 1 - known[0], float(number.value.data)) if isinstance(number, FloatAttr) else None


def _is_alone(value: OpResult, *kinds: type[Operation]) -> bool:
    """Whether an op of these kinds makes `value`, a number of f32, for one reader."""
    return type(value.op) in kinds and value.type == f32 and len(users_of_value(value)) == 1


# the ops --------------------------------------------------------------------------------------------------------------


def _operand(_: KernelBuilder, *operands: Value, position: int) -> Value:
    return operands[position]


def _bounded(k: KernelBuilder, *operands: Value, position: int, number: float, upper: bool) -> Value:
    """As the op does it: the number where what is bounded is NaN."""
    value = operands[position]
    bound = k.const(number, *value.type)
    return k.min(value, bound) if upper else k.max(value, bound)


def _nearest(k: KernelBuilder, value: Value, *, offset: int) -> Value:
    found = k.nearest(value)
    return k.add(found, k.const(offset, *found.type)) if offset else found
