"""What is decided about a multiply-add root before a kernel is built: tile, blocks, and how each operand is read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import arith, linalg, math
from xdsl.ir import Operation

from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.combinators.prefetch import NONE, Prefetch
from fuseline.targets.cpu.emit.packing import PackedColumns
from fuseline.targets.cpu.families.contraction.axes import Axis, estimated
from fuseline.targets.cpu.families.contraction.block_choice import choose_contraction_blocks
from fuseline.targets.cpu.families.contraction.constant_slice import ConstantSlice, constant_slice
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, LhsMode, RhsMode
from fuseline.targets.cpu.families.contraction.operand_modes import column_choice, lhs_mode_of, packed_constant
from fuseline.targets.cpu.families.contraction.padding_row import padding_row_elements, padding_row_steps
from fuseline.targets.cpu.families.contraction.padding_share import share_of_tiles
from fuseline.targets.cpu.families.contraction.pairs import steps_together
from fuseline.targets.cpu.families.contraction.prefetch import choose_prefetch
from fuseline.targets.cpu.families.contraction.quads import as_read
from fuseline.targets.cpu.families.contraction.reduction_blocks import (
    ReductionBlocks,
    chosen_blocks,
    modes_in_blocks,
)
from fuseline.targets.cpu.families.contraction.results import ResultPath, lone_root_paths
from fuseline.targets.cpu.families.contraction.shared_form import SharedForm
from fuseline.targets.cpu.families.contraction.work import contraction_work
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import (
    MAX_ROWS,
    MAX_VECTORS,
    Blocks,
    RowSplit,
    Share,
    Tile,
    cached_rows,
    choose_tile,
    split_in_tiles,
    split_rows,
)
from fuseline.targets.target import Refusal

STAGED_EPILOGUE = 20.5
"""Operations of an epilogue from which on it is worth a detour through scratch (one store and one load per accumulator)
to have its code once."""

LOAD = 1.5
"""Operations of an operand: its address, mostly a sum, and its load."""

STAGED_STEPS = 512
"""Reduction steps from which on the detour is no part of the time worth measuring (0.5 %), and code half the size
compiles twice as fast."""

_NO_OPERATION = frozenset((linalg.ops.GenericOp, linalg.ops.YieldOp))

_EPILOGUE_COST: dict[type[Operation], int] = {
    math.ErfOp: 24,
    math.ExpOp: 16,
    math.TanhOp: 20,
    math.LogOp: 20,
    arith.DivfOp: 4,
}


@dataclass(frozen=True, kw_only=True)
class ContractionPlan(Plan):
    """The loops with their tile, blocks and operand modes; `lines` and `tiled` are the last two row axes.

    `together`: so many steps of the innermost reduction axis are one step of the kernel, and their columns lie side by
    side.
    `form`: what it has in common with kernels that are the same code; `partial_steps`: the steps of a partial sum then.
    `cut`: the blocks that the reduction is traversed in; None: whole.
    """

    loops: ContractionLoops
    tile: Tile
    lanes: int
    blocks: Blocks
    lhs_mode: LhsMode
    rhs_mode: RhsMode
    together: int
    packed: PackedColumns | None
    constant: ConstantSlice | None
    padding_row_elements: int
    padding_row_steps: int
    prefetch: Prefetch
    paths: tuple[ResultPath, ...]
    outer: tuple[Axis, ...]
    lines: Axis | None
    tiled: Axis | None
    form: SharedForm | None = None
    partial_steps: int | None = None
    cut: ReductionBlocks | None = None

    @property
    def stages(self) -> bool:
        """Whether a tile's accumulators go through scratch to an epilogue written once, rather than once per
        accumulator."""
        if self.form is not None:
            return self.form.stages
        return self.tile.rows > 2 and (
            self._epilogue_operations >= STAGED_EPILOGUE or estimated(self.loops.steps) >= STAGED_STEPS
        )

    @property
    def _epilogue_operations(self) -> float:
        """Operations of everything but the root, whether many ops have them or few: those of bodies, and the loads of
        what none of the ops makes, each with its address."""
        others = [op for op in self.view.members if op is not self.loops.root.op]
        made = {result for op in self.view.members for result in op.results}
        loaded = {value for op in others if is_generic(op) for value in StructuredOp(op).inputs if value not in made}
        inside = [op for other in others for op in other.walk() if type(op) not in _NO_OPERATION]
        return LOAD * len(loaded) + sum(_EPILOGUE_COST.get(type(op), 1) for op in inside)

    def work_made(self, machine: Machine) -> dict[str, float]:
        """Steps that are left out, columns that each tile reads, rows that are read again for each panel."""
        return contraction_work(self, machine)

    @property
    def width(self) -> int:
        """Columns per panel."""
        return self.tile.vectors * self.lanes

    @property
    def run(self) -> int:
        """Elements that a vector of a panel holds: its columns, or several steps of each."""
        return self.lanes * self.together

    @property
    def pairs(self) -> bool:
        """Whether two steps are one of the kernel."""
        return self.together == 2

    @property
    def extents_at_once(self) -> list[Dim]:
        """How far the axes of the reduction run in what is packed at a time."""
        reduction = self.loops.reduction
        return self.cut.extents(reduction) if self.cut is not None else [axis.extent for axis in reduction]

    @property
    def box_counts(self) -> dict[int, int]:
        """How far the loops go, at the most, over the box of the image that a workgroup evaluates."""
        assert self.loops.box is not None
        pixels = self.blocks.tiles * self.tile.rows
        if self.tiled is not None and isinstance(self.tiled.extent, int):
            pixels = min(pixels, self.tiled.extent)
        return self.loops.box.counts(self.blocks.lines, pixels)

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
    loops: ContractionLoops,
    machine: Machine,
    tile: Tile | None = None,
    form: SharedForm | None = None,
    blocks: Blocks | None = None,
) -> ContractionPlan | Refusal:
    """The plan for these loops, or why its results cannot be written. `tile` and `blocks` stand in for the chosen ones,
    as far as scratch allows; `form`: that of kernels it is one of."""
    view = loops.view
    paths = lone_root_paths(view, loops.root)
    if isinstance(paths, Refusal):
        return paths
    lanes, loops = machine.lanes(loops.dtype), as_read(loops, machine)
    wanted = tile or _tile(loops, lanes, machine)
    tile, rhs_mode = column_choice(loops, wanted, lanes)
    padding_row = padding_row_elements(loops)
    lhs_mode = lhs_mode_of(loops, tile, padding_row)
    cut = chosen_blocks(loops, tile, (lhs_mode, rhs_mode))
    if cut is not None:
        lhs_mode, rhs_mode = modes_in_blocks(loops, (lhs_mode, rhs_mode))
        tile = tile if rhs_mode == "constant" else wanted
    together = steps_together(loops, lhs_mode, rhs_mode)
    blocks = choose_contraction_blocks(loops, tile, tile.vectors * lanes, (lhs_mode, rhs_mode), machine, cut, blocks)
    plan = ContractionPlan(
        view=view,
        workgroups=0,
        loops=loops,
        tile=tile,
        lanes=lanes,
        blocks=blocks,
        lhs_mode=lhs_mode,
        rhs_mode=rhs_mode,
        together=together,
        packed=packed_constant(loops, tile.vectors * lanes, together) if rhs_mode == "constant" else None,
        constant=constant_slice(view, loops.rhs) if rhs_mode == "constant" else None,
        padding_row_elements=padding_row or 0,
        padding_row_steps=padding_row_steps(loops),
        prefetch=choose_prefetch(loops, tile, blocks, rhs_mode, machine) if cut is None else NONE,
        paths=tuple(paths),
        outer=(*loops.outer, *loops.rows[:-2]),
        lines=loops.rows[-2] if len(loops.rows) > 1 else None,
        tiled=loops.rows[-1] if loops.rows else None,
        form=form,
        cut=cut,
    )
    return _finished(plan)


def _tile(loops: ContractionLoops, lanes: int, machine: Machine) -> Tile:
    extents = loops.rows[-1].extent if loops.rows else 1, loops.column.extent
    rows, columns = (extent if isinstance(extent, int) else None for extent in extents)
    return choose_tile(
        rows, columns, lanes, machine, most_rows=_most_rows(loops, machine),
        most_vectors=_most_vectors(loops, lanes, machine), temporaries=temporaries_of(loops), share=steps_taken(loops),
    )  # fmt: skip


def steps_taken(loops: ContractionLoops) -> Share | None:
    """The share of the steps that a tile takes; None where that is all of every tile."""
    is_read_in_place = lhs_mode_of(loops, Tile(1, 1), padding_row_elements(loops)) == "linear"
    return share_of_tiles(loops) if is_read_in_place else None


def temporaries_of(loops: ContractionLoops) -> int:
    """Registers that a step needs beside accumulators and columns: a broadcast; products on their way to the
    accumulators."""
    return 2 if loops.narrow and not loops.in_bytes else 1


def _most_rows(loops: ContractionLoops, machine: Machine) -> int:
    """How many rows of a tile the first-level cache keeps apart."""
    strides = [segment.operand.stride(loops.rows[-1]) for segment in loops.segments] if loops.rows else []
    return min(
        (cached_rows(stride * BYTES[loops.elements[0]], machine) for stride in strides if isinstance(stride, int)),
        default=MAX_ROWS,
    )


def _most_vectors(loops: ContractionLoops, lanes: int, machine: Machine) -> int:
    """How many columns go into a panel that the second-level cache keeps for the tiles that read it, two at the least
    (11520 steps of 17x17 rows: panels of 64 columns, 2.9 MB, take 1.4 times as long as panels of 32)."""
    if estimated(d.product(axis.extent for axis in loops.rows)) <= MAX_ROWS:
        return MAX_VECTORS
    vector_bytes = estimated(loops.steps) * lanes * BYTES[loops.elements[1]]
    return max(2, min(MAX_VECTORS, machine.l2_bytes // vector_bytes))


def _finished(plan: ContractionPlan) -> ContractionPlan:
    layouts = {}
    if plan.packed is not None and plan.constant is not None:
        layouts = {plan.view.tensors.index(plan.constant.argument): plan.packed.layout}
    blocks = f"{plan.blocks.lines}x{plan.blocks.tiles}x{plan.blocks.panels}"
    notes = {"tile": f"{plan.tile.rows}x{plan.width}", "block": blocks, "lhs": _lhs_note(plan), "rhs": plan.rhs_mode}
    if plan.cut is not None:
        notes["steps"] = f"{'x'.join(map(str, plan.cut.steps.values()))} at a time"
    return replace(plan, workgroups=d.product(plan.grid), constant_layouts=layouts, notes=notes)


def _lhs_note(plan: ContractionPlan) -> str:
    return "segments" if plan.lhs_mode == "linear" and len(plan.loops.segments) > 1 else plan.lhs_mode
