"""How much of the processors other programs take meanwhile: a comparison of numbers of threads says nothing else on a
machine where the second thread has to wait for a processor."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from fuseline.runtime.processors import allowed_processors

STAT = "/proc/stat"
BUSY_SHARE = 0.15
"""Of the processors this process may use. What a system does by itself takes some hundredths."""

_IDLE = (3, 4)
"""Columns of idle time, and of idle time with a disk at work."""


class OthersLoad:
    """Watches from when it is made on."""

    def __init__(self, stat: str = STAT, processors: Sequence[int] | None = None) -> None:
        self._stat, self._processors = stat, tuple(processors or allowed_processors())
        self._start, self._own = self._times(), time.process_time()

    def share(self) -> float:
        """The part of the processors' time that went elsewhere than into this process, 0 to 1; 0 where the system does
        not say."""
        (busy, whole), own = self._times(), time.process_time() - self._own
        passed = whole - self._start[1]
        return min(max((busy - self._start[0] - own) / passed, 0.0), 1.0) if passed > 0 else 0.0

    def _times(self) -> tuple[float, float]:
        """Seconds that the processors were busy, and all seconds, since the system began."""
        try:
            lines = Path(self._stat).read_text(encoding="ascii").splitlines()
        except OSError:
            return 0.0, 0.0
        names = {f"cpu{number}" for number in self._processors}
        cells = [line.split() for line in lines if line]
        rows = [[int(cell) for cell in numbers] for name, *numbers in cells if name in names]
        ticks = os.sysconf("SC_CLK_TCK")
        whole = sum(sum(row[:8]) for row in rows)  # what guests took is in the first columns
        idle = sum(row[column] for row in rows for column in _IDLE if column < len(row))
        return (whole - idle) / ticks, whole / ticks
