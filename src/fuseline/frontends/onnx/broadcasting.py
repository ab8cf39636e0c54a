"""NumPy's broadcasting on sizes that may be symbolic."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.tensors import NoNativeLowering
from fuseline.ir.dim import Dim, lower_bound, sub, symbols, to_text, upper_bound


def broadcast_dim(lhs: Dim, rhs: Dim) -> Dim:
    """The size that two sizes broadcast to. Symbolic ones that the model must mean to be equal count as such: the pass
    `require-equal-sizes` makes the program check it.

    Raises:
        NoNativeLowering: it depends on the values of symbols.
        FuselineError: E0107, two different numbers of which neither is 1.
    """
    if rhs in (lhs, 1):
        return lhs
    if lhs == 1:
        return rhs
    if isinstance(lhs, int) and isinstance(rhs, int):
        raise FuselineError("E0107", f"sizes {lhs} and {rhs} do not broadcast")
    if _must_be_equal(lhs, rhs):
        return _plainer(lhs, rhs)
    raise NoNativeLowering("symbolic-broadcast", f"{to_text(lhs)} against {to_text(rhs)}")


def equal_dim(lhs: Dim, rhs: Dim) -> Dim:
    """One size for two that must be equal, as along the sum of a matrix product: numbers are compared here, the rest when it runs.

    Raises:
        FuselineError: E0107, two different numbers.
    """
    if isinstance(lhs, int) and isinstance(rhs, int) and lhs != rhs:
        raise FuselineError("E0107", f"sizes {lhs} and {rhs} must be equal")
    return _plainer(lhs, rhs)


def _plainer(lhs: Dim, rhs: Dim) -> Dim:
    return min(lhs, rhs, key=lambda size: (not isinstance(size, int), len(to_text(size)), to_text(size)))


def _must_be_equal(lhs: Dim, rhs: Dim) -> bool:
    """Whether only equal sizes make sense: neither can be 1, or both are computed from the same symbols, and they can be equal at all."""
    difference = sub(lhs, rhs)
    low, high = lower_bound(difference), upper_bound(difference)
    if (low is not None and low > 0) or (high is not None and high < 0):
        return False
    same_origin = symbols(lhs) == symbols(rhs)
    return same_origin or all((lower_bound(size) or 0) > 1 for size in (lhs, rhs))


def broadcast_dims(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """The sizes that all `shapes` broadcast to, aligned at the last dimension; raises like `broadcast_dim`."""
    rank = max((len(shape) for shape in shapes), default=0)
    out: list[Dim] = [1] * rank
    for shape in shapes:
        offset = rank - len(shape)
        for axis, size in enumerate(shape):
            out[offset + axis] = broadcast_dim(out[offset + axis], size)
    return tuple(out)


def loops_of(dims: Sequence[Dim], out: Sequence[Dim]) -> list[int | None]:
    """For each axis of an operand with `dims` the loop of the space `out` that it follows; None where its size 1 repeats.

    >>> loops_of((1, 4), (2, 3, 4))
    [None, 2]
    """
    offset = len(out) - len(dims)
    return [None if size == 1 and out[offset + axis] != 1 else offset + axis for axis, size in enumerate(dims)]
