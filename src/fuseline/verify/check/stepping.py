"""A program run natively, one step after the other, in memory laid out as its schedule says; whoever watches sees what
each step reads before it runs, and what it made.

    arena, outputs ──view──> operands ──watch──> a judge
          ^                     native code
          └──────results──────────┘ ──────────> the judge
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fuseline.buffers import BufferRef, LoopOffset, Operand
from fuseline.errors import FuselineError
from fuseline.program.steps import DispatchStep, HostStep, LoopStep, PoisonStep, Step
from fuseline.runtime import program as p
from fuseline.runtime.feeds import admit, bind_sizes, shapes_of
from fuseline.runtime.memory import address_of
from fuseline.runtime.values import call_host, results_of
from fuseline.targets.interpreter.session import InterpretedProgram, Memory
from fuseline.targets.runtime_form import host_call, runtime_form
from fuseline.verify.check.native import Address, NativeCode
from fuseline.verify.check.programs import CheckedProgram

Array: TypeAlias = NDArray[Any]

Judge: TypeAlias = Callable[[Sequence[Array]], None]
"""Is given the results of a step, as they lie in memory."""


class Reading(NamedTuple):
    """A step about to run: `number` counts the steps of a run in order (one in a loop keeps its number), `operands` are
    views of what it reads, sizes last; `command` is what
    it became, `address` where its bindings lie; `trips` how often it runs."""

    number: int
    step: Step
    operands: Sequence[Array]
    command: p.Command
    memory: Memory
    code: NativeCode
    address: Address
    trips: int = 1


MOST_ITERATIONS = 32
"""Iterations of a loop that are looked at."""

Watch: TypeAlias = Callable[[Reading], "Judge | None"]


class Stepped:
    """A program that `run` takes step by step; `watch` is asked before each step of native code.

    Of a loop it sees all iterations, or `MOST_ITERATIONS` of them: the first two, the last, and some in between.
    """

    def __init__(self, program: CheckedProgram) -> None:
        lowering, artifact = program.lowering, program.artifact
        self._artifact, self._code = artifact, NativeCode(artifact)
        self._program = InterpretedProgram(lowering.planned, program.entries, artifact.program)
        self._steps: list[tuple[Any, p.Step]] = [
            (host_call(step) if isinstance(step, HostStep) else runtime_form(step), made)
            for step, made in zip(lowering.planned.steps, artifact.program.steps, strict=True)
        ]

    def run(self, feeds: Mapping[str, Any], watch: Watch) -> dict[str, Any]:
        """Outputs by name; raises what a session raises for the feeds."""
        arrays = [np.ascontiguousarray(array).reshape(np.shape(array)) for array in _admitted(self._artifact, feeds)]
        inputs = self._artifact.program.inputs
        memory = Memory(self._program, arrays, bind_sizes(self._artifact.program, shapes_of(inputs, arrays)))
        for number, (step, made) in enumerate(self._steps):
            self._take(number, step, made, memory, watch)
        outputs = self._artifact.program.outputs
        for number, spec in enumerate(outputs):
            if spec.slot is None:
                memory.output(number)
        results = results_of(self._artifact.program, memory.values)
        return dict(zip([spec.name for spec in outputs], results, strict=True))

    def _take(self, number: int, step: Any, made: p.Step, memory: Memory, watch: Watch) -> None:
        if isinstance(step, p.HostCall):
            memory.keep(step, call_host(step, memory.values, memory.view, memory.evaluate))
        elif isinstance(step, LoopStep) and isinstance(made, p.Loop):
            self._repeat(number, step, made, memory, watch)
        elif isinstance(made, p.Command):
            self._launch(number, step, made, memory, watch)
        elif not isinstance(step, PoisonStep):
            raise FuselineError("E0901", f"a step of the kind {type(step).__name__} became {type(made).__name__}")

    def _repeat(self, number: int, loop: LoopStep, made: p.Loop, memory: Memory, watch: Watch) -> None:
        trips = memory.evaluate(made.trips)
        seen = iterations_seen(trips)
        for iteration in range(trips):
            memory.iteration = iteration
            watched = watch if iteration in seen else _unwatched
            for step, command in zip(loop.steps, made.commands, strict=True):
                self._launch(number, step, command, memory, watched, trips)
        memory.iteration = 0

    def _launch(self, number: int, step: Any, command: p.Command, memory: Memory, watch: Watch, trips: int = 1) -> None:
        sizes = [np.asarray(memory.evaluate(size), np.int64) for _, size in getattr(step, "sizes", ())]
        operands = [*map(memory.view, step.operands), *sizes] if isinstance(step, DispatchStep) else []
        address = partial(self._address, memory)
        judge = watch(Reading(number, step, operands, command, memory, self._code, address, trips))
        self._code.launch(command, address, memory.evaluate)
        if judge is not None:
            judge([memory.view(result) for result in step.results])

    def _address(self, memory: Memory, ref: BufferRef, move: LoopOffset) -> int:
        """Where a binding lies; constants lie as kernels read them, in the blocks of the artifact."""
        ref, distance = memory.place(Operand(ref, (), "uint8", move))
        segment = self._artifact.constants[ref.number] if ref.segment == "constant" else memory.segment(ref)
        return address_of(segment) + memory.evaluate(ref.offset) + distance


def iterations_seen(trips: int) -> set[int]:
    """The iterations of a loop that are looked at.

    >>> sorted(iterations_seen(3)), len(iterations_seen(1000)), 999 in iterations_seen(1000)
    ([0, 1, 2], 32, True)
    """
    if trips <= MOST_ITERATIONS:
        return set(range(trips))
    spread = MOST_ITERATIONS - 2
    return {0, *(1 + (trips - 2) * number // spread for number in range(spread + 1))}


def _unwatched(reading: Reading) -> None:
    """Of the iterations in the middle of a loop."""


def _admitted(artifact: Any, feeds: Mapping[str, Any]) -> list[Array]:
    return admit(artifact.program.inputs, feeds)
