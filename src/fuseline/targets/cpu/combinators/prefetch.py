"""Cache lines asked for some steps before they are read.

    the next panel, 12 lines, 3 tiles of 4 steps      tile 0: . l l l l    tile 1: . l l l l    tile 2: . l l l l
            one line every step

Requests are spread over the time that the present panel takes: each tile asks for its share of the next one, some lines
every so many steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseline.ir.costs import LINE_BYTES
from fuseline.targets.cpu.emit.microkernel import PrefetchRequests
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BYTES, MemRef, Operand

FIRST_CACHE, SECOND_CACHE = 3, 2
"""The cache that a prefetch fills, as the kernel IR numbers them."""


@dataclass(frozen=True, slots=True)
class Prefetch:
    """What is asked for ahead of time, in elements.

    `distance`: how far ahead of each column vector that is read; 0: not at all. `period`: instead, every so many steps
    of the innermost reduction axis, the next `lines` cache lines of the tile's share of the next panel; 0: not at all.
    `requests` are made in a run of that axis, `tiles` share a panel, `share` elements each.
    """

    distance: int = 0
    period: int = 0
    lines: int = 1
    requests: int = 0
    tiles: int = 1
    share: int = 0


NONE = Prefetch()


def schedule_prefetches(innermost: int, steps: int, lines: int, tiles: int, line: int, *, whole: int = 1) -> Prefetch:
    """The `lines` cache lines of a panel, of `line` elements each, shared out over `tiles` tiles of `steps` steps;
    `innermost` of them in a run, of which `whole` are one of the kernel's, not to be torn apart."""
    mine = -(-lines // tiles)
    together = -(-mine // steps)
    most = max(1, steps * together // mine)
    if most > 2 * innermost or innermost == 0:  # requests so rare that none falls into most runs of the innermost axis
        return NONE
    period = _period(innermost, min(most, innermost))
    period -= period % whole if period < innermost else 0
    if period == 0:
        return NONE
    requests = -(-innermost // period)
    return Prefetch(
        period=period,
        lines=together,
        requests=requests,
        tiles=tiles,
        share=steps // innermost * requests * together * line,
    )


def prefetch_requests(
    kernel: KernelBuilder, memory: MemRef, panel: Operand, number: Operand, prefetch: Prefetch, run: int
) -> PrefetchRequests | None:
    """How tile `number` asks for its share of the panel that begins at `panel`; `run`: elements of columns in a run of
    the innermost axis."""
    if not prefetch.period:
        return None
    line = LINE_BYTES // BYTES[memory.dtype]
    start = kernel.add(panel, kernel.mul(number, prefetch.share))

    def request(column: Operand, j: Operand) -> None:
        before = kernel.mul(kernel.div(column, run), prefetch.requests)
        first = kernel.add(start, kernel.mul(kernel.add(before, j), prefetch.lines * line))
        for i in range(prefetch.lines):
            kernel.prefetch(memory, kernel.add(first, i * line), SECOND_CACHE)

    return PrefetchRequests(prefetch.period, request)


def _period(extent: int, most: int) -> int:
    """A number of steps of at most `most`, one that divides `extent` into whole pairs if there is one not much
    smaller."""
    whole = [n for n in range(most, most // 2, -1) if extent % n == 0 and n % 2 == 0]
    return whole[0] if whole else most
