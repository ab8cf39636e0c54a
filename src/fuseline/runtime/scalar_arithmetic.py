"""What code of a host step (`fuseline.scalar_code`) computes: integers of 1 to 64 bits, as kernels compute them, and
floats (`float_arithmetic.py`).

Numbers are kept with a sign, truth as -1; operations that have none take the bits. Where kernels define what MLIR
leaves open, this does the same: what is divided by 0 is itself, with a remainder of 0, and so is the lowest number
divided by -1; a shift by the width or more makes 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fuseline.runtime.float_arithmetic import FLOAT_MAKERS, of_bits
from fuseline.scalar_code import DTYPES, LEAVES, Computed, ScalarCode, ScalarOp, as_signed

Rule: TypeAlias = Callable[[int, int, int], int]
"""The result for as many numbers as the operation has operands; the rest repeats the first."""

Maker: TypeAlias = Callable[[int, int], Rule]
"""The rule for the bits of the first operand and those of the result."""


def operands_of(code: ScalarCode, inputs: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
    """The operands of a host operator: those of `inputs` (arrays, where code reads them) that it gets, and what `code`
    computes of them and of `sizes`."""
    prepared = _prepared(code)
    numbers = prepared.numbers(inputs, sizes)
    return [inputs[one] if isinstance(one, int) else one.array(numbers) for one in prepared.operands]


class _Room(NamedTuple):
    """What a computed operand is stored as: `signed` is its dtype with a sign, which its numbers have."""

    signed: np.dtype[Any]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    elements: tuple[int, ...]

    def array(self, numbers: Sequence[Any]) -> Any:
        signed, dtype, shape, elements = self
        if not shape:
            array = np.array(numbers[elements[0]], signed)
        else:
            array = np.array([numbers[i] for i in elements], signed).reshape(shape)
        return array if dtype is signed else array != 0 if dtype.kind == "b" else array.view(dtype)


def _room(operand: Computed) -> _Room:
    signed = np.dtype(f"int{max(DTYPES[operand.dtype], 8)}")
    return _Room(signed, np.dtype(operand.dtype), operand.shape, operand.elements)


class _Prepared:
    """Code as it is run: leaves first, the numbers among them once and for all."""

    def __init__(self, code: ScalarCode) -> None:
        self.code = code
        self.operands = [operand if isinstance(operand, int) else _room(operand) for operand in code.operands]
        ops = list(enumerate(code.ops))
        self._known = [_constant(op) for op in code.ops]
        self._elements = [(i, *op.operands, _half(op.bits)) for i, op in ops if op.name == "element"]
        self._floats = [(i, *op.operands) for i, op in ops if op.name == "elementf"]
        self._sizes = [(i, *op.operands, _half(op.bits)) for i, op in ops if op.name == "size"]
        self._steps = [_step(i, op, code) for i, op in ops if op.name not in LEAVES]

    def numbers(self, inputs: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """The result of each operation."""
        found = self._known.copy()
        for number, which, position, half in self._elements:
            found[number] = ((inputs[which].item(position) + half) & (2 * half - 1)) - half
        for number, which, position in self._floats:
            found[number] = inputs[which].item(position)
        for number, which, half in self._sizes:
            found[number] = ((sizes[which] + half) & (2 * half - 1)) - half
        for number, rule, a, b, c in self._steps:
            found[number] = rule(found[a], found[b], found[c])
        return found


_MOST_PREPARED = 256
_by_identity: dict[int, _Prepared] = {}


def _prepared(code: ScalarCode) -> _Prepared:
    """`code` prepared, or as it was the last time: told by identity, since hashing it takes longer than running it."""
    found = _by_identity.get(id(code))
    if found is None or found.code is not code:
        if len(_by_identity) >= _MOST_PREPARED:
            _by_identity.clear()
        found = _by_identity[id(code)] = _Prepared(code)
    return found


def _constant(op: ScalarOp) -> Any:
    """The number that an operation is from the beginning; 0 where the run knows it."""
    if op.name == "constantf":
        return of_bits(op.operands[0], op.bits)
    return as_signed(op.operands[0], op.bits) if op.name == "constant" else 0


def _step(number: int, op: ScalarOp, code: ScalarCode) -> tuple[int, Rule, int, int, int]:
    """Operation `number` of `code`: that, its rule, and the numbers of its operands."""
    a, b, c = (*op.operands, *op.operands[:1] * 2)[:3]
    return number, _MAKERS[op.name](code.ops[a].bits, op.bits), a, b, c


def _half(bits: int) -> int:
    return 1 << (bits - 1)


# rules ----------------------------------------------------------------------------------------------------------------


def _always(rule: Rule) -> Maker:
    """Results that cannot leave their type."""
    return lambda given, bits: rule


def _wrapping(function: Callable[[int, int], int]) -> Maker:
    """Results of which only the low bits stay."""

    def made(given: int, bits: int) -> Rule:
        half, mask = _half(bits), (1 << bits) - 1
        return lambda a, b, c: ((function(a, b) + half) & mask) - half

    return made


def _without_signs(function: Callable[[int, int], int]) -> Maker:
    """Of the bits of two numbers."""

    def made(given: int, bits: int) -> Rule:
        mask, half, kept = (1 << given) - 1, _half(bits), (1 << bits) - 1
        return lambda a, b, c: ((function(a & mask, b & mask) + half) & kept) - half

    return made


def _divided(function: Callable[[int, int], int]) -> Maker:
    """A division of signed numbers, by 1 where there is no quotient."""

    def made(given: int, bits: int) -> Rule:
        lowest = -_half(given)
        return lambda a, b, c: function(a, 1 if b == 0 or (b == -1 and a == lowest) else b)

    return made


def _quotient(a: int, b: int) -> int:
    """Rounded toward 0."""
    return -(-a // b) if (a < 0) != (b < 0) else a // b


def _shift(function: Callable[[int, int], int], *, signed: bool = False) -> Maker:
    def made(given: int, bits: int) -> Rule:
        mask = (1 << given) - 1
        return lambda a, b, c: as_signed(function(a if signed else a & mask, b), bits) if 0 <= b < given else 0

    return made


def _power(given: int, bits: int) -> Rule:
    """A negative exponent makes the quotient 1 / a ** -b, rounded toward 0; of 0, which has none, 0."""

    def rule(a: int, b: int, c: int) -> int:
        if b >= 0:
            return as_signed(pow(a, b, 1 << bits), bits)
        return (a if b % 2 else 1) if a in (1, -1) else 0

    return rule


def _counted(count: Callable[[int, int], int]) -> Maker:
    """A number of bits."""
    return lambda given, bits: lambda a, b, c: as_signed(count(a & ((1 << given) - 1), given), bits)


_MAKERS: dict[str, Maker] = {
    **FLOAT_MAKERS,
    "addi": _wrapping(lambda a, b: a + b),
    "subi": _wrapping(lambda a, b: a - b),
    "muli": _wrapping(lambda a, b: a * b),
    "andi": _always(lambda a, b, c: a & b),
    "ori": _always(lambda a, b, c: a | b),
    "xori": _always(lambda a, b, c: a ^ b),
    "divsi": _divided(_quotient),
    "remsi": _divided(lambda a, b: a - b * _quotient(a, b)),
    "floordivsi": _divided(lambda a, b: a // b),
    "ceildivsi": _divided(lambda a, b: -(-a // b)),
    "divui": _without_signs(lambda a, b: a // (b or 1)),
    "remui": _without_signs(lambda a, b: a % (b or 1)),
    "ceildivui": _without_signs(lambda a, b: -(-a // (b or 1))),
    "shli": _shift(lambda a, b: a << b),
    "shrui": _shift(lambda a, b: a >> b),
    "shrsi": _shift(lambda a, b: a >> b, signed=True),
    "maxsi": _always(lambda a, b, c: a if a > b else b),
    "minsi": _always(lambda a, b, c: a if a < b else b),
    "maxui": _without_signs(max),
    "minui": _without_signs(min),
    "ipowi": _power,
    "select": _always(lambda a, b, c: b if a else c),
    "eq": _always(lambda a, b, c: -(a == b)),
    "ne": _always(lambda a, b, c: -(a != b)),
    "slt": _always(lambda a, b, c: -(a < b)),
    "sle": _always(lambda a, b, c: -(a <= b)),
    "sgt": _always(lambda a, b, c: -(a > b)),
    "sge": _always(lambda a, b, c: -(a >= b)),
    "ult": _without_signs(lambda a, b: a < b),
    "ule": _without_signs(lambda a, b: a <= b),
    "ugt": _without_signs(lambda a, b: a > b),
    "uge": _without_signs(lambda a, b: a >= b),
    "extsi": _wrapping(lambda a, b: a),
    "index_cast": _wrapping(lambda a, b: a),
    "trunci": _wrapping(lambda a, b: a),
    "bitcast": _wrapping(lambda a, b: a),
    "extui": _without_signs(lambda a, b: a),
    "index_castui": _without_signs(lambda a, b: a),
    "absi": _wrapping(lambda a, b: abs(a)),
    "ctlz": _counted(lambda a, bits: bits - a.bit_length()),
    "cttz": _counted(lambda a, bits: (a & -a).bit_length() - 1 if a else bits),
    "ctpop": _counted(lambda a, bits: a.bit_count()),
}
