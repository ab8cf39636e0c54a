"""Who is who in a softmax and the product behind it, however they are named: ops, nodes, members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True)
class SoftmaxRoles(Generic[T]):
    """One softmax, as `analysis/online_softmax.py` has it.

    Attributes:
        maximum, total: what reduces the scores and their exponentials.
        exponentials: what lies from the difference to the exponential, in order.
        product: the contraction that sums up the weights.
    """

    maximum: T
    exponentials: tuple[T, ...]
    total: T
    product: T

    @property
    def reductions(self) -> tuple[T, T, T]:
        """What reduces along the streamed loop."""
        return self.maximum, self.total, self.product

    @property
    def all(self) -> tuple[T, ...]:
        """Everybody, in order."""
        return (self.maximum, *self.exponentials, self.total, self.product)

    def mapped(self, name: Callable[[T], S]) -> SoftmaxRoles[S]:
        """The same softmax where they are named otherwise."""
        return SoftmaxRoles(
            name(self.maximum), tuple(name(one) for one in self.exponentials), name(self.total), name(self.product)
        )
