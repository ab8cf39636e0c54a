"""Coordinates of tensor elements, one per lane: affine in the lane, any vector, or delinearized from another
coordinate, which is divided when it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, Generic, TypeAlias, TypeVar

from fuseline.ir.dim import Dim, upper_bound
from fuseline.targets.cpu.kernel_ir.types import Loop, Operand, Value


class Index:
    """A coordinate per lane: `base + stride * lane`, or `vector` (i64 lanes) where it is not affine. Stride 0: the same
    in every lane."""

    __slots__ = ("base", "stride", "vector")

    def __init__(self, base: Operand, stride: int = 0, vector: Value | None = None) -> None:
        self.base, self.stride, self.vector = base, stride, vector

    @property
    def uniform(self) -> bool:
        """Whether all lanes agree."""
        return self.stride == 0 and self.vector is None

    @property
    def key(self) -> Any:
        """Equal for equal coordinates."""
        return (self.base, self.stride, self.vector)


Whole = TypeVar("Whole")
"""What is delinearized: a coordinate of lanes (`AnyIndex`), or one that is yet to be given them."""


@dataclass(frozen=True, slots=True)
class DelinearizedIndex(Generic[Whole]):
    """Coordinate `position` of `whole` delinearized over `sizes` (row-major): what expanding a dimension makes of a
    coordinate, divided only where it must be."""

    whole: Whole
    sizes: tuple[Dim, ...]
    position: int

    @property
    def uniform(self: DelinearizedIndex[AnyIndex]) -> bool:
        """Whether all lanes agree."""
        return self.whole.uniform

    @property
    def key(self: DelinearizedIndex[AnyIndex]) -> Any:
        """Equal for equal coordinates."""
        return (self.whole.key, self.sizes, self.position)


AnyIndex: TypeAlias = "Index | DelinearizedIndex[AnyIndex]"


def as_index(x: AnyIndex | Operand) -> AnyIndex:
    """An operand as the coordinate of all lanes."""
    return x if isinstance(x, Index | DelinearizedIndex) else Index(x)


def point_at(rank: int, places: Mapping[int, AnyIndex | Operand]) -> list[AnyIndex]:
    """A point of `rank` loops: at the `places` of those that have one, the others at 0.

    >>> [index.base for index in point_at(3, {1: 7})]
    [0, 7, 0]
    """
    return [as_index(places.get(loop, 0)) for loop in range(rank)]


def multiple_of(operand: Operand, limit: int = 1 << 20) -> int:
    """A number that surely divides `operand` (0 is divisible by anything: `limit`)."""
    if isinstance(operand, int):
        return gcd(operand, limit)
    if operand.op == "mul":
        return gcd(multiple_of(operand.args[0], limit) * multiple_of(operand.args[1], limit), limit)
    if operand.op in ("add", "sub", "min", "max"):
        return gcd(multiple_of(operand.args[0], limit), multiple_of(operand.args[1], limit))
    if operand.op == "index" and isinstance(operand.attr, Loop):
        return gcd(multiple_of(operand.attr.lo, limit), gcd(operand.attr.step, limit))
    return 1


def stays_in_run(whole: Index, innermost: Dim, lanes: int) -> bool:
    """Whether consecutive coordinates never cross from one run of the innermost dimension to the next within a
    vector."""
    if whole.vector is not None or whole.stride != 1 or not isinstance(innermost, int):
        return False
    return innermost % lanes == 0 and multiple_of(whole.base) % lanes == 0


def whole_split(index: Sequence[AnyIndex], dims: Sequence[Dim], at: int) -> int:
    """How many coordinates from `at` on are all that one linear index delinearizes to over these very sizes; 0 if they
    are not.

    The first size may differ (a box of a larger tensor): no coordinate counts in it.
    """
    first = index[at]
    if not isinstance(first, DelinearizedIndex) or first.position != 0:
        return 0
    count = len(first.sizes)
    digits = index[at : at + count]
    same = all(
        isinstance(d, DelinearizedIndex) and d.position == i and d.whole.key == first.whole.key
        for i, d in enumerate(digits)
    )
    return count if same and len(digits) == count and tuple(dims[at + 1 : at + count]) == first.sizes[1:] else 0


def static_upper_bound(dims: Sequence[Dim]) -> int | None:
    """The largest number of elements `dims` can mean; None where a size is unbounded."""
    total = 1
    for dim in dims:
        bound = upper_bound(dim)
        if bound is None:
            return None
        total *= bound
    return total
