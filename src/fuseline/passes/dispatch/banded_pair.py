"""Two dispatches that could be one over bands of rows: a convolution, and the one that reads its result through a
window (or moves it: `banded_move.py`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from math import prod
from typing import cast

from xdsl.dialects import arith, linalg, tensor
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.convolution_dims import convolution_dims
from fuseline.analysis.cost import num_bytes
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import (
    CHANNEL_WINDOWS,
    DENSE,
    PRODUCTS,
    Kind,
    StructuredOp,
    is_generic,
    is_reduction,
    kind,
)
from fuseline.dispatch.fused_loops import Role, members_of
from fuseline.ir.build import shape_of
from fuseline.ir.costs import assumed_size
from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import users_of_value
from fuseline.ir.flow import DispatchRegionOp
from fuseline.passes.dispatch.region_rows import (
    RegionRows,
    RowRead,
    behind_reads,
    is_elementwise_read,
    pad_number,
    region_loops,
    rows_of_region,
)
from fuseline.passes.dispatch.row_bands import Bands
from fuseline.targets.target import Refusal


class Sharing(Enum):
    """How the second of two dispatches reads the image: through a window over all channels, through one channel by
    channel, or to put its elements elsewhere."""

    WINDOW = auto()
    CHANNEL_WINDOW = auto()
    MOVE = auto()


@dataclass(frozen=True)
class BandedPair:
    """Two regions: `maker` makes `image`, which only `reader` reads, as `read` says; `axis` of it are the rows.

    A window channel by channel may have a `follower`: a region that alone reads the result of `reader`, row by row.
    `opened`: the reshape of the image that the reader reads, where it reads one.
    """

    maker: RegionRows
    reader: RegionRows
    read: RowRead
    sharing: Sharing = Sharing.WINDOW
    follower: RegionRows | None = None
    opened: tensor.ExpandShapeOp | None = None

    @property
    def is_cached(self) -> bool:
        """Whether they share bands for the time, which a core's cache keeps, and not for the memory of a run."""
        return self.sharing is not Sharing.WINDOW

    @property
    def parts(self) -> tuple[RegionRows, ...]:
        """The regions, in order."""
        return (self.maker, self.reader, *([self.follower] if self.follower is not None else []))

    @property
    def last(self) -> RegionRows:
        """The region whose results are those of all."""
        return self.parts[-1]

    @property
    def image(self) -> SSAValue:
        """The result that lies between them."""
        return self.maker.region.results[0]

    @property
    def rows(self) -> int:
        """Rows of the reader's results."""
        value = self.last.results[0]
        return shape_of(value)[self.last.axes[value]]

    @property
    def image_rows(self) -> int:
        """Rows of the image."""
        return shape_of(self.read.value)[self.read.axis]

    def handed_on(self, shapes: ShapeAnalysis) -> int:
        """Bytes of what the follower reads of the reader; 0 where there is no follower."""
        return assumed_size(num_bytes(self.reader.results[0], shapes)) if self.follower is not None else 0

    def kept_beside(self, shapes: ShapeAnalysis) -> int:
        """Bytes of the largest value behind the image that products read, of all rows."""
        computed = {value for rows in self.parts[1:] for value in (*rows.axes, *rows.region.results)}
        reads = (one for rows in self.parts[1:] for op in rows.loops if is_reduction(op) for one in rows.reads[op])
        read = {one.value for one in reads if one is not None and one.pad is None}
        return max((assumed_size(num_bytes(value, shapes)) for value in read & computed), default=0)

    @property
    def is_outermost(self) -> bool:
        """Whether all that lies before the rows of each result has one element: then some rows of it lie in one
        piece."""
        return all(prod(shape_of(value)[: self.last.axes[value]]) == 1 for value in self.last.results)

    @property
    def is_moved(self) -> bool:
        """Whether the reader only puts the elements of the image elsewhere."""
        return self.sharing is Sharing.MOVE

    @property
    def moves_singly(self) -> bool:
        """Whether it puts elements elsewhere one by one: those that lie side by side in what is read do not in all that
        is made of it."""
        if not self.is_moved:
            return False
        ((op, _),) = self.reader.reading(self.read.value)
        view = StructuredOp(op)
        read = view.input_maps[view.inputs.index(self.read.value)].results[-1]
        return any(map_.results[-1] != read for map_ in view.output_maps)

    def of_image(self, bands: Bands) -> Bands:
        """The bands of the image that those of the reader's results need."""
        needed = bands.read_by(self.read)
        above = attributes.values(self.read.pad.static_low)[self.read.axis] if self.read.pad is not None else 0
        return replace(needed, before=needed.before + above)


def banded_pair(region: DispatchRegionOp, shapes: ShapeAnalysis) -> BandedPair | Refusal:
    """`region` with the one that reads its only result through a window, or why they cannot share bands."""
    image = region.results[0]
    reader = only_reader(image)
    window = _window(reader, image) if reader is not None else None
    found = _rows_of(window, image) if window is not None else None
    if reader is None or window is None or found is None:
        return Refusal("window", "it is not read by one convolution alone")
    loop, axis = found
    grid = grid_loop_of_result(region, axis, shapes), grid_loop(reader, window, loop, shapes)
    if grid[0] is None or grid[1] is None:
        return Refusal("loops", "its rows are no loop of the grid")
    above, below = rows_of_region(region, grid[0], shapes), rows_of_region(reader, grid[1], shapes)
    if isinstance(above, Refusal) or isinstance(below, Refusal):
        return above if isinstance(above, Refusal) else cast(Refusal, below)
    if kind(window) not in CHANNEL_WINDOWS:
        return _paired(above, below, image, axis, Sharing.WINDOW)
    pair = _paired(above, below, image, axis, Sharing.CHANNEL_WINDOW)
    return replace(pair, follower=_follower(pair, shapes)) if isinstance(pair, BandedPair) else pair


def _paired(
    maker: RegionRows, reader: RegionRows, image: SSAValue, axis: int, sharing: Sharing
) -> BandedPair | Refusal:
    """The pair, where each has one root (only products and windows, where the window is channel by channel) and all
    results are cut along the rows."""
    has_roots = _has_one_root if sharing is Sharing.WINDOW else has_products
    roots = [has_roots(rows) for rows in (maker, reader)]
    if not all(roots):
        return Refusal("roots", "several ops of one dispatch reduce, or none is a product")
    reads = reader.reading(image)
    if len(reads) != 1 or reads[0][1].axis != axis or maker.axes.get(maker.results[0]) != axis:
        return Refusal("reads", "its rows are not read along one loop")
    if reads[0][1].pad is not None and not has_border(reads[0][1]):
        return Refusal("reads", "the number around the image is none of its type")
    if not all(value in reader.axes for value in reader.results):
        return Refusal("results", "what the reader returns is not computed row by row")
    return BandedPair(maker, reader, reads[0][1], sharing)


def has_border(read: RowRead) -> bool:
    """Whether the number of a pad is one of what is padded, before it is converted, too."""
    bodies = [list(op.body.block.ops) for op in read.through]
    widened = all(isinstance(ops[0], arith.ExtFOp) and len(ops) == 2 for ops in bodies)
    return read.pad is None or not read.through or (widened and pad_number(read.pad) == 0)


def _follower(pair: BandedPair, shapes: ShapeAnalysis) -> RegionRows | None:
    """The region that alone reads what the reader returns, in step with its rows."""
    if len(pair.reader.results) != 1:
        return None
    (made,) = pair.reader.region.results
    region = only_reader(made)
    loop = loop_in_step(region, made, pair.reader.axes[pair.reader.results[0]]) if region is not None else None
    grid = grid_loop(region, *loop, shapes) if region is not None and loop is not None else None
    found = rows_of_region(region, grid, shapes) if region is not None and grid is not None else None
    if not isinstance(found, RegionRows) or not has_products(found):
        return None
    reads = [read for _, read in found.reading(made)]
    in_step = all(read.in_step and read.axis == pair.reader.axes[pair.reader.results[0]] for read in reads)
    return found if reads and in_step and all(value in found.axes for value in found.results) else None


def loop_in_step(region: DispatchRegionOp, value: SSAValue, axis: int) -> tuple[Operation, int] | None:
    """The only op of `region` that reads `value`, and its loop along `axis` of it."""
    user, value = _behind_conversions(value)
    if not is_generic(user) or user.parent is not region.body.block or value not in user.inputs:
        return None
    view = StructuredOp(user)
    expr = view.input_maps[view.inputs.index(value)].results[axis]
    return (user, expr.position) if isinstance(expr, AffineDimExpr) else None


def _has_one_root(rows: RegionRows) -> bool:
    reducing = [op for op in rows.loops if is_reduction(op)]
    return len(reducing) == 1 and kind(reducing[0]) in DENSE


def has_products(rows: RegionRows) -> bool:
    """Whether something multiplies and sums, and nothing else reduces."""
    reducing = [op for op in rows.loops if is_reduction(op)]
    return bool(reducing) and all(kind(op) in PRODUCTS for op in reducing)


def only_reader(image: SSAValue) -> DispatchRegionOp | None:
    """The region that alone reads a value; None where several ops do, or another one."""
    users = users_of_value(image)
    home = users[0].parent_op() if len(users) == 1 else None
    return home if type(home) is DispatchRegionOp else None


def _behind_conversions(value: SSAValue) -> tuple[Operation, SSAValue]:
    """The op behind all that makes each element anew from the same one of `value`, which one op reads, and what it
    reads."""
    (user,) = users_of_value(value)
    while is_elementwise_read(user) and len(users_of_value(user.results[0])) == 1:
        value = user.results[0]
        (user,) = users_of_value(value)
    return user, value


def _window(reader: DispatchRegionOp, image: SSAValue) -> linalg.ops.GenericOp | None:
    """The convolution of `reader` that reads `image`, or a pad of it."""
    user, _ = _behind_conversions(image)
    if isinstance(user, tensor.PadOp):
        further = users_of_value(user.result)
        user = further[0] if len(further) == 1 else user
    known = is_generic(user) and user.parent is reader.body.block and kind(user) in (Kind.CONVOLUTION, Kind.DEPTHWISE)
    return cast(linalg.ops.GenericOp, user) if known else None


def _rows_of(window: linalg.ops.GenericOp, image: SSAValue) -> tuple[int, int] | None:
    """The loop of a convolution that is its slowest window, and the dimension of the image along it; None where `image`
    is its filter."""
    roles = convolution_dims(StructuredOp(window))
    if roles is None or not roles.spatial:
        return None
    slid = window.inputs[roles.image]
    if isinstance(slid.owner, tensor.PadOp) and slid is not image:
        slid = slid.owner.source
    slid, _ = behind_reads(window, slid)
    return (roles.spatial[0].loop, roles.spatial_axes[0]) if slid is image else None


def grid_loop(region: DispatchRegionOp, op: Operation, loop: int, shapes: ShapeAnalysis) -> int | None:
    """The grid loop that loop `loop` of a member is."""
    loops = region_loops(region, shapes)
    number = next((i for i, one in enumerate(members_of(region.body.block)) if one is op), None)
    if loops is None or number is None or loops.members[number].role is not Role.PLACED:
        return None
    return loops.members[number].grid_loops[loop]


def grid_loop_of_result(region: DispatchRegionOp, axis: int, shapes: ShapeAnalysis) -> int | None:
    """The grid loop along dimension `axis` of what a region returns."""
    end = region.body.block.last_op
    value = end.operands[0] if end is not None else None
    if not isinstance(value, OpResult) or not is_generic(value.op):
        return None
    expr = StructuredOp(value.op).output_maps[value.index].results[axis]
    return grid_loop(region, value.op, expr.position, shapes) if isinstance(expr, AffineDimExpr) else None
