"""Small constant matrices applied to vectors in registers, with the arithmetic that rows or columns share done once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value

Row = Sequence[float]
Term = tuple[float, Value]


def mapped(kernel: KernelBuilder, matrix: Sequence[Row], inputs: Sequence[Value]) -> list[Value]:
    """`matrix @ inputs`; every row of the matrix has an entry that is not 0."""
    return _by_row_pairs(kernel, matrix, inputs) if _row_pairs(matrix) else _by_column_pairs(kernel, matrix, inputs)


def _row_pairs(matrix: Sequence[Row]) -> list[tuple[int, int]]:
    """Disjoint pairs of rows `even + odd`, `even - odd`."""
    pairs: list[tuple[int, int]] = []
    for i, j in combinations(range(len(matrix)), 2):
        if not any(k in pair for pair in pairs for k in (i, j)) and _mirrors(matrix[i], matrix[j]):
            pairs.append((i, j))
    return pairs


def _mirrors(a: Row, b: Row) -> bool:
    signs = {x == y for x, y in zip(a, b, strict=True) if x or y}
    return all(abs(x) == abs(y) for x, y in zip(a, b, strict=True)) and signs == {True, False}


def _by_row_pairs(kernel: KernelBuilder, matrix: Sequence[Row], inputs: Sequence[Value]) -> list[Value]:
    out: dict[int, Value] = {}
    for i, j in _row_pairs(matrix):
        terms = list(zip(matrix[i], matrix[j], inputs, strict=True))
        even = _sum(kernel, [(x, value) for x, y, value in terms if x == y])
        odd = [(x, value) for x, y, value in terms if x != y]
        scale = abs(odd[-1][0])
        odd_sum = _sum(kernel, [(x / scale, value) for x, value in odd])
        out[i], out[j] = _plus(kernel, even, scale, odd_sum), _plus(kernel, even, -scale, odd_sum)
    for i, row in enumerate(matrix):
        if i not in out:
            out[i] = _sum(kernel, list(zip(row, inputs, strict=True)))
    return [out[i] for i in range(len(matrix))]


def _by_column_pairs(kernel: KernelBuilder, matrix: Sequence[Row], inputs: Sequence[Value]) -> list[Value]:
    columns = list(zip(*matrix, strict=True))
    pairs = _row_pairs(columns)
    single = [k for k in range(len(columns)) if not any(k in pair for pair in pairs)]
    sums = {pair: (kernel.add(*(inputs[k] for k in pair)), kernel.sub(*(inputs[k] for k in pair))) for pair in pairs}
    out: list[Value] = []
    for row in matrix:
        terms: list[Term] = [(row[k], inputs[k]) for k in single]
        terms += [(row[i], total if row[i] == row[j] else difference) for (i, j), (total, difference) in sums.items()]
        out.append(_sum(kernel, terms))
    return out


def _sum(kernel: KernelBuilder, terms: Sequence[Term]) -> Value:
    """The sum of scaled vectors, those with factor 1 first: a chain of multiply-adds."""
    first, *rest = sorted(((x, value) for x, value in terms if x), key=lambda term: (term[0] != 1, abs(term[0]) != 1))
    total = first[1] if first[0] == 1 else kernel.mul(first[1], _constant(kernel, first))
    for x, value in rest:
        total = _plus(kernel, total, x, value)
    return total


def _plus(kernel: KernelBuilder, total: Value, factor: float, value: Value) -> Value:
    if abs(factor) == 1:
        return kernel.add(total, value) if factor == 1 else kernel.sub(total, value)
    return kernel.fma(value, _constant(kernel, (factor, value)), total)


def _constant(kernel: KernelBuilder, term: Term) -> Value:
    return kernel.const(term[0], term[1].type.dtype, term[1].type.lanes)
