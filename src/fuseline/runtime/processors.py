"""The processors this process may use, and which of them share a core."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def allowed_processors() -> list[int]:
    """Numbers of the processors in the affinity mask, or all where there is none, sorted."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def core_of(processor: int, path: str = _SIBLINGS) -> int:
    """The core of a processor, named by its lowest processor; the processor itself where the system does not say."""
    try:
        with open(path.format(processor), encoding="ascii") as file:
            text = file.read()
        return int(text.replace("-", ",").split(",")[0])
    except (OSError, ValueError):
        return processor


def spread(processors: Sequence[int], cores: Mapping[int, int]) -> list[int]:
    """`processors` with one of every core first, then the second ones, and so on: who comes first shares no core.

    >>> spread([0, 1, 2, 3], {0: 0, 1: 0, 2: 2, 3: 2})
    [0, 2, 1, 3]
    """
    seen: dict[int, int] = {}
    ranked: list[tuple[int, int]] = []
    for processor in processors:
        rank = seen.get(cores[processor], 0)
        seen[cores[processor]] = rank + 1
        ranked.append((rank, processor))
    return [processor for _, processor in sorted(ranked)]
