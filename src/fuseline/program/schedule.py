"""The schedule of a whole program as a value: what is launched in which order, and where every tensor lies. No code, no
addresses.

`passes/schedule` reads it off `@main` after outlining (each step in a wave of its own, transients without a place),
orders it and places its transients; a target turns it into what its runtime executes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fuseline.buffers import BufferRef, Operand, TensorSpec
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.program.steps import CopyStep, FillStep, HostStep, InsertStep, LoopStep, Step, flat_steps
from fuseline.program.steps import DispatchStep as DispatchStep  # for targets from outside, with the others
from fuseline.size_requirement import SizeRequirement
from fuseline.weight_layouts import WeightSource

ARENA_ALIGNMENT = 64
"""Alignment of every tensor, bytes: one cache line and one AVX-512 vector."""

SCRATCH_ALIGNMENT = 128
"""Alignment of a thread's scratch, bytes: two cache lines, since neighbours are prefetched in pairs."""

_ELEMENT_BYTES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "object": 0}


@cache
def element_bytes(dtype: str) -> int:
    """Bytes of one element of a NumPy dtype name, ml_dtypes' included; 0 of what is boxed."""
    known = _ELEMENT_BYTES.get(dtype)
    return np.dtype(dtype).itemsize if known is None else known


def bytes_of(operand: Operand) -> Dim:
    """Bytes of the whole tensor."""
    return d.mul(d.product(operand.dims), element_bytes(operand.dtype))


def moved_ref(ref: BufferRef, distance: Dim) -> BufferRef:
    """`distance` bytes further on."""
    return ref._replace(offset=d.add(ref.offset, distance))


def moved(operand: Operand, distance: Dim) -> Operand:
    """The tensor of this form that lies `distance` bytes further on, in every iteration of a loop."""
    special = operand.loop_offset.special
    loop_offset = (
        operand.loop_offset if special is None else operand.loop_offset._replace(special=moved_ref(special, distance))
    )
    return operand._replace(buffer=moved_ref(operand.buffer, distance), loop_offset=loop_offset)


class ScratchPlace(NamedTuple):
    """Scratch of a wave in the arena: that of thread `t` are the `stride` bytes from `offset + t * stride` on."""

    offset: Dim
    stride: int


class InPlaceDecision(NamedTuple):
    """Whether transient `result` takes the place of transient `operand` (both -1 where one is none): `refusal` says why
    not, empty where it does.

    Refusals: `not-transient`, `part-of-a-buffer`, `bound-twice`, `read-later`, `written-earlier`, `side-by-side`,
    `place-taken`.
    """

    result: int
    operand: int
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleStatistics:
    """Bytes of the arena, barriers between waves, bytes of constants as read from the model, copies, fills,
    host calls."""

    transient_bytes: Dim
    barriers: int
    waves: int
    constant_bytes: int
    copies: int
    fills: int
    host_ops: int


@dataclass(frozen=True, eq=False)
class Schedule:
    """Steps in order. Steps of one wave do not depend on each other and share no memory that one of them writes; a
    barrier lies between waves.

    `constants` are the arrays behind constant slots, by index (possibly memory-mapped: never copied here).
    `arena_bytes` is the whole arena, `initial_arena_bytes` (None: the same) the part whose size the inputs alone
    determine. `slots` is how many values are boxed. `transients` are the bytes of the buffers that have no place in the
    arena yet, by index. `in_place` is what was decided about results that might overwrite an operand,
    `scratch` where scratch of all threads lies, by wave (None: not in the arena), `live_bytes` the most of the arena
    that is in use at once.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    steps: tuple[Step, ...]
    constants: tuple[NDArray[Any], ...]
    arena_bytes: Dim
    symbols: Mapping[str, tuple[int, int | None]] = field(default_factory=dict[str, tuple[int, int | None]])
    requirements: tuple[SizeRequirement, ...] = ()
    initial_arena_bytes: Dim | None = None
    slots: int = 0
    transients: tuple[Dim, ...] = ()
    in_place: tuple[InPlaceDecision, ...] = ()
    scratch: Mapping[int, ScratchPlace] | None = None
    live_bytes: Dim = 0

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
            copies=sum(isinstance(step, CopyStep | InsertStep) for step in flat_steps(self.steps)),
            fills=sum(isinstance(step, FillStep) for step in flat_steps(self.steps)),
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
    `original_bytes` counts the model's weights once each, as its files hold them (the schedule's, where the frontend
    does not say). `sources`: what blocks are made from, where an artifact is to hold that instead.
    """

    blocks: Sequence[NDArray[np.uint8]]
    layouts: Mapping[tuple[int, Any], int]
    extras: Mapping[tuple[str, int], int]
    original_bytes: int = 0
    packed_bytes: int = 0
    sources: Mapping[int, WeightSource] = field(default_factory=dict[int, WeightSource])
