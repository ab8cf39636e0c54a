"""The program as data: what an artifact says must be launched, on which buffers, in which order. No addresses, sizes
still symbolic.

Named tuples, not dataclasses: making a dataclass takes 1 ms of import, and loading an artifact should cost little more
than NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from fuseline.runtime.abi import ALIGNMENT, MAX_THREADS
from fuseline.runtime.requirements import Requirement, requirements_from_json
from fuseline.runtime.sizes import Size, size_from_json
from fuseline.runtime.strict import LARGEST, flag, mapping, text, whole, within

Segment: TypeAlias = Literal["arena", "constant", "input", "output", "held"]
SEGMENTS: tuple[Segment, ...] = ("arena", "constant", "input", "output", "held")


INDEX_TYPE = "index"
"""The `type` of an input that is a number which sizes depend on."""

MOST_SLOTS = 1 << 20
"""Values that a program may hold."""


class Place(NamedTuple):
    """Where a value lies: `offset` bytes into the arena, constant, input or output number `number` (0 for the arena).

    In `held` it does not lie in memory: it is the Python value in slot `number` (see `fuseline.runtime.held`).
    """

    segment: Segment
    number: int = 0
    offset: Size = 0


class TensorSpec(NamedTuple):
    """A tensor that crosses the border to Python: name, NumPy dtype name, sizes.

    `slot` numbers the slot of a value that is held instead of lying in memory, whose type is then `type`; what is no
    tensor of known rank has dtype `object` and no sizes. An input of type `index` is a number without dimensions that
    sizes and places depend on: the one size in `dims` is not how long it is but what it is.
    """

    name: str
    dtype: str
    dims: tuple[Size, ...]
    slot: int | None = None
    type: str = ""

    @property
    def is_index(self) -> bool:
        """Whether this input is a number that sizes depend on."""
        return self.type == INDEX_TYPE and self.slot is None

    @property
    def shape(self) -> tuple[Size, ...]:
        """The sizes of the array that crosses the border."""
        return () if self.is_index else self.dims


class Walk(NamedTuple):
    """How a binding moves through the iterations of a loop: in iteration `i` it lies `(i - lag) * stride` bytes behind
    its place.

    `alternates`: `(i - lag) % 2 * stride` bytes instead. In iteration `at` it lies at `special`, where that is given; a
    walk that lags (0 or 1 iterations) has one for iteration 0.
    """

    stride: Size = 0
    lag: int = 0
    alternates: bool = False
    special: Place | None = None
    at: Size = 0


class Arm(NamedTuple):
    """One grid of a launch: `kernel` is the entry's offset in the image (bytes), `workgroups` the grid, `cost_ns` its
    estimated serial time.

    `walks` is empty outside of loops; inside there is one for each binding.
    """

    kernel: int
    bindings: tuple[Place, ...]
    sizes: tuple[Size, ...]
    workgroups: Size
    cost_ns: Size = 0
    walks: tuple[Walk, ...] = ()


class Command(NamedTuple):
    """One launch: the grids of its arms side by side, in any order, none of which reads what another writes.

    `barrier`: every earlier command must have ended on all threads. `max_threads` (0: no limit) bounds the threads that
    share the grids.
    """

    arms: tuple[Arm, ...]
    barrier: bool = False
    max_threads: int = 0
    label: str = ""


class HostTensor(NamedTuple):
    """An operand or result of a host call: where it lies and what it is (a held value: dtype `object`, no sizes)."""

    place: Place
    dtype: str
    dims: tuple[Size, ...]


def is_held(tensor: HostTensor | None) -> bool:
    """Whether an operand or result of a host call is passed by reference."""
    return tensor is not None and tensor.place.segment == "held"


class HostCall(NamedTuple):
    """One operator run in Python by the executor registered as `executor`; `node` is what it must run (a serialised
    ONNX node).

    An operand that is None was left out in the model. A result that is held and has a size is a number which becomes
    known as that size. A symbol that no input has and that is the whole of one of the results' sizes becomes known by
    this call (only the run tells, say, how many elements are not zero); `arena_bytes` is what the arena must have from
    then on (0: no more than before).
    """

    executor: str
    node: bytes
    inputs: tuple[HostTensor | None, ...]
    outputs: tuple[HostTensor | None, ...]
    label: str = ""
    arena_bytes: Size = 0


class Loop(NamedTuple):
    """Commands that are run in order `trips` times, each iteration after the one before. `barrier`: every earlier
    command must have ended."""

    trips: Size
    commands: tuple[Command, ...]
    barrier: bool = False
    label: str = ""


class Poison(NamedTuple):
    """The arena but for `live` (offsets and bytes), and all scratch, is overwritten: nothing may need them. `begins`:
    outputs are, too.

    Only programs that tests ask for have such steps.
    """

    live: tuple[tuple[Size, Size], ...]
    begins: bool = False


Step: TypeAlias = Command | HostCall | Loop | Poison


class Program(NamedTuple):
    """Inputs, outputs, steps in order, and what memory and threads they need.

    `symbols` gives inclusive bounds by symbol name (None: unbounded), `requirements` what must hold among sizes.
    `scratch_bytes` is per thread. Runs whose summed `cost_ns` is below `serial_below_ns` stay on the calling thread; a
    wave below `split_above_ns` stays on one thread. `input_alignment` (bytes, a power of two) is what kernels ask of
    the caller's inputs; those that are not so aligned are copied. `slots` is how many values are held.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    steps: tuple[Step, ...]
    arena_bytes: Size = 0
    scratch_bytes: int = 0
    threads: int = 1
    symbols: Mapping[str, tuple[int, int | None]] = MappingProxyType({})
    serial_below_ns: int = 0
    split_above_ns: int = 0
    input_alignment: int = ALIGNMENT
    slots: int = 0
    requirements: tuple[Requirement, ...] = ()


def program_to_json(program: Program) -> dict[str, Any]:
    """The JSON form that artifacts hold; `program_from_json` reads it back."""
    return {
        "inputs": [_spec_to_json(spec) for spec in program.inputs],
        "outputs": [_spec_to_json(spec) for spec in program.outputs],
        "steps": [_step_to_json(step) for step in program.steps],
        "arena_bytes": program.arena_bytes,
        "scratch_bytes": program.scratch_bytes,
        "threads": program.threads,
        "symbols": {name: list(bounds) for name, bounds in program.symbols.items()},
        "requirements": program.requirements,
        "serial_below_ns": program.serial_below_ns,
        "split_above_ns": program.split_above_ns,
        "input_alignment": program.input_alignment,
        "slots": program.slots,
    }


def program_from_json(data: Mapping[str, Any]) -> Program:
    """The program behind `data`; raises KeyError, TypeError, IndexError or ValueError where it is not one."""
    return Program(
        inputs=tuple(_spec_from_json(spec) for spec in data["inputs"]),
        outputs=tuple(_spec_from_json(spec) for spec in data["outputs"]),
        steps=tuple(_step_from_json(step) for step in data["steps"]),
        arena_bytes=size_from_json(data["arena_bytes"]),
        scratch_bytes=within(data["scratch_bytes"], 0, LARGEST),
        threads=within(data["threads"], 1, MAX_THREADS),
        symbols={name: _bounds(*bounds) for name, bounds in mapping(data["symbols"]).items()},
        requirements=requirements_from_json(data["requirements"]),
        serial_below_ns=whole(data["serial_below_ns"]),
        split_above_ns=whole(data["split_above_ns"]),
        input_alignment=_alignment(data["input_alignment"]),
        slots=within(data["slots"], 0, MOST_SLOTS),
    )


def _bounds(low: Any, high: Any) -> tuple[int, int | None]:
    low = within(low, 0, LARGEST)
    return low, None if high is None else within(high, low, LARGEST)


def _alignment(data: Any) -> int:
    number = within(data, 1, 4096)
    if number & (number - 1):
        raise ValueError(f"{number} is no power of two")
    return number


def _spec_to_json(spec: TensorSpec) -> list[Any]:
    return [spec.name, spec.dtype, spec.dims, spec.slot, spec.type]


def _spec_from_json(data: list[Any]) -> TensorSpec:
    name, dtype, dims, slot, type_ = data
    return TensorSpec(text(name), text(dtype), _sizes(dims), None if slot is None else whole(slot), text(type_))


def _place_to_json(place: Place) -> list[Any]:
    return [SEGMENTS.index(place.segment), place.number, place.offset]


def _place_from_json(data: list[Any]) -> Place:
    segment, number, offset = data
    return Place(SEGMENTS[within(segment, 0, len(SEGMENTS) - 1)], whole(number), size_from_json(offset))


def _step_to_json(step: Step) -> list[Any]:
    if isinstance(step, Poison):
        return ["poison", step.live, step.begins]
    if isinstance(step, Loop):
        return ["loop", step.trips, [_command_to_json(command) for command in step.commands], step.barrier, step.label]
    return _command_to_json(step) if isinstance(step, Command) else _host_to_json(step)


def _command_to_json(step: Command) -> list[Any]:
    return ["launch", [_arm_to_json(arm) for arm in step.arms], step.barrier, step.max_threads, step.label]


def _arm_to_json(arm: Arm) -> list[Any]:
    walks = [_walk_to_json(walk) for walk in arm.walks]
    return [
        arm.kernel,
        [_place_to_json(place) for place in arm.bindings],
        arm.sizes,
        arm.workgroups,
        arm.cost_ns,
        walks,
    ]


def _arm_from_json(data: list[Any]) -> Arm:
    kernel, places, sizes, workgroups, cost, walks = data
    bindings = tuple(_place_from_json(place) for place in places)
    moves = tuple(_walk_from_json(walk) for walk in walks)
    return Arm(whole(kernel), bindings, _sizes(sizes), size_from_json(workgroups), size_from_json(cost), moves)


def _walk_to_json(walk: Walk) -> list[Any]:
    return [
        walk.stride,
        walk.lag,
        walk.alternates,
        None if walk.special is None else _place_to_json(walk.special),
        walk.at,
    ]


def _walk_from_json(data: list[Any]) -> Walk:
    stride, lag, alternates, special, at = data
    place = None if special is None else _place_from_json(special)
    return Walk(size_from_json(stride), whole(lag), flag(alternates), place, size_from_json(at))


def _host_to_json(step: HostCall) -> list[Any]:
    inputs, outputs = ([_operand_to_json(tensor) for tensor in side] for side in (step.inputs, step.outputs))
    return ["host", step.executor, step.node.hex(), inputs, outputs, step.label, step.arena_bytes]


def _operand_to_json(tensor: HostTensor | None) -> list[Any] | None:
    return None if tensor is None else [_place_to_json(tensor.place), tensor.dtype, tensor.dims]


def _operand_from_json(data: list[Any] | None) -> HostTensor | None:
    if data is None:
        return None
    place, dtype, dims = data
    return HostTensor(_place_from_json(place), text(dtype), _sizes(dims))


def _sizes(data: Iterable[Any]) -> tuple[Size, ...]:
    return tuple(size_from_json(size) for size in data)


def _step_from_json(data: list[Any]) -> Step:
    kind = cast(str, data[0])
    if kind == "poison":
        return Poison(
            tuple((size_from_json(offset), size_from_json(length)) for offset, length in data[1]), bool(data[2])
        )
    if kind == "host":
        _, executor, node, inputs, outputs, label, arena_bytes = data
        operands = tuple(_operand_from_json(t) for t in inputs), tuple(_operand_from_json(t) for t in outputs)
        return HostCall(text(executor), bytes.fromhex(node), *operands, text(label), size_from_json(arena_bytes))
    if kind == "loop":
        _, trips, commands, barrier, label = data
        return Loop(
            size_from_json(trips),
            tuple(_command_from_json(command) for command in commands),
            flag(barrier),
            text(label),
        )
    return _command_from_json(data)


def _command_from_json(data: list[Any]) -> Command:
    if data[0] != "launch":
        raise ValueError(f"unknown step {data[0]!r}")
    _, arms, barrier, threads, label = data
    if not arms:
        raise ValueError("a launch without arms")
    return Command(tuple(_arm_from_json(arm) for arm in arms), flag(barrier), within(threads, 0, LARGEST), text(label))
