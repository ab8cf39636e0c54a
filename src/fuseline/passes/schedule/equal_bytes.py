"""Which arrays hold the same bytes, whatever their shapes: told by samples first, then a piece at a time, so that
weights of gigabytes are compared without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Sample = tuple[int, bytes, bytes]

_SAMPLE = 1024
"""Elements from either end that tell most different constants apart before they are compared whole."""

_CHUNK = 1 << 22
"""Bytes that are compared at once."""


def sample(array: NDArray[Any]) -> Sample:
    """What equal arrays have in common: bytes in all, the first and the last ones in row-major order."""
    flat = array.flat
    return array.nbytes, flat[:_SAMPLE].tobytes(), flat[max(0, array.size - _SAMPLE) :].tobytes()


def same_bytes(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays hold the same bytes in row-major order: zeros of either sign differ, equal NaN do not."""
    if one is other or (_place(one) == _place(other) and one.dtype == other.dtype):
        return True
    if one.nbytes != other.nbytes:
        return False
    left, right = _bytes(one), _bytes(other)
    return all(
        np.array_equal(left[start : start + _CHUNK], right[start : start + _CHUNK])
        for start in range(0, len(left), _CHUNK)
    )


def _place(array: NDArray[Any]) -> tuple[object, ...]:
    return array.__array_interface__["data"], array.shape, array.strides


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
