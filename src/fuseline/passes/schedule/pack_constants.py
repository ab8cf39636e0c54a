"""Constants as kernels read them: repacked to the layouts the kernels asked for, equal bytes stored once, each array
moved once.

One block of memory takes all of them; a layout is applied straight into it, so that a constant of a gigabyte is copied
once and never twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.buffers import Operand
from fuseline.errors import FuselineError
from fuseline.program.schedule import ARENA_ALIGNMENT, DispatchStep, PackedConstants, Schedule, flat_steps
from fuseline.targets.target import CompiledKernel, PackedLayout, launches

Bytes = NDArray[np.uint8]

_CORNER = 4

_SAMPLE = 4096
"""Bytes from either end that tell most different constants apart before they are compared whole."""

_PIECE = 512
"""Columns that are multiplied by a layout's matrices at once: they stay in cache, and BLAS does not share them out
among threads."""

SHARED_BYTES = 1 << 16
"""From this size on a block is worth handing to a thread."""


@dataclass(frozen=True, slots=True)
class LayoutKey:
    """A layout of a constant seen with `dims` (a reshape may lie between the constant and the kernel)."""

    dims: tuple[int, ...]
    layout: PackedLayout


def layout_key(kernel: CompiledKernel | None, position: int, operand: Operand) -> LayoutKey | None:
    """What the kernel's operand number `position` asks for; None where plain row-major bytes do."""
    layout = kernel.constant_layouts.get(position) if kernel is not None else None
    if layout is None:
        return None
    return LayoutKey(tuple(int(size) for size in operand.dims if isinstance(size, int)), layout)


def pack_constants(
    schedule: Schedule, kernels: Mapping[str, CompiledKernel], allocate: Callable[[int], Bytes] | None = None
) -> PackedConstants:
    """All constants of `schedule` under the layouts of `kernels` (by executable), and the kernels' own.

    `allocate` answers that many bytes, 64-byte aligned (default: ordinary memory). Raises FuselineError (E0901) for a
    layout that does not fit its constant.
    """
    uses = list(dict.fromkeys(_uses(schedule, kernels)))
    extras = [(name, i, block) for name, kernel in kernels.items() for i, block in enumerate(kernel.extra_constants)]
    room = sum(_aligned(_packed_bytes(schedule.constants[c], key)) for c, key in uses) + sum(
        _aligned(len(block)) for _, _, block in extras
    )
    packer = _Packer((allocate or _allocate)(room))
    layouts = dict(zip(uses, packer.add_arrays([(schedule.constants[c], key) for c, key in uses]), strict=True))
    own = {(name, i): packer.add_bytes(block) for name, i, block in extras}
    original = sum(schedule.constants[c].nbytes for c in {c for c, _ in uses})
    return PackedConstants(packer.blocks, layouts, own, original, sum(len(block) for block in packer.blocks))


def _uses(schedule: Schedule, kernels: Mapping[str, CompiledKernel]) -> Iterator[tuple[int, LayoutKey | None]]:
    for step in flat_steps(schedule.steps):
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


def _packed_bytes(array: NDArray[Any], key: LayoutKey | None) -> int:
    return array.nbytes if key is None else key.layout.elements * array.dtype.itemsize


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
    _filled: int = 0
    _samples: dict[tuple[int, bytes, bytes], list[int]] = field(
        default_factory=dict[tuple[int, bytes, bytes], list[int]]
    )

    def add_arrays(self, wanted: Sequence[tuple[NDArray[Any], LayoutKey | None]]) -> list[int]:
        """The blocks that hold arrays in the wanted layouts; equal ones are packed once, several at a time (NumPy
        copies without Python's lock)."""
        numbers: list[int] = []
        alike: dict[Hashable, list[tuple[NDArray[Any], int]]] = {}
        work: list[tuple[NDArray[Any], LayoutKey | None, Bytes]] = []
        for array, key in wanted:
            seen = alike.setdefault((array.shape, array.dtype, key, *_corners(array)), [])
            number = next((number for other, number in seen if other is array or np.array_equal(other, array)), None)
            if number is None:
                number = len(self.blocks)
                seen.append((array, number))
                work.append((array, key, self._take(_packed_bytes(array, key))))
            numbers.append(number)
        large = [item for item in work if len(item[2]) >= SHARED_BYTES]
        for item in work:
            if len(item[2]) < SHARED_BYTES:
                _fill(item)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(_fill, large))
        for number, block in enumerate(self.blocks):
            self._samples.setdefault(_sample(block), []).append(number)
        return numbers

    def add_bytes(self, data: bytes) -> int:
        """The block that holds `data`."""
        block = np.frombuffer(data, np.uint8)
        alike = self._samples.setdefault(_sample(block), [])
        for number in alike:
            if np.array_equal(self.blocks[number], block):
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


def _sample(block: Bytes) -> tuple[int, bytes, bytes]:
    return len(block), block[:_SAMPLE].tobytes(), block[-_SAMPLE:].tobytes()


def _corners(array: NDArray[Any]) -> tuple[bytes, bytes]:
    """The first and the last elements along every dimension: they tell most different constants apart."""
    return array[(slice(0, _CORNER),) * array.ndim].tobytes(), array[(slice(-_CORNER, None),) * array.ndim].tobytes()


def _fill(work: tuple[NDArray[Any], LayoutKey | None, Bytes]) -> None:
    """Write one array in the wanted layout."""
    array, key, target = work
    if key is not None:
        _pack(array, key, target)
    elif array.nbytes:
        np.copyto(target.view(array.dtype).reshape(array.shape), array)


def _pack(array: NDArray[Any], key: LayoutKey, target: Bytes) -> None:
    """Apply a layout, written once. The source, cut at the real sizes, goes into the permuted view of `target`."""
    layout = key.layout
    if layout.then is not None:
        end = prod(layout.pad_to) * array.dtype.itemsize
        _pack(array, replace(key, layout=layout.then), target[end:])
        layout, target = replace(layout, then=None), target[:end]
    dims = key.dims if prod(key.dims) == array.size and len(key.dims) == len(layout.pad_to) else array.shape
    if not _fits(dims, layout):
        raise FuselineError("E0901", f"layout {layout} does not fit a constant of shape {dims}")
    packed = target.view(array.dtype).reshape([layout.reshape[i] for i in layout.permutation])
    axis, size = _outermost(layout) or (None, 0)
    if axis is None:
        np.copyto(packed, _laid_out(array.reshape(dims), layout))
        return
    array, first = array.reshape(dims), layout.permutation[0]
    pad_to = tuple(size if i == axis else extent for i, extent in enumerate(layout.pad_to))
    step = replace(
        layout, pad_to=pad_to, reshape=tuple(1 if i == first else extent for i, extent in enumerate(layout.reshape))
    )
    for i, where in enumerate(packed):
        part = tuple(slice(i * size, (i + 1) * size) if other == axis else slice(None) for other in range(array.ndim))
        np.copyto(where, _laid_out(array[part], step)[0])


def _laid_out(array: NDArray[Any], layout: PackedLayout) -> NDArray[Any]:
    array = transformed(array, layout)
    if array.shape != layout.pad_to:
        array = np.pad(array, [(0, padded - size) for size, padded in zip(array.shape, layout.pad_to, strict=True)])
    return array.reshape(layout.reshape).transpose(layout.permutation)


def _outermost(layout: PackedLayout) -> tuple[int, int] | None:
    """The dimension of the constant whose steps are outermost once it is laid out, and how much of it is one step. A
    step at a time stays in cache while it is transformed, padded and permuted. None where the outermost steps are not
    steps of one untransformed dimension.
    """
    axis, product = 0, 1
    places: list[tuple[int, int]] = []
    for extent in layout.reshape:
        if axis == len(layout.pad_to) or extent == 0:
            return None
        places.append((axis, product))
        product *= extent
        if layout.pad_to[axis] % product:
            return None
        if product == layout.pad_to[axis]:
            axis, product = axis + 1, 1
    axis, before = places[layout.permutation[0]]
    if before != 1 or (layout.matrices and layout.matrices[axis] is not None):
        return None
    return axis, layout.pad_to[axis] // layout.reshape[layout.permutation[0]]


def _fits(dims: tuple[int, ...], layout: PackedLayout) -> bool:
    matrices = layout.matrices or (None,) * len(dims)
    if len(dims) != len(layout.pad_to) or len(dims) != len(matrices):
        return False
    if any(m is not None and len(m[0]) != size for m, size in zip(matrices, dims, strict=True)):
        return False
    sizes = [size if m is None else len(m) for m, size in zip(matrices, dims, strict=True)]
    padded = all(size <= to for size, to in zip(sizes, layout.pad_to, strict=True))
    return (
        padded
        and prod(layout.reshape) == prod(layout.pad_to)
        and sorted(layout.permutation) == list(range(len(layout.reshape)))
    )


def transformed(array: NDArray[Any], layout: PackedLayout) -> NDArray[Any]:
    """`array` times the layout's matrices, computed in float64 a piece at a time: the whole in float64 would be several
    times the result."""
    axes = [axis for axis, matrix in enumerate(layout.matrices) if matrix is not None]
    if not axes:
        return array
    matrices = [np.array(layout.matrices[axis], np.float64) for axis in axes]
    front = np.moveaxis(array, axes, range(len(axes)))
    columns = front.reshape(prod(front.shape[: len(axes)]), -1)
    matrix = reduce(np.kron, matrices)
    out = np.empty((len(matrix), columns.shape[1]), array.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # weights may be infinite, or become so
        for start in range(0, columns.shape[1], _PIECE):
            piece = slice(start, start + _PIECE)
            out[:, piece] = matrix @ columns[:, piece].astype(np.float64)
    sizes = [len(matrix) for matrix in matrices]
    return np.moveaxis(out.reshape(*sizes, *front.shape[len(axes) :]), range(len(axes)), axes)
