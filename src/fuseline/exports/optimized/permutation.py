"""Permutations of axes as ONNX's Transpose has them: axis k of the result is axis perm[k] of the source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import onnx_ir as ir

from fuseline.exports.optimized.editor import Array, Size, attribute, rank, sizes

T = TypeVar("T")
Perm = tuple[int, ...]

UNKNOWN_SIZE = 64
"""What a size that nobody knows counts as, where the cost of moving a tensor is compared."""


def perm_of(node: ir.Node) -> Perm | None:
    """The permutation of a Transpose; None where its rank is unknown."""
    given = attribute(node, "perm", None)
    if given is not None:
        return tuple(int(axis) for axis in given)
    known = rank(node.inputs[0])
    return None if known is None else tuple(reversed(range(known)))


def composed(first: Perm, second: Perm) -> Perm:
    """The permutation of a Transpose by `second` behind one by `first`."""
    return tuple(first[axis] for axis in second)


def inverse(perm: Perm) -> Perm:
    """The permutation that undoes one."""
    return tuple(perm.index(axis) for axis in range(len(perm)))


def identity(perm: Perm) -> bool:
    """Whether a permutation moves nothing."""
    return perm == tuple(range(len(perm)))


def reordered(items: Sequence[T], perm: Perm) -> list[T]:
    """What belongs to the axes, behind a Transpose."""
    return [items[axis] for axis in perm]


def permuted(array: Array, perm: Perm) -> Array:
    """The array behind a Transpose."""
    return np.ascontiguousarray(np.transpose(array, perm))


def elements(dims: Sequence[Size] | None) -> int:
    """The elements of a tensor, a size that is no number counted as `UNKNOWN_SIZE`."""
    count = 1
    for size in dims or ():
        count *= size if isinstance(size, int) else UNKNOWN_SIZE
    return count


def moving_cost(value: ir.Value, perm: Perm) -> int:
    """The elements that a Transpose of `value` moves: none where only axes of size 1 change their places."""
    dims = sizes(value)
    if dims is None:
        return UNKNOWN_SIZE ** len(perm)
    real = [axis for axis in perm if dims[axis] != 1]
    return 0 if real == sorted(real) else elements(dims)
