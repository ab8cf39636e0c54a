"""A dispatch region seen along the rows of its result: which loop of each member is the row, and which elements of each
operand a row needs.

    pad(x) ──> convolution(y, x, c) ──> relu(y, x, c)        a row of relu: a row of the convolution: 3 rows of pad(x)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.indexing_maps import dims_of, is_identity, is_permutation, loops_of
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import (
    Kind,
    StructuredOp,
    captured,
    captured_tensors,
    is_generic,
    kind,
    splat_value,
)
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, MemberLoops, Role, members_of
from fuseline.dispatch.loops_attribute import from_attribute
from fuseline.dispatch.region_names import region_name
from fuseline.dispatch.result_boxes import returned
from fuseline.ir.build import shape_of
from fuseline.ir.fast.attributes import values
from fuseline.ir.flow import DispatchRegionOp
from fuseline.targets.target import Refusal


@dataclass(frozen=True, slots=True)
class RowRead:
    """An operand that moves along the rows: row `m` needs its elements `stride * m` to `stride * m + reach` along
    `axis`. It is `value`, or a `pad` of it, as the ops `through` make it, element by element, where it is read: what is
    stored perhaps with its dimensions in another order, of which `axis` is one."""

    value: SSAValue
    axis: int
    stride: int = 1
    reach: int = 0
    pad: tensor.PadOp | None = None
    through: tuple[linalg.ops.GenericOp, ...] = ()

    @property
    def first_axis(self) -> int:
        """The dimension of `value` that `axis` is behind the ops `through`."""
        axis = self.axis
        for op in reversed(self.through):
            view = StructuredOp(op)
            row = loops_of(view.output_maps[0].results)[axis]
            axis = loops_of(view.input_maps[0].results).index(row)
        return axis

    @property
    def in_step(self) -> bool:
        """Whether a row needs that one row."""
        return self.stride == 1 and self.reach == 0 and self.pad is None


@dataclass(frozen=True)
class RegionRows:
    """The members of `region` that are computed, in order, with the loop of each that runs along the rows.

    `reads`: by member, per input, what moves along the rows (None: what does not). `axes`: the dimension of every
    computed value that is the row.
    """

    region: DispatchRegionOp
    loops: Mapping[linalg.ops.GenericOp, int]
    reads: Mapping[linalg.ops.GenericOp, tuple[RowRead | None, ...]]
    axes: Mapping[SSAValue, int]

    @property
    def results(self) -> tuple[SSAValue, ...]:
        """What the body returns."""
        return returned(self.region.body.block)

    def reading(self, value: SSAValue) -> list[tuple[linalg.ops.GenericOp, RowRead]]:
        """The members that read `value`, and how."""
        return [(op, read) for op, reads in self.reads.items() for read in reads if read and read.value is value]


def region_loops(region: DispatchRegionOp, shapes: ShapeAnalysis) -> FusedLoops | None:
    """What a region says about its loops; None where it says nothing."""
    said = region.attributes.get(LOOPS_ATTRIBUTE)
    return from_attribute(said, shapes.symbols, region_name(region)) if said is not None else None


def rows_of_region(region: DispatchRegionOp, grid_loop: int, shapes: ShapeAnalysis) -> RegionRows | Refusal:
    """`region` along its grid loop `grid_loop`, or why it cannot be cut along it: all that is computed has that loop,
    once, and what else a row needs is stored, or a pad of it."""
    loops = region_loops(region, shapes)
    if loops is None or len(loops.grids) != 1 or loops.online or loops.along:
        return Refusal("loops", f"{region_name(region)} has loops of several arms or of arguments")
    members = members_of(region.body.block)
    found: dict[linalg.ops.GenericOp, int] = {}
    for op, member in zip(members, loops.members, strict=True):
        if member.role is Role.INLINED and (type(op) is tensor.PadOp or is_read_in_place(op)):
            continue
        row = _row_loop(op, member, grid_loop)
        if row is None:
            return Refusal("members", f"{op.name} in {region_name(region)} is not computed row by row")
        found[cast(linalg.ops.GenericOp, op)] = row
    return _with_reads(region, found, shapes)


def is_read_in_place(op: Operation) -> bool:
    """Whether an op, written where it is read, makes each element of one tensor from one of another, whose dimensions
    may stand in another order (quantised with its channels last, say)."""
    if not is_generic(op) or kind(op) not in (Kind.ELEMENTWISE, Kind.TRANSPOSE):
        return False
    view = StructuredOp(op)
    plain = len(view.inputs) == len(op.results) == 1 and all(is_permutation(map_) for map_ in view.maps)
    return plain and all(splat_value(value) is not None for value in captured(op)) and not _asks_for_places(op)


def is_elementwise_read(op: Operation) -> bool:
    """The same where each element is made from the same one of another tensor (a conversion, say)."""
    return is_read_in_place(op) and all(map(is_identity, StructuredOp(cast(linalg.ops.GenericOp, op)).maps))


def behind_reads(
    op: Operation, value: SSAValue, reads: Callable[[Operation], bool] = is_elementwise_read
) -> tuple[SSAValue, tuple[linalg.ops.GenericOp, ...]]:
    """What `value`, which `op` reads, is made from in the region of `op` by ops that are such `reads`, and these."""
    through: list[linalg.ops.GenericOp] = []
    while isinstance(value, OpResult) and value.op.parent is op.parent and reads(value.op):
        through.insert(0, cast(linalg.ops.GenericOp, value.op))
        value = value.op.operands[0]
    return value, tuple(through)


def _asks_for_places(op: linalg.ops.GenericOp) -> bool:
    return any(isinstance(inner, linalg.ops.IndexOp) for inner in op.body.block.ops)


def _row_loop(op: Operation, member: MemberLoops, grid_loop: int) -> int | None:
    """The loop of a member that is the row; None for one that is not computed along it, or asks for its number."""
    if member.role is not Role.PLACED or not is_generic(op) or grid_loop not in member.grid_loops:
        return None
    known = all(_is_stored(op, value) or splat_value(value) is not None for value in captured(op))
    return (
        member.grid_loops.index(grid_loop) if known and not _asks_for_places(op) and not captured_tensors(op) else None
    )


def _with_reads(
    region: DispatchRegionOp, loops: Mapping[linalg.ops.GenericOp, int], shapes: ShapeAnalysis
) -> RegionRows | Refusal:
    axes: dict[SSAValue, int] = {}
    reads: dict[linalg.ops.GenericOp, tuple[RowRead | None, ...]] = {}
    for op, row in loops.items():
        view = StructuredOp(op)
        made = [_axis_of(map_.results, row) for map_ in view.output_maps]
        found = list(_reads(view, row, axes, shapes))
        plain = all(map(_is_static, view.operands)) and all(map(_starts, view.outputs))
        if None in made or any(isinstance(one, Refusal) for one in found) or not plain:
            return Refusal("reads", f"{region_name(region)} reads rows in a way that no band has")
        axes |= {value: axis for value, axis in zip(op.results, made, strict=True) if axis is not None}
        reads[op] = tuple(one for one in found if not isinstance(one, Refusal))
    return RegionRows(region, loops, reads, axes)


def _starts(value: SSAValue) -> bool:
    """Whether a result starts from nothing, or from one number, which may have any size."""
    return splat_value(value) is not None or (isinstance(value, OpResult) and isinstance(value.op, tensor.EmptyOp))


def _axis_of(exprs: Sequence[AffineExpr], row: int) -> int | None:
    """The one coordinate that is the row, where no other moves with it."""
    moving = [axis for axis, expr in enumerate(exprs) if row in dims_of(expr)]
    plain = len(moving) == 1 and isinstance(exprs[moving[0]], AffineDimExpr)
    return moving[0] if plain else None


def _reads(
    view: StructuredOp, row: int, made: Mapping[SSAValue, int], shapes: ShapeAnalysis
) -> Iterator[RowRead | Refusal | None]:
    """How each input is read along the rows; a refusal for one that is read in another way."""
    extents, odd = view.loops(shapes), Refusal("reads", "")
    for value, map_ in zip(view.inputs, view.input_maps, strict=True):
        moving = [axis for axis, expr in enumerate(map_.results) if row in dims_of(expr)]
        source, through = (value, ()) if value in made else behind_reads(view.op, value)
        if source in made:
            in_step = _axis_of(map_.results, row) == made[source]
            yield RowRead(source, made[source], through=through) if in_step else odd
        elif not moving:
            yield None if _is_stored(view.op, source) or splat_value(value) is not None else odd
        else:
            found = _window(map_.results[moving[0]], row, view, extents) if len(moving) == 1 else None
            read = _behind_pad(view.op, value, moving[0], *found) if found is not None else None
            yield read or odd


def _window(expr: AffineExpr, row: int, view: StructuredOp, extents: Sequence[object]) -> tuple[int, int] | None:
    """The step of a coordinate from row to row, and how far it reaches at one; None where other parallel loops move it,
    or it goes backwards."""
    linear = linear_terms(expr)
    if linear is None or linear[1] < 0 or any(factor < 1 for factor in linear[0].values()):
        return None
    reach = linear[1]
    for loop, factor in linear[0].items():
        extent = extents[loop]
        if loop != row and (view.iterators[loop] != "reduction" or not isinstance(extent, int)):
            return None
        reach += factor * (cast(int, extent) - 1) if loop != row else 0
    return linear[0][row], reach


def _behind_pad(op: Operation, value: SSAValue, axis: int, stride: int, reach: int) -> RowRead | None:
    """The read of a stored value of known size, or of a pad of one by known amounts with one number."""
    source, through = behind_reads(op, value, is_read_in_place)
    if _is_stored(op, source):
        return RowRead(source, axis, stride, reach, through=through)
    if through or not isinstance(value, OpResult) or not isinstance(value.op, tensor.PadOp):
        return None
    pad = value.op
    source, through = behind_reads(op, pad.source, is_read_in_place)
    plain = _is_stored(op, source) and _is_static(source) and pad_number(pad) is not None
    amounts = (*values(pad.static_low), *values(pad.static_high))
    return RowRead(source, axis, stride, reach, pad, through) if plain and min(amounts) >= 0 else None


def pad_number(op: tensor.PadOp) -> float | int | None:
    """The number that `op` pads with; None where it is none."""
    last = op.region.block.last_op
    return splat_value(last.operands[0]) if last is not None and last.operands else None


def _is_stored(op: Operation, value: SSAValue) -> bool:
    """Whether a value comes from outside of the region that `op` is in."""
    return not isinstance(value, OpResult) or value.op.parent is not op.parent


def _is_static(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and DYNAMIC_INDEX not in shape_of(value)
