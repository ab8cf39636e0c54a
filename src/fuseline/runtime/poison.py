"""Memory that holds nothing any more, made to show when it is read: a pattern of bytes that no computation gives (NaN
in every float type)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

PATTERN = 0xFF


def poison(memory: NDArray[np.uint8], live: Sequence[tuple[int, int]] = ()) -> None:
    """Fill `memory` but for the ranges `live`, each an offset and a length in bytes."""
    kept = [(start, memory[start : start + length].copy()) for start, length in live]
    memory.fill(PATTERN)
    for start, content in kept:
        memory[start : start + len(content)] = content


def poison_array(array: NDArray[Any]) -> None:
    """Fill the elements of a C-contiguous array."""
    array.reshape(-1).view(np.uint8).fill(PATTERN)
