"""What a block of a blocked dispatch costs, in cycles, and what it keeps in scratch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import BlockArgument, SSAValue

from fuseline.analysis.structured import HEAVY, Kind, StructuredOp, body_ops, kind
from fuseline.analysis.window_overlap import has_overlapping_windows
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir.costs import small_sizes
from fuseline.ir.dim import Dim, symbols
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.blocked.dispatch import BlockedDispatch, starts_empty
from fuseline.targets.cpu.families.blocked.sub_kernels import LiveRange, peak_live
from fuseline.targets.cpu.families.contraction.axes import estimated
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.isa.core_rates import (
    FMA_PER_CYCLE,
    L2_VECTORS_PER_CYCLE,
    MEMORY_BYTES_PER_CYCLE,
    SHARED_BYTES_PER_CYCLE,
    SHARED_CACHE_BYTES,
    SPILLED_BYTES_PER_CYCLE,
)
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES

BLOCK_CYCLES = 3000
"""What a block costs beside its work: loops that start, panels that are cut short, the claim of a workgroup."""

SCRATCH_BYTES, MOST_SCRATCH_BYTES = 1024 * 1024, 8 * 1024 * 1024
"""What the values between sub-kernels should take of a thread's scratch at a time where a window overlaps others (the
machine says it where none does, as in products, `block_bytes`); and at most, where no block is small enough for that:
to store them beyond the second-level cache is still far better than to compute them anew."""

POINT_CYCLES, OPERATION_CYCLES = 4.0, 1.25
"""What a point of an op that is no product or window costs at the least, in steps of a root; and each of its
operations, where they are many: one op of several operations costs about as much as several ops."""

RAGGED = 1.05
"""What it costs that extents are only known at run time."""

RAGGED_LANES = 3.0
"""The same along the lanes of a window, where the last block is a smaller one (65x65 pixels of 72 channels, a product,
relu and 3x3 window: 32 at a time 720 us, 36 at a time 204)."""

PACKED_CYCLES = 0.2
"""What an element of a constant takes that is packed in every run because blocks end inside of a vector of its columns,
beside what else differs with them (36x728x728 before a window: 364 columns at a time 391 us, all at once 278;
361x728x728: 3420 and 3800)."""

VALUES_NEAR, IMAGES_NEAR = 1 / 2, 1 / 8
"""The share of the second-level cache that values between sub-kernels may take and stay there; and where a window
traverses over them, beside what it reads and writes (measured with 56 x 56 pixels, 200 KB: 196 us, 600 KB: 362 us)."""

UNBALANCED = 0.1
"""The share of a thread's work that may wait for the others with one block per thread, less with more."""


@dataclass(frozen=True, slots=True)
class _Volume:
    """Elements that shrink with the block: `full` for the whole grid, and the loops of the grid that they depend on."""

    full: float
    axes: tuple[LoopRef, ...]

    def at(self, share: Mapping[LoopRef, float]) -> float:
        """How many there are in a block that takes these shares of the loops."""
        return self.full * prod(share[axis] for axis in self.axes)


class BlockPrice:
    """Prices blocks of the loops `grid`. `live` are the values between sub-kernels, `streamed` is a loop that runs
    inside, block by block."""

    def __init__(
        self,
        dispatch: BlockedDispatch,
        grid: Sequence[LoopRef],
        live: Sequence[LiveRange],
        machine: Machine,
        policy: Policy,
        streamed: LoopRef | None = None,
    ) -> None:
        self.dispatch, self.grid, self.machine, self.threads = dispatch, grid, machine, max(1, policy.threads)
        self.streamed = streamed
        self.ragged = {axis: dispatch.axes.extents[axis] for axis in grid}
        self.extents = {axis: float(estimated(extent)) for axis, extent in self.ragged.items()}
        windows = any(self._overlaps(StructuredOp(op)) for op in dispatch.placed)
        shared = [axis for axis in grid if axis != streamed]
        names = {symbol.name for extent in dispatch.axes.extents.values() for symbol in symbols(extent)}
        image = len(names) > (1 if windows else 2)  # else a batch, or a batch and rows
        few = small_sizes([self.ragged[axis] for axis in shared], image=image)
        small = dict(zip(shared, map(float, few), strict=True))
        self.small = {axis: min(small.get(axis, extent), extent) for axis, extent in self.extents.items()}
        self.shrinkage = prod(self.small[axis] / self.extents[axis] for axis in grid)
        self.live = live
        self.live_volumes = [(self._of_value(one.value), BYTES[dtype_of(one.value.type)]) for one in live]
        self.work: list[_Volume] = []
        self.read: list[tuple[_Volume, int]] = []
        self.columns: list[tuple[_Volume, LoopRef]] = []
        self.contiguous: dict[LoopRef, int] = {}  # and how many vectors are a step along it
        for op in dispatch.placed:
            self._add(StructuredOp(op))
        self.most_held = SCRATCH_BYTES if windows else machine.costs.block_bytes

    def _overlaps(self, op: StructuredOp) -> bool:
        return has_overlapping_windows(op, op.loops(self.dispatch.view.shapes))

    def _of_value(self, value: SSAValue) -> _Volume:
        return self._volume(
            [axis for axis in self.dispatch.axes.of_value(value) if axis is not None],
            self.dispatch.view.shapes.dims(value),
        )

    def _volume(self, axes: Sequence[LoopRef], dims: Sequence[Dim]) -> _Volume:
        return _Volume(float(prod(estimated(size) for size in dims)), tuple(axis for axis in self.grid if axis in axes))

    def _add(self, op: StructuredOp) -> None:
        dispatch, loops = self.dispatch, self.dispatch.axes.of_op(op.op)
        heavy = kind(op.op) in HEAVY
        for axis in [axis for axis in dispatch.axes.of_value(op.op.results[0]) if heavy and axis is not None][-1:]:
            vectors = 1 if kind(op.op) is Kind.DEPTHWISE else 2
            self.contiguous[axis] = min(vectors, self.contiguous.get(axis, 2))
        cost = 1.0 if heavy else max(POINT_CYCLES, OPERATION_CYCLES * len(list(body_ops(op.op))))
        work = self._volume([axis for axis in loops if axis is not None], op.loops(dispatch.view.shapes))
        self.work.append(_Volume(work.full * cost, work.axes))
        for value, map_ in zip(op.inputs, op.input_maps, strict=True):
            if not dispatch.is_inside(value) and not starts_empty(value):
                axes = [axis for loop in map_.used_dims() if (axis := loops[loop]) is not None]
                volume = self._volume(axes, dispatch.view.shapes.dims(value))
                self.read.append((volume, BYTES[dtype_of(value.type)]))
                if (
                    kind(op.op) is Kind.CONTRACTION
                    and isinstance(value, BlockArgument)
                    and dispatch.view.is_constant(value)
                ):
                    self.columns += [(volume, axis) for axis in volume.axes if axis in self.contiguous]

    @property
    def has_window(self) -> bool:
        """Whether a window traverses over an image."""
        return 1 in self.contiguous.values()

    @property
    def near_bytes(self) -> float:
        """What may lie between sub-kernels and still be near."""
        images = self.has_window and bool(self.live)
        return self.machine.l2_bytes * (IMAGES_NEAR if images else VALUES_NEAR)

    def price(self, sizes: Mapping[LoopRef, int]) -> tuple[float, float]:
        """How many bytes too many the block keeps in scratch, and what the dispatch costs on its threads, roughly
        (cycles)."""
        over = max(0.0, self.held(sizes) - self.most_held)
        return over, self._cycles(sizes, self.extents) + (
            self._cycles(sizes, self.small) / self.shrinkage if self.shrinkage != 1 else 0
        )

    def held(self, sizes: Mapping[LoopRef, int]) -> float:
        """Bytes that the block keeps in scratch at a time."""
        full = {axis: min(size, self.extents[axis]) / self.extents[axis] for axis, size in sizes.items()}
        held = [
            0 if one.stored else volume.at(full) * size
            for one, (volume, size) in zip(self.live, self.live_volumes, strict=True)
        ]
        return peak_live(self.live, held)

    def _cycles(self, sizes: Mapping[LoopRef, int], extents: Mapping[LoopRef, float]) -> float:
        """The cost where the loops of the grid have these extents."""
        share = {axis: min(size, extents[axis]) / self.extents[axis] for axis, size in sizes.items()}
        blocks = prod(-(-extents[axis] // size) for axis, size in sizes.items() if axis != self.streamed)
        steps = prod(-(-extents[axis] // size) for axis, size in sizes.items() if axis == self.streamed)
        moved = [volume.at(share) * size for volume, size in self.live_volumes]
        peak = peak_live(self.live, moved)
        far = (
            sum(moved) if peak > self.near_bytes else 0.0
        )  # least recently used goes first: what does not fit is gone as a whole
        block = sum(volume.at(share) for volume in self.work) / (FMA_PER_CYCLE * self.machine.f32_lanes)
        block += sum(self._read_cycles(volume, size, share) for volume, size in self.read)
        block += sum(PACKED_CYCLES * volume.at(share) for volume, axis in self.columns if self._cuts(axis, sizes[axis]))
        block += (
            2 * sum(moved) / (L2_VECTORS_PER_CYCLE * self.machine.vector_bytes)
            + 2 * far / SPILLED_BYTES_PER_CYCLE
            + BLOCK_CYCLES
        )
        block *= prod(self._raggedness(axis, size) for axis, size in sizes.items())
        rounds = -(-blocks // self.threads)
        return rounds * steps * block * (1 + (UNBALANCED * self.threads / blocks if self.threads > 1 else 0))

    def _read_cycles(self, volume: _Volume, size: int, share: Mapping[LoopRef, float]) -> float:
        """What it takes to read an operand of a block: from memory where all of it does not stay in the shared
        cache."""
        near = volume.full * size <= SHARED_CACHE_BYTES
        return volume.at(share) * size / (SHARED_BYTES_PER_CYCLE if near else MEMORY_BYTES_PER_CYCLE)

    def _cuts(self, axis: LoopRef, size: int) -> bool:
        """Whether blocks of this size along the lanes of a product end inside of a vector."""
        return size < self.extents[axis] and size % self.machine.f32_lanes != 0

    def _raggedness(self, axis: LoopRef, size: int) -> float:
        """By how much code is slower because only the run tells how long a block is along a loop."""
        extent = self.ragged[axis]
        if size == 1 or (isinstance(extent, int) and extent % size == 0):
            return 1.0
        along_lanes = axis in self.contiguous and self.has_window
        return RAGGED_LANES if along_lanes and isinstance(extent, int) else RAGGED
