"""Launching one command of an artifact on memory of the caller's: no scheduler, no other threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fuseline.buffers import BufferRef, LoopOffset
from fuseline.runtime.artifact import Artifact
from fuseline.runtime.cpu import check_machine
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.memory import CodePages, address_of, aligned_empty
from fuseline.runtime.program import Arm, Command

Evaluate = Callable[[Any], int]
Address = Callable[[BufferRef, LoopOffset], int]
"""Where a binding lies in memory, in the present iteration of a loop."""

_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


class Numbers(NamedTuple):
    """The sizes that a kernel is given, and how many workgroups its grid has."""

    sizes: tuple[int, ...]
    workgroups: int


class NativeCode:
    """The code of an artifact, mapped. Raises E0403 for code of another machine, E0405 without memory."""

    def __init__(self, artifact: Artifact) -> None:
        check_machine(artifact.machine, artifact.cpu_features)
        self._pages = CodePages(artifact.code, artifact.fixups)
        self._scratch = aligned_empty([max(artifact.program.scratch_bytes, 1)], dtype_named("uint8"))

    def launch(self, command: Command, address: Address, evaluate: Evaluate) -> None:
        """Run all workgroups of a command, one arm after the other."""
        for arm in command.arms:
            self.call(arm.kernel, addresses(arm, address), numbers(arm, evaluate))

    def call(self, kernel: int, places: Sequence[int], given: Numbers, scratch: int | None = None) -> None:
        """Run the code at offset `kernel` on bindings at these addresses, with scratch at another one; None: there is
        memory here, full of what is no number."""
        if scratch is None:
            self._scratch[...] = 0xFF
            scratch = address_of(self._scratch)
        bindings = (ctypes.c_void_p * max(1, len(places)))(*places)
        sizes = (ctypes.c_int64 * max(1, len(given.sizes)))(*given.sizes)
        if given.workgroups > 0:
            function = _KERNEL(self._pages.base + kernel)
            function(bindings, sizes, 0, given.workgroups, scratch)


def addresses(arm: Arm, address: Address) -> list[int]:
    """Where the bindings of an arm lie."""
    moves = arm.loop_offsets or (LoopOffset(),) * len(arm.bindings)
    return [address(ref, move) for ref, move in zip(arm.bindings, moves, strict=True)]


def numbers(arm: Arm, evaluate: Evaluate) -> Numbers:
    """What an arm is launched with, once its sizes are known."""
    return Numbers(tuple(map(evaluate, arm.sizes)), evaluate(arm.workgroups))
