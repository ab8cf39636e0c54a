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
    """The elements of the integer operands, each as a number; `node` is what reads them, UTF-8. Raises FuselineError
    (E0203) for a negative one."""
    values = [int(value) for operand in operands for value in np.asarray(operand).reshape(-1).tolist()]
    for value in values:
        if value < 0:
            raise FuselineError(
                "E0203", f"an index or size is computed as {value}, must be at least 0", node=node.decode() or None
            )
    return values


host.register(executors.INDEX, execute)
