"""Every launch of a program checked against the signature of its kernel, once its sizes are known: nothing reads or
writes beside its memory.

What is found wrong was changed after it was compiled, or is a mistake of ours: either way it is refused before it runs.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from math import prod
from typing import NamedTuple

from fuseline.buffers import BufferRef, LoopOffset, Operand, TensorSpec
from fuseline.errors import FuselineError
from fuseline.runtime import abi
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.program import Arm, Command, HostCall, Loop, Poison, Program, Scratch
from fuseline.runtime.signatures import COUNT, Buffer, Signature
from fuseline.runtime.sizes import SizeEvaluator, symbols_of

_WRITABLE = ("arena", "output")


class _Needs(NamedTuple):
    """A signature under the sizes of one launch: bytes of each buffer, and the grid."""

    signature: Signature
    bytes: tuple[int, ...]
    workgroups: int


class Bounds:
    """The memory of a program under the sizes `values`, and what its kernels may do there.

    Args:
        kernels: signatures by offset; None: kernels are taken at their word.
        constants: bytes of each.
    """

    def __init__(
        self,
        program: Program,
        kernels: Mapping[int, Sequence[Signature]] | None,
        constants: Sequence[int],
        values: Mapping[str, int],
    ) -> None:
        self._evaluate = evaluate = SizeEvaluator(values)
        self._known, self._kernels, self._scratch = values, kernels, program.scratch_bytes
        self._threads = program.threads
        self._alignment = program.input_alignment
        self._lengths: dict[str, Sequence[int | None]] = {
            "arena": [evaluate(program.arena_bytes)],
            "constant": constants,
            "input": [self._bytes(spec) for spec in program.inputs],
            "output": [self._bytes(spec) for spec in program.outputs],
        }
        self._written: dict[int, int] = {}
        self._found: dict[tuple[int, tuple[int, ...]], list[_Needs]] = {}

    def _bytes(self, spec: TensorSpec) -> int | None:
        """Bytes of an input or output; None where it is boxed, or no size yet."""
        if spec.slot is not None or not all(symbols_of(size) <= self._known.keys() for size in spec.dims):
            return None
        return prod(self._evaluate(size) for size in spec.shape) * dtype_named(spec.dtype).itemsize

    def check(self, program: Program, *, whole: bool = True) -> None:
        """Raise FuselineError (E0401) for the first launch that would leave its memory, and, of a `whole` program, for
        an output that is not written up to its end."""
        for step in program.steps:
            if isinstance(step, HostCall):
                if whole:
                    self._call(step)
            elif isinstance(step, Poison):
                continue  # touches nothing but the arena, as far as that goes
            elif isinstance(step, Loop):
                trips = self._evaluate(step.trips)
                for command in step.commands if trips > 0 else ():
                    self._command(command, trips)
            else:
                self._command(step, 0)
        if whole and self._kernels is not None:
            self._check_outputs(program)

    def _check_outputs(self, program: Program) -> None:
        for number, (spec, length) in enumerate(zip(program.outputs, self._lengths["output"], strict=True)):
            written = self._written.get(number, 0)
            if length is not None and written < length:
                raise _wrong(spec.name, f"output {spec.name} has {length} bytes, {written} are written")

    def _call(self, call: HostCall) -> None:
        """Note what a host call writes; that it lies where it may is checked when it does."""
        for tensor in call.outputs:
            if tensor is not None and tensor.buffer.segment == "output":
                count = prod(self._evaluate(size) for size in tensor.dims) * dtype_named(tensor.dtype).itemsize
                end, number = self._evaluate(tensor.buffer.offset) + count, tensor.buffer.number
                self._written[number] = max(self._written.get(number, 0), end)

    def check_tensor(self, tensor: Operand, shape: Sequence[int]) -> None:
        """Raise FuselineError (E0401) where an operand or result of a host call does not lie inside its segment."""
        start, needed = self._evaluate(tensor.buffer.offset), prod(shape) * dtype_named(tensor.dtype).itemsize
        length = self._lengths[tensor.buffer.segment][tensor.buffer.number]
        if min(shape, default=0) < 0 or start < 0 or length is None or start + needed > length:
            raise _wrong(
                "",
                f"bytes {start}..{start + needed} of {tensor.buffer.segment} {tensor.buffer.number}, which has "
                f"{length}",
            )

    def _command(self, command: Command, trips: int) -> None:
        scratch = self._scratch if command.scratch is None else min(self._scratch, command.scratch.stride)
        if command.scratch is not None:
            self._check_scratch(command.scratch, command.label)
        if self._kernels is not None:
            for arm in command.arms:
                self._check_arm(arm, self._needs(arm, self._kernels[arm.kernel]), (trips, scratch), command.label)

    def _check_scratch(self, scratch: Scratch, label: str) -> None:
        """Raise E0401 where the scratch of all threads does not lie inside the arena."""
        (length,) = self._lengths["arena"]
        start, count = self._evaluate(scratch.offset), scratch.stride * self._threads
        if start < 0 or start % abi.ALIGNMENT or scratch.stride % abi.ALIGNMENT or start + count > (length or 0):
            raise _wrong(label, f"scratch in bytes {start}..{start + count} of the arena, which has {length}")

    def _check_arm(self, arm: Arm, meanings: Sequence[_Needs], given: tuple[int, int], label: str) -> None:
        """`given`: the iterations of the loop around it (0: none), and bytes of scratch."""
        first = "sizes that the kernel was not compiled for"
        for number, needs in enumerate(meanings):
            problem = self._problem(arm, needs, *given)
            if problem is None:
                return
            first = first if number else problem
        raise _wrong(label, first)

    def _needs(self, arm: Arm, signatures: Sequence[Signature]) -> list[_Needs]:
        """What the kernel may be meant as: its signatures that take these sizes."""
        sizes = tuple(self._evaluate(size) for size in arm.sizes)
        key = arm.kernel, sizes
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = [needs for one in signatures for needs in _needs(one, sizes)]
        return found

    def _problem(self, arm: Arm, needs: _Needs, trips: int, scratch: int) -> str | None:
        """What is wrong with a launch, None for nothing."""
        signature = needs.signature
        workgroups = self._evaluate(arm.workgroups)
        if workgroups != needs.workgroups and max(workgroups, 0) != max(needs.workgroups, 0):
            return f"a grid of {workgroups}, the kernel's is {needs.workgroups}"
        if signature.scratch_bytes > scratch:
            return f"{scratch} bytes of scratch, the kernel uses {signature.scratch_bytes}"
        if len(arm.bindings) != len(signature.buffers):
            return f"{len(arm.bindings)} bindings, the kernel takes {len(signature.buffers)}"
        for ref, move, buffer, needed in zip(
            arm.bindings, arm.loop_offsets or repeat(None), signature.buffers, needs.bytes, strict=False
        ):
            if move is None:
                problem = self._ref_problem(ref, 0, buffer, needed)
            else:
                problems = (
                    self._ref_problem(where, shift, buffer, needed)
                    for where, shift in _extremes(ref, move, self._evaluate, trips)
                )
                problem = next((problem for problem in problems if problem is not None), None)
            if problem is not None:
                return problem
        return None

    def _ref_problem(self, ref: BufferRef, shift: int, buffer: Buffer, needed: int) -> str | None:
        """What is wrong with a binding that touches `needed` bytes from `shift` bytes behind `ref` on."""
        segment, number, offset = ref
        start = (offset if type(offset) is int else self._evaluate(offset)) + shift
        length = self._lengths[segment][number]
        inside = length is not None and start >= 0 and start + needed <= length and start % buffer.alignment == 0
        if (
            not inside
            or (buffer.written and segment not in _WRITABLE)
            or (segment == "input" and self._alignment % buffer.alignment)
        ):
            return self._misplaced(ref, start, buffer, needed)
        if segment == "output" and buffer.written:
            self._written[number] = max(self._written.get(number, 0), start + needed)
        return None

    def _misplaced(self, ref: BufferRef, start: int, buffer: Buffer, needed: int) -> str | None:
        length = self._lengths[ref.segment][ref.number]
        where = f"{ref.segment} {ref.number}"
        if length is None:
            return f"{where}, which does not lie in memory yet"
        if start < 0 or (needed > 0 and start + needed > length):
            return f"bytes {start}..{start + needed} of {where}, which has {length}"
        if buffer.written and ref.segment not in _WRITABLE and needed > 0:
            return f"a result in {where}"
        granted = self._alignment if ref.segment == "input" else abi.ALIGNMENT
        if start % buffer.alignment or granted % buffer.alignment:
            return f"byte {start} of {where}, the kernel wants multiples of {buffer.alignment}"
        return None  # a result of no bytes


def _needs(signature: Signature, sizes: tuple[int, ...]) -> Iterator[_Needs]:
    if signature.sizes is None:
        values = {COUNT: len(sizes)}
    elif len(sizes) != len(signature.sizes):
        return
    else:
        values: dict[str, int] = {}
        for (name, low, high), size in zip(signature.sizes, sizes, strict=True):
            if size < low or (high is not None and size > high):
                return
            values[name] = size
    evaluate = SizeEvaluator(values)
    yield _Needs(
        signature, tuple(evaluate(buffer.bytes) for buffer in signature.buffers), evaluate(signature.workgroups)
    )


def _extremes(ref: BufferRef, move: LoopOffset, evaluate: SizeEvaluator, trips: int) -> Iterator[tuple[BufferRef, int]]:
    """Where a binding lies in the iterations that lie farthest apart: a buffer reference, and bytes from there."""
    stride, last = evaluate(move.stride), trips - 1 - move.lag
    if last >= 0:
        yield ref, 0
        yield ref, stride if move.alternates and last > 0 else 0 if move.alternates else last * stride
    if move.special is not None and 0 <= evaluate(move.at) < trips:
        yield move.special, 0


def _wrong(label: str, detail: str) -> FuselineError:
    hint = "compile the model again; if it was not edited, this is a bug: --report-bug FILE"
    return FuselineError("E0401", f"the program does not fit its code: {detail}", node=label or None, hint=hint)


@contextmanager
def numbers_that_fit() -> Generator[None]:
    """Around binding a program to memory: what no check foresaw of numbers that make no sense is E0401, too."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError, struct.error) as error:
        raise _wrong("", f"{type(error).__name__}: {error}") from error
