"""What work costs on a machine: the one place of physical figures. Fusion, ordering and the scheduler weigh with them;
none makes a merge legal.

Rates are those of one thread. The defaults were measured on AVX2 machines at about 3.3 GHz (kernel and layer
benchmarks); `fuseline machine` measures those of the machine it runs on, and a description file may give others
(`--target cpu:FILE`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from fuseline.ir.dim import Dim, evaluate, lower_bound, symbols, upper_bound

ASSUMED_SIZE = 128
"""What a size that is only known at run time, and has no bound, is taken for wherever sizes are weighed against each
other."""

SMALL_SIZE = 16
"""What it is taken for beside that where threads share it out: blocks of rows should suit both."""

LINE_BYTES = 64
"""A cache line, bytes."""


PAGE_BYTES = 4096
"""A page, bytes: rows of whole pages begin at one place of a cache, and take each other's places in it."""


def assumed_size(size: Dim) -> int:
    """The most that `size` can be, at least 1; every symbol without a bound is taken as `ASSUMED_SIZE`."""
    bound = upper_bound(size)
    if bound is not None:
        return bound
    return max(
        evaluate(size, {s.name: s.hi if s.hi is not None else max(s.lo, ASSUMED_SIZE) for s in symbols(size)}), 1
    )


def small_sizes(extents: Sequence[Dim], *, image: bool) -> list[int]:
    """What loops that are shared out are taken for where there is little to do: those that only the run knows as one
    batch of `SMALL_SIZE` rows, unless known ones have as many points; in an `image` as `SMALL_SIZE` each.

    >>> from fuseline.ir.dim import symbol
    >>> small_sizes([symbol("batch"), 128], image=False), small_sizes([symbol("batch"), symbol("rows")], image=False)
    ([1, 128], [1, 16])
    """
    known = prod(extent for extent in extents if isinstance(extent, int))
    unknown = [place for place, extent in enumerate(extents) if not isinstance(extent, int)]
    found = [extent if isinstance(extent, int) else SMALL_SIZE if image else 1 for extent in extents]
    if unknown and not image:
        found[unknown[-1]] = max(1, -(-SMALL_SIZE // max(known, 1)))
    return [_within(size, extent) for size, extent in zip(found, extents, strict=True)]


def _within(size: int, extent: Dim) -> int:
    """The size itself, or the bound of an extent that it is beyond."""
    most = upper_bound(extent)
    size = max(size, lower_bound(extent) or 0)
    return size if most is None else min(size, most)


BLOCK_VECTORS = 8
"""Vectors in `MachineCosts.block_uses`: four panels of two."""


@dataclass(frozen=True, slots=True)
class MachineCosts:
    """Figures of one machine.

    Attributes:
        flops_per_ns: f32 contractions, a multiply-add counted as two. operation_ns: an elementwise operation on one
        f32, in vectors. stored_bytes_per_ns: an intermediate stored by one dispatch and loaded by the next, mostly
        through the second-level cache. streamed_bytes_per_ns: a packed constant, or rows in place, read again beside
        arithmetic, which hides most of it. shared_bytes_per_ns: the same, where another thread reads it at that time:
        both have it from one cache (65 and 154 MB read by two threads in place of one: 1.005 and .998 of the time of
            two language models). packed_bytes_per_ns: an operand computed at run time, packed into scratch.
        packing_ns: one element of it; gathering_ns: of rows that lie across memory (measured 0.8 to 1.1, f16 and bf16).
        block_uses: columns or rows of f32, at least, that a packed element serves where the other operand has so many:
        four panels of two vectors. memory_bytes_per_ns: what lies in no cache. cached_bytes: what stays in a core's
        caches until it is traversed again, whatever the order (measured: rows of 1.5 MB traversed down their columns
        .7, of 5 MB 1.2 of the time of separate dispatches). launch_ns: a dispatch beside its
        work: its launch and its barrier. split_above_ns: work from which on it pays to share a wave among threads (a
        barrier costs 60 to 100 ns and data changes caches). serial_below_ns: programs below this stay on the calling
        thread: waking a sleeping worker costs 28 to 50 us, a spinning one under 1 us. serial_elements: up to so many
        elements one thread is at least as fast as several. filtering_gain: how much faster a 3x3 convolution is by
        minimal filtering (Winograd) than directly, measured 1.6 to 3.5 over many shapes;
            1 for a target that has none.
        filtering_channels: input channels below which its transforms cost more than they save. filtering_pixels: pixels
        along an axis of a small image up to which it saves less than the border of such a convolution wastes (measured
            with windows of 2 to 4). sliding_share: what the roots of a dispatch take longer where one of them slides
        over its blocks, as a share of their arithmetic: rows that are read again, tiles that the end of a block cuts
            (measured 0.02 to 0.11 in MobileNetV2 and ResNet-50). sharing_loss: the most of its time that a launch may
        lose by code that it shares across extents, at `--dedup shapes` (docs/dedup.md has what other limits give).
        block_bytes: what may lie between products in a workgroup before blocks of rows are made smaller (128 rows of
        4608 f32, 2.4 MB on 512 KiB of second-level cache: one block .97 of the time of three, whose products read all
        weights again). packed_bytes: scratch of each thread that an operand may take which is packed; a result that
        products would have to pack only because it is stored in 8 bits must save more than all threads take
        (docs/memory.md).
    """

    flops_per_ns: float = 50.0
    operation_ns: float = 0.06
    stored_bytes_per_ns: float = 16.0
    streamed_bytes_per_ns: float = 64.0
    shared_bytes_per_ns: float = 256.0
    packed_bytes_per_ns: float = 8.0
    packing_ns: float = 0.1
    gathering_ns: float = 1.0
    block_uses: int = 64
    memory_bytes_per_ns: float = 8.0
    cached_bytes: int = 2 << 20
    launch_ns: float = 200.0
    split_above_ns: float = 500.0
    serial_below_ns: float = 30_000.0
    serial_elements: int = 1 << 15
    filtering_gain: float = 2.5
    filtering_channels: int = 16
    filtering_pixels: int = 4
    sliding_share: float = 0.05
    sharing_loss: float = 0.25
    block_bytes: int = 4 << 20
    packed_bytes: int = 112 << 10

    @property
    def lanes(self) -> int:
        """f32 elements of a vector."""
        return max(1, self.block_uses // BLOCK_VECTORS)

    @property
    def crossed_elements(self) -> int:
        """Elements of an argument up to which its readers may have its channels far apart, each time they read it: a
        quarter of what one thread takes alone (measured: 3,200 elements .8 of the time that a transpose of its own
        takes, 8,192 1.0, 32,768 and more 1.05 to 1.14)."""
        return self.serial_elements // 4

    def intermediate_bytes_per_ns(self, most: int | None) -> float:
        """How fast an intermediate of at most so many bytes (None: of any size) is stored and loaded again: through a
        cache, or to memory and back."""
        beside = most is None or most > self.cached_bytes
        return self.memory_bytes_per_ns if beside else self.stored_bytes_per_ns


ASSUMED_COSTS = MachineCosts()
"""Those of a machine that nobody has measured."""
