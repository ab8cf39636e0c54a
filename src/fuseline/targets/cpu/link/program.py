"""A schedule and its compiled kernels -> an artifact: kernels linked with the scheduler, steps as commands, constants
in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from fuseline.buffers import BufferRef, Operand
from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.costs import MachineCosts
from fuseline.ir.dim import Dim
from fuseline.program.box_rows import ROW_LOOPS, box_distance, box_rows
from fuseline.program.schedule import PackedConstants, Schedule, ScratchPlace, bytes_of, element_bytes, moved
from fuseline.program.steps import (
    CopyStep,
    DispatchStep,
    FillStep,
    HostStep,
    InsertStep,
    LoopStep,
    PoisonStep,
    SizesStep,
    Step,
)
from fuseline.runtime import program as p
from fuseline.runtime.artifact import Artifact
from fuseline.runtime.references import undetermined_sizes
from fuseline.runtime.signatures import Signature
from fuseline.targets.compiled_kernel import CompiledKernel, Launch, launches
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.link.built_in_kernels import (
    COPY_ROWS_SYMBOL,
    COPY_SYMBOL,
    COPY_WORKGROUP_BYTES,
    FILL_SYMBOLS,
    SIZES_SYMBOL,
)
from fuseline.targets.cpu.link.image import Image, link_image
from fuseline.targets.cpu.link.scheduler import RUN_SYMBOL, WORKER_SYMBOL, scheduler_object
from fuseline.targets.cpu.link.signature import BUILT_IN
from fuseline.targets.runtime_form import host_call, program_of, runtime_form, runtime_size
from fuseline.weight_layouts import key_of

INPUT_ALIGNMENT = 8
"""Bytes: the widest element. Kernels align no access to operands beyond their elements, constants and scratch
excepted."""


def assemble(
    schedule: Schedule,
    kernels: Mapping[str, CompiledKernel],
    constants: PackedConstants,
    *,
    machine: Machine,
    threads: int = 1,
    records: bytes = b"",
    metadata: Mapping[str, Any] | None = None,
    producer: str = "fuseline",
) -> Artifact:
    """The artifact that runs `schedule`.

    Args:
        kernels: by executable symbol; executables may share one kernel.
        constants: from `pack_constants` with the same schedule and kernels.
        records: opaque bytes that travel with the artifact.

    Raises FuselineError: E0107 for a size that no input determines, E0404 for code that cannot be linked.
    """
    image, places = _link(kernels, machine)
    builder = _ProgramBuilder(kernels, constants, places, image.symbols[0], machine.costs, schedule.scratch)
    program = program_of(schedule, tuple(builder.steps(schedule.steps)))._replace(
        scratch_bytes=max((kernel.scratch_bytes for kernel in kernels.values()), default=0),
        threads=threads,
        serial_below_ns=round(machine.costs.serial_below_ns),
        split_above_ns=round(machine.costs.split_above_ns),
        input_alignment=INPUT_ALIGNMENT,
    )
    _check_sizes(program)
    return Artifact(
        program=program,
        code=image.code,
        entries={"run": image.symbols[0][RUN_SYMBOL], "worker": image.symbols[0][WORKER_SYMBOL]},
        machine=image.machine,
        fixups=tuple((fixup.offset, fixup.target) for fixup in image.fixups),
        cpu_features=machine.needs,
        constants=tuple(constants.blocks),
        records=records,
        producer=producer,
        metadata=dict(metadata or {}),
        kernels=_signatures(kernels, places, image.symbols[0]),
        sources=constants.sources,
    )


def _ns(amount: Dim, per_ns: float) -> Dim:
    """The time for `amount` at a rate that may be a fraction, in whole nanoseconds."""
    return d.floor_div(d.mul(amount, 1000), max(1, round(1000 * per_ns)))


def _link(kernels: Mapping[str, CompiledKernel], machine: Machine) -> tuple[Image, dict[tuple[bytes, str], int]]:
    """The image (scheduler first, equal objects once) and where the code of each kernel begins in it."""
    objects: dict[bytes, int] = {scheduler_object(machine): 0}
    bodies = [(executable, body) for executable, kernel in kernels.items() for body in kernel.bodies]
    for _, body in bodies:
        objects.setdefault(body.object_code, len(objects))
    image = link_image(list(objects))
    places: dict[tuple[bytes, str], int] = {}
    for executable, body in bodies:
        symbols = image.symbols[objects[body.object_code]]
        if body.symbol not in symbols:
            raise FuselineError("E0404", f"the object of @{executable} does not define {body.symbol}")
        places[body.object_code, body.symbol] = symbols[body.symbol]
    return image, places


def _signatures(
    kernels: Mapping[str, CompiledKernel], places: Mapping[tuple[bytes, str], int], built_in: Mapping[str, int]
) -> dict[int, Sequence[Signature]] | None:
    """What the kernel at each offset takes; None where a kernel does not say."""
    found: dict[int, list[Signature]] = {built_in[symbol]: [signature] for symbol, signature in BUILT_IN.items()}
    for body in (body for kernel in kernels.values() for body in kernel.bodies):
        if not isinstance(body.signature, Signature):
            return None
        same = found.setdefault(places[body.object_code, body.symbol], [])
        if body.signature not in same:
            same.append(body.signature)
    return dict(found)


Launched: TypeAlias = DispatchStep | CopyStep | FillStep | InsertStep | SizesStep
StepT = TypeVar("StepT", bound=Step)


class _ProgramBuilder:
    def __init__(
        self,
        kernels: Mapping[str, CompiledKernel],
        constants: PackedConstants,
        places: Mapping[tuple[bytes, str], int],
        built_in: Mapping[str, int],
        costs: MachineCosts,
        scratch: Mapping[int, ScratchPlace] | None,
    ) -> None:
        self.kernels, self.constants, self.places, self.built_in, self.costs = (
            kernels,
            constants,
            places,
            built_in,
            costs,
        )
        self.places_of_scratch = scratch
        self.plain = {constant: block for (constant, key), block in constants.layouts.items() if key is None}
        self.packed = {
            (constant, key.dims, key.layout): block
            for (constant, key), block in constants.layouts.items()
            if key is not None
        }

    def steps(self, steps: Sequence[Step]) -> Iterator[p.Step]:
        """Commands, loops and host calls in order."""
        for step, barrier in _with_barriers(steps):
            if isinstance(step, LoopStep):
                commands = tuple(
                    self._command(inner, begins, loop=step) for inner, begins in _with_barriers(step.steps)
                )
                yield p.Loop(runtime_size(step.trips), commands, barrier, step.label)
            elif isinstance(step, HostStep):
                yield host_call(step, self._plain)
            elif isinstance(step, PoisonStep):
                yield p.Poison(runtime_form(step.live), step.begins)
            else:
                yield self._command(step, barrier)

    def _command(self, step: Launched, barrier: bool, *, loop: LoopStep | None = None) -> p.Command:
        arms = [arm if loop is not None else arm._replace(loop_offsets=()) for arm in self._arms(step)]
        return p.Command(tuple(arms), barrier, label=step.label, scratch=self._scratch(step if loop is None else loop))

    def _scratch(self, step: Step) -> p.Scratch | None:
        """Where the scratch of a step lies, with that of all others of its wave."""
        if self.places_of_scratch is None:
            return None
        place = self.places_of_scratch.get(step.wave)
        return p.Scratch() if place is None else p.Scratch(runtime_size(place.offset), place.stride)

    def _arms(self, step: Launched) -> Iterator[p.Arm]:
        """What a step launches, with a loop offset for each binding."""
        if isinstance(step, SizesStep):
            yield _arm(self.built_in[SIZES_SYMBOL], [self._bound(step.target)], step.values, len(step.values))
        elif isinstance(step, CopyStep):
            yield self._copy(step.source, step.target)
        elif isinstance(step, InsertStep):
            yield self._insert(step)
        elif isinstance(step, FillStep):
            yield self._fill(step)
        elif step.executable not in self.kernels:
            raise FuselineError("E0901", f"no kernel was compiled for @{step.executable}")
        else:
            yield from (self._dispatch(launch) for launch in launches(step, self.kernels[step.executable]))

    def _copy(self, source: Operand, target: Operand) -> p.Arm:
        count = bytes_of(source)
        bound = [self._bound(source), self._bound(target)]
        grid = d.ceil_div(count, COPY_WORKGROUP_BYTES)
        return _arm(self.built_in[COPY_SYMBOL], bound, (count,), grid, self._copied_ns(source))

    def _insert(self, step: InsertStep) -> p.Arm:
        source, element = step.source, element_bytes(step.target.dtype)
        target = moved(step.target, box_distance(step.offsets, step.target.dims, element))
        rows = box_rows(source.dims, step.target.dims, element)
        loops = [*[(1, 0)] * (ROW_LOOPS - len(rows.loops)), *rows.loops]
        counts, strides = zip(*loops, strict=True)
        bound = [self._bound(source), self._bound(target)]
        cost = self._copied_ns(source)
        return _arm(self.built_in[COPY_ROWS_SYMBOL], bound, (rows.length, *counts, *strides), d.product(counts), cost)

    def _copied_ns(self, source: Operand) -> Dim:
        return _ns(d.mul(bytes_of(source), 2), self.costs.memory_bytes_per_ns)

    def _fill(self, step: FillStep) -> p.Arm:
        element, count = element_bytes(step.target.dtype), d.product(step.target.dims)
        bound = [self._bound(step.source), self._bound(step.target)]
        grid = d.ceil_div(count, COPY_WORKGROUP_BYTES // element)
        cost = _ns(bytes_of(step.target), self.costs.memory_bytes_per_ns)
        return _arm(self.built_in[FILL_SYMBOLS[element]], bound, (count,), grid, cost)

    def _dispatch(self, launch: Launch) -> p.Arm:
        kernel, step = launch.kernel, launch.step
        sizes = dict(step.sizes)
        bound = [self._bound(operand, kernel, position) for position, operand in enumerate(step.operands)]
        bound += [self._bound(operand) for operand in step.results]
        extras = [
            self.constants.extras[step.executable, launch.first_extra + i] for i in range(len(kernel.extra_constants))
        ]
        bound += [Operand(BufferRef("constant", block), (), "uint8") for block in extras]
        flops, moved = (
            d.substitute(dim, sizes) for dim in (kernel.flops, d.add(kernel.bytes_read, kernel.bytes_written))
        )
        cost = d.add(_ns(flops, self.costs.flops_per_ns), _ns(moved, self.costs.memory_bytes_per_ns))
        at = self.places[kernel.object_code, kernel.symbol]
        numbers = [*(size for _, size in step.sizes), *kernel.numbers]
        return _arm(at, bound, numbers, d.substitute(kernel.workgroups, sizes), cost)

    def _bound(self, operand: Operand, kernel: CompiledKernel | None = None, position: int = 0) -> Operand:
        """An operand as a kernel reads it: a constant is a block of those that were packed."""
        ref, special = operand.buffer, operand.loop_offset.special
        if special is not None:
            operand = operand._replace(loop_offset=operand.loop_offset._replace(special=self._plain(special)))
        layout = kernel.constant_layouts.get(position) if kernel is not None and ref.segment == "constant" else None
        if layout is None:
            return operand._replace(buffer=self._plain(ref, kernel))
        key = key_of(layout, operand.dims)
        block = self.packed.get((ref.number, key.dims, key.layout))
        return operand._replace(buffer=_in_block(ref._replace(offset=0), block, kernel))

    def _plain(self, ref: BufferRef, kernel: CompiledKernel | None = None) -> BufferRef:
        return _in_block(ref, self.plain.get(ref.number), kernel) if ref.segment == "constant" else ref


def _in_block(ref: BufferRef, block: int | None, kernel: CompiledKernel | None) -> BufferRef:
    if block is None:
        raise FuselineError(
            "E0901", f"constant {ref.number} was not packed as @{kernel.symbol if kernel else 'copy'} wants it"
        )
    return ref._replace(number=block)


def _with_barriers(steps: Sequence[StepT]) -> Iterator[tuple[StepT, bool]]:
    """Each step, and whether a wave begins with it; that of the first step needs no barrier."""
    for before, step in zip((*steps[:1], *steps), steps, strict=False):
        yield step, step.wave != before.wave


def _arm(kernel: int, bound: Sequence[Operand], sizes: Sequence[Dim], workgroups: Dim, cost_ns: Dim = 0) -> p.Arm:
    bindings, moves = (tuple(operand.buffer for operand in bound), tuple(operand.loop_offset for operand in bound))
    numbers = [runtime_form(value) for value in (bindings, tuple(sizes), workgroups, cost_ns, moves)]
    return p.Arm(kernel, *numbers)


def _check_sizes(program: p.Program) -> None:
    """Every size must follow from an input, or from what a host operator answers before a step needs it."""
    for symbol, where in undetermined_sizes(program):
        hint = "fix the size with --shape, or bound what it depends on"
        raise FuselineError("E0107", f"the size {symbol} follows from no input", node=where or None, hint=hint)
