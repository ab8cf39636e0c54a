"""NumPy's broadcasting on sizes that may be symbolic."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.tensors import NoNativeLowering
from fuseline.ir.dim import Dim, evaluate, lower_bound, maximum, minimum, mul, sub, symbols, to_text, upper_bound


def broadcast_dim(lhs: Dim, rhs: Dim) -> Dim:
    """The size that two sizes broadcast to. Symbolic ones that the model must mean to be equal count as such: the pass
    `require-equal-sizes` makes the program check it. Of others either may be 1 when the program runs (`may_repeat`);
    the answer is the larger one, or 0 where one is 0.

    Raises:
        NoNativeLowering: a symbol against 0.
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
    if 0 in (lhs, rhs):
        raise NoNativeLowering("symbolic-broadcast", f"{to_text(lhs)} against {to_text(rhs)}")
    fixed = [size for size in (lhs, rhs) if isinstance(size, int)]
    return fixed[0] if fixed else mul(maximum(lhs, rhs), minimum(minimum(lhs, rhs), 1))


def may_repeat(size: Dim, out: Dim) -> bool:
    """Whether only the run tells if `size` is `out`, or 1 and repeats along it."""
    return size not in (1, out) and not isinstance(size, int) and not _must_be_equal(size, out)


def equal_dim(lhs: Dim, rhs: Dim) -> Dim:
    """One size for two that must be equal, as along the sum of a matrix product: numbers are compared here, the rest
    when it runs.

    Raises:
        FuselineError: E0107, two different numbers.
    """
    if isinstance(lhs, int) and isinstance(rhs, int) and lhs != rhs:
        raise FuselineError("E0107", f"sizes {lhs} and {rhs} must be equal")
    return _plainer(lhs, rhs)


def _plainer(lhs: Dim, rhs: Dim) -> Dim:
    return min(lhs, rhs, key=lambda size: (not isinstance(size, int), len(to_text(size)), to_text(size)))


def _must_be_equal(lhs: Dim, rhs: Dim) -> bool:
    """Whether only equal sizes make sense: neither can be 1, or both are computed from the same symbols, of which some
    make them equal and not 1."""
    difference = sub(lhs, rhs)
    low, high = lower_bound(difference), upper_bound(difference)
    if (low is not None and low > 0) or (high is not None and high < 0):
        return False
    if all((lower_bound(size) or 0) > 1 for size in (lhs, rhs)):
        return True
    return symbols(lhs) == symbols(rhs) and _meet(lhs, rhs)


def _meet(lhs: Dim, rhs: Dim) -> bool:
    """Whether sizes of the same symbols are equal and more than 1 somewhere, found by trying: with all symbols alike,
    in what their bounds allow."""
    names = symbols(lhs)
    for size in (*range(2, 130), *(1 << power for power in range(8, 15))):
        values = {item.name: max(item.lo, size if item.hi is None else min(size, item.hi)) for item in names}
        found = evaluate(lhs, values)
        if found > 1 and found == evaluate(rhs, values):
            return True
    return False


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
    """For each axis of an operand with `dims` the loop of the space `out` that it follows; None where its size 1
    repeats.

    Raises NoNativeLowering where only the run tells which (`spread` makes such an operand follow).

    >>> loops_of((1, 4), (2, 3, 4))
    [None, 2]
    """
    offset = len(out) - len(dims)
    for axis, size in enumerate(dims):
        if may_repeat(size, out[offset + axis]):
            raise NoNativeLowering("symbolic-broadcast", f"{to_text(size)} against {to_text(out[offset + axis])}")
    return [None if size == 1 and out[offset + axis] != 1 else offset + axis for axis, size in enumerate(dims)]
