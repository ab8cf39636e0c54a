"""MLIR's mixed lists: sizes, offsets or paddings given partly as numbers, partly as index values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase
from xdsl.ir import SSAValue

from fuseline.ir.fast import attributes

Mixed = list[int | SSAValue]


def joined(static: DenseArrayBase[Any] | Sequence[int], dynamic: Sequence[SSAValue]) -> Mixed:
    """One list from the two that an op holds."""
    numbers = attributes.values(static) if isinstance(static, DenseArrayBase) else static
    if not dynamic:
        return [int(number) for number in numbers]
    rest = iter(dynamic)
    return [next(rest) if number == DYNAMIC_INDEX else int(number) for number in numbers]
