"""Where the scratch buffers of merged kernels lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fuseline.targets.cpu.kernel_ir.types import BYTES, MemRef


def laid_out(buffers: Sequence[Sequence[MemRef]]) -> Iterator[tuple[MemRef, int]]:
    """A buffer for those that are one in each kernel, as long as the longest, and the byte behind it.

    Two of them share memory only where they do so in every kernel: then they are never needed together.
    """
    placed: list[tuple[Sequence[MemRef], int]] = []
    for many in buffers:
        first = many[0]
        extent = max(_extent(memory) for memory in many)
        below = [end for others, end in placed if not all(map(_overlap, others, many))]
        position = -(-max(below, default=0) // first.alignment) * first.alignment
        end = position + extent * BYTES[first.dtype]
        placed.append((many, end))
        yield (
            MemRef(first.name, first.dtype, extent, "scratch", position, writable=True, alignment=first.alignment),
            end,
        )


def _extent(memory: MemRef) -> int:
    assert isinstance(memory.extent, int)
    return memory.extent


def _overlap(one: MemRef, other: MemRef) -> bool:
    ends = [memory.position + _extent(memory) * BYTES[memory.dtype] for memory in (one, other)]
    return max(one.position, other.position) < min(ends)
