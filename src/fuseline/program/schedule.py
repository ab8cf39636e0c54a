"""The schedule of a whole program as a value: what is launched in which order, and where every tensor lies. No code, no
addresses.

`passes/schedule` makes it from `@main` after outlining; a target turns it into what its runtime executes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fuseline.ir import dim as d
from fuseline.ir.context import SizeRequirement
from fuseline.ir.dim import Dim

Segment: TypeAlias = Literal["arena", "constant", "input", "output", "held"]

ARENA_ALIGNMENT = 64
"""Alignment of every tensor, bytes: one cache line and one AVX-512 vector."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Memory of a tensor: `offset` bytes into the arena, a constant, an input or an output; `index` says which (0 for
    the arena).

    `held` is no memory: slot `index` keeps a value that only host operators handle.
    """

    segment: Segment
    index: int = 0
    offset: Dim = 0


@dataclass(frozen=True, slots=True)
class Walk:
    """How an operand moves through the iterations of a loop: in iteration `i` it lies `(i - lag) * stride` bytes behind
    its slot.

    `alternates`: `(i - lag) % 2 * stride` bytes instead. In iteration `at` it lies at `special`, where that is given; a
    walk that lags (0 or 1 iterations) has one for iteration 0.
    """

    stride: Dim = 0
    lag: int = 0
    alternates: bool = False
    special: Slot | None = None
    at: Dim = 0


STANDING = Walk()
"""The walk of what lies at the same place in every iteration."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a step reads or writes. `dtype` is a NumPy name, `element_bytes` its size (a held value: `object`,
    no sizes, 0).

    `walk` says how it moves, in a loop.
    """

    slot: Slot
    dims: tuple[Dim, ...]
    dtype: str
    element_bytes: int
    walk: Walk = STANDING

    @property
    def bytes(self) -> Dim:
        """Bytes of the whole tensor."""
        return d.mul(d.product(self.dims), self.element_bytes)


@dataclass(frozen=True, slots=True)
class DispatchStep:
    """One launch of `executable`: bindings are its tensor operands, then its results; `sizes` are its index operands by
    name, in order."""

    executable: str
    entry: str
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    sizes: tuple[tuple[str, Dim], ...]
    wave: int
    label: str = ""
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyStep:
    """`target` becomes the bytes of `source`: an output that is an input, a constant or another output."""

    source: Operand
    target: Operand
    wave: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class HostStep:
    """An operator that runs outside native code: `node` is what `executor` is to run, for `onnx` a serialised model of
    one node.

    It may be the first to know a size: a symbol among the sizes of its results that no input has. `arena_bytes` is what
    the arena must have once those are known (0: no more than before).
    """

    executor: str
    node: bytes
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    wave: int
    label: str = ""
    arena_bytes: Dim = 0
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SizesStep:
    """`target` (64-bit integers) becomes `values`: sizes that the program computes with, such as the shape of an
    input."""

    values: tuple[Dim, ...]
    target: Operand
    wave: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class LoopStep:
    """`steps` are run in order `trips` times, each iteration after the one before; their waves are counted within an
    iteration."""

    trips: Dim
    steps: tuple[DispatchStep | CopyStep | SizesStep, ...]
    wave: int
    label: str = ""
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoisonStep:
    """The arena but for `live` (offsets and bytes), and all scratch, is overwritten: nothing may need them. `begins`:
    outputs are, too.

    Only programs that tests ask for have such steps.
    """

    live: tuple[tuple[Dim, Dim], ...]
    wave: int
    begins: bool = False
    label: str = "poison"


Step: TypeAlias = DispatchStep | CopyStep | HostStep | SizesStep | LoopStep | PoisonStep


def flat_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """Each step, those of loops once, in place of the loop."""
    for step in steps:
        if isinstance(step, LoopStep):
            yield from step.steps
        else:
            yield step


INDEX_TYPE = "index"
"""The `type` of an input that is a number which sizes depend on; `fuseline.runtime.program` calls it so too."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """An input or output of the program. A held value has a `slot` and a `type` (as `fuseline.runtime.held` writes
    types).

    An input of type `index` is no tensor: the one size in `dims` is what it is.
    """

    name: str
    dtype: str
    dims: tuple[Dim, ...]
    slot: int | None = None
    type: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleStatistics:
    """Bytes of the arena (without scratch), barriers between waves, bytes of constants as read from the model, copies,
    host calls."""

    transient_bytes: Dim
    barriers: int
    waves: int
    constant_bytes: int
    copies: int
    host_ops: int


@dataclass(frozen=True, eq=False)
class Schedule:
    """Steps in order. Steps of one wave do not depend on each other and share no memory that one of them writes; a
    barrier lies between waves.

    `constants` are the arrays behind constant slots, by index (possibly memory-mapped: never copied here).
    `arena_bytes` is the whole arena, `initial_arena_bytes` (None: the same) the part whose size the inputs alone
    determine. `slots` is how many values are held.
    """

    inputs: tuple[Boundary, ...]
    outputs: tuple[Boundary, ...]
    steps: tuple[Step, ...]
    constants: tuple[NDArray[Any], ...]
    arena_bytes: Dim
    symbols: Mapping[str, tuple[int, int | None]] = field(default_factory=dict[str, tuple[int, int | None]])
    requirements: tuple[SizeRequirement, ...] = ()
    initial_arena_bytes: Dim | None = None
    slots: int = 0

    @property
    def statistics(self) -> ScheduleStatistics:
        """Figures for reports."""
        waves = len({step.wave for step in self.steps}) + sum(
            len({inner.wave for inner in loop.steps}) - 1 for loop in self.loops
        )
        return ScheduleStatistics(
            transient_bytes=self.arena_bytes,
            barriers=max(waves - 1, 0),
            waves=waves,
            constant_bytes=sum(array.nbytes for array in self.constants),
            copies=sum(isinstance(step, CopyStep) for step in flat_steps(self.steps)),
            host_ops=sum(isinstance(step, HostStep) for step in self.steps),
        )

    @property
    def loops(self) -> Sequence[LoopStep]:
        """The loops among the steps."""
        return [step for step in self.steps if isinstance(step, LoopStep)]


@dataclass(frozen=True, eq=False)
class PackedConstants:
    """Constants as kernels read them: byte blocks, 64-byte aligned, equal bytes once.

    `layouts` maps `(constant, layout key)` to a block, where the key is what `passes/schedule/pack_constants.py` was
    asked for (None: plain); `extras` maps `(executable, position)` to the block of a kernel's own constant.
    `original_bytes` counts the model's constants once each.
    """

    blocks: Sequence[NDArray[np.uint8]]
    layouts: Mapping[tuple[int, Any], int]
    extras: Mapping[tuple[str, int], int]
    original_bytes: int = 0
    packed_bytes: int = 0
