"""Where tensors lie: the values that the compiler's schedule and the runtime's program share.

Sizes and offsets are `fuseline.ir.dim.Dim` in a schedule and `fuseline.runtime.sizes.Size` in a program;
`targets/runtime_form.py` turns the one into the other. Named tuples, not dataclasses: the runtime imports this module,
and making a dataclass takes 1 ms of import.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

Extent: TypeAlias = Any
"""A size in its schedule's or its program's form."""

Segment: TypeAlias = Literal["transient", "arena", "constant", "input", "output", "boxed"]

INDEX_TYPE = "index"
"""The `type` of an input that is a number which sizes depend on."""


class BufferRef(NamedTuple):
    """Memory of a tensor: `offset` bytes into a constant, input or output, or into the arena; `number` says which one
    (0 for the arena).

    `transient` is a buffer of a schedule that has no place in the arena yet. `boxed` is no memory: slot `number` keeps
    a Python value that only host operators handle (see `fuseline.runtime.boxed`).
    """

    segment: Segment
    number: int = 0
    offset: Extent = 0


class LoopOffset(NamedTuple):
    """How a tensor moves through the iterations of a loop: in iteration `i` it lies `(i - lag) * stride` bytes behind
    its buffer reference.

    `alternates`: `(i - lag) % 2 * stride` bytes instead. In iteration `at` it lies at `special`, where that is given;
    an offset that lags (0 or 1 iterations) has one for iteration 0.
    """

    stride: Extent = 0
    lag: int = 0
    alternates: bool = False
    special: BufferRef | None = None
    at: Extent = 0


STANDING = LoopOffset()
"""Of what lies at the same place in every iteration."""


class Operand(NamedTuple):
    """A tensor that a step reads or writes: where it lies, sizes, NumPy dtype name (a boxed value: `object`, no sizes).

    `loop_offset` says how it moves, in a loop.
    """

    buffer: BufferRef
    dims: tuple[Extent, ...]
    dtype: str
    loop_offset: LoopOffset = STANDING


def is_boxed(operand: Operand | None) -> bool:
    """Whether an operand or result (None: left out) does not lie in memory, but is passed to host operators by
    reference."""
    return operand is not None and operand.buffer.segment == "boxed"


class TensorSpec(NamedTuple):
    """A tensor that crosses the border to Python: name, NumPy dtype name, sizes.

    `slot` numbers the slot of a value that is boxed instead of lying in memory, whose type is then `type`; what is no
    tensor of known rank has dtype `object` and no sizes. An input of type `index` is a number without dimensions that
    sizes and offsets depend on: the one size in `dims` is not how long it is but what it is.
    """

    name: str
    dtype: str
    dims: tuple[Extent, ...]
    slot: int | None = None
    type: str = ""

    @property
    def is_index(self) -> bool:
        """Whether this input is a number that sizes depend on."""
        return self.type == INDEX_TYPE and self.slot is None

    @property
    def shape(self) -> tuple[Extent, ...]:
        """The sizes of the array that crosses the border."""
        return () if self.is_index else self.dims
