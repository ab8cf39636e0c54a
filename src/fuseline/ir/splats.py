"""Splats: constants that are one number everywhere, held as that number however many elements they have."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute

SAMPLES = 64
"""Elements, evenly spread, that are looked at before all of them are."""


def splat_attribute(type_: Attribute, value: float | int) -> DenseIntOrFPElementsAttr:
    """`dense<value> : type_` with the bytes of one element. Raises OverflowError for a number that the element type has
    not."""
    assert isinstance(type_, TensorType)
    one = DenseIntOrFPElementsAttr.from_list(cast(Any, TensorType(type_.get_element_type(), [1])), [value])
    return DenseIntOrFPElementsAttr(cast(Any, type_), BytesAttr(one.data.data))


def one_element(attribute: DenseIntOrFPElementsAttr) -> float | int | None:
    """The number that all elements are, to the bit; None where they differ or there are none."""
    data, element = attribute.data.data, cast(Any, attribute.get_element_type())
    width = element.compile_time_size
    if not data or (len(data) > width and not _repeats(data, width)):
        return None
    return element.unpack(data[:width], 1)[0]


def _repeats(data: bytes, width: int) -> bool:
    """Whether `data` is its first `width` bytes again and again."""
    return data[-width:] == data[:width] and data[width:] == data[:-width]


def single_value(array: NDArray[Any]) -> Any:
    """The number that every element of `array` is (to the bit), None where they differ or there are none. Costs little
    where they differ."""
    if array.size == 0:
        return None
    array = array[
        tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)
    ]  # along these all are the same
    first: Any = array[(0,) * array.ndim]
    if array[(-1,) * array.ndim] != first:  # so it is of most weights
        return None
    positions = (
        np.unravel_index(np.linspace(0, array.size - 1, min(SAMPLES, array.size)).astype(np.int64), array.shape)
        if array.ndim
        else ()
    )
    if not bool(np.asarray(array[positions] == first).all()) or not bool((array == first).all()):
        return None
    if array.dtype.kind == "f" and first == 0 and bool((np.signbit(array) != np.signbit(first)).any()):
        return None
    return np.asarray(first).item()
