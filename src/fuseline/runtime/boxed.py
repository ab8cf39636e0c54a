"""Values that never lie in a program's memory: strings, 8-bit floats and smaller, sequences, optionals, tensors of
unknown rank.

The session holds them in numbered slots and passes them to host operators by reference. At its border every value is an
array: a tensor is itself, anything else is wrapped as an object array without dimensions.

Types are written as ONNX has them, over NumPy's names: `tensor(string)`, `seq(tensor(float32))`, `optional(..)`,
`map(int64, ..)`, `any_rank(tensor(float32))`, and `any` where nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.ownership import lend

Array = NDArray[Any]
STRING = "string"


def is_tensor_type(type_: str) -> bool:
    """Whether values of this type are arrays of known rank.

    >>> is_tensor_type("tensor(string)"), is_tensor_type("seq(tensor(string))")
    (True, False)
    """
    return type_.startswith("tensor(")


def box(value: Any) -> Array:
    """Any value as an array without dimensions."""
    array = np.empty((), object)
    array[()] = value
    return array


def unbox(boxed: Array) -> Any:
    """What `box` was given."""
    return boxed.item() if boxed.dtype == object and boxed.ndim == 0 else boxed


def admit_boxed(name: str, type_: str, feed: Any) -> Any:
    """A fed value as host operators take it: strings in object arrays, sequences as lists; an optional may be None.

    Raises FuselineError (E0204) for a value of another type, named by the feed.
    """
    kind, _, rest = type_.partition("(")
    inner = rest[:-1]
    if kind == "seq":
        return [admit_boxed(name, inner, item) for item in _checked(name, type_, feed, list | tuple)]
    if kind == "optional":
        return None if feed is None else admit_boxed(name, inner, feed)
    if kind == "map":
        return dict(_checked(name, type_, feed, Mapping))
    if kind == "any_rank":
        return admit_boxed(name, inner, feed)
    return _tensor(name, inner, feed) if kind == "tensor" else _untyped(name, feed)


def _untyped(name: str, feed: Any) -> Any:
    try:
        lend(feed)
    except RecursionError as error:
        raise FuselineError("E0204", f"a {type(feed).__name__} that contains itself", node=name) from error
    return feed


def _checked(name: str, type_: str, feed: Any, wanted: Any) -> Any:
    if not isinstance(feed, wanted):
        raise FuselineError("E0204", f"a {type(feed).__name__} is no {type_}", node=name)
    return feed


def _tensor(name: str, element: str, feed: Any) -> Array:
    try:
        array = np.asarray(feed)
    except (TypeError, ValueError) as error:
        raise FuselineError("E0204", f"{type(feed).__name__} cannot be read as an array: {error}", node=name) from error
    if element == STRING:
        return _strings(name, array)
    wanted = dtype_named(element)
    if (
        array.dtype.type is np.void and array.dtype.itemsize == wanted.itemsize
    ):  # what .npy files make of dtypes that NumPy does not know
        array = array.view(wanted)
    if array.dtype != wanted:
        raise FuselineError(
            "E0204",
            f"dtype is {array.dtype}, must be {wanted}",
            node=name,
            hint=f"convert it: x.astype({str(wanted)!r})",
        )
    return array


def _strings(name: str, array: Array) -> Array:
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind not in "UTO" or not all(isinstance(item, str) for item in array.reshape(-1).tolist()):
        raise FuselineError("E0204", f"dtype is {array.dtype}, must be strings", node=name)
    return array.astype(object)
