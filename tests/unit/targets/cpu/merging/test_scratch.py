"""Scratch of merged kernels: every buffer is as long as the longest, and shares memory only where all kernels agree."""

from __future__ import annotations

from fuseline.targets.cpu.kernel_ir.types import BYTES, MemRef
from fuseline.targets.cpu.merging.scratch import laid_out
from tests.draws import RNG


def _buffer(position: int, extent: int, dtype: str = "f32") -> MemRef:
    return MemRef("s", dtype, extent, "scratch", position, writable=True, alignment=64)


def _places(buffers: list[list[MemRef]]) -> list[tuple[int, int]]:
    return [(memory.position, end) for memory, end in laid_out(buffers)]


def test_as_long_as_the_longest_one_behind_the_other() -> None:
    assert _places([[_buffer(0, 16), _buffer(0, 40)], [_buffer(64, 16), _buffer(192, 8)]]) == [(0, 160), (192, 256)]


def test_memory_is_shared_where_every_kernel_shares_it() -> None:
    both = [[_buffer(0, 16), _buffer(0, 16)], [_buffer(0, 32), _buffer(0, 8)]]
    assert _places(both) == [(0, 64), (0, 128)]
    one = [[_buffer(0, 16), _buffer(0, 16)], [_buffer(0, 32), _buffer(64, 8)]]
    assert _places(one) == [(0, 64), (64, 192)]


def test_random_layouts_keep_apart_what_any_kernel_keeps_apart() -> None:
    for _ in range(50):
        kernels = [
            [_buffer(64 * int(RNG.integers(0, 6)), int(RNG.integers(1, 64))) for _ in range(4)]
            for _ in range(int(RNG.integers(1, 4)))
        ]
        buffers = [list(many) for many in zip(*kernels, strict=True)]
        found = list(laid_out(buffers))
        for i, (memory, end) in enumerate(found):
            assert memory.position % memory.alignment == 0
            assert end - memory.position == 4 * max(int(one.extent) for one in buffers[i])  # pyright: ignore[reportArgumentType]
            for j, (other, other_end) in enumerate(found[:i]):
                apart = any(_are_apart(a, b) for a, b in zip(buffers[i], buffers[j], strict=True))
                assert not apart or memory.position >= other_end or other.position >= end


def _are_apart(one: MemRef, other: MemRef) -> bool:
    ends = [memory.position + int(memory.extent) * BYTES[memory.dtype] for memory in (one, other)]  # pyright: ignore[reportArgumentType]
    return one.position >= ends[1] or other.position >= ends[0]
