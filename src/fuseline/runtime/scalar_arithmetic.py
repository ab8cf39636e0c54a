"""What code of a host step (`fuseline.scalar_code`) computes: integers of 1 to 64 bits, as kernels compute them.

Numbers are kept as bits without a sign; those of an operation that has one are read as signed. Where kernels define
what MLIR leaves open, this does the same: what is divided by 0 is itself, with a remainder of 0, and so is the lowest
number divided by -1; a shift by the width or more makes 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fuseline.scalar_code import DTYPES, Computed, ScalarCode

Binary: TypeAlias = Callable[[int, int, int], int]
"""The result for two numbers and their bits; what lies beyond the bits of the result is dropped."""


def operands_of(code: ScalarCode, inputs: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
    """The operands of a host operator: those of `inputs` that it gets, and what `code` computes of them and of
    `sizes`."""
    numbers = _numbers(code, inputs, sizes)
    return [inputs[operand] if isinstance(operand, int) else _array(operand, numbers) for operand in code.operands]


def _array(operand: Computed, numbers: Sequence[int]) -> Any:
    values = np.array([numbers[i] for i in operand.elements], f"uint{max(DTYPES[operand.dtype], 8)}")
    return values.view(operand.dtype).reshape(operand.shape)


def _numbers(code: ScalarCode, inputs: Sequence[Any], sizes: Sequence[int]) -> list[int]:
    """The bits of each operation's result."""
    found: list[int] = []
    for name, bits, operands in code.ops:
        if name == "constant":
            value = operands[0]
        elif name == "element":
            value = int(np.asarray(inputs[operands[0]]).reshape(-1)[operands[1]])
        elif name == "size":
            value = int(sizes[operands[0]])
        else:
            value = _result(name, [found[i] for i in operands], code.ops[operands[0]].bits)
        found.append(value & ((1 << bits) - 1))
    return found


def _result(name: str, values: Sequence[int], bits: int) -> int:
    """An operation on `values`, the first of them of `bits`."""
    if name == "select":
        return values[1] if values[0] else values[2]
    if name in _ON_ONE:
        return _ON_ONE[name](values[0], bits)
    return _ON_TWO[name](values[0], values[1], bits)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


# two numbers ----------------------------------------------------------------------------------------------------------


def _with_signs(function: Callable[[int, int], int]) -> Binary:
    return lambda a, b, bits: function(_signed(a, bits), _signed(b, bits))


def _divided(function: Callable[[int, int], int], *, signed: bool) -> Binary:
    """A division by 1 where there is no quotient."""

    def rule(a: int, b: int, bits: int) -> int:
        if signed:
            a, b = _signed(a, bits), _signed(b, bits)
        overflows = signed and b == -1 and a == -(1 << (bits - 1))
        return function(a, 1 if b == 0 or overflows else b)

    return rule


def _quotient(a: int, b: int) -> int:
    """Rounded toward 0."""
    return -(-a // b) if (a < 0) != (b < 0) else a // b


def _shift(function: Callable[[int, int], int], *, signed: bool = False) -> Binary:
    return lambda a, b, bits: function(_signed(a, bits) if signed else a, b) if b < bits else 0


def _power(a: int, b: int, bits: int) -> int:
    """A negative exponent makes the quotient 1 / a ** -b, rounded toward 0; of 0, which has none, 0."""
    base, exponent = _signed(a, bits), _signed(b, bits)
    if exponent >= 0:
        return pow(base, exponent, 1 << bits)
    return (base if exponent % 2 else 1) if base in (1, -1) else 0


_ON_TWO: dict[str, Binary] = {
    "addi": lambda a, b, bits: a + b,
    "subi": lambda a, b, bits: a - b,
    "muli": lambda a, b, bits: a * b,
    "andi": lambda a, b, bits: a & b,
    "ori": lambda a, b, bits: a | b,
    "xori": lambda a, b, bits: a ^ b,
    "divsi": _divided(_quotient, signed=True),
    "remsi": _divided(lambda a, b: a - b * _quotient(a, b), signed=True),
    "floordivsi": _divided(lambda a, b: a // b, signed=True),
    "ceildivsi": _divided(lambda a, b: -(-a // b), signed=True),
    "divui": _divided(lambda a, b: a // b, signed=False),
    "remui": _divided(lambda a, b: a % b, signed=False),
    "ceildivui": _divided(lambda a, b: -(-a // b), signed=False),
    "shli": _shift(lambda a, b: a << b),
    "shrui": _shift(lambda a, b: a >> b),
    "shrsi": _shift(lambda a, b: a >> b, signed=True),
    "maxsi": _with_signs(max),
    "minsi": _with_signs(min),
    "maxui": lambda a, b, bits: max(a, b),
    "minui": lambda a, b, bits: min(a, b),
    "ipowi": _power,
    "eq": lambda a, b, bits: a == b,
    "ne": lambda a, b, bits: a != b,
    "slt": _with_signs(lambda a, b: a < b),
    "sle": _with_signs(lambda a, b: a <= b),
    "sgt": _with_signs(lambda a, b: a > b),
    "sge": _with_signs(lambda a, b: a >= b),
    "ult": lambda a, b, bits: a < b,
    "ule": lambda a, b, bits: a <= b,
    "ugt": lambda a, b, bits: a > b,
    "uge": lambda a, b, bits: a >= b,
}

# one number -----------------------------------------------------------------------------------------------------------


def _same(a: int, bits: int) -> int:
    """Bits that are added are 0."""
    del bits
    return a


_ON_ONE: dict[str, Callable[[int, int], int]] = {
    "extsi": _signed,
    "index_cast": _signed,
    "extui": _same,
    "index_castui": _same,
    "trunci": _same,
    "bitcast": _same,
    "absi": lambda a, bits: abs(_signed(a, bits)),
    "ctlz": lambda a, bits: bits - a.bit_length(),
    "cttz": lambda a, bits: (a & -a).bit_length() - 1 if a else bits,
    "ctpop": lambda a, bits: a.bit_count(),
}
