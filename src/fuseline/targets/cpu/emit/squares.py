"""Squares of vectors transposed in registers.

a b c d        a e i m
e f g h   =>   b f j n
i j k l        c g k o
m n o p        d h l p
"""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value


def transpose(kernel: KernelBuilder, rows: Sequence[Value]) -> list[Value]:
    """Squares of vectors transposed in registers, one beside the other: as many vectors as a square has lanes, powers
    of two. Bits of row and lane change places one by one."""
    out = list(rows)
    side, lanes = len(out), out[0].type.lanes
    step = 1
    while step < side:
        low = [j if j & step == 0 else lanes + j - step for j in range(lanes)]
        high = [j + step if j & step == 0 else lanes + j for j in range(lanes)]
        for i in range(side):
            if i & step == 0:
                a, b = out[i], out[i + step]
                out[i], out[i + step] = kernel.shuffle(a, b, low), kernel.shuffle(a, b, high)
        step *= 2
    return out


def side_by_side(kernel: KernelBuilder, columns: Sequence[Value]) -> list[Value]:
    """As many vectors as there are columns of the few elements of each, or the next power of two of them, made of
    those: vector `i` is columns `i`, `i + n`, `i + 2 n`, and so on.

    a b c d of 2       a0 a1 c0 c1 | b0 b1 d0 d1, and transposed       a0 b0 c0 d0 | a1 b1 c1 d1
    """
    elements = columns[0].type.lanes
    count = 1 << (elements - 1).bit_length()
    if elements != count:  # what is beyond is never looked at
        columns = [kernel.shuffle(one, None, [min(i, elements - 1) for i in range(count)]) for one in columns]
    return [_joined(kernel, columns[i::count]) for i in range(count)]


def _joined(kernel: KernelBuilder, pieces: Sequence[Value]) -> Value:
    """A power of two of vectors as one."""
    if len(pieces) == 1:
        return pieces[0]
    return _joined(kernel, [kernel.concat(*pieces[i : i + 2]) for i in range(0, len(pieces), 2)])
