"""A schedule executed step by step with NumPy, on an arena laid out as the schedule says: what a wrong plan breaks,
breaks here too."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp

from fuseline.buffers import BufferRef, Extent, Operand
from fuseline.errors import FuselineError, UnequalSizesError
from fuseline.evaluation import evaluate_function
from fuseline.program.schedule import Schedule
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
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.feeds import admit, bind_sizes, shapes_of
from fuseline.runtime.poison import PATTERN, poison, poison_array
from fuseline.runtime.program import HostCall, Program
from fuseline.runtime.sizes import SizeEvaluator
from fuseline.runtime.values import call_host, keep_answers, learn_answers, results_of, values_of
from fuseline.targets.runtime_form import host_call, runtime_form

Array = NDArray[Any]


@dataclass(frozen=True)
class InterpretedProgram:
    """What the interpreter assembles in place of an artifact: it runs in this process and cannot be saved."""

    schedule: Schedule
    entries: Mapping[str, FuncOp]
    program: Program
    records: bytes = b""
    metadata: Mapping[str, Any] | None = None
    fallback: InterpretedProgram | None = None

    def with_fallback(self, other: InterpretedProgram) -> InterpretedProgram:
        """This program, whose runs turn to `other` for sizes that break a requirement of its own."""
        return replace(self, fallback=other)

    def session(self, threads: int | None = None) -> InterpretedSession:
        """The program, ready to run."""
        del threads
        return InterpretedSession(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Raises E0502: there is no code to save."""
        raise FuselineError(
            "E0502", "an interpreted program has no code to save", node=os.fspath(path), hint="compile for cpu"
        )


class InterpretedSession:
    """Runs an interpreted program; the same surface as `fuseline.runtime.Session`."""

    threads = 1

    def __init__(self, program: InterpretedProgram) -> None:
        self.artifact = program
        self.inputs, self.outputs, self.records = program.program.inputs, program.program.outputs, program.records
        self._steps: list[Step | HostCall] = [  # sizes in the form that the runtime evaluates
            host_call(step) if isinstance(step, HostStep) else runtime_form(step) for step in program.schedule.steps
        ]

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Outputs by name for feeds by name; raises E0201 to E0204 for feeds that do not fit."""
        arrays = admit(self.inputs, feeds)
        try:
            results = self._results(arrays)
        except UnequalSizesError:
            other = self.artifact.fallback
            if other is None:
                raise
        else:
            return dict(zip([spec.name for spec in self.outputs], results, strict=True))
        return other.session().run(feeds)

    def _results(self, arrays: Sequence[Array]) -> list[Any]:
        program = self.artifact.program
        memory = Memory(self.artifact, arrays, bind_sizes(program, shapes_of(self.inputs, arrays)))
        for step in self._steps:
            self._step(step, memory)
        for number, spec in enumerate(self.outputs):
            if spec.slot is None:
                memory.output(number)
        return results_of(program, memory.values)

    def _step(self, step: Step | HostCall, memory: Memory) -> None:
        if isinstance(step, LoopStep):
            for iteration in range(memory.evaluate(step.trips)):
                memory.iteration = iteration
                for inner in step.steps:
                    self._step(inner, memory)
        elif isinstance(step, CopyStep | FillStep | InsertStep):
            move_bytes(step, memory)
        elif isinstance(step, SizesStep):
            memory.write([step.target], [np.array([memory.evaluate(value) for value in step.values], np.int64)])
        elif isinstance(step, HostCall):
            memory.keep(step, call_host(step, memory.values, memory.view, memory.evaluate))
        elif isinstance(step, PoisonStep):
            poison(memory.arena, [(memory.evaluate(offset), memory.evaluate(length)) for offset, length in step.live])
        elif isinstance(step, DispatchStep):
            sizes = [np.asarray(memory.evaluate(size), np.int64) for _, size in step.sizes]
            operands = [*map(memory.view, step.operands), *sizes]
            memory.write(step.results, evaluate_function(self.artifact.entries[step.executable], operands))


def move_bytes(step: CopyStep | FillStep | InsertStep, memory: Memory) -> None:
    """Do what only moves bytes."""
    source = memory.view(step.source).view(dtype_named(step.target.dtype))
    if isinstance(step, CopyStep):
        memory.write([step.target], [source])
    elif isinstance(step, FillStep):
        memory.write([step.target], [np.broadcast_to(source.reshape(()), memory.view(step.target).shape)])
    else:
        at = [memory.evaluate(offset) for offset in step.offsets]
        box = tuple(slice(first, first + size) for first, size in zip(at, source.shape, strict=True))
        memory.view(step.target)[box] = source


class Memory:
    """The segments of one run. The arena starts as a pattern that no computation gives, so that reading before writing
    shows."""

    def __init__(self, program: InterpretedProgram, inputs: Sequence[Array], sizes: dict[str, int]) -> None:
        self.program, self.constants, self.sizes = program.program, program.schedule.constants, sizes
        self.evaluate: Callable[[Extent], int] = SizeEvaluator(sizes)
        self.iteration = 0
        self.values = values_of(self.program, inputs)
        self.arena = np.full(self.evaluate(self.program.arena_bytes), PATTERN, np.uint8)

    def output(self, number: int) -> Array:
        """An output in memory, made when it is first asked for: its sizes may have turned up during the run."""
        found, spec = self.values.outputs[number], self.program.outputs[number]
        if found is None:
            found = np.empty([self.evaluate(size) for size in spec.dims], dtype_named(spec.dtype))
            poison_array(found)
            self.values.outputs[number] = found
        return found

    def keep(self, step: HostCall, answers: Sequence[Any]) -> None:
        """Put the answers of a host operator where they belong, in an arena that has grown to the sizes which they make
        known."""
        learn_answers(self.program, step, answers, self.sizes)
        missing = self.evaluate(step.arena_bytes) - self.arena.size
        if missing > 0:
            self.arena = np.concatenate([self.arena, np.full(missing, PATTERN, np.uint8)])
        keep_answers(step, answers, self.values, self.view)

    def place(self, operand: Operand) -> tuple[BufferRef, int]:
        """Where an operand lies in the present iteration of a loop: a buffer reference, and bytes from there on."""
        stride, lag, alternates, special, at = operand.loop_offset
        if special is not None and self.iteration == self.evaluate(at):
            return special, 0
        steps = self.iteration - lag
        return operand.buffer, (steps % 2 if alternates else steps) * self.evaluate(stride)

    def segment(self, ref: BufferRef) -> Array:
        """The bytes of the segment that a buffer reference is an offset into."""
        if ref.segment == "arena":
            return self.arena
        if ref.segment == "output":
            array = self.output(ref.number)
        else:
            array = (self.constants if ref.segment == "constant" else self.values.inputs)[ref.number]
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def view(self, operand: Operand) -> Array:
        """A copy-free view of an operand's bytes as its tensor."""
        shape = [self.evaluate(dim) for dim in operand.dims]
        ref, distance = self.place(operand)
        start, dtype = self.evaluate(ref.offset) + distance, dtype_named(operand.dtype)
        stop = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        segment = self.segment(ref)
        if stop > segment.size:
            raise FuselineError(
                "E0901", f"the schedule reads bytes {start}..{stop} of {segment.size} in {operand.buffer}"
            )
        return segment[start:stop].view(dtype).reshape(shape)

    def write(self, operands: Sequence[Operand], arrays: Sequence[Any]) -> None:
        """Store results where they belong; all are computed before any is stored."""
        for operand, array in zip(operands, arrays, strict=True):
            target = self.view(operand)
            target[...] = np.asarray(array).reshape(target.shape).astype(target.dtype, copy=False)
