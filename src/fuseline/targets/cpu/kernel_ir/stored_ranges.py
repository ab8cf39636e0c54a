"""The range of the integers that are stored in a constant, which a kernel is proved with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fuseline.targets.cpu.kernel_ir.contents import Range
from fuseline.targets.cpu.kernel_ir.types import BYTES, FLOATS


def range_of_bytes(stored: NDArray[np.uint8], dtype: str) -> Range | None:
    """The range of the signed integers of `dtype` (a name of the kernel IR) that lie in `stored`; None without any, and
    for floats."""
    if dtype in FLOATS or stored.size < BYTES[dtype]:
        return None
    numbers = stored[: stored.size // BYTES[dtype] * BYTES[dtype]].view(f"i{BYTES[dtype]}")
    return Range(int(numbers.min()), int(numbers.max()))
