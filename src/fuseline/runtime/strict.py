"""Values of parsed JSON, taken for what they are: a number is no truth value, a text no number, and nothing is rounded.

Every function raises ValueError for anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LARGEST = 1 << 62
"""Numbers beyond this are no counts, bytes or offsets."""


def whole(data: Any) -> int:
    """An integer, small enough for arithmetic in 64 bits."""
    if type(data) is not int or not -LARGEST < data < LARGEST:
        raise ValueError(f"not a number: {_short(data)}")
    return data


def within(data: Any, low: int, high: int) -> int:
    """An integer in `low..high`."""
    number = whole(data)
    if not low <= number <= high:
        raise ValueError(f"{number} is not in {low}..{high}")
    return number


def flag(data: Any) -> bool:
    """A truth value."""
    if type(data) is not bool:
        raise ValueError(f"neither true nor false: {_short(data)}")
    return data


def text(data: Any) -> str:
    """A text."""
    if type(data) is not str:
        raise ValueError(f"not a text: {_short(data)}")
    return data


def mapping(data: Any) -> Mapping[str, Any]:
    """An object of JSON."""
    if type(data) is not dict:
        raise ValueError(f"not an object: {_short(data)}")
    return data  # pyright: ignore[reportUnknownVariableType]


def _short(data: Any) -> str:
    shown = repr(data)
    return shown if len(shown) < 60 else f"{shown[:57]}..."
