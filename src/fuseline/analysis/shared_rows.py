"""Rows that several products share: what makes them may run once, ahead of all, where the products are blocks of rows
of one dispatch.

    quantize(m, k) ──> query(m, n), key(m, n), value(m, n)
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.packings import runs_along_columns
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind
from fuseline.ir.dim import mul, product, upper_bound
from fuseline.ir.fast.direct import result_of, users_of_value
from fuseline.ir.target_description import TargetDescription

ROWS = 16
"""Of a block at the least, with as much room for what the products make of them."""


def makes_shared_rows(op: Operation, shapes: ShapeAnalysis, target: TargetDescription) -> bool:
    """Whether several products read `op` along the same rows, of which a block fits a workgroup's scratch on a target
    that runs so many products one after the other; others that read it compute element by element."""
    readers = dict.fromkeys(users_of_value(result_of(op)))
    products = [reader for reader in readers if kind(reader) is not Kind.ELEMENTWISE]
    if not 1 < len(products) <= target.roots_limit:
        return False
    steps = [_steps(reader, op, shapes) for reader in products]
    if steps[0] is None or any(other != steps[0] for other in steps):
        return False
    size = _row_bytes(op, steps[0], shapes)
    return size is not None and size * ROWS <= target.scratch_bytes_limit


def _steps(reader: Operation, op: Operation, shapes: ShapeAnalysis) -> frozenset[int] | None:
    """The dimensions of the result of `op` along which a product that reads it once sums up, the innermost among them;
    None of other readers."""
    if kind(reader) is not Kind.CONTRACTION or not is_generic(reader):
        return None
    view = StructuredOp(reader)
    positions = [i for i, value in enumerate(view.inputs) if value is result_of(op)]
    if len(positions) != 1 or runs_along_columns(view, positions[0], shapes):
        return None
    dims = [expr.position for expr in view.input_maps[positions[0]].results if isinstance(expr, AffineDimExpr)]
    summed = frozenset(axis for axis, loop in enumerate(dims) if loop in view.reduction)
    return summed if len(dims) - 1 in summed else None


def _row_bytes(op: Operation, steps: Collection[int], shapes: ShapeAnalysis) -> int | None:
    """Bytes of a row of elements of 32 bits, None where nobody bounds it."""
    row = [size for axis, size in enumerate(shapes.dims(result_of(op))) if axis in steps]
    return upper_bound(mul(product(row), 4))
