"""The program as data, the serialised form of a schedule: what an artifact says must be launched, on which buffers, in
which order. No addresses, sizes still symbolic.

Named tuples, not dataclasses: making a dataclass takes 1 ms of import, and loading an artifact should cost little more
than NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar

from fuseline.buffers import STANDING, BufferRef, LoopOffset, Operand, Segment, TensorSpec
from fuseline.runtime.abi import ALIGNMENT, MAX_THREADS
from fuseline.runtime.requirements import requirements_from_json
from fuseline.runtime.sizes import Size, size_from_json
from fuseline.runtime.strict import LARGEST, flag, mapping, text, whole, within
from fuseline.scalar_code import ScalarCode, code_from_json
from fuseline.size_requirement import SizeRequirement

T = TypeVar("T")

SEGMENTS: tuple[Segment, ...] = ("arena", "constant", "input", "output", "boxed")
"""Those that a program's buffers lie in."""

MOST_SLOTS = 1 << 20
"""Values that a program may hold."""


class Arm(NamedTuple):
    """One grid of a launch: `kernel` is the entry's offset in the image (bytes), `workgroups` the grid, `cost_ns` its
    estimated serial time.

    `loop_offsets` is empty outside of loops; inside there is one for each binding.
    """

    kernel: int
    bindings: tuple[BufferRef, ...]
    sizes: tuple[Size, ...]
    workgroups: Size
    cost_ns: Size = 0
    loop_offsets: tuple[LoopOffset, ...] = ()


class Scratch(NamedTuple):
    """Scratch in the arena: that of thread `t` are the `stride` bytes from `offset + t * stride` on, for as many
    threads as the program is for."""

    offset: Size = 0
    stride: int = 0


class Command(NamedTuple):
    """One launch: the grids of its arms side by side, in any order, none of which reads what another writes.

    `barrier`: every earlier command must have ended on all threads. `max_threads` (0: no limit) bounds the threads that
    share the grids. `scratch` None: in memory of its own.
    """

    arms: tuple[Arm, ...]
    barrier: bool = False
    max_threads: int = 0
    label: str = ""
    scratch: Scratch | None = None


class HostCall(NamedTuple):
    """One operator run in Python by the executor registered as `executor`; `node` is what it must run (a serialised
    ONNX node).

    An operand that is None was left out in the model. A result that is boxed and has a size is a number which becomes
    known as that size. A symbol that no input has and that is the whole of one of the results' sizes becomes known by
    this call (only the run tells, say, how many elements are not zero); `arena_bytes` is what the arena must have from
    then on (0: no more than before). With `code`, `inputs` are what that reads, and it says what the operator gets.
    """

    executor: str
    node: bytes
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand | None, ...]
    label: str = ""
    arena_bytes: Size = 0
    code: ScalarCode | None = None


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
    `scratch_bytes` is the most that a thread needs, `threads` how many there is scratch for in the arena. Runs whose
    summed `cost_ns` is below `serial_below_ns` stay on the calling thread; a wave below `split_above_ns` stays on one
    thread. `input_alignment` (bytes, a power of two) is what kernels ask of the caller's inputs; those that are not so
    aligned are copied. `slots` is how many values are boxed.
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
    requirements: tuple[SizeRequirement, ...] = ()


# JSON: a named tuple is the list of its fields, a step has its kind in front ------------------------------------------


def program_to_json(program: Program) -> dict[str, Any]:
    """The JSON form that artifacts hold; `program_from_json` reads it back."""
    steps = [
        [_KINDS[type(step)], *(step._replace(node=step.node.hex()) if isinstance(step, HostCall) else step)]
        for step in program.steps
    ]
    return {**program._asdict(), "steps": steps, "symbols": dict(program.symbols)}


def program_from_json(data: Mapping[str, Any]) -> Program:
    """The program behind `data`; raises KeyError, TypeError, IndexError or ValueError where it is not one."""
    return Program(**{name: read(data[name]) for name, read in _PROGRAM.items()})


def _record(kind: Callable[..., T], *fields: Callable[[Any], Any]) -> Callable[[Any], T]:
    """A reader of `kind`, given those of its fields."""
    return lambda data: kind(*[read(item) for read, item in zip(fields, data, strict=True)])


def _each(read: Callable[[Any], T], least: int = 0) -> Callable[[Any], tuple[T, ...]]:
    """A reader of `least` or more."""

    def read_each(data: Sequence[Any]) -> tuple[T, ...]:
        if len(data) < least:
            raise ValueError(f"{len(data)} of at least {least} are there")
        return tuple([read(item) for item in data])

    return read_each


def _optional(read: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda data: None if data is None else read(data)


def _between(low: int, high: int) -> Callable[[Any], int]:
    return lambda data: within(data, low, high)


def _segment(data: Any) -> Segment:
    return SEGMENTS[SEGMENTS.index(data)]


def _bounds(low: Any, high: Any) -> tuple[int, int | None]:
    low = within(low, 0, LARGEST)
    return low, None if high is None else within(high, low, LARGEST)


def _alignment(data: Any) -> int:
    number = within(data, 1, 4096)
    if number & (number - 1):
        raise ValueError(f"{number} is no power of two")
    return number


def _standing(data: Any) -> LoopOffset:
    if _LOOP_OFFSET(data) != STANDING:
        raise ValueError("an operand of a host call that moves")
    return STANDING


_SIZE: Callable[[Any], Size] = size_from_json
_SIZES = _each(_SIZE)
_BUFFER = _record(BufferRef, _segment, whole, _SIZE)
_LOOP_OFFSET = _record(LoopOffset, _SIZE, whole, flag, _optional(_BUFFER), _SIZE)
_SPEC = _record(TensorSpec, text, text, _SIZES, _optional(whole), text)
_OPERAND = _optional(_record(Operand, _BUFFER, _SIZES, text, _standing))
_CODE = _optional(lambda data: code_from_json(data, size_from_json))
_ARM = _record(Arm, whole, _each(_BUFFER), _SIZES, _SIZE, _SIZE, _each(_LOOP_OFFSET))
_SCRATCH = _record(Scratch, _SIZE, _between(0, LARGEST))
_COMMAND = _record(Command, _each(_ARM, 1), flag, _between(0, LARGEST), text, _optional(_SCRATCH))
_STEPS: dict[str, Callable[[Any], Step]] = {
    "launch": _COMMAND,
    "loop": _record(Loop, _SIZE, _each(_COMMAND), flag, text),
    "host": _record(HostCall, text, bytes.fromhex, _each(_OPERAND), _each(_OPERAND), text, _SIZE, _CODE),
    "poison": _record(Poison, _each(_record(lambda *extent: extent, _SIZE, _SIZE)), flag),
}
_KINDS = {Command: "launch", Loop: "loop", HostCall: "host", Poison: "poison"}
_PROGRAM: dict[str, Callable[[Any], Any]] = {
    "inputs": _each(_SPEC),
    "outputs": _each(_SPEC),
    "steps": _each(lambda step: _STEPS[step[0]](step[1:])),
    "arena_bytes": _SIZE,
    "scratch_bytes": _between(0, LARGEST),
    "threads": _between(1, MAX_THREADS),
    "symbols": lambda data: {name: _bounds(*bounds) for name, bounds in mapping(data).items()},
    "serial_below_ns": whole,
    "split_above_ns": whole,
    "input_alignment": _alignment,
    "slots": _between(0, MOST_SLOTS),
    "requirements": requirements_from_json,
}
