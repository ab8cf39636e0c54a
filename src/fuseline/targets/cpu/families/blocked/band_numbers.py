"""Numbers of rows in the whole image, as bodies compute them from those of a band and of a row inside of it.

row = arith.addi (arith.muli (linalg.index 0), 28), (linalg.index 1)      =>      `row` is 28 b + r
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.dialects import arith, linalg
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.structured import splat_value


class RowNumbers(NamedTuple):
    """What a body computes that is `step * band + row`, each with its step; `alone`: it does nothing else with the
    numbers of these loops."""

    steps: dict[SSAValue, int]
    alone: bool


def row_numbers(op: linalg.ops.GenericOp, band: int, row: int) -> RowNumbers:
    """Those in the body of `op`, whose loops over bands and rows these are."""
    numbers = [inner for inner in op.body.walk() if isinstance(inner, linalg.ops.IndexOp)]
    rows = {use.operation for one in numbers if one.dim.value.data == row for use in one.result.uses}
    steps = {op: step for one in numbers if one.dim.value.data == band for op, step in _sums(one.result)}
    found: dict[SSAValue, int] = {
        one.results[0]: step for one, step in steps.items() if one in rows and isinstance(one, arith.AddiOp)
    }
    return RowNumbers(found, len(found) == len(rows | steps.keys()))


def _sums(band: SSAValue) -> Iterator[tuple[Operation, int]]:
    """What reads a multiple of a band's number, and which."""
    for use in band.uses:
        product = use.operation
        factor = splat_value(product.operands[1 - use.index]) if isinstance(product, arith.MuliOp) else None
        if isinstance(factor, int):
            yield from ((last.operation, factor) for last in product.results[0].uses)
        else:
            yield product, 1
