"""Splits of rows that end where a dispatch does: no reshape is left between a chain of products and its last op.

    norm ──> product ──> norm ──> product ──reshape──> transpose      =>      all over (h, w) in place of h * w rows

What lies in memory before the chain (`row_component.py`) is read in the new sizes, a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import OpResult

from fuseline.analysis.structured import is_generic
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim
from fuseline.passes.layout.rewriting.common_refinement import common_refinement
from fuseline.passes.layout.rewriting.reshapes import ReshapeOp, root_of
from fuseline.passes.layout.rewriting.row_component import made_before
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.splits_together import SplitsTogether

MOST_UNBALANCED = 0.02
"""How much longer the thread with the most to do may take where lines of rows are shared out in place of rows: 11 x 13
rows of 256 channels on two threads, 77 for one of them in place of 72, take 1.14 of the time of two dispatches; lines
that can be halved .97 to 1.01."""


def rows_together(scope: Scope, reshaped: ReshapeOp) -> SplitsTogether | None:
    """The splits of all that may share a dispatch through rows with what makes the operand of a reshape, where they
    leave none; None where they do not, or where threads would share out the rows worse."""
    root = root_of(reshaped.result)
    if type(root) is not OpResult or not is_generic(root.op):
        return None
    found = common_refinement(scope.dims(root), scope.dims(reshaped.result))
    axis = next((axis for axis, sizes in enumerate(found[0]) if len(sizes) > 1), None) if found is not None else None
    if found is None or axis is None or not _stays_balanced(scope, found[0][: axis + 1]):
        return None
    together = SplitsTogether(scope, reshaped.result, before=made_before(scope, root, [axis]))
    return together if together.granted else None


def _stays_balanced(scope: Scope, rows: Sequence[Sequence[Dim]]) -> bool:
    """Whether boxes of the loops that rows become can be shared out among threads as well as rows."""
    lines = [[assumed_size(size) for size in sizes] for sizes in rows]
    threads = scope.ctx.target.threads
    whole, boxes = ([prod(sizes) for sizes in lines], [size for sizes in lines for size in sizes])
    return _most_of_a_thread(boxes, threads) <= _most_of_a_thread(whole, threads) * (1 + MOST_UNBALANCED)


def _most_of_a_thread(sizes: Sequence[int], threads: int) -> float:
    """What the thread with the most to do has of loops of these sizes, in equal shares (1: as much as any), where each
    loop is cut into as many parts as is best.

    >>> _most_of_a_thread([10], 4)
    1.2
    >>> _most_of_a_thread([2, 5], 4)
    1.2
    >>> _most_of_a_thread([1], 4)
    4.0
    """
    if not sizes or threads == 1:
        return float(threads)
    size = max(1, sizes[0])
    parts = [n for n in range(1, threads + 1) if threads % n == 0]
    return min(-(-size // n) * n / size * _most_of_a_thread(sizes[1:], threads // n) for n in parts)
