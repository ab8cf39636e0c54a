"""NumPy's broadcasting on sizes that may be symbolic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.meant_sizes import taken_equal
from fuseline.frontends.onnx.tensors import NoNativeLowering
from fuseline.ir.dim import Dim, maximum, minimum, mul, to_text

TookEqual: TypeAlias = Callable[[Dim, Dim], None]


def broadcast_dim(lhs: Dim, rhs: Dim, *, literal: bool = False) -> Dim:
    """The size that two sizes broadcast to. Symbolic ones that the model must mean to be equal count as such: the pass
    `require-equal-sizes` makes the program check it. Of others either may be 1 when the program runs (`may_repeat`);
    the answer is the larger one, or 0 where one is 0.

    `literal`: nothing is taken to be equal that may be 1 against another size.

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
    if taken_equal(lhs, rhs, literal=literal):
        return _plainer(lhs, rhs)
    if 0 in (lhs, rhs):
        raise NoNativeLowering("symbolic-broadcast", f"{to_text(lhs)} against {to_text(rhs)}")
    fixed = [size for size in (lhs, rhs) if isinstance(size, int)]
    return fixed[0] if fixed else mul(maximum(lhs, rhs), minimum(minimum(lhs, rhs), 1))


def may_repeat(size: Dim, out: Dim, *, literal: bool = False) -> bool:
    """Whether only the run tells if `size` is `out`, or 1 and repeats along it (`literal`: see `broadcast_dim`)."""
    return size not in (1, out) and not isinstance(size, int) and not taken_equal(size, out, literal=literal)


class Broadcasting:
    """The broadcasting of one program: what has been broadcast to a size broadcasts to it again.

    `literal`: see `broadcast_dim`.
    """

    def __init__(self, *, literal: bool = False) -> None:
        self.literal = literal
        self._operand_sizes: dict[Dim, frozenset[Dim]] = {}

    def dim(self, lhs: Dim, rhs: Dim, took_equal: TookEqual) -> Dim:
        """The size that two sizes broadcast to; `took_equal` is told of two that are taken to be equal. Raises like
        `broadcast_dim`."""
        for operand, whole in ((lhs, rhs), (rhs, lhs)):
            if operand in self._operand_sizes.get(whole, ()):
                return whole
        out = broadcast_dim(lhs, rhs, literal=self.literal)
        if lhs != rhs and 1 not in (lhs, rhs) and taken_equal(lhs, rhs, literal=self.literal):
            took_equal(lhs, rhs)
        if out not in (lhs, rhs):
            self._operand_sizes[out] = frozenset((lhs, rhs)).union(
                *(self._operand_sizes.get(size, ()) for size in (lhs, rhs))
            )
        return out

    def may_repeat(self, size: Dim, out: Dim) -> bool:
        """See the function of this name."""
        return may_repeat(size, out, literal=self.literal)

    def dims(self, shapes: Iterable[Sequence[Dim]], took_equal: TookEqual) -> tuple[Dim, ...]:
        """The sizes that all `shapes` broadcast to, aligned at the last dimension; see `dim`."""
        shapes = list(shapes)
        rank = max((len(shape) for shape in shapes), default=0)
        out: list[Dim] = [1] * rank
        for shape in shapes:
            offset = rank - len(shape)
            for axis, size in enumerate(shape):
                out[offset + axis] = self.dim(out[offset + axis], size, took_equal)
        return tuple(out)


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
