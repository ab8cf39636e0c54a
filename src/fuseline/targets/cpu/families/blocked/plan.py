"""The plan of a blocked dispatch: the block, and a plan of some other family for each sub-kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import tensor
from xdsl.ir import BlockArgument, OpResult, SSAValue

from fuseline.analysis.structured import tensor_operands
from fuseline.dispatch.result_boxes import box_of
from fuseline.ir import dim as d
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.coordinates import static_upper_bound
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.blocked.band_image import BandImage, makers_of_rows, with_kept_rows
from fuseline.targets.cpu.families.blocked.block import TileSizes
from fuseline.targets.cpu.families.blocked.dispatch import BlockedDispatch
from fuseline.targets.cpu.families.blocked.entry import ResultTarget, SubKernelEntry, SubKernelWriter
from fuseline.targets.cpu.families.blocked.phases import StreamedPhases
from fuseline.targets.cpu.families.blocked.planned_sub_kernels import PlannedSubKernel
from fuseline.targets.cpu.families.blocked.streaming import Carried
from fuseline.targets.cpu.families.blocked.sub_kernels import LiveRange, SubKernel, peak_live, readers
from fuseline.targets.cpu.families.blocked.tiles import Tile, Tiling
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.target import Refusal


@dataclass(frozen=True, slots=True)
class StreamedSubKernels:
    """Sub-kernels `first` to `end` run for every tile of a streamed loop; `carried` go from one to the next, each with
    its elements in a block at most."""

    tile: Tile
    first: int
    end: int
    carried: tuple[tuple[Carried, int], ...]


@dataclass(frozen=True, kw_only=True)
class BlockedPlan(Plan):
    """Sub-kernels in order, the tiles of the grid in order, and the values that lie in scratch with the last sub-kernel
    that reads each. `image`: what the first sub-kernels make the parts of, one each."""

    sub_kernels: tuple[PlannedSubKernel, ...]
    tiles: tuple[Tile, ...]
    buffers: Mapping[SSAValue, int]
    last_reader: Mapping[SSAValue, int]
    streamed: StreamedSubKernels | None = None
    image: BandImage | None = None

    @property
    def kept_image(self) -> BandImage | None:
        """The image rows of which go from band to band, if there is one."""
        return with_kept_rows(self.image)

    @property
    def makers_of_rows(self) -> Sequence[PlannedSubKernel]:
        """The sub-kernels that make the rows of an image some of which are kept."""
        return makers_of_rows(self.image, self.sub_kernels)

    @property
    def kernel_plans(self) -> Sequence[Plan]:
        """Itself and the plans of its sub-kernels."""
        return (self, *(kernel_plan for one in self.sub_kernels for kernel_plan in one.plan.kernel_plans))

    def work_made(self, machine: Machine) -> Mapping[str, float]:
        """That of the sub-kernels, as often as they run."""
        blocks = prod(assumed_size(tile.full) / tile.size for tile in self.tiles)
        found: dict[str, float] = {}
        for number, sub_kernel in enumerate(self.sub_kernels):
            times = blocks * self._times_in_block(number)
            for kind, amount in sub_kernel.plan.work_made(machine).items():
                found[kind] = found.get(kind, 0.0) + times * amount
        return found

    def _times_in_block(self, number: int) -> float:
        streamed = self.streamed
        if self.image is not None and number < len(self.image.parts) - 1:
            return 0.0  # a thread does it once
        if streamed is None or not streamed.first <= number < streamed.end:
            return 1.0
        return assumed_size(streamed.tile.full) / streamed.tile.size


@dataclass(frozen=True)
class Candidate:
    """One way to evaluate a dispatch block by block: its sub-kernels, what lies between them, and the tiles with their
    price."""

    dispatch: BlockedDispatch
    sub_kernels: tuple[SubKernel, ...]
    live: tuple[LiveRange, ...]
    tile_sizes: TileSizes
    phases: StreamedPhases | None = None
    image: BandImage | None = None

    @property
    def kept_image(self) -> BandImage | None:
        """The image rows of which go from band to band, if there is one."""
        return with_kept_rows(self.image)

    @property
    def tiling(self) -> Tiling:
        """The tiles of all loops."""
        return Tiling(self.dispatch, self.tile_sizes.tiles)

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """The tiles of the grid, outermost first."""
        return tuple(
            tile for axis, tile in self.tile_sizes.tiles.items() if self.phases is None or axis != self.phases.axis
        )

    @property
    def streamed(self) -> StreamedSubKernels | None:
        """The part that runs for every block of a streamed loop."""
        phases, tiling = self.phases, self.tiling
        if phases is None:
            return None
        carried = tuple((one, scratch_elements(tiling, one.state) or 0) for one in phases.carried)
        return StreamedSubKernels(tiling.tiles[phases.axis], phases.first, phases.end, carried)

    def last_readers(self, planned: Sequence[PlannedSubKernel]) -> dict[SSAValue, int]:
        """The last sub-kernel that needs each argument of a sub-kernel: what is read in the blocks of a streamed loop
        lives until the last sub-kernel there."""
        found = {value: i for i, sub_kernel in enumerate(planned) for value in sub_kernel.arguments}
        if self.kept_image is not None:
            found[self.kept_image.value] = len(planned) - 1
        if self.phases is None:
            return found
        first, last = self.phases.first, self.phases.end - 1
        made = {target.value: i for i, sub_kernel in enumerate(planned) for target in sub_kernel.targets}
        found = {value: max(i, last) if i >= first > made.get(value, first) else i for value, i in found.items()}
        found |= {one.following: last for one in self.phases.carried}
        return found | {one.state: self.phases.last_reader(one) for one in self.phases.carried}


def result_targets(dispatch: BlockedDispatch, tiling: Tiling) -> dict[SSAValue, list[ResultTarget]] | Refusal:
    """Where the values that leave the dispatch go."""
    view = dispatch.view
    found: dict[SSAValue, list[ResultTarget]] = {}
    for position, result in enumerate(view.results):
        result_box = box_of(view.shapes, result)
        parts = _parts(dispatch, result_box.value)
        if parts is None or (result_box.sliced and len(parts) > 1):
            return Refusal("result-moved", f"result {position} is an argument, or rearranged on the way out")
        for value, axis, offset in parts:
            box = tiling.box_of(value)
            dims = result_box.dims if len(parts) == 1 else view.shapes.dims(result_box.value)
            at = [d.add(x, y) for x, y in zip(box.offsets, result_box.offsets or (0,) * len(box.offsets), strict=True)]
            at[axis] = d.add(at[axis], offset)
            found.setdefault(value, []).append(ResultTarget(value, position, dims, tuple(at)))
    return found


def _parts(dispatch: BlockedDispatch, value: SSAValue) -> list[tuple[SSAValue, int, Dim]] | None:
    """A computed result is its own only part; those of a concat lie one behind the other along an axis."""
    if not isinstance(value, OpResult):
        return None
    if value.op in dispatch.placed:
        return [(value, 0, 0)] if dispatch.view.shapes.dims(value) else None
    if not isinstance(value.op, tensor.ConcatOp):
        return None
    axis, offset = value.op.dim.value.data, 0
    out: list[tuple[SSAValue, int, Dim]] = []
    for part in value.op.inputs:
        if not isinstance(part, OpResult) or part.op not in dispatch.placed:
            return None
        out.append((part, axis, offset))
        offset = d.add(offset, dispatch.view.shapes.dims(part)[axis])
    return out


def write_sub_kernels(candidate: Candidate, targets: Mapping[SSAValue, Sequence[ResultTarget]]) -> list[SubKernelEntry]:
    """The entry functions of the sub-kernels."""
    tiling, sub_kernels, dispatch = candidate.tiling, candidate.sub_kernels, candidate.dispatch
    handed_on = {one.following for one in candidate.phases.carried} if candidate.phases is not None else set[SSAValue]()
    read_back = {
        value
        for value, places in targets.items()
        if readers(dispatch, sub_kernels, value) and _whole(dispatch, value, places)
    }
    packable = _packable(dispatch, sub_kernels)
    out: list[SubKernelEntry] = []
    for number, sub_kernel in enumerate(sub_kernels):
        mine = [
            target
            for op in sub_kernel.members
            for value in op.results
            for target in _outputs(dispatch, sub_kernels, value, targets, read_back, handed_on)
        ]
        name = f"{dispatch.view.entry.sym_name.data}_unit_{number}"
        if candidate.image is not None and number == 0:
            out += _in_parts(candidate, candidate.image, packable, name)
            continue
        writer = SubKernelWriter(tiling, sub_kernel.members, read_back, packable)
        out.append(writer.write(name, sub_kernel.members, mine))
    return out


def _in_parts(candidate: Candidate, image: BandImage, packable: set[SSAValue], name: str) -> Iterator[SubKernelEntry]:
    """The entry functions of the first sub-kernel, one for each part of the image's rows."""
    members, parts = candidate.sub_kernels[0].members, image.parts
    for number, part in enumerate(parts):
        cut = {image.row: part} if len(parts) > 1 else {}
        tiling = Tiling(candidate.dispatch, candidate.tile_sizes.tiles, cut)
        box = (image.shape, image.offsets(part)) if cut else ((), ())
        writer = SubKernelWriter(tiling, members, set(), packable, image.edge)
        yield writer.write(f"{name}_{number}" if cut else name, members, [ResultTarget(image.value, None, *box)])


def _whole(dispatch: BlockedDispatch, value: SSAValue, places: Sequence[ResultTarget]) -> bool:
    """Whether the first result that holds a value holds nothing else: it can be read back from there."""
    return places[0].dims == dispatch.view.shapes.dims(value)


def _outputs(
    dispatch: BlockedDispatch, sub_kernels: Sequence[SubKernel], value: SSAValue, targets: Mapping[SSAValue,
    Sequence[ResultTarget]], read_back: set[SSAValue], handed_on: set[SSAValue],
) -> list[ResultTarget]:  # fmt: skip
    out = list(targets.get(value, ()))
    if value not in read_back and (value in handed_on or readers(dispatch, sub_kernels, value)):
        out.append(ResultTarget(value))
    return out


def _packable(dispatch: BlockedDispatch, sub_kernels: Sequence[SubKernel]) -> set[SSAValue]:
    """Constant arguments that only one sub-kernel reads: their bytes may be laid out for it."""
    found: set[SSAValue] = set()
    for argument in dispatch.view.tensors:
        if (
            dispatch.view.is_constant(argument)
            and sum(_reads(dispatch, sub_kernel, argument) for sub_kernel in sub_kernels) == 1
        ):
            found.add(argument)
    return found


def _reads(dispatch: BlockedDispatch, sub_kernel: SubKernel, argument: BlockArgument) -> bool:
    """Whether a sub-kernel reads an argument itself, in place or rearranged."""
    pending = [value for op in sub_kernel.members for value in tensor_operands(op)]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value is argument:
            return True
        if isinstance(value, OpResult) and value not in seen and value.op not in dispatch.placed:
            seen.add(value)
            pending += tensor_operands(value.op)
    return False


def scratch_elements(tiling: Tiling, value: SSAValue) -> int | None:
    """Elements of the block's part of a value at most; None without a bound."""
    return static_upper_bound(tiling.box_of(value).sizes)


def scratch_bytes(tiling: Tiling, live: Sequence[LiveRange]) -> int | None:
    """Bytes of the block's parts of what lies in scratch at a time, at most; None without a bound."""
    sizes: list[int] = []
    held = [one for one in live if not one.stored]
    for one in held:
        elements = scratch_elements(tiling, one.value)
        if elements is None:
            return None
        sizes.append(elements * BYTES[dtype_of(one.value.type)])
    return int(peak_live(held, sizes))
