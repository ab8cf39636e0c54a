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


def static_part(items: Mixed) -> list[int]:
    """The numbers, `DYNAMIC_INDEX` where there is a value."""
    return [item if isinstance(item, int) else DYNAMIC_INDEX for item in items]


def dynamic_part(items: Mixed) -> list[SSAValue]:
    """The values alone."""
    return [item for item in items if not isinstance(item, int)]
