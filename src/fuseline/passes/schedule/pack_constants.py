"""Constants as kernels read them: repacked to the layouts the kernels asked for, equal bytes stored once whatever their
shapes, each array moved once.

One block of memory takes all of them; a layout is applied straight into it, so that a constant of a gigabyte is copied
once and never twice; the pages of the model's file are given back behind it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.buffers import Operand
from fuseline.passes.schedule.equal_bytes import Sample, same_bytes, sample
from fuseline.passes.schedule.mapped_pages import release_pages
from fuseline.passes.schedule.weight_sources import weight_sources
from fuseline.program.schedule import ARENA_ALIGNMENT, PackedConstants, Schedule
from fuseline.program.steps import DispatchStep, Step, flat_steps
from fuseline.targets.compiled_kernel import CompiledKernel, launches
from fuseline.weight_layouts import Bytes, LayoutKey, fill, is_plain, key_of, packed_bytes

SHARED_BYTES = 1 << 16
"""From this size on a block is worth handing to a thread."""


def layout_key(kernel: CompiledKernel | None, position: int, operand: Operand) -> LayoutKey | None:
    """What the kernel's operand number `position` asks for; None where plain row-major bytes do."""
    layout = kernel.constant_layouts.get(position) if kernel is not None else None
    if layout is None:
        return None
    return key_of(layout, tuple(int(size) for size in operand.dims if isinstance(size, int)))


def pack_constants(
    schedule: Schedule,
    kernels: Mapping[str, CompiledKernel],
    allocate: Callable[[int], Bytes] | None = None,
    *,
    sources: bool = False,
) -> PackedConstants:
    """All constants of `schedule` under the layouts of `kernels` (by executable), and the kernels' own.

    `allocate` answers that many bytes, 64-byte aligned (default: ordinary memory). `sources`: what blocks are made from
    is wanted, too. Raises FuselineError (E0901) for a
    layout that does not fit its constant.
    """
    uses = list(dict.fromkeys(constant_uses(schedule.steps, kernels)))
    extras = [(name, i, block) for name, kernel in kernels.items() for i, block in enumerate(kernel.extra_constants)]
    room = sum(_aligned(packed_bytes(schedule.constants[c], key)) for c, key in uses) + sum(
        _aligned(len(block)) for _, _, block in extras
    )
    packer = _Packer((allocate or _allocate)(room))
    layouts = dict(zip(uses, packer.add_arrays([(schedule.constants[c], key) for c, key in uses]), strict=True))
    own = {(name, i): packer.add_bytes(block) for name, i, block in extras}
    original = sum(schedule.constants[c].nbytes for c in {c for c, _ in uses})
    made = weight_sources(packer.made, packer.blocks) if sources else {}
    return PackedConstants(packer.blocks, layouts, own, original, sum(len(block) for block in packer.blocks), made)


def constant_uses(
    steps: Sequence[Step], kernels: Mapping[str, CompiledKernel]
) -> Iterator[tuple[int, LayoutKey | None]]:
    """The constants that steps read, those of loops included, each with the layout that it is read in."""
    for step in flat_steps(steps):
        kernel = kernels.get(step.executable) if isinstance(step, DispatchStep) else None
        if kernel is not None and isinstance(step, DispatchStep):
            for launch in launches(step, kernel):
                yield from _constant_operands(launch.step.operands, launch.kernel)
        else:
            yield from _constant_operands(step.operands)


def _constant_operands(
    operands: Sequence[Operand], kernel: CompiledKernel | None = None
) -> Iterator[tuple[int, LayoutKey | None]]:
    for position, operand in enumerate(operands):
        if operand.buffer.segment == "constant":
            yield operand.buffer.number, layout_key(kernel, position, operand)
        special = operand.loop_offset.special
        if special is not None and special.segment == "constant":
            yield special.number, None


def _aligned(count: int) -> int:
    return -(-count // ARENA_ALIGNMENT) * ARENA_ALIGNMENT


def _allocate(count: int) -> Bytes:
    raw = np.zeros(count + ARENA_ALIGNMENT, np.uint8)
    return raw[-raw.ctypes.data % ARENA_ALIGNMENT :][:count]


@dataclass(eq=False)
class _Packer:
    """Fills `memory` from the front; what turns out equal to an earlier block gives its room back."""

    memory: Bytes
    blocks: list[Bytes] = field(default_factory=list[Bytes])
    made: dict[int, tuple[NDArray[Any], LayoutKey]] = field(default_factory=dict[int, tuple[NDArray[Any], LayoutKey]])
    _filled: int = 0
    _alike: dict[Hashable, list[tuple[NDArray[Any], int]]] = field(
        default_factory=dict[Hashable, list[tuple[NDArray[Any], int]]]
    )
    _blocks_alike: dict[Sample, list[int]] = field(default_factory=dict[Sample, list[int]])

    def add_arrays(self, wanted: Sequence[tuple[NDArray[Any], LayoutKey | None]]) -> list[int]:
        """The blocks that hold arrays in the wanted layouts; equal ones are packed once, several at a time (NumPy
        copies without Python's lock)."""
        numbers: list[int] = []
        work: list[tuple[NDArray[Any], LayoutKey | None, Bytes]] = []
        for array, key in wanted:
            key = None if key is None or is_plain(array, key) else key
            seen = self._alike.setdefault(_kind(array, key), [])
            number = next((number for other, number in seen if same_bytes(other, array)), None)
            if number is None:
                number = len(self.blocks)
                seen.append((array, number))
                if key is not None:
                    self.made[number] = array, key
                work.append((array, key, self._take(packed_bytes(array, key))))
            numbers.append(number)
        for array, _, _ in work:
            release_pages(array)
        large = [item for item in work if len(item[2]) >= SHARED_BYTES]
        for item in work:
            if len(item[2]) < SHARED_BYTES:
                fill(*item)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(_fill_once, large))
        for number, block in enumerate(self.blocks):
            self._blocks_alike.setdefault(sample(block), []).append(number)
        return numbers

    def add_bytes(self, data: bytes) -> int:
        """The block that holds `data`."""
        block = np.frombuffer(data, np.uint8)
        alike = self._blocks_alike.setdefault(sample(block), [])
        for number in alike:
            if same_bytes(self.blocks[number], block):
                return number
        alike.append(len(self.blocks))
        self._take(len(data))[:] = block
        return alike[-1]

    def _take(self, count: int) -> Bytes:
        """The room of a new block."""
        block = self.memory[self._filled : self._filled + count]
        self.blocks.append(block)
        self._filled += _aligned(count)
        return block


def _kind(array: NDArray[Any], key: LayoutKey | None) -> Hashable:
    """What constants have in common that may be one block: plain ones are bytes, whatever their type and shape."""
    return sample(array), None if key is None else (key, array.dtype)


def _fill_once(work: tuple[NDArray[Any], LayoutKey | None, Bytes]) -> None:
    """Write one array in the wanted layout; the pages of the model's file that it came from are needed no more."""
    fill(*work)
    release_pages(work[0])
