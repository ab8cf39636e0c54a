"""A schedule executed step by step with NumPy, on an arena laid out as the schedule says: what a wrong plan breaks,
breaks here too."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp

from fuseline.analysis.evaluation import evaluate_function
from fuseline.buffers import BufferRef, Operand, is_boxed
from fuseline.errors import FuselineError, UnequalSizesError
from fuseline.ir import dim as d
from fuseline.program.schedule import CopyStep, HostStep, LoopStep, PoisonStep, Schedule, SizesStep, Step
from fuseline.runtime import host
from fuseline.runtime.boxed import is_tensor_type, unbox
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.feeds import admit, bind_sizes, shapes_of
from fuseline.runtime.learned_sizes import learn_sizes, told_shape
from fuseline.runtime.ownership import Boxed, hand_out, lend
from fuseline.runtime.poison import PATTERN, poison, poison_array
from fuseline.runtime.program import Program
from fuseline.targets.runtime_form import runtime_form

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
        sizes = bind_sizes(self.artifact.program, shapes_of(self.inputs, arrays))
        memory = _Memory(self.artifact, arrays, sizes)
        for step in self.artifact.schedule.steps:
            self._step(step, memory)
        return memory.results()

    def _step(self, step: Step, memory: _Memory) -> None:
        if isinstance(step, LoopStep):
            for iteration in range(d.evaluate(step.trips, memory.sizes)):
                memory.iteration = iteration
                for inner in step.steps:
                    self._step(inner, memory)
        elif isinstance(step, CopyStep):
            memory.write([step.target], [memory.read(step.source).view(memory.dtype(step.target))])
        elif isinstance(step, SizesStep):
            memory.write(
                [step.target], [np.array([d.evaluate(value, memory.sizes) for value in step.values], np.int64)]
            )
        elif isinstance(step, HostStep):
            memory.keep(step, self._call(step, memory))
        elif isinstance(step, PoisonStep):
            poison(
                memory.arena,
                [(d.evaluate(offset, memory.sizes), d.evaluate(length, memory.sizes)) for offset, length in step.live],
            )
        else:
            sizes = [np.asarray(d.evaluate(size, memory.sizes), np.int64) for _, size in step.sizes]
            memory.write(
                step.results,
                evaluate_function(self.artifact.entries[step.executable], [*map(memory.read, step.operands), *sizes]),
            )

    def _call(self, step: HostStep, memory: _Memory) -> list[Any]:
        operands = [memory.read(operand) for operand in step.operands]
        lent = [array for operand, array in zip(step.operands, operands, strict=True) if not is_boxed(operand)]
        return host.call(
            host.Call(step.executor, step.node, step.label, [is_boxed(operand) for operand in step.results]),
            operands,
            lent,
        )


class _Memory:
    """The segments of one run. The arena starts as a pattern that no computation gives, so that reading before writing
    shows."""

    def __init__(self, program: InterpretedProgram, inputs: Sequence[Array], sizes: Mapping[str, int]) -> None:
        schedule = self.schedule = program.schedule
        self.inputs, self.sizes, self.program = inputs, dict(sizes), program.program
        self.iteration = 0
        self.boxed: list[Boxed | None] = [None] * schedule.slots
        for boundary, array in zip(schedule.inputs, inputs, strict=True):
            if boundary.slot is not None:
                self.boxed[boundary.slot] = lend(array if is_tensor_type(boundary.type) else unbox(array))
        initial = schedule.arena_bytes if schedule.initial_arena_bytes is None else schedule.initial_arena_bytes
        self.arena = np.full(d.evaluate(initial, sizes), PATTERN, np.uint8)
        self._outputs: dict[int, Array] = {}

    def results(self) -> list[Any]:
        """The outputs, as the caller's own."""
        fed, left = (
            [self.boxed[border.slot] for border in side if border.slot is not None]
            for side in (self.schedule.inputs, self.schedule.outputs)
        )
        boxed = iter(hand_out(left, fed))
        return [
            self._output(i) if border.slot is None else next(boxed) for i, border in enumerate(self.schedule.outputs)
        ]

    def _output(self, index: int) -> Array:
        """An output in memory, made when it is first asked for: its sizes may have turned up during the run."""
        boundary = self.schedule.outputs[index]
        if index not in self._outputs:
            self._outputs[index] = np.empty(
                [d.evaluate(dim, self.sizes) for dim in boundary.dims], dtype_named(boundary.dtype)
            )
            poison_array(self._outputs[index])
        return self._outputs[index]

    def keep(self, step: HostStep, answers: Sequence[Any]) -> None:
        """Put the answers of a host operator where they belong, in an arena that has grown to the sizes which they make
        known."""
        for operand, answer in zip(step.results, answers, strict=True):
            if operand.dims or not is_boxed(operand):
                learn_sizes(self.program, step.label, runtime_form(operand.dims), told_shape(answer), self.sizes)
        self._grow(step)
        for operand, answer in zip(step.results, answers, strict=True):
            if is_boxed(operand):
                self.boxed[operand.buffer.number] = answer
            else:
                host.store(step.label, self._view(operand), answer)

    def _grow(self, step: HostStep) -> None:
        missing = d.evaluate(step.arena_bytes, self.sizes) - self.arena.size
        if missing > 0:
            self.arena = np.concatenate([self.arena, np.full(missing, PATTERN, np.uint8)])

    def dtype(self, operand: Operand) -> np.dtype[Any]:
        """The dtype of an operand."""
        return dtype_named(operand.dtype)

    def _place(self, operand: Operand) -> tuple[BufferRef, int]:
        """Where an operand lies in the present iteration of a loop: a buffer reference, and bytes from there on."""
        stride, lag, alternates, special, at = operand.loop_offset
        if special is not None and self.iteration == d.evaluate(at, self.sizes):
            return special, 0
        steps = self.iteration - lag
        return operand.buffer, (steps % 2 if alternates else steps) * d.evaluate(stride, self.sizes)

    def _segment(self, ref: BufferRef) -> Array:
        if ref.segment == "arena":
            return self.arena
        if ref.segment == "output":
            array = self._output(ref.number)
        else:
            array = (self.schedule.constants if ref.segment == "constant" else self.inputs)[ref.number]
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def read(self, operand: Operand) -> Any:
        """A copy-free view of an operand's bytes as its tensor, or the value that is boxed."""
        return self.boxed[operand.buffer.number] if is_boxed(operand) else self._view(operand)

    def _view(self, operand: Operand) -> Array:
        shape = [d.evaluate(dim, self.sizes) for dim in operand.dims]
        ref, distance = self._place(operand)
        start, dtype = d.evaluate(ref.offset, self.sizes) + distance, self.dtype(operand)
        stop = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        segment = self._segment(ref)
        if stop > segment.size:
            raise FuselineError(
                "E0901", f"the schedule reads bytes {start}..{stop} of {segment.size} in {operand.buffer}"
            )
        return segment[start:stop].view(dtype).reshape(shape)

    def write(self, operands: Sequence[Operand], arrays: Sequence[Any]) -> None:
        """Store results where they belong; all are computed before any is stored."""
        for operand, array in zip(operands, arrays, strict=True):
            target = self._view(operand)
            target[...] = np.asarray(array).reshape(target.shape).astype(target.dtype, copy=False)
