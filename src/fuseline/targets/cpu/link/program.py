"""A schedule and its compiled kernels -> an artifact: kernels linked with the scheduler, steps as commands, constants
in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.costs import MachineCosts
from fuseline.ir.dim import Dim
from fuseline.ir.dim_json import to_json
from fuseline.program.schedule import (
    Boundary,
    CopyStep,
    DispatchStep,
    HostStep,
    LoopStep,
    Operand,
    PackedConstants,
    PoisonStep,
    Schedule,
    SizesStep,
    Slot,
    Step,
    Walk,
    flat_steps,
)
from fuseline.runtime import program as p
from fuseline.runtime.artifact import Artifact
from fuseline.runtime.requirements import requirements_from_json
from fuseline.runtime.signatures import Signature
from fuseline.runtime.sizes import Size, size_from_json
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.link.built_in_kernels import COPY_SYMBOL, COPY_WORKGROUP_BYTES, SIZES_SYMBOL
from fuseline.targets.cpu.link.image import Image, link_image
from fuseline.targets.cpu.link.scheduler import RUN_SYMBOL, WORKER_SYMBOL, scheduler_object
from fuseline.targets.cpu.link.signature import BUILT_IN
from fuseline.targets.target import CompiledKernel, Launch, launches

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
    builder = _ProgramBuilder(kernels, constants, places, image.symbols[0], machine.costs)
    program = p.Program(
        inputs=tuple(_spec(boundary) for boundary in schedule.inputs),
        outputs=tuple(_spec(boundary) for boundary in schedule.outputs),
        steps=tuple(builder.steps(schedule.steps)),
        arena_bytes=_size(
            schedule.arena_bytes if schedule.initial_arena_bytes is None else schedule.initial_arena_bytes
        ),
        scratch_bytes=max((kernel.scratch_bytes for kernel in kernels.values()), default=0),
        threads=threads,
        symbols=dict(schedule.symbols),
        requirements=requirements_from_json(
            (to_json(left), to_json(right), *rest) for left, right, *rest in schedule.requirements
        ),
        serial_below_ns=round(machine.costs.serial_below_ns),
        split_above_ns=round(machine.costs.split_above_ns),
        input_alignment=INPUT_ALIGNMENT,
        slots=schedule.slots,
    )
    _check_sizes(schedule)
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


class _ProgramBuilder:
    def __init__(
        self,
        kernels: Mapping[str, CompiledKernel],
        constants: PackedConstants,
        places: Mapping[tuple[bytes, str], int],
        built_in: Mapping[str, int],
        costs: MachineCosts,
    ) -> None:
        self.kernels, self.constants, self.places, self.built_in, self.costs = (
            kernels,
            constants,
            places,
            built_in,
            costs,
        )
        self.plain = {constant: block for (constant, key), block in constants.layouts.items() if key is None}
        self.packed = {
            (constant, key.dims, key.layout): block
            for (constant, key), block in constants.layouts.items()
            if key is not None
        }

    def steps(self, steps: Sequence[Step]) -> Iterable[p.Step]:
        """Commands and host calls in order; a barrier where a wave begins."""
        wave = steps[0].wave if steps else 0
        for step in steps:
            barrier, wave = step.wave != wave, step.wave
            if isinstance(step, LoopStep):
                yield self._loop(step, barrier)
            elif isinstance(step, HostStep):
                yield self._host(step)
            elif isinstance(step, PoisonStep):
                yield p.Poison(tuple((_size(offset), _size(length)) for offset, length in step.live), step.begins)
            else:
                yield self._command(step, barrier)

    def _loop(self, loop: LoopStep, barrier: bool) -> p.Loop:
        """The commands of a loop: a binding has a walk, and a barrier stands where a wave begins, the first of an
        iteration left out."""
        wave = loop.steps[0].wave
        commands: list[p.Command] = []
        for step in loop.steps:
            command, wave = self._command(step, step.wave != wave), step.wave
            arms = zip(command.arms, self._walks(step), strict=True)
            commands.append(command._replace(arms=tuple(arm._replace(walks=walks) for arm, walks in arms)))
        return p.Loop(_size(loop.trips), tuple(commands), barrier, loop.label)

    def _walks(self, step: DispatchStep | CopyStep | SizesStep) -> Iterable[tuple[p.Walk, ...]]:
        """The walks of each arm's bindings; a kernel's own constants stand still."""
        if not isinstance(step, DispatchStep):
            yield tuple(self._walk(operand.walk) for operand in _operands(step))
            return
        for launch in launches(step, self.kernels[step.executable]):
            operands = (*launch.step.operands, *launch.step.results)
            yield (
                *(self._walk(operand.walk) for operand in operands),
                *(p.Walk() for _ in launch.kernel.extra_constants),
            )

    def _walk(self, walk: Walk) -> p.Walk:
        special = self._place(walk.special) if walk.special is not None else None
        return p.Walk(_size(walk.stride), walk.lag, walk.alternates, special, _size(walk.at))

    def _place(self, slot: Slot) -> p.Place:
        if slot.segment == "constant":
            return p.Place("constant", self.plain[slot.index], _size(slot.offset))
        return p.Place(slot.segment, slot.index, _size(slot.offset))

    def _command(self, step: DispatchStep | CopyStep | SizesStep, barrier: bool) -> p.Command:
        if isinstance(step, SizesStep):
            places, values = (self._operand(step.target),), tuple(_size(value) for value in step.values)
            return p.Command(
                (p.Arm(self.built_in[SIZES_SYMBOL], places, values, len(values)),), barrier, label=step.label
            )
        return self._dispatch(step, barrier) if isinstance(step, DispatchStep) else self._copy(step, barrier)

    def _dispatch(self, step: DispatchStep, barrier: bool) -> p.Command:
        kernel = self.kernels.get(step.executable)
        if kernel is None:
            raise FuselineError("E0901", f"no kernel was compiled for @{step.executable}")
        return p.Command(tuple(self._arm(launch) for launch in launches(step, kernel)), barrier, label=step.label)

    def _arm(self, launch: Launch) -> p.Arm:
        kernel, step = launch.kernel, launch.step
        sizes = dict(step.sizes)
        bindings = [self._operand(operand, kernel, position) for position, operand in enumerate(step.operands)]
        bindings += [self._operand(operand) for operand in step.results]
        bindings += [
            p.Place("constant", self.constants.extras[step.executable, launch.first_extra + i])
            for i in range(len(kernel.extra_constants))
        ]
        flops, moved = (
            d.substitute(dim, sizes) for dim in (kernel.flops, d.add(kernel.bytes_read, kernel.bytes_written))
        )
        return p.Arm(
            kernel=self.places[kernel.object_code, kernel.symbol],
            bindings=tuple(bindings),
            sizes=tuple(_size(size) for _, size in step.sizes),
            workgroups=_size(d.substitute(kernel.workgroups, sizes)),
            cost_ns=_size(d.add(_ns(flops, self.costs.flops_per_ns), _ns(moved, self.costs.memory_bytes_per_ns))),
        )

    def _copy(self, step: CopyStep, barrier: bool) -> p.Command:
        count = step.source.bytes
        arm = p.Arm(
            kernel=self.built_in[COPY_SYMBOL],
            bindings=(self._operand(step.source), self._operand(step.target)),
            sizes=(_size(count),),
            workgroups=_size(d.ceil_div(count, COPY_WORKGROUP_BYTES)),
            cost_ns=_size(_ns(d.mul(count, 2), self.costs.memory_bytes_per_ns)),
        )
        return p.Command((arm,), barrier, label=step.label)

    def _host(self, step: HostStep) -> p.HostCall:
        operands, results = (tuple(self._host_tensor(o) for o in side) for side in (step.operands, step.results))
        return p.HostCall(step.executor, step.node, operands, results, step.label, _size(step.arena_bytes))

    def _host_tensor(self, operand: Operand) -> p.HostTensor:
        return p.HostTensor(self._operand(operand), operand.dtype, tuple(_size(size) for size in operand.dims))

    def _operand(self, operand: Operand, kernel: CompiledKernel | None = None, position: int = 0) -> p.Place:
        slot = operand.slot
        if slot.segment != "constant":
            return p.Place(slot.segment, slot.index, _size(slot.offset))
        layout = kernel.constant_layouts.get(position) if kernel is not None else None
        block = self.plain.get(slot.index) if layout is None else self.packed.get((slot.index, operand.dims, layout))
        if block is None:
            raise FuselineError(
                "E0901", f"constant {slot.index} was not packed as @{kernel.symbol if kernel else 'copy'} wants it"
            )
        return p.Place("constant", block, _size(slot.offset) if layout is None else 0)


def _spec(boundary: Boundary) -> p.TensorSpec:
    return p.TensorSpec(
        boundary.name, boundary.dtype, tuple(_size(size) for size in boundary.dims), boundary.slot, boundary.type
    )


def _size(dim: Dim) -> Size:
    return size_from_json(to_json(dim))


def _check_sizes(schedule: Schedule) -> None:
    """Every symbol must be a size of some input, or of a host operator's result, before a step needs it: else no run
    could know it."""
    known = {symbol.name for boundary in schedule.inputs for size in boundary.dims for symbol in _lone_symbol(size)}
    for step in flat_steps(schedule.steps):
        if isinstance(step, HostStep):
            known |= {symbol.name for result in step.results for size in result.dims for symbol in _lone_symbol(size)}
        for size in _used_sizes(step):
            _require(size, known, step.label)
    for loop in schedule.loops:
        _require(loop.trips, known, loop.label)
    for boundary in schedule.outputs:
        for size in boundary.dims if boundary.slot is None else ():  # nothing is allocated for a value that is held
            _require(size, known, boundary.name)


def _require(size: Dim, known: set[str], where: str) -> None:
    for symbol in d.symbols(size):
        if symbol.name not in known:
            hint = "fix the size with --shape, or bound what it depends on"
            raise FuselineError("E0107", f"the size {symbol.name} follows from no input", node=where, hint=hint)


def _lone_symbol(size: Dim) -> set[d.Symbol]:
    found = d.symbols(size)
    return found if len(found) == 1 and size == d.symbol(*_symbol_fields(next(iter(found)))) else set()


def _symbol_fields(symbol: d.Symbol) -> tuple[str, int, int | None]:
    return symbol.name, symbol.lo, symbol.hi


def _used_sizes(step: Step) -> Iterable[Dim]:
    """Every size that must be known when the step runs."""
    operands = _operands(step)
    slots: list[Slot] = [operand.slot for operand in operands]
    yield from (size for _, size in step.sizes) if isinstance(step, DispatchStep) else ()
    yield from step.values if isinstance(step, SizesStep) else ()
    slots += [operand.walk.special for operand in operands if operand.walk.special is not None]
    yield from (size for operand in operands for size in (operand.walk.stride, operand.walk.at))
    yield from (slot.offset for slot in slots)
    yield from (size for operand in operands for size in operand.dims)


def _operands(step: Step) -> tuple[Operand, ...]:
    if isinstance(step, LoopStep | PoisonStep):
        return ()
    if isinstance(step, SizesStep):
        return (step.target,)
    return (step.source, step.target) if isinstance(step, CopyStep) else (*step.operands, *step.results)
