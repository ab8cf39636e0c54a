"""What attributes of StableHLO ops say, whichever form the text has them in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute

from fuseline.frontends.stablehlo.types import tensor_type_of
from fuseline.ir.hlo.text_attribute import TextAttribute

_FIELD = re.compile(r"(\w+)\s*=\s*(\[[^\]]*\]|-?\w+)")


def text_of(attribute: Attribute | None, default: str = "") -> str:
    """A word or text: a string, a symbol, an attribute of the dialect."""
    if isinstance(attribute, StringAttr | TextAttribute):
        return attribute.data.strip()
    if isinstance(attribute, SymbolRefAttr):
        return attribute.string_value()
    return default


def integers_of(attribute: Attribute | None) -> list[int] | None:
    """A list of integers (or truth values); None where there is none."""
    if isinstance(attribute, DenseArrayBase):
        return [int(value) for value in cast("Sequence[int]", attribute.get_values())]
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        return [int(value) for value in array_of(attribute).reshape(-1).tolist()]
    if isinstance(attribute, ArrayAttr):
        items = cast("Sequence[Attribute]", attribute.data)
        return [integer_of(item) for item in items]
    if isinstance(attribute, IntegerAttr):
        return [integer_of(attribute)]
    return None


def integer_of(attribute: Attribute | None, default: int = 0) -> int:
    """An integer or truth value."""
    if isinstance(attribute, StringAttr):
        return int(attribute.data == "true")
    return int(cast(Any, attribute).value.data) if isinstance(attribute, IntegerAttr) else default


def fields_of(attribute: Attribute | None) -> dict[str, list[int]]:
    """The numbers of `<offset_dims = [1], index_vector_dim = 1>`, each as a list.

    >>> fields_of(StringAttr("offset_dims = [0, 2], index_vector_dim = 1"))
    {'offset_dims': [0, 2], 'index_vector_dim': [1]}
    """
    return {
        name: [int(number) for number in re.findall(r"-?\d+", value)]
        for name, value in _FIELD.findall(text_of(attribute))
    }


def array_of(attribute: Attribute) -> NDArray[Any]:
    """The elements of a constant, in its shape; a splat repeats without memory of its own. Raises
    UnreadableTypeError."""
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        raise ValueError(f"a constant of {attribute.name}")
    dtype, shape = tensor_type_of(attribute.type)
    data, count = attribute.data.data, int(np.prod(shape, dtype=np.int64))
    elements = _flags(np.frombuffer(data, np.uint8), count) if dtype.kind == "b" else np.frombuffer(data, dtype)
    return np.broadcast_to(elements[0], shape) if elements.size == 1 else elements.reshape(shape)


def _flags(data: NDArray[np.uint8], count: int) -> NDArray[np.bool_]:
    """Truth values, a byte each, or eight in a byte as MLIR writes long ones."""
    if data.size in (1, count):
        return data != 0
    return np.unpackbits(data, bitorder="little", count=count) != 0
