"""The columns of a multiply-add root: which of its loops run along the lanes, and whether the sides must be swapped for
that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir.affine import AffineMap

from fuseline.analysis.indexing_maps import is_projected_permutation, loops_of
from fuseline.analysis.structured import StructuredOp
from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import LINE_BYTES
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.families.contraction.axes import Axis, Operand
from fuseline.targets.cpu.families.contraction.packable_constants import is_packable_constant

NARROW_COLUMNS = 4
"""Up to so many columns would leave most lanes idle: turning the other operand in scratch costs less."""

PANEL_COLUMNS = LINE_BYTES // 4
"""Columns of f32 that any machine's vectors are full of."""

WIDE_ROWS = 32
"""From so many rows on."""

SHARED_ROWS = 8
"""From so many rows on where other loops of the columns read what is turned again (the phases of a transposed
convolution: 7 to 28 rows and 2 columns of each of 8 to 64 filters take .22 to .63 of the time)."""


def column_loop(
    root: StructuredOp,
    own: tuple[tuple[int, ...], tuple[int, ...]],
    extents: Sequence[Dim],
    *,
    image_is_rhs: bool,
) -> tuple[int | None, bool]:
    """The loop for the lanes, and whether the sides must be swapped for it to be a column. A convolution keeps its
    image on the left. `own`: the loops of the left and of the right operand alone."""
    m, n = own
    windowed = [not is_projected_permutation(map_) for map_ in root.input_maps]
    written = plain_loops_of(root.output_maps[0])
    if any(windowed):
        mine = m if image_is_rhs else n
        return _last(written, mine, extents), image_is_rhs
    innermost = next((loop for loop in reversed(written) if extents[loop] != 1), None)
    if innermost in m and not any(_is_narrow(extents[innermost], extents[loop]) for loop in n):
        return innermost, True
    column, other = _last(written, n, extents), _last(written, m, extents)
    shared = any(extents[loop] != 1 for loop in n if loop != column)
    if column is None or (other is not None and _is_narrow(extents[column], extents[other], shared)):
        return other, True
    return column, False


def _is_narrow(columns: Dim, rows: Dim, shared: bool = False) -> bool:
    """Whether so few columns face so many rows that the rows had better run along the lanes; `shared`: other loops read
    the same rows."""
    if columns == 1:
        return rows != 1
    wide = SHARED_ROWS if shared else WIDE_ROWS
    return isinstance(columns, int) and columns <= NARROW_COLUMNS and (not isinstance(rows, int) or rows >= wide)


def _last(written: Iterable[int], own: Sequence[int], extents: Sequence[Dim]) -> int | None:
    """The loop of `own` written innermost, one that runs more than once if there is one."""
    found = [loop for loop in written if loop in own]
    moving = [loop for loop in found if extents[loop] != 1]
    return (moving or found or [None])[-1]


def column_axis(view: DispatchView, root: StructuredOp, rhs: Operand, axes: Sequence[Axis], own: Sequence[int]) -> Axis:
    """The columns: the last loop of `own`, the right operand's, as they are written; with those that the result and a
    constant right operand have right before it, where it fills no whole panels by itself, or faces an image."""
    found = axes[own[-1]]
    extent = found.extent
    ragged = isinstance(extent, int) and extent % PANEL_COLUMNS != 0
    faces_image = not all(map(is_projected_permutation, root.input_maps))
    if not (ragged or faces_image) or not is_packable_constant(view, rhs):
        return found
    written, stored = (plain_loops_of(map_) for map_ in (root.output_maps[0], rhs.map))
    for loop in reversed(own[:-1]):
        if not all(_stands_before(loop, found.loops[0], order) for order in (written, stored)):
            break
        found = Axis((loop, *found.loops), (*axes[loop].sizes, *found.sizes))
    return found


def plain_loops_of(map_: AffineMap) -> list[int]:
    """The loops that a tensor's dimensions are walked by, where one is."""
    return [loop for loop in loops_of(map_.results) if loop is not None]


def _stands_before(loop: int, next_: int, order: Sequence[int]) -> bool:
    return loop in order and order[order.index(loop) + 1 :][:1] == [next_]
