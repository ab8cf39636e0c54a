"""Rows that begin at places only the run knows: which values of a kernel say where, in which buffers, and which of them
are a stride apart.

    rows 0 .. 6 at  o + r * n        a pointer to row 0, the stride and three times as many; p + n, p + 2 * n, p + 4 * n
                                     are addresses that x86 adds up as it loads, and every fourth row a pointer again
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from fuseline.targets.cpu.kernel_ir.types import Address, Block, Loop, MemRef, Operand, Value, When

FEWEST_STRIDED = 3
"""From so many rows on it pays to count from another one's pointer: moving that along takes an instruction."""

MOST_STRIDES = 31
"""How many strides from a row others are reached, an instruction for every four."""


class StridedRow(NamedTuple):
    """A row `times` times the runtime `stride` from another one, `first`, where both are said in one block."""

    first: Value
    stride: Value
    times: int


def runtime_rows(block: Block) -> dict[Value, list[MemRef]]:
    """The buffers that are read or written in rows a runtime stride apart, by the value that says where a row begins:
    what an index has that is defined further out."""
    found: dict[Value, dict[int, MemRef]] = {}
    for address in _addresses(block):
        index, root = address.index, address.root
        if isinstance(index, Value) and isinstance(root, MemRef) and root.base is None and _is_in_row(index):
            found.setdefault(index.args[0], {})[id(root)] = root
    return {value: list(memories.values()) for value, memories in found.items()}


def strided_rows(block: Block, rows: Iterable[Value]) -> dict[Value, StridedRow]:
    """Those of `rows` that are some strides from another of them that is said before, in the same block."""
    wanted, found = set(rows), dict[Value, StridedRow]()
    for inner in _blocks(block):
        said = [op for op in inner.ops if isinstance(op, Value) and op in wanted]
        for members in sorted(_families(said, wanted), key=len, reverse=True):
            found.update((row, place) for row, place in _counted(members) if row not in found)
    return found


Members: TypeAlias = "list[tuple[Value, Value, int]]"
"""Rows, each with the stride, and how many strides from their common origin it is."""


def _families(rows: Iterable[Value], wanted: Collection[Value]) -> list[Members]:
    """The rows that begin multiples of one stride from one origin; a row may be of several families."""
    families: dict[tuple[Operand, Value], Members] = {}
    for row in rows:
        for origin, stride, times in _multiples(row):
            start = [(origin, stride, 0)] if isinstance(origin, Value) and origin in wanted else []
            families.setdefault((origin, stride), start).append((row, stride, times))
    return [members for members in families.values() if len(members) >= FEWEST_STRIDED]


def _counted(members: Members) -> Iterator[tuple[Value, StridedRow]]:
    """All members that are further on than the first of them, counted from it."""
    (first, stride, start), *others = members
    for row, _, times in others:
        if 0 < times - start <= MOST_STRIDES:
            yield row, StridedRow(first, stride, times - start)


def _multiples(row: Value) -> Iterator[tuple[Operand, Value, int]]:
    """`row` as `(origin, stride, times)`: what is left of it, and how often a size is in it."""
    for number, one in enumerate(row.args) if row.op == "add" else ():
        strided = _multiple(one)
        if strided is not None:
            yield row.args[1 - number], *strided
    strided = _multiple(row)
    if strided is not None:
        yield 0, *strided


def _multiple(value: Operand) -> tuple[Value, int] | None:
    """A size, and how often it is in a value that is a multiple of it."""
    if not isinstance(value, Value):
        return None
    if value.op == "size":
        return value, 1
    if value.op == "mul" and isinstance(value.args[1], int):
        inner = _multiple(value.args[0])
        return (inner[0], inner[1] * value.args[1]) if inner is not None else None
    return None


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in block.ops:
        if isinstance(op, When):
            yield from (*_blocks(op.then), *_blocks(op.otherwise))
        elif not isinstance(op, Value):
            yield from () if isinstance(op, Loop) else _blocks(op.test)
            yield from _blocks(op.body)


def _addresses(block: Block) -> Iterator[Address]:
    for inner in _blocks(block):
        for op in inner.ops:
            if isinstance(op, Value):
                yield from (arg for arg in op.args if isinstance(arg, Address))


def _is_in_row(index: Value) -> bool:
    """Whether an index is one that is defined further out and holds a product with a runtime stride, and another
    one."""
    if index.op != "add":
        return False
    outer, inner = index.args
    known = isinstance(outer, Value) and isinstance(inner, Value) and outer.depth < inner.depth
    return known and _has_runtime_product(outer)


def _has_runtime_product(value: Operand) -> bool:
    """Whether a value is a sum with a product of two values in it, or with a size."""
    if not isinstance(value, Value) or value.op not in ("add", "mul"):
        return False
    if value.op == "mul" and isinstance(value.args[1], Value):
        return True
    return any(isinstance(arg, Value) and (arg.op == "size" or _has_runtime_product(arg)) for arg in value.args)
