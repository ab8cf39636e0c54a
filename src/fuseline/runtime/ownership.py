"""Who owns a value that crosses the border between a program, its host operators and the caller. Decided here, for
every such value.

    caller ──lend──> boxed slots ──lend──> host operator ──take──> boxed slots ──hand_out──> caller
                     arena, constants, inputs, outputs ─┘

What is *lent* is read-only and good while the call lasts. What is *boxed* is read-only and keeps its numbers while the
run lasts: it lies in memory of its own, in what the caller fed or in what an executor keeps, never in what kernels
write. What is *handed out* is the caller's alone. Nested values (sequences, maps) are made anew at every border, their
arrays copied only where the receiver needs it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NewType, cast

import numpy as np
from numpy.typing import NDArray

from fuseline.runtime.memory import address_of

Array = NDArray[Any]

Boxed = NewType("Boxed", object)
"""A value in a boxed slot: an array, a list, a dict, a plain Python value or None. Only `lend` and `take` make it, only
`hand_out` opens it."""


def lend(value: Any) -> Boxed:
    """A read-only view of `value`: its arrays cannot be written through it, its lists and dicts are copies.

    >>> x = np.zeros(3)
    >>> [y] = lend([x])
    >>> y.base is x, y.flags.writeable
    (True, False)
    """
    return Boxed(_rebuilt(value, _read_only))


def take(answer: Any, lent: Sequence[Array]) -> Boxed:
    """A host operator's answer as a value that may be boxed. What lies in `lent` memory is copied, a fresh array is
    not."""

    def kept(array: Array) -> Array:
        borrowed = any(np.may_share_memory(array, memory) for memory in lent)
        return _read_only(array.copy() if borrowed else array)

    return Boxed(_rebuilt(answer, kept))


def hand_out(values: Iterable[Boxed | None], fed: Iterable[Boxed | None] = ()) -> list[Any]:
    """`values` for the caller: writable C-contiguous arrays that share no memory with each other nor with what the
    caller `fed`.

    An array is copied where anyone else may know its memory, else given as it is.
    """
    taken = _Ranges()
    for array in (array for value in fed for array in _arrays(value)):
        taken.add(array)

    def given(array: Array) -> Array:
        own = array if array.flags.c_contiguous and taken.add(array) else None
        return array.copy() if own is None or not _is_writable_again(own) else own

    return [_rebuilt(value, given) for value in values]


def _rebuilt(value: Any, leaf: Callable[[Array], Array]) -> Any:
    """`value` with every array replaced, lists (and tuples, as lists) and dicts made anew."""
    if isinstance(value, np.ndarray):
        return leaf(cast(Array, value))
    if isinstance(value, list | tuple):
        return [_rebuilt(item, leaf) for item in cast("Sequence[Any]", value)]
    if isinstance(value, Mapping):
        return {key: _rebuilt(item, leaf) for key, item in cast("Mapping[Any, Any]", value).items()}
    return value


def _arrays(value: Any) -> Iterator[Array]:
    if isinstance(value, np.ndarray):
        yield cast(Array, value)
    elif isinstance(value, list | tuple | Mapping):
        items = cast("Iterable[Any]", value.values() if isinstance(value, Mapping) else value)
        for item in items:
            yield from _arrays(item)


def _read_only(array: Array) -> Array:
    """Always a view, so that what is its owner's decision, whether the memory may be written, stays with the owner."""
    view = array.view()
    view.flags.writeable = False
    return view


def _is_writable_again(view: Array) -> bool:
    """Make a view writable; False where its owner says that it is not: what an executor keeps, a broadcast, bytes."""
    try:
        view.flags.writeable = True
    except ValueError:
        return False
    return True


class _Ranges:
    """Memory that is spoken for: disjoint ranges of addresses, in order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def add(self, array: Array) -> bool:
        """Take the memory of `array`; False where some of it was taken before."""
        if array.size == 0:
            return True
        start, stop = _bounds(array)
        first, last = bisect_right(self._stops, start), bisect_left(self._starts, stop)
        free = first >= last
        if not free:
            start, stop = min(start, self._starts[first]), max(stop, self._stops[last - 1])
        self._starts[first:last], self._stops[first:last] = [start], [stop]
        return free


def _bounds(array: Array) -> tuple[int, int]:
    """The addresses of the first byte of an array and of the one behind its last."""
    if array.flags.c_contiguous:
        start = address_of(array)
        return start, start + array.nbytes
    low, high = np.lib.array_utils.byte_bounds(array)
    return low, high
