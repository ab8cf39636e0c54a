"""A host operator that reads a number which sizes depend on: the program computes it, and only then knows how large its
tensors are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fuseline import executors
from fuseline.errors import FuselineError
from fuseline.runtime import host


def execute(node: bytes, operands: Sequence[Any]) -> list[Any]:
    """The one element of the integer operand, as a number; `node` is what reads it, UTF-8. Raises FuselineError (E0203)
    for a negative one."""
    value = int(np.asarray(operands[0]).reshape(-1)[0])
    if value < 0:
        raise FuselineError(
            "E0203", f"an index or size is computed as {value}, must be at least 0", node=node.decode() or None
        )
    return [value]


host.register(executors.INDEX, execute)
