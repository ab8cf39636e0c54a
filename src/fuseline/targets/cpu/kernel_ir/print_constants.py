"""Constants that stay where they are used, in kernels with loops that need nearly all vector registers.

    for tiles: relu6(window)        LLVM would keep 0 and 6 in registers from the first instruction to the last, through
    for tiles: product              the product, too, and spill the product's sums in every step of it (LLVM 22.1)

So they are loaded anew before each part of such a kernel that has no such loop in it. The loads are volatile: LLVM
moves none of them out of a loop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeGuard

from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import Block, Loop, Value, When, While

WIDE_SHARE = 3 / 4
"""The share of the vector registers from which on what a loop carries leaves none for constants of other loops."""

STEP_REGISTERS = 3
"""Vector registers that a step of a product needs beside its sums: two of columns and one of rows. While the constants
fit into the rest, LLVM may keep them (convolutions in tiles of 28 with one constant take 1.2 of the time else)."""

MOST_HELD = 3
"""More constants of one part are left to LLVM: it reads them beside what they are used with (transforms of Winograd's
algorithm, exponentials)."""

MOST_BESIDE_SUMS = 8
"""So many constants of a part that sums something itself and rounds it are not left to LLVM, masks included: a window
that is clamped and rounded to what 8 bits hold (LLVM 22.1 spilled all 28 sums of the products around it: 1.3 to 2 of
the time). Transforms of Winograd's algorithm have as many constants, but no masks."""

_SPLAT = re.compile(r"splat \((float|double) (0x(?!0{16})[0-9A-F]{16})\)")
_MASK = re.compile(r"splat \((i32) (-?[1-9][0-9]*)\)")
_BITWISE = re.compile(r" = (and|or|xor) ")


Node = Block | Loop | While | When


def around_wide_loops(body: Block, machine: Machine) -> set[Node]:
    """The loops that carry `WIDE_SHARE` of the vector registers, and the blocks and operations that hold one; none
    where no other loop has constants, or they fit beside what is carried."""
    found = _around(body, WIDE_SHARE * machine.vector_registers)
    if not _has_constants_beside(body, found):
        return set()
    carried = max(_carried(op) for op in found if isinstance(op, Loop))
    needed = carried + len(_constants(body, found)) + STEP_REGISTERS
    return found if needed > machine.vector_registers else set()


def _carried(loop: Loop) -> int:
    return sum(value.type.lanes > 1 for value in loop.carried)


def _constants(block: Block, wide: set[Node]) -> set[tuple[str, str]]:
    """The numbers of whole vectors that are computed with beside the wide loops: zero, too."""
    found = set[tuple[str, str]]()
    for op in block.ops:
        if isinstance(op, Value):
            found |= {(str(arg.type), str(arg.attr)) for arg in op.args if _is_splat(arg)}
        elif not (isinstance(op, Loop) and op in wide and not any(inner in wide for inner in _blocks(op))):
            found |= set[tuple[str, str]]().union(*(_constants(inner, wide) for inner in _blocks(op)))
    return found


def _is_splat(operand: object) -> TypeGuard[Value]:
    return (
        isinstance(operand, Value)
        and operand.op == "const"
        and operand.type.lanes > 1
        and operand.type.is_float
        and not isinstance(operand.attr, tuple)
    )


def _around(block: Block, most: float) -> set[Node]:
    found = set[Node]()
    for op in block.ops:
        if isinstance(op, Value):
            continue
        wide = isinstance(op, Loop) and _carried(op) >= most
        inside = {op} if wide else set[Node]().union(*(_around(inner, most) for inner in _blocks(op)))
        if inside:
            found |= {block, op, *inside}
    return found


def _has_constants_beside(block: Block, wide: set[Node]) -> bool:
    """Whether a loop that holds no wide one computes with numbers."""
    return block in wide and any(
        any(_has_constants_beside(inner, wide) for inner in _blocks(op))
        if op in wide
        else isinstance(op, Loop) and _computes_with_constants(op.body)
        for op in block.ops
        if not isinstance(op, Value)
    )


def _computes_with_constants(block: Block) -> bool:
    return any(
        any(map(_is_held, op.args)) if isinstance(op, Value) else any(map(_computes_with_constants, _blocks(op)))
        for op in block.ops
    )


def _is_held(operand: object) -> bool:
    return _is_splat(operand) and operand.attr != 0


def _blocks(op: Loop | While | When) -> tuple[Block, ...]:
    if isinstance(op, Loop):
        return (op.body,)
    return (op.test, op.body) if isinstance(op, While) else (op.then, op.otherwise)


def held(lines: Sequence[str], name: str, symbol: str, globals_: set[str]) -> list[str]:
    """Lines of LLVM with the floating constants of their vectors loaded before them, into names that begin with `name`.
    `globals_` gets the text of what is loaded, for the kernel `symbol`."""
    names, out = _all_named(lines, name)
    if len(names) > MOST_HELD:
        names, out = _all_named(lines, name, masks=True)
        rounds = any("x i32>" in vector for vector, _ in names) and any(" = phi <" in line for line in lines)
        if len(names) > MOST_BESIDE_SUMS or not rounds:
            return list(lines)
    loads: list[str] = []
    for (vector, bits), value in names.items():
        lanes, element = vector[1:-1].split(" x ")
        place = f"@{symbol}_held_{lanes}_{element}_{bits}"
        numbers = ", ".join([f"{element} {bits}"] * int(lanes))
        globals_.add(f"{place} = private unnamed_addr constant {vector} <{numbers}>, align 64\n")
        loads.append(f"  {value} = load volatile {vector}, ptr {place}, align 64")
    return [*loads, *out]


def _all_named(lines: Sequence[str], name: str, *, masks: bool = False) -> tuple[dict[tuple[str, str], str], list[str]]:
    """The names of the constants in `lines`, by type and bits, and the lines with these in their place. `masks`: the
    integers of bitwise operations, too."""
    names: dict[tuple[str, str], str] = {}
    found = [line if " = phi " in line else _named(line, name, names, masks=masks) for line in lines]
    return names, found


def _named(line: str, name: str, names: dict[tuple[str, str], str], *, masks: bool) -> str:
    def value(found: re.Match[str]) -> str:
        vector = re.search(rf"<\d+ x {found[1]}>", line)
        assert vector is not None
        return names.setdefault((vector[0], found[2]), f"{name}{len(names)}")

    return (_MASK if masks and _BITWISE.search(line) else _SPLAT).sub(value, line)
