"""Numbers that a host step computes by itself before its operator runs: the values that the compiler's schedule and
the runtime's program share.

A size that is clamped, say, is a few operations on one number. They are code of the step that learns the size, one
operation after the other; each names those before it by number:

    0  element 0 0      bits 32       element 0 of tensor 0 that the step reads
    1  constant 9       bits 32
    2  minsi 0 1        bits 32
    3  extsi 2          bits 64
    operands: [Computed("int64", (), (3,))]

Integers are bits without a sign, as in the IR; operations read them with or without one (`maxsi`, `maxui`) and wrap
around. Floats have 32 or 64 bits; their operations have names of their own (`FLOATS`, `TO_FLOATS`), and what an
operator gets is made of integers. Named tuples, not dataclasses: the runtime imports this module, and making a
dataclass takes 1 ms of import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

Extent: TypeAlias = Any
"""A size in its schedule's or its program's form."""

WIDTHS = (1, 8, 16, 32, 64)
"""Bits that a number may have."""

FLOAT_WIDTHS = (32, 64)

MOST_ELEMENTS = 16
"""Elements of a tensor that code looks into, or whose numbers are read as sizes: twice the rank of all but odd tensors,
which is what a Pad takes."""

LEAVES = {"element": 2, "size": 1, "constant": 1, "elementf": 2, "constantf": 1}
"""What reads: an element (number of the tensor, and which element of it, row-major), a size (its number), a number.
Those with an f are floats: `constantf` has the bits of one."""

ELEMENTS = {"element": "i", "elementf": "f"}
"""The leaves that read elements, and the kind of these."""

COMPARISONS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
"""By the number of `arith.cmpi`'s predicate."""

FLOAT_COMPARISONS = tuple(
    f"{name}f" for name in "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()
)
"""By the number of `arith.cmpf`'s predicate."""

_TWO = """addi subi muli divsi divui remsi remui floordivsi ceildivsi ceildivui andi ori xori shli shrsi shrui maxsi
maxui minsi minui ipowi""".split()
_ONE = "bitcast absi ctlz cttz ctpop".split()
_CONVERSIONS = "extsi extui trunci index_cast index_castui".split()
_TWO_FLOATS = "addf subf mulf divf maximumf minimumf".split()
_ONE_FLOAT = "negf absf floor ceil trunc roundeven sqrt".split()

FLOATS = (*_TWO_FLOATS, *_ONE_FLOAT)
"""Of floats, to floats of the same bits."""

TO_FLOATS = {"sitofp": "i", "uitofp": "i", "extf": "f", "truncf": "f"}
"""Conversions to floats, of integers or floats."""

FROM_FLOATS = ("fptosi", "fptoui")

ARITY = {
    **LEAVES,
    **dict.fromkeys((*_TWO, *_TWO_FLOATS, *COMPARISONS, *FLOAT_COMPARISONS), 2),
    **dict.fromkeys((*_ONE, *_ONE_FLOAT, *_CONVERSIONS, *TO_FLOATS, *FROM_FLOATS), 1),
    "select": 3,
}
"""How many operands each operation has. Those that are no leaves are operations of `arith` and `math`, by name."""

DTYPES = {"bool": 1, **{f"{sign}int{bits}": bits for sign in ("", "u") for bits in WIDTHS[1:]}}
"""NumPy names of what operands are made of, and the bits of an element."""

TYPES = {**{name: f"i{bits}" for name, bits in DTYPES.items()}, "float32": "f32", "float64": "f64"}
"""NumPy names of what code reads, and the type of an element in it."""


class ScalarOp(NamedTuple):
    """One operation: its name, the bits of its result, and its operands: numbers of operations before it, or what
    `LEAVES` says."""

    name: str
    bits: int
    operands: tuple[int, ...]


class Computed(NamedTuple):
    """An operand that is computed: NumPy dtype name, sizes, and the number of the operation that makes each element."""

    dtype: str
    shape: tuple[int, ...]
    elements: tuple[int, ...]


class ScalarCode(NamedTuple):
    """`ops` in order, and what the operator gets: a tensor that the step reads, by number, or a computed one. `sizes`
    are those that ops read."""

    ops: tuple[ScalarOp, ...]
    operands: tuple[int | Computed, ...]
    sizes: tuple[Extent, ...] = ()


def as_signed(value: int, bits: int) -> int:
    """The number that the low `bits` of `value` are, as one with a sign."""
    half = 1 << (bits - 1)
    return ((value + half) & (2 * half - 1)) - half


def code_from_json(data: Any, size: Callable[[Any], Extent]) -> ScalarCode:
    """The code behind parsed JSON, in which a named tuple is the list of its fields; `size` reads one size. Raises
    ValueError or TypeError for what is none."""
    ops, operands, sizes = data
    read = [_op(item, number) for number, item in enumerate(ops)]
    types = types_of(read)
    for op in read:
        if op.name not in LEAVES and not _fits(op, [types[operand] for operand in op.operands]):
            raise ValueError(f"{op.name} of {op.bits} bits does not fit its operands")
    return ScalarCode(
        tuple(read), tuple([_operand(item, types) for item in operands]), tuple([size(item) for item in sizes])
    )


def types_of(ops: Sequence[ScalarOp]) -> list[str]:
    """What each operation makes, as in the IR: i64, f32."""
    types: list[str] = []
    for name, bits, operands in ops:
        is_float = types[operands[1]][0] == "f" if name == "select" else name in _MAKE_FLOATS
        types.append(f"{'f' if is_float else 'i'}{bits}")
    return types


_MAKE_FLOATS = {"elementf", "constantf", *FLOATS, *TO_FLOATS}


def _fits(op: ScalarOp, given: list[str]) -> bool:
    """Whether an operation of operands of the `given` types has results of its own."""
    name, bits, _ = op
    kinds, widths = {type_[0] for type_ in given}, [int(type_[1:]) for type_ in given]
    if name == "select":
        return given[0] == "i1" and given[1] == given[2] and widths[1] == bits
    if name in COMPARISONS or name in FLOAT_COMPARISONS:
        return bits == 1 and given[0] == given[1] and kinds == {"i" if name in COMPARISONS else "f"}
    if name in TO_FLOATS:
        wider = {"extf": widths[0] < bits, "truncf": widths[0] > bits}
        return kinds == {TO_FLOATS[name]} and wider.get(name, True)
    if name in FROM_FLOATS:
        return kinds == {"f"} and bits > 1
    return kinds == {"f" if name in FLOATS else "i"} and (name in _CONVERSIONS or set(widths) == {bits})


def check_code(code: ScalarCode, elements: Sequence[tuple[str, int] | None], sizes: int) -> None:
    """Raise ValueError where `code` reads what is not there, or floats as integers. `elements`: the type (i64, f32) and
    number of those that each tensor has that the step reads (None: not known, or no tensor); `sizes`: how many there
    are."""
    for name, bits, operands in code.ops:
        if name == "size":
            _number(operands[0], sizes)
        elif name in ELEMENTS:
            type_, count = elements[_number(operands[0], len(elements))] or ("", 0)
            if operands[1] >= count:
                raise ValueError(f"no element {operands[1]} of operand {operands[0]}")
            if type_ != f"{ELEMENTS[name]}{bits}":
                raise ValueError(f"{name} of {bits} bits reads {type_}")
    for operand in code.operands:
        if isinstance(operand, int):
            _number(operand, len(elements))


def _op(data: Any, number: int) -> ScalarOp:
    """Operation `number` of its code."""
    name, bits, operands = data
    if type(name) is not str or ARITY.get(name) != len(operands) or bits not in WIDTHS or type(bits) is not int:
        raise ValueError(f"no operation on numbers: {data!r:.60}")
    if name in _MAKE_FLOATS and bits not in FLOAT_WIDTHS:
        raise ValueError(f"no floats have {bits} bits")
    most = 1 << 63 if name in LEAVES else number
    least = -most if name in ("constant", "constantf") else 0
    return ScalarOp(name, bits, tuple([_number(operand, most, least) for operand in operands]))


def _operand(data: Any, types: Sequence[str]) -> int | Computed:
    """What an operator gets of code whose operations have results of these `types`."""
    if type(data) is int:
        return _number(data, 1 << 31)
    dtype, shape, elements = data
    if type(dtype) is not str or dtype not in DTYPES:
        raise ValueError(f"{dtype!r:.60} is no type of integers")
    sizes, numbers = (
        [_number(item, end) for item in items] for items, end in ((shape, 1 << 31), (elements, len(types)))
    )
    if prod(sizes) != len(numbers) or any(types[number] != f"i{DTYPES[dtype]}" for number in numbers):
        raise ValueError(f"{len(numbers)} elements, or of other bits, for {dtype} of shape {sizes}")
    return Computed(dtype, tuple(sizes), tuple(numbers))


def _number(data: Any, end: int, start: int = 0) -> int:
    if type(data) is not int or not start <= data < end:
        raise ValueError(f"{data!r:.60} is not in {start}..{end - 1}")
    return data
