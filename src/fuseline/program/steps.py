"""The steps of a schedule: what a run does, one after the other or in waves, and where each reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar

from fuseline.buffers import Operand
from fuseline.ir.dim import Dim
from fuseline.scalar_code import ScalarCode


class DispatchStep(NamedTuple):
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
class MoveStep:
    """`target` is made of the bytes of `source`, of which nothing is computed."""

    source: Operand
    target: Operand
    wave: int
    label: str = "copy"

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What it reads."""
        return (self.source,)

    @property
    def results(self) -> tuple[Operand, ...]:
        """What it writes."""
        return (self.target,)

    def mapped(self, change: Callable[[Any], Any]) -> Self:
        """The step with every field changed."""
        return replace(self, **{one.name: change(getattr(self, one.name)) for one in fields(self)})


@dataclass(frozen=True, slots=True)
class CopyStep(MoveStep):
    """`target` becomes the bytes of `source`: an output that is an input, a constant or another output."""


@dataclass(frozen=True, slots=True)
class FillStep(MoveStep):
    """Every element of `target` becomes the one element of `source`, bit by bit."""

    label: str = "fill"


@dataclass(frozen=True, slots=True)
class InsertStep(MoveStep):
    """The box of `target` that begins at `offsets` (an element each dimension) becomes `source`; the rest of it stays.

    So it reads what it leaves.
    """

    offsets: tuple[Dim, ...] = field(kw_only=True)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What it reads, and what must be there before."""
        return (self.source, self.target)


class HostStep(NamedTuple):
    """An operator that runs outside native code: `node` is what `executor` is to run, for `onnx` a serialised model of
    one node.

    It may be the first to know a size: a symbol among the sizes of its results that no input has. `arena_bytes` is what
    the arena must have once those are known (0: no more than before). With `code`, `operands` are what that reads, and
    it says what the operator gets.
    """

    executor: str
    node: bytes
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    wave: int
    label: str = ""
    arena_bytes: Dim = 0
    nodes: tuple[str, ...] = ()
    code: ScalarCode | None = None


class SizesStep(NamedTuple):
    """`target` (64-bit integers) becomes `values`: sizes that the program computes with, such as the shape of an
    input."""

    values: tuple[Dim, ...]
    target: Operand
    wave: int
    label: str = "sizes"

    @property
    def operands(self) -> tuple[Operand, ...]:
        """It reads no tensor."""
        return ()

    @property
    def results(self) -> tuple[Operand, ...]:
        """What it writes."""
        return (self.target,)


class LoopStep(NamedTuple):
    """`steps` are run in order `trips` times, each iteration after the one before; their waves are counted within an
    iteration.

    `operands` and `results` are what all iterations together read and write, memory that only the loop uses included.
    """

    trips: Dim
    steps: tuple[DispatchStep | CopyStep | FillStep | InsertStep | SizesStep, ...]
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    wave: int
    label: str = ""
    nodes: tuple[str, ...] = ()


class PoisonStep(NamedTuple):
    """The arena but for `live` (offsets and bytes), and all scratch, is overwritten: nothing may need them. `begins`:
    outputs are, too.

    Only programs that tests ask for have such steps.
    """

    live: tuple[tuple[Dim, Dim], ...]
    wave: int
    begins: bool = False
    label: str = "poison"
    operands: tuple[Operand, ...] = ()
    results: tuple[Operand, ...] = ()


Step: TypeAlias = DispatchStep | CopyStep | FillStep | InsertStep | HostStep | SizesStep | LoopStep | PoisonStep


AnyStep = TypeVar("AnyStep", bound=Step | MoveStep)


def changed(step: AnyStep, **changes: Any) -> AnyStep:
    """The step with other fields."""
    return replace(step, **changes) if isinstance(step, MoveStep) else step._replace(**changes)


def extents_of(step: Step) -> Sequence[Dim]:
    """The sizes that a step computes with, those of its tensors aside."""
    if isinstance(step, DispatchStep):
        return [size for _, size in step.sizes]
    if isinstance(step, SizesStep):
        return step.values
    if isinstance(step, InsertStep):
        return step.offsets
    if isinstance(step, HostStep):
        return step.code.sizes if step.code is not None else []
    return [step.trips] if isinstance(step, LoopStep) else []


def flat_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """Each step, those of loops once, in place of the loop."""
    for step in steps:
        if isinstance(step, LoopStep):
            yield from step.steps
        else:
            yield step
