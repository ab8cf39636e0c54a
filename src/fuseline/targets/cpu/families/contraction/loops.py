"""A root that multiplies and adds, seen as rows times columns: contractions and convolutions alike.

    out[outer, rows, column] += lhs[outer, rows, reduction] * rhs[outer, column, reduction]

`column` is the loop that runs along vector lanes; `lhs` is broadcast element by element, `rhs` is read in vectors. For
a convolution `lhs` is the image (its rows are pixels, its reduction window and channels) and `rhs` the filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.cut_boxes import box_beside_packed
from fuseline.analysis.image_box import ImageBox, image_box
from fuseline.analysis.indexing_maps import dims_of, used_dims
from fuseline.analysis.narrow_products import multiplies_narrow, unsigned_inputs, widens_weights
from fuseline.analysis.operand_access import LinearAccess, Segment
from fuseline.analysis.structured import StructuredOp, multiply_add_operands
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.access import access_segments, is_binding, plain_access
from fuseline.targets.cpu.families.contraction.axes import Axis, Operand, merged, run_extents
from fuseline.targets.cpu.families.contraction.column_axis import column_axis, column_loop, plain_loops_of
from fuseline.targets.cpu.families.contraction.packable_constants import is_packable_constant
from fuseline.targets.cpu.families.family import NEVER_RUNS
from fuseline.targets.target import Refusal

RhsMode = Literal["constant", "direct", "packed", "pulled"]
"""How columns are read: packed at compile time, from the binding, packed into scratch per panel, or evaluated in the
reduction itself."""

LhsMode = Literal["linear", "boxed", "packed", "pulled"]
"""How row elements are read: from the binding, from scratch that a workgroup fills first (with the box of the image
that its rows read, or with the rows themselves), or evaluated in the reduction itself."""


@dataclass(frozen=True, slots=True)
class RowSegment:
    """A part of the reduction whose row elements lie in one binding.

    `operand` is how they are read, `reduction` the axes, that of `loop` cut short: it counts from `start`. `loop` None:
    the whole reduction.
    """

    operand: Operand
    reduction: tuple[Axis, ...]
    extents: tuple[Dim, ...]
    loop: int | None = None
    start: Dim = 0

    @property
    def access(self) -> LinearAccess:
        """Where the elements lie."""
        assert self.operand.access is not None
        return self.operand.access

    def first(self, axis: Axis) -> Dim:
        """Where the segment begins along an axis of the reduction."""
        return self.start if axis.inner == self.loop else 0


@dataclass(frozen=True)
class ContractionLoops:
    """The roles of a multiply-add root's loops and operands. `column` may be several loops, where a constant is read
    along them. `segments` are the parts in which the left operand is read; none: it is computed. `box`: what a
    workgroup may evaluate of an image; `threads` share its blocks.

    `dtype` is that of the sums, `elements` those in which the kernel reads the left and the right operand: the same; or
    narrow integers, whose products are added up in pairs or by fours (`quads.py`); or floats and integers of 8 bits,
    which become floats on the way. `unsigned`: which of them are integers of 8 bits without a sign.
    """

    view: DispatchView
    root: StructuredOp
    dtype: str
    elements: tuple[str, str]
    extents: tuple[Dim, ...]
    lhs: Operand
    rhs: Operand
    outer: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    column: Axis
    reduction: tuple[Axis, ...]
    segments: tuple[RowSegment, ...]
    box: ImageBox | None = None
    threads: int = 1
    unsigned: tuple[bool, bool] = (False, False)

    @property
    def narrow(self) -> bool:
        """Whether narrow integers are multiplied."""
        return self.dtype == "i32"

    @property
    def in_bytes(self) -> bool:
        """Whether both operands are read in 8 bits, and multiplied so."""
        return self.elements == ("i8", "i8")

    @property
    def steps(self) -> Dim:
        """The length of the whole reduction."""
        return d.product(axis.extent for axis in self.reduction)

    @property
    def run_extents(self) -> tuple[Dim, ...]:
        """How far each loop of the root runs in the kernel."""
        return run_extents(self.extents, self.rows)

    @property
    def flops(self) -> Dim:
        """Multiplications and additions of the root."""
        return d.mul(2, d.product(self.extents))


def contraction_loops(view: DispatchView, *, image: int | None = None, threads: int = 1) -> ContractionLoops | Refusal:
    """The root of `view` as a loops, to be shared by `threads`; `image` is the input that a convolution slides over,
    None for a contraction."""
    root = view.root_view
    sides = multiply_add_operands(root.op) if root is not None else None
    if root is None or sides is None:
        return Refusal("not-multiply-add", "the root does not multiply and add")
    dtype = dtype_of(root.op.results[0].type)
    mixed = multiplies_narrow(root.op) or widens_weights(root.op)
    if not mixed and (dtype not in ("f32", "f64") or any(dtype_of(value.type) != dtype for value in root.inputs)):
        return Refusal(
            "element-type",
            "the register tiles are for f32 and f64 throughout, and for signed integers of up to 16 bits added up in "
            "32",
        )
    if not all(isinstance(expr, AffineDimExpr) for expr in root.output_maps[0].results if not _is_zero(expr)):
        return Refusal("output-map", "the result is not indexed by plain loops")
    roles = _roles(root, *sides)
    if isinstance(roles, Refusal):
        return roles
    extents = root.loops(view.shapes)
    if 0 in extents:
        return NEVER_RUNS
    swapped = image is not None and image != sides[0]
    column, swap = column_loop(root, (roles.m, roles.n), extents, image_is_rhs=swapped)
    if column is None:
        return Refusal("no-columns", "neither operand has a loop of its own that vectors could run along")
    lhs, rhs = (sides[1], sides[0]) if swap else sides
    return _with_roles(
        view,
        root,
        (dtype, extents),
        (lhs, rhs),
        roles.swapped() if swap else roles,
        column,
        1 if view.serial else threads,
    )


@dataclass(frozen=True, slots=True)
class _Roles:
    batch: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    k: tuple[int, ...]

    def swapped(self) -> _Roles:
        return replace(self, m=self.n, n=self.m)


_ROLE = {(True, True, True): "batch", (True, False, True): "m", (False, True, True): "n", (True, True, False): "k"}


def _roles(root: StructuredOp, lhs: int, rhs: int) -> _Roles | Refusal:
    a, b, c = used_dims(root.input_maps[lhs]), used_dims(root.input_maps[rhs]), used_dims(root.output_maps[0])
    found: dict[str, list[int]] = {"batch": [], "m": [], "n": [], "k": []}
    for loop in range(root.rank):
        role = _ROLE.get((loop in a, loop in b, loop in c))
        if role is None:
            return Refusal("loop-role", f"loop {loop} is neither batch, row, column nor reduction")
        found[role].append(loop)
    return _Roles(*(tuple(found[name]) for name in ("batch", "m", "n", "k")))


def _is_zero(expr: object) -> bool:
    return getattr(expr, "value", None) == 0


def _with_roles(
    view: DispatchView,
    root: StructuredOp,
    types: tuple[str, tuple[Dim, ...]],
    sides: tuple[int, int],
    roles: _Roles,
    column: int,
    threads: int,
) -> ContractionLoops:
    dtype, extents = types
    lhs, rhs = (root.inputs[side] for side in sides)
    lhs_map, rhs_map = (root.input_maps[side] for side in sides)
    found = access_segments(view, lhs, lhs_map, extents, borders=True)
    row_operands = [Operand(lhs, lhs_map, segment.access) for segment in found]
    written = plain_loops_of(root.output_maps[0])
    axes = {loop: Axis((loop,), (extents[loop],)) for loop in range(root.rank)}
    moving = [loop for loop in written if extents[loop] != 1]
    own = [*(loop for loop in moving if loop in roles.n and loop != column), column]
    columns = column_axis(view, root, Operand(rhs, rhs_map, None), list(axes.values()), own)
    outer = tuple(
        axes[loop] for loop in moving if loop in roles.batch or (loop in roles.n and loop not in columns.loops)
    )
    parted = any(segment.loop in roles.m for segment in found)  # rows of a concat: elsewhere in each part
    rows = merged([axes[loop] for loop in moving if loop in roles.m], [] if parted else row_operands)
    reduction = [axes[loop] for loop in roles.k if extents[loop] != 1]
    box = _box(view, root, sides, Operand(rhs, rhs_map, None), run_extents(extents, rows), threads)
    if row_operands:
        reduction.sort(
            key=lambda axis: (
                not any(row_operand.has_floordiv(axis) for row_operand in row_operands),
                -row_operands[0].step(axis),
            )
        )
    elif box is not None:
        reduction.sort(key=lambda axis: -box.stride(axis.inner, box.counts(1, 1)))
    else:
        reduction.sort(key=lambda axis: _last_place(lhs_map, axis.inner))
    return ContractionLoops(
        view, root, dtype, _elements(dtype, rhs), extents, Operand(lhs, lhs_map, plain_access(found)),
        Operand(rhs, rhs_map, plain_access(access_segments(view, rhs, rhs_map, extents))), outer, tuple(rows),
        columns, tuple(reduction),
        _row_segments(found, row_operands, reduction,
            extents) if found and all(segment.loop in (None, *roles.k) for segment in found) else (), box, threads,
        _unsigned(root, sides),
    )  # fmt: skip


def _last_place(map_: AffineMap, loop: int) -> int:
    """The last dimension of an operand that a loop goes along."""
    return max((place for place, expr in enumerate(map_.results) if loop in dims_of(expr)), default=-1)


def _box(
    view: DispatchView,
    root: StructuredOp,
    sides: tuple[int, int],
    filter_: Operand,
    extents: Sequence[Dim],
    threads: int,
) -> ImageBox | None:
    """The box of an image, where what is packed beside it is packed at compile time, or of an image that is computed,
    for few blocks; `extents`: how far each loop runs in the kernel."""
    if is_packable_constant(view, filter_):
        return image_box(root, sides[0], view.shapes, is_binding, extents)
    if is_binding(root.inputs[sides[0]]):
        return None
    return box_beside_packed(root, sides[0], view.shapes, is_binding, extents, threads)


def _elements(dtype: str, rhs: SSAValue) -> tuple[str, str]:
    """In what the operands are read: a pair of i16 is one element of the left operand, since two are broadcast at once.
    Columns may be narrow."""
    return ("i16" if dtype == "i32" else dtype), dtype_of(rhs.type)


def _unsigned(root: StructuredOp, sides: tuple[int, int]) -> tuple[bool, bool]:
    found = unsigned_inputs(root.op)
    return sides[0] in found, sides[1] in found


def _row_segments(
    found: Sequence[Segment], row_operands: Sequence[Operand], reduction: Sequence[Axis], extents: tuple[Dim, ...]
) -> tuple[RowSegment, ...]:
    out: list[RowSegment] = []
    for segment, row_operand in zip(found, row_operands, strict=True):
        cut = tuple(Axis(axis.loops, (segment.size,)) if axis.inner == segment.loop else axis for axis in reduction)
        inner = tuple(segment.size if loop == segment.loop else extent for loop, extent in enumerate(extents))
        out.append(RowSegment(row_operand, cut, inner, segment.loop, segment.start))
    return tuple(out)
