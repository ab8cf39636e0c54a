"""The native command table of a program under one assignment of sizes: one block of memory that the scheduler reads.

Layout (bytes, each part 8-byte aligned): context, rows, bindings and loop offsets, sizes, patches, segment words,
ranges; see `fuseline.runtime.abi`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from fuseline.buffers import BufferRef, LoopOffset
from fuseline.runtime import abi
from fuseline.runtime.memory import Bytes, address_of, aligned_empty
from fuseline.runtime.program import Arm, Command, Loop
from fuseline.runtime.sharing import Shares, commands_by_row, rows_of, workgroups_of
from fuseline.runtime.sizes import SizeEvaluator


class ThreadPlan(NamedTuple):
    """Threads of the run, and the scratch of each that does not lie in the arena: address of the first and distance
    (bytes)."""

    threads: int
    scratch: int
    stride: int


class Addresses(NamedTuple):
    """Where a buffer that does not move lies, and which segment any other is in (the caller's inputs, then outputs,
    numbered). `scratch_in_arena`: there is room for that of all threads."""

    fixed: Callable[[BufferRef], int]
    segment_of: Callable[[BufferRef], int]
    segments: int
    scratch_in_arena: bool = True


_WORD = 8
_NEVER = -1


def threads_of(context: int) -> int:
    """How many threads the run context at this address is for."""
    return ctypes.c_int64.from_address(context + abi.CONTEXT_THREADS).value


class CommandTable:
    """`address` goes to the scheduler; `set_segments(*addresses)` says where the caller's inputs, then outputs, lie in
    the next run.

    Args:
        steps: the program's commands and loops; `shares` says how their rows are cut.
        kernels: address of the image.
    """

    def __init__(
        self,
        steps: Sequence[Command | Loop],
        shares: Shares,
        evaluate: SizeEvaluator,
        addresses: Addresses,
        kernels: int,
        plan: ThreadPlan,
    ) -> None:
        rows, words = list(rows_of(steps)), _Words(evaluate, addresses)
        scratch = [_scratch_words(command, evaluate, addresses) for command in commands_by_row(steps)]
        places = [words.add(row) if isinstance(row, Arm) else 0 for row in rows]
        grids = [workgroups_of(row, evaluate) for row in rows]
        sizes = [evaluate(size) for row in rows if isinstance(row, Arm) for size in row.sizes]
        ranges = shares.ranges if plan.threads > 1 else shares.ranges[:0]
        counts = len(words.words), len(sizes), 3 * len(words.patches), addresses.segments
        lengths = abi.CONTEXT_BYTES, abi.ROW_BYTES * len(rows), *(_WORD * count for count in counts)
        at_rows, at_words, at_sizes, at_patches, at_segments, at_ranges, end = accumulate((*lengths, ranges.nbytes))
        self._block: Bytes = aligned_empty((end,), np.dtype(np.uint8))
        self.address = base = address_of(self._block)
        self._memory: Any = self._block.data
        self._write(at_words, words.words)
        self._write(at_sizes, sizes)
        self._write(
            at_patches, [word for at, *target in words.patches for word in (base + at_words + _WORD * at, *target)]
        )
        self._write_rows(
            at_rows,
            rows,
            grids,
            shares.barriers,
            kernels,
            [base + at_words + _WORD * place for place in places],
            base + at_sizes,
            scratch,
        )
        self._block[at_ranges:end] = np.ascontiguousarray(ranges).reshape(-1).view(np.uint8)
        stride = abi.RANGE_BYTES * len(rows)
        moving = len(words.patches), base + at_segments
        context = (
            base + at_rows,
            0,
            len(rows),
            *plan,
            0,
            base + at_patches,
            *moving,
            base + at_ranges,
            stride,
            words.most_moves,
        )
        self._write(0, [*context, *[0] * (abi.CONTEXT_BYTES // _WORD - len(context))])
        self.set_segments: Callable[..., None] = partial(
            struct.Struct(f"<{addresses.segments}q").pack_into, self._memory, at_segments
        )

    def _write(self, at: int, words: Sequence[int]) -> None:
        struct.pack_into(f"<{len(words)}q", self._memory, at, *words)

    def _write_rows(
        self,
        at: int,
        rows: Sequence[Arm | Loop],
        grids: Sequence[int],
        barriers: Sequence[bool],
        kernels: int,
        bindings: Sequence[int],
        size: int,
        scratch: Sequence[tuple[int, int]],
    ) -> None:
        for row, grid, barrier, binding, of_threads in zip(rows, grids, barriers, bindings, scratch, strict=True):
            flags = abi.FLAG_BARRIER * barrier
            if isinstance(row, Loop):
                words = 0, 0, sum(len(command.arms) for command in row.commands), grid, flags | abi.FLAG_LOOP, 0, 0
            else:
                words = (
                    kernels + row.kernel,
                    binding,
                    size,
                    grid,
                    flags,
                    binding if row.loop_offsets else 0,
                    len(row.loop_offsets),
                )
                size += _WORD * len(row.sizes)
            self._write(at, (*words, *of_threads))
            at += abi.ROW_BYTES

    def set_range(self, first: int, last: int) -> None:
        """The next run does rows `first` up to, not including, `last`."""
        struct.pack_into("<2q", self._memory, abi.CONTEXT_FIRST, first, last)


def _scratch_words(command: Command | None, evaluate: SizeEvaluator, addresses: Addresses) -> tuple[int, int]:
    """Where the scratch of thread 0 lies and how far apart those of threads are; 0 where a row has none in the
    arena."""
    found = command.scratch if command is not None else None
    if found is None or not addresses.scratch_in_arena:
        return 0, 0
    return addresses.fixed(BufferRef("arena", 0, evaluate(found.offset))), found.stride


class _Words:
    """Bindings, or loop offsets, of one arm after the other; `patches` are words that are set before a run: which,
    segment, offset."""

    def __init__(self, evaluate: SizeEvaluator, addresses: Addresses) -> None:
        self.evaluate, self.addresses = evaluate, addresses
        self.words: list[int] = []
        self.patches: list[tuple[int, int, int]] = []
        self.most_moves = 0

    def add(self, arm: Arm) -> int:
        """Where the words of `arm` begin."""
        first = len(self.words)
        self.most_moves = max(self.most_moves, len(arm.loop_offsets))
        for number, ref in enumerate(arm.bindings):
            if arm.loop_offsets:
                self._moving(ref, arm.loop_offsets[number])
            else:
                self._address(ref)
        return first

    def _moving(self, ref: BufferRef, move: LoopOffset) -> None:
        stride, special = self.evaluate(move.stride), move.special
        alternates = move.alternates and move.lag
        self._address(ref, stride if alternates else -move.lag * stride)
        if special is None:
            self.words.append(0)
        else:
            self._address(special)
        at = _NEVER if special is None else self.evaluate(move.at)
        self.words += [at, -stride if alternates else stride, 1 if move.alternates else -1]

    def _address(self, ref: BufferRef, shift: int = 0) -> None:
        if ref.segment in ("input", "output"):
            self.patches.append((len(self.words), self.addresses.segment_of(ref), self.evaluate(ref.offset) + shift))
            self.words.append(0)
        else:
            self.words.append(self.addresses.fixed(ref) + shift)
