"""Values of a model while it is read: what is known of them, and views that cost nothing until something needs them as
a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.ir.dim import Dim, Expr


class NoNativeLowering(Exception):
    """Raised by a lowering that cannot express its node; the node then expands its function body or becomes a host op.

    `reason` is a stable kebab-case code, `detail` says what was found.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}" if detail else reason)


class InvalidSubgraph(NoNativeLowering):
    """Raised for a branch or body with a node that no run could compute; `error` says why."""

    def __init__(self, error: FuselineError) -> None:
        self.error = error
        super().__init__("invalid-branch", f"{error.node}: {error.message}" if error.node else error.message)


class OneWay(NoNativeLowering):
    """Raised for an `If` of which one branch is invalid: `results` are those of the other."""

    def __init__(self, invalid: InvalidSubgraph, results: Sequence[Tensor]) -> None:
        self.results = tuple(results)
        super().__init__(invalid.reason, invalid.detail)


@dataclass(slots=True, eq=False)
class Tensor:
    """One value of the model.

    `array` is its content where known: numbers, or `Dim`s in an object array for arithmetic on symbolic sizes. A view
    has a `base` and, for every axis of the base, the axis of the view that it follows (None: the base has size 1
    there); axes of the view that no base axis follows repeat. `value` is the emitted SSA value, None while nothing
    needed it. `reshaped` is what this is the same elements of, in other dimensions; `parts`
    are what a line of integers is put together of.
    """

    dtype: np.dtype[Any]
    dims: tuple[Dim, ...]
    value: SSAValue | None = None
    array: NDArray[Any] | None = None
    base: Tensor | None = None
    axes: tuple[int | None, ...] = ()
    name: str = ""
    reshaped: Tensor | None = None
    parts: tuple[Tensor, ...] = ()

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def is_constant(self) -> bool:
        """Whether every element is a known number."""
        return self.array is not None and self.array.dtype != object

    @property
    def is_scalar_constant(self) -> bool:
        """Whether it is one known number (of any rank)."""
        return self.array is not None and self.array.dtype != object and self.array.size == 1

    def numbers(self) -> NDArray[Any]:
        """The content; raises NoNativeLowering where it is computed at run time or depends on symbolic sizes."""
        if self.array is None or self.array.dtype == object:
            raise NoNativeLowering("runtime-value", f"{self.name or 'an input'} is computed at run time")
        return self.array

    def sizes(self) -> list[Dim]:
        """The flat content as sizes; raises NoNativeLowering where it is computed at run time."""
        if self.array is None:
            raise NoNativeLowering("runtime-value", f"{self.name or 'an input'} is computed at run time")
        return [item if isinstance(item, Expr) else int(item) for item in self.array.reshape(-1).tolist()]


def known(array: NDArray[Any], dtype: np.dtype[Any] | None = None, name: str = "") -> Tensor:
    """A tensor of known content; an object array of sizes that are all numbers becomes a numeric one."""
    if array.dtype == object:
        wanted = dtype or np.dtype(np.int64)
        if not any(isinstance(item, Expr) for item in array.reshape(-1).tolist()):
            array = array.astype(wanted)
        return Tensor(wanted, tuple(array.shape), array=array, name=name)
    return Tensor(array.dtype, tuple(array.shape), array=array, name=name)


def known_sizes(dims: Sequence[Dim]) -> Tensor:
    """An int64 vector of sizes."""
    array = np.empty(len(dims), dtype=object)
    array[:] = list(dims)
    return known(array)


def view(base: Tensor, dims: Sequence[Dim], axes: Sequence[int | None]) -> Tensor:
    """`base` seen with other axes; see `Tensor`."""
    return Tensor(base.dtype, tuple(dims), base=base, axes=tuple(axes), name=base.name)


def static_size(dim: Dim) -> int:
    """A size that must be a number; raises NoNativeLowering for a symbolic one."""
    if not isinstance(dim, int):
        raise NoNativeLowering("symbolic-size", f"{dim} is only known when it runs")
    return dim


def static_sizes(dims: Sequence[Dim]) -> tuple[int, ...]:
    """Sizes that must be numbers; raises NoNativeLowering for symbolic ones."""
    return tuple(static_size(dim) for dim in dims)
