"""What is decided about a multiply-add root before a kernel is built: tile, blocks, and how each operand is read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import arith, math
from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.linear_forms import Linear
from fuseline.analysis.operand_access import Bound
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.combinators.prefetch import Prefetch
from fuseline.targets.cpu.emit.packing import PackedColumns, packed_columns
from fuseline.targets.cpu.families.contraction.loops import (
    Axis,
    ConstantPart,
    ContractionLoops,
    LhsMode,
    Operand,
    RhsMode,
    RowSegment,
    constant_part,
    estimated,
)
from fuseline.targets.cpu.families.contraction.pairs import reads_as_stored, takes_pairs, walks_across
from fuseline.targets.cpu.families.contraction.prefetch import choose_prefetch, row_tiles
from fuseline.targets.cpu.families.contraction.results import ResultPath, result_paths
from fuseline.targets.cpu.families.contraction.shared_form import SharedForm
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import (
    MAX_ROWS,
    BlockedWork,
    Blocks,
    RowSplit,
    Tile,
    cached_rows,
    choose_blocks,
    choose_tile,
    split_in_tiles,
    split_rows,
)
from fuseline.targets.target import Refusal

PANEL_LIMIT, ROWS_LIMIT = 128 * 1024, 112 * 1024
"""Bytes of scratch that a panel of columns and a block of rows may take: together within 256 KiB, half a second-level
cache."""

PAGE_LIMIT = 16 * 1024
"""Elements of the padding row; a reach beyond it is packed instead."""

STAGED_EPILOGUE = 24
"""Operations of an epilogue from which on it is worth a detour through scratch (one store and one load per accumulator)
to have its code once."""

STAGED_STEPS = 512
"""Reduction steps from which on the detour is no part of the time worth measuring (0.5 %), and code half the size
compiles twice as fast."""

_EPILOGUE_COST: dict[type[Operation], int] = {
    math.ErfOp: 24,
    math.ExpOp: 16,
    math.TanhOp: 20,
    math.LogOp: 20,
    arith.DivfOp: 4,
}

PACKING_REUSE = 4
"""A runtime operand that could be read in place is packed when this many row tiles of a workgroup read each panel."""


@dataclass(frozen=True, kw_only=True)
class ContractionPlan(Plan):
    """The loops with their tile, blocks and operand modes; `lines` and `tiled` are the last two row axes.

    `pairs`: two steps of the innermost reduction axis are one step of the kernel, and their columns lie side by side.
    `form`: what it has in common with kernels that are the same code; `part`: the steps of a partial sum then.
    """

    loops: ContractionLoops
    tile: Tile
    lanes: int
    blocks: Blocks
    lhs_mode: LhsMode
    rhs_mode: RhsMode
    pairs: bool
    packed: PackedColumns | None
    constant: ConstantPart | None
    padding_row_elements: int
    padding_row_steps: int
    prefetch: Prefetch
    paths: tuple[ResultPath, ...]
    outer: tuple[Axis, ...]
    lines: Axis | None
    tiled: Axis | None
    form: SharedForm | None = None
    part: int | None = None

    @property
    def stages(self) -> bool:
        """Whether a tile's accumulators go through scratch to an epilogue written once, rather than once per
        accumulator."""
        if self.form is not None:
            return self.form.stages
        epilogue = sum(
            _EPILOGUE_COST.get(type(op), 1)
            for member in self.view.members
            if member is not self.loops.root.op
            for op in member.walk()
        )
        return self.tile.rows > 2 and (epilogue >= STAGED_EPILOGUE or estimated(self.loops.steps) >= STAGED_STEPS)

    @property
    def width(self) -> int:
        """Columns per panel."""
        return self.tile.vectors * self.lanes

    @property
    def run(self) -> int:
        """Elements that a vector of a panel holds: its columns, or pairs of them."""
        return self.lanes * 2 if self.pairs else self.lanes

    @property
    def split(self) -> RowSplit | None:
        """The tiles along the tiled axis; None where its extent is only known at run time."""
        extent = self.tiled.extent if self.tiled is not None else 1
        if not isinstance(extent, int):
            return None
        if self.form is not None:
            return split_in_tiles(extent, self.form.height)
        return split_rows(extent, self.tile.rows)

    @property
    def tile_count(self) -> Dim:
        """Tiles along the tiled axis."""
        split = self.split
        if split is not None:
            return split.count
        assert self.tiled is not None
        return d.ceil_div(self.tiled.extent, self.tile.rows)

    @property
    def panel_count(self) -> Dim:
        """Panels of columns."""
        return d.ceil_div(self.loops.column.extent, self.width)

    @property
    def grid(self) -> tuple[Dim, ...]:
        """Extents of the grid of workgroups, slowest first: outer axes, then line, tile and panel blocks (panels first
        if columns are outer)."""
        lines = d.ceil_div(self.lines.extent, self.blocks.lines) if self.lines is not None else 1
        most = d.upper_bound(self.tile_count) if self.form is not None else None
        is_one = most is not None and most <= self.blocks.tiles  # said alike, whatever the number is made of
        tiles = 1 if is_one else d.ceil_div(self.tile_count, self.blocks.tiles)
        panels = d.ceil_div(self.panel_count, self.blocks.panels)
        inner = (panels, lines, tiles) if self.blocks.columns_outer else (lines, tiles, panels)
        return (*(axis.extent for axis in self.outer), *inner)


def plan_contraction(
    loops: ContractionLoops, machine: Machine, tile: Tile | None = None, form: SharedForm | None = None
) -> ContractionPlan | Refusal:
    """The plan for these loops, or why its results cannot be written. `tile` stands in for the chosen one, to measure
    others; `form`: that of kernels it is one of."""
    view = loops.view
    if unsupported_members(view, loops.root.op):
        return Refusal("second-reduction", "an op reduces beside the root")
    paths = result_paths(view)
    if isinstance(paths, Refusal):
        return paths
    lanes = machine.lanes(loops.dtype)
    tile, rhs_mode = _column_choice(loops, tile or _tile(loops, lanes, machine), lanes)
    padding_row = padding_row_elements(loops)
    lhs_mode = _lhs_mode(loops, tile, padding_row)
    pairs = takes_pairs(loops, lhs_mode, rhs_mode)
    blocks = _blocks(loops, tile, tile.vectors * lanes, (lhs_mode, rhs_mode), machine)
    plan = ContractionPlan(
        view=view,
        workgroups=0,
        loops=loops,
        tile=tile,
        lanes=lanes,
        blocks=blocks,
        lhs_mode=lhs_mode,
        rhs_mode=rhs_mode,
        pairs=pairs,
        packed=_packed(loops, tile.vectors * lanes, pairs) if rhs_mode == "constant" else None,
        constant=constant_part(view, loops.rhs) if rhs_mode == "constant" else None,
        padding_row_elements=padding_row or 0,
        padding_row_steps=_padding_row_steps(loops),
        prefetch=choose_prefetch(loops, tile, blocks, rhs_mode, machine),
        paths=tuple(paths),
        outer=(*loops.outer, *loops.rows[:-2]),
        lines=loops.rows[-2] if len(loops.rows) > 1 else None,
        tiled=loops.rows[-1] if loops.rows else None,
        form=form,
    )
    return _finished(plan)


def _tile(loops: ContractionLoops, lanes: int, machine: Machine) -> Tile:
    rows, columns = loops.rows[-1].extent if loops.rows else 1, loops.column.extent
    known = [extent if isinstance(extent, int) else None for extent in (rows, columns)]
    temporaries = 2 if loops.narrow else 1  # a broadcast; products on their way to the accumulators
    return choose_tile(
        known[0], known[1], lanes, machine, most_rows=_most_rows(loops, machine), temporaries=temporaries
    )


def _most_rows(loops: ContractionLoops, machine: Machine) -> int:
    """How many rows of a tile the first-level cache keeps apart."""
    strides = [segment.operand.stride(loops.rows[-1]) for segment in loops.segments] if loops.rows else []
    return min(
        (cached_rows(stride * BYTES[loops.elements[0]], machine) for stride in strides if isinstance(stride, int)),
        default=MAX_ROWS,
    )


def _finished(plan: ContractionPlan) -> ContractionPlan:
    layouts = {}
    if plan.packed is not None and plan.constant is not None:
        layouts = {plan.view.tensors.index(plan.constant.argument): plan.packed.layout}
    blocks = f"{plan.blocks.lines}x{plan.blocks.tiles}x{plan.blocks.panels}"
    notes = {"tile": f"{plan.tile.rows}x{plan.width}", "block": blocks, "lhs": _lhs_note(plan), "rhs": plan.rhs_mode}
    return replace(plan, workgroups=d.product(plan.grid), constant_layouts=layouts, notes=notes)


def _lhs_note(plan: ContractionPlan) -> str:
    return "segments" if plan.lhs_mode == "linear" and len(plan.loops.segments) > 1 else plan.lhs_mode


def unsupported_members(view: DispatchView, root: Operation) -> bool:
    """Whether a second op reduces: it would be computed anew for every element that asks for it."""
    members = [(op, view.structured(op)) for op in view.members if op is not root]
    return any(structured is not None and bool(structured.reduction) for _, structured in members)


# operands -------------------------------------------------------------------------------------------------------------


def padding_row_elements(loops: ContractionLoops) -> int | None:
    """How many pad values the loops inside an edge check reach; 0 without edges, None where addresses cannot be chosen
    per tile."""
    reaches = [_padding_row_of(loops, segment) for segment in loops.segments]
    known = [reach for reach in reaches if reach is not None]
    return max(known) if known and len(known) == len(reaches) and max(known) <= PAGE_LIMIT else None


def _padding_row_of(loops: ContractionLoops, segment: RowSegment) -> int | None:
    rounds = [_level(segment, q.numerator) for q in segment.access.floordiv_terms]
    if any(level is None or 0 < len(segment.reduction) == level for level in rounds):
        return None
    reach = 0
    for bound in segment.access.bounds:
        level = _level(segment, bound.coordinate)
        if level and _clips(loops, segment, bound):
            continue
        inner = segment.reduction[level:] if level is not None else None
        steps = [_reach(segment, axis) for axis in inner] if inner is not None else [None]
        if None in steps or level is None or any(later is not None and later > level for later in rounds):
            return None
        reach = max(reach, 1 + sum(step for step in steps if step is not None))
    return reach


def _clips(loops: ContractionLoops, segment: RowSegment, bound: Bound) -> bool:
    """Whether a bound shortens a loop of the reduction: it is the same for all rows of a tile, and padding adds
    nothing."""
    tiled = loops.rows[-1].inner if loops.rows else None
    return segment.access.pad == 0 and tiled not in bound.coordinate.terms


def _padding_row_steps(loops: ContractionLoops) -> int:
    """The reduction steps that follow an edge check of a tile's rows: the fewest of a segment, on average over the
    segments."""
    tiled = loops.rows[-1].inner if loops.rows else None
    steps: list[int] = []
    for segment in loops.segments:
        levels = [
            _level(segment, bound.coordinate) for bound in segment.access.bounds if tiled in bound.coordinate.terms
        ]
        found = [
            estimated(d.product(axis.extent for axis in segment.reduction[level:]))
            for level in levels
            if level is not None
        ]
        steps += [min(found)] if found else []
    return sum(steps) // len(steps) if steps else PAGE_LIMIT


def _level(segment: RowSegment, form: Linear) -> int | None:
    """The level of the reduction nest at which a coordinate is known (one past its own axis); None where it never
    is."""
    mine = [i for i, axis in enumerate(segment.reduction) if any(loop in form.terms for loop in axis.loops)]
    if len(mine) > 1:
        return None
    for i in mine:
        coefficient = form.terms[segment.reduction[i].inner]
        if not isinstance(coefficient, int) or coefficient <= 0 or len(segment.reduction[i].loops) > 1:
            return None
    return mine[0] + 1 if mine else 0


def _reach(segment: RowSegment, axis: Axis) -> int | None:
    stride, extent = segment.operand.stride(axis), axis.extent
    return stride * (extent - 1) if isinstance(stride, int) and isinstance(extent, int) and stride >= 0 else None


def _lhs_mode(loops: ContractionLoops, tile: Tile, padding_row: int | None) -> LhsMode:
    linear = padding_row is not None and reads_as_stored(loops)
    if linear and not walks_across(loops):
        return "linear"
    steps = loops.steps
    fits = isinstance(steps, int) and tile.rows * (steps + 64) * BYTES[loops.elements[0]] <= ROWS_LIMIT
    return "packed" if fits else "linear" if linear else "pulled"


def _column_choice(loops: ContractionLoops, tile: Tile, lanes: int) -> tuple[Tile, RhsMode]:
    """How columns are read, and the tile, narrowed where a panel of it would not fit the scratch."""
    narrowed = _constant_tile(loops, tile, lanes)
    if narrowed is not None:
        return narrowed, "constant"
    access = loops.rhs.access
    in_place = access is not None and not access.bounds and loops.rhs.stride(loops.column) == 1
    if in_place and row_tiles(loops, tile) < PACKING_REUSE:
        return tile, "direct"
    panel = _panel_bytes(loops, lanes)
    vectors = tile.vectors
    while panel is not None and vectors > 1 and vectors * panel > PANEL_LIMIT:
        vectors //= 2
    if panel is not None and vectors * panel <= PANEL_LIMIT:
        return Tile(tile.rows, vectors), "packed"
    return tile, "direct" if in_place else "pulled"


def _constant_tile(loops: ContractionLoops, tile: Tile, lanes: int) -> Tile | None:
    """The tile for columns packed at compile time, narrowed where a part of them must begin with a panel; None where
    they cannot be packed."""
    part = constant_part(loops.view, loops.rhs)
    if part is None or any(axis.inner in part.starts for axis in loops.reduction):
        return None
    start = part.starts.get(loops.column.inner, 0)
    for vectors in range(tile.vectors, 0, -1):
        if d.mul(d.floor_div(start, vectors * lanes), vectors * lanes) == start:
            return Tile(tile.rows, vectors)
    return None


def _panel_bytes(loops: ContractionLoops, lanes: int) -> int | None:
    """Bytes of a panel of one vector; None where its size is only known at run time."""
    rest = d.product(axis.extent for axis in loops.reduction[:-1])
    last = loops.reduction[-1].extent if loops.reduction else 1
    if not isinstance(rest, int) or not isinstance(last, int):
        return None
    run = 2 * lanes if loops.narrow else lanes
    return rest * -(-last // run) * run * lanes * BYTES[loops.elements[0]]


def _packed(loops: ContractionLoops, width: int, pairs: bool) -> PackedColumns:
    operand: Operand = loops.rhs
    part = constant_part(loops.view, operand)
    assert part is not None
    shape = [size for size in loops.view.shapes.dims(part.argument) if isinstance(size, int)]
    filter_loops = [expr.position if isinstance(expr, AffineDimExpr) else None for expr in operand.map.results]
    outer = [loop for axis in loops.outer for loop in axis.loops]
    outer += [loop for loop in part.starts if loop not in (*outer, loops.column.inner)]
    reduction = [loop for axis in loops.reduction for loop in axis.loops]
    return packed_columns(shape, filter_loops, loops.column.inner, outer, reduction, width, pairs=pairs)


# blocks ---------------------------------------------------------------------------------------------------------------


def _blocks(
    loops: ContractionLoops, tile: Tile, width: int, modes: tuple[LhsMode, RhsMode], machine: Machine
) -> Blocks:
    lhs_size, rhs_size = (BYTES[element] for element in loops.elements)
    lines = estimated(loops.rows[-2].extent) if len(loops.rows) > 1 else 1
    row_extent = estimated(loops.rows[-1].extent) if loops.rows else 1
    outer = 1
    for axis in (
        *loops.outer,
        *loops.rows[:-2],
    ):  # a batch known at run time may be 1, and must be shared out even then
        outer *= axis.extent if isinstance(axis.extent, int) else 1
    steps, columns = estimated(loops.steps), estimated(loops.column.extent)
    tiles, panels = -(-row_extent // tile.rows), -(-columns // width)
    blocks = choose_blocks(
        BlockedWork(
            outer=outer, lines=lines, tiles=tiles, panels=panels, tile_flops=2 * tile.rows * width * steps,
            lhs_bytes=_lhs_elements(loops, lines * row_extent, steps) * lhs_size,
            rhs_bytes=columns * steps * rhs_size,
            repacks_rhs=modes[1] == "packed", repacks_lhs=modes[0] != "linear", serial=loops.view.serial,
        ),
        machine,
    )  # fmt: skip
    return _within_scratch(blocks, tile, steps * lhs_size) if modes[0] == "packed" else blocks


def _lhs_elements(loops: ContractionLoops, rows: int, steps: int) -> int:
    """Elements of the left operand behind `rows` rows: overlapping windows count once."""
    total = 0
    for source in {segment.access.source for segment in loops.segments}:
        total += estimated(d.product(loops.view.shapes.dims(source)))
    return min(rows * steps, total or rows * steps)


def _within_scratch(blocks: Blocks, tile: Tile, row_bytes: int) -> Blocks:
    """Fewer rows per workgroup, so that a packed block of them fits its scratch; blocks as equal as can be."""
    rows = max(1, ROWS_LIMIT // row_bytes)
    tiles = _shared_out(blocks.tiles, rows // tile.rows)
    lines = _shared_out(blocks.lines, rows // (tiles * tile.rows))
    return Blocks(lines, tiles, blocks.panels, blocks.columns_outer)


def _shared_out(count: int, most: int) -> int:
    """The size of equal parts of `count`, of at most `most` each (and at least 1)."""
    return -(-count // -(-count // max(1, most)))
