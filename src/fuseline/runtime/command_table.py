"""The native command table of a program under one assignment of sizes: one block of memory that the scheduler reads.

Layout (bytes, each part 8-byte aligned): context, rows, bindings, sizes, patches, segment words, ranges; see `fuseline.runtime.abi`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from fuseline.runtime import abi
from fuseline.runtime.memory import Bytes, address_of, aligned_empty
from fuseline.runtime.program import Arm, Place
from fuseline.runtime.sharing import Shares
from fuseline.runtime.sizes import SizeEvaluator


class ThreadPlan(NamedTuple):
    """Threads of the run, and the scratch of each: address of the first and distance (bytes)."""

    threads: int
    scratch: int
    stride: int


class CommandTable:
    """`address` goes to the scheduler; `set_segments(*addresses)` says where the caller's inputs, then outputs, lie in the next run.

    Args:
        arms: those of all commands, in order; `workgroups` is the whole grid of each.
        address: where a place that does not move lies.
        kernels: address of the image.
        segments: how many inputs and outputs there are; `segment_of` numbers a place in one of them.
    """

    def __init__(
        self,
        arms: Sequence[Arm],
        workgroups: Sequence[int],
        shares: Shares,
        evaluate: SizeEvaluator,
        address: Callable[[Place], int],
        kernels: int,
        segments: int,
        segment_of: Callable[[Place], int],
        plan: ThreadPlan,
    ) -> None:
        bindings = [place for arm in arms for place in arm.bindings]
        sizes = [evaluate(size) for arm in arms for size in arm.sizes]
        moving = [i for i, place in enumerate(bindings) if place.segment in ("input", "output")]
        ranges = shares.ranges if plan.threads > 1 else shares.ranges[:0]
        parts = abi.CONTEXT_BYTES, abi.ROW_BYTES * len(arms), 8 * len(bindings), 8 * len(sizes), abi.PATCH_BYTES * len(moving), 8 * segments
        at_rows, at_bindings, at_sizes, at_patches, at_segments, at_ranges, end = accumulate((*parts, ranges.nbytes))
        self._block: Bytes = aligned_empty((end,), np.dtype(np.uint8))
        self.address = base = address_of(self._block)
        self._memory: Any = self._block.data
        self._write(at_bindings, [0 if place.segment in ("input", "output") else address(place) for place in bindings])
        self._write(at_sizes, sizes)
        patches = [(base + at_bindings + 8 * i, segment_of(bindings[i]), evaluate(bindings[i].offset)) for i in moving]
        self._write(at_patches, [word for patch in patches for word in patch])
        self._write_rows(at_rows, arms, workgroups, shares.barriers, kernels, base + at_bindings, base + at_sizes)
        self._block[at_ranges:end] = np.ascontiguousarray(ranges).reshape(-1).view(np.uint8)
        stride = abi.RANGE_BYTES * len(arms)
        context = base + at_rows, 0, len(arms), *plan, 0, base + at_patches, len(moving), base + at_segments, base + at_ranges, stride
        self._write(0, [*context, *[0] * (abi.CONTEXT_BYTES // 8 - len(context))])
        self.set_segments: Callable[..., None] = partial(struct.Struct(f"<{segments}q").pack_into, self._memory, at_segments)

    def _write(self, at: int, words: Sequence[int]) -> None:
        struct.pack_into(f"<{len(words)}q", self._memory, at, *words)

    def _write_rows(
        self, at: int, arms: Sequence[Arm], workgroups: Sequence[int], barriers: Sequence[bool], kernels: int, binding: int, size: int
    ) -> None:
        for row, (arm, grid, barrier) in enumerate(zip(arms, workgroups, barriers, strict=True)):
            self._write(at + row * abi.ROW_BYTES, [kernels + arm.kernel, binding, size, grid, abi.FLAG_BARRIER * barrier])
            binding, size = binding + 8 * len(arm.bindings), size + 8 * len(arm.sizes)

    def set_range(self, first: int, last: int) -> None:
        """The next run does rows `first` up to, not including, `last`."""
        struct.pack_into("<2q", self._memory, abi.CONTEXT_FIRST, first, last)
