"""The native command table of a program under one assignment of sizes: one block of memory that the scheduler reads.

Layout (bytes, each part 8-byte aligned): context, commands, bindings, sizes, patches, segment words; see `fuseline.runtime.abi`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fuseline.runtime import abi
from fuseline.runtime.memory import Bytes, address_of, aligned_empty
from fuseline.runtime.program import Command, Place
from fuseline.runtime.sharing import Grid, Share
from fuseline.runtime.sizes import SizeEvaluator


class ThreadPlan(NamedTuple):
    """Threads of the run, and the scratch of each: address of the first and distance (bytes)."""

    threads: int
    scratch: int
    stride: int


class CommandTable:
    """`address` goes to the scheduler; `set_segments(*addresses)` says where the caller's inputs, then outputs, lie in the next run.

    Args:
        address: where a place that does not move lies.
        kernels: address of the image.
        segments: how many inputs and outputs there are; `segment_of` numbers a place in one of them.
    """

    def __init__(
        self,
        commands: Sequence[Command],
        grids: Sequence[Grid],
        shares: Sequence[Share],
        evaluate: SizeEvaluator,
        address: Callable[[Place], int],
        kernels: int,
        segments: int,
        segment_of: Callable[[Place], int],
        plan: ThreadPlan,
    ) -> None:
        bindings = [place for command in commands for place in command.bindings]
        sizes = [evaluate(size) for command in commands for size in command.sizes]
        moving = [i for i, place in enumerate(bindings) if place.segment in ("input", "output")]
        parts = abi.CONTEXT_BYTES, abi.COMMAND_BYTES * len(commands), 8 * len(bindings), 8 * len(sizes), abi.PATCH_BYTES * len(moving), 8 * segments
        _, at_commands, at_bindings, at_sizes, at_patches, at_segments, end = (int(at) for at in np.cumsum([0, *parts]))
        self._block: Bytes = aligned_empty((end,), np.dtype(np.uint8))
        self.address = base = address_of(self._block)
        self._memory: Any = self._block.data
        self._write(at_bindings, [0 if place.segment in ("input", "output") else address(place) for place in bindings])
        self._write(at_sizes, sizes)
        patches = [(base + at_bindings + 8 * i, segment_of(bindings[i]), evaluate(bindings[i].offset)) for i in moving]
        self._write(at_patches, [word for patch in patches for word in patch])
        self._write_commands(at_commands, commands, grids, shares, kernels, base + at_bindings, base + at_sizes)
        context = base + at_commands, 0, len(commands), *plan, 0, base + at_patches, len(moving), base + at_segments
        self._write(0, [*context, *[0] * (abi.CONTEXT_BYTES // 8 - len(context))])
        self.set_segments: Callable[..., None] = partial(struct.Struct(f"<{segments}q").pack_into, self._memory, at_segments)

    def _write(self, at: int, words: Sequence[int]) -> None:
        struct.pack_into(f"<{len(words)}q", self._memory, at, *words)

    def _write_commands(
        self, at: int, commands: Sequence[Command], grids: Sequence[Grid], shares: Sequence[Share], kernels: int, binding: int, size: int
    ) -> None:
        for row, (command, grid, share) in enumerate(zip(commands, grids, shares, strict=True)):
            workgroups = max(grid.workgroups, 0)
            cut = workgroups, *divmod(workgroups, share.participants), abi.FLAG_BARRIER * share.barrier, share.participants, share.first, 0
            struct.pack_into("<6q4i", self._memory, at + row * abi.COMMAND_BYTES, kernels + command.kernel, binding, size, *cut)
            binding, size = binding + 8 * len(command.bindings), size + 8 * len(command.sizes)

    def set_range(self, first: int, last: int) -> None:
        """The next run does commands `first` up to, not including, `last`."""
        struct.pack_into("<2q", self._memory, abi.CONTEXT_FIRST, first, last)
