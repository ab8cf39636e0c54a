"""Index arithmetic with two meanings: kernels over nests of loops for the bounds checker, and enumeration on ints to
compare with.

An index is a function of an algebra and of loop values. A kernel builder as the algebra makes code of it, `Numbers`
makes ints.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import Problem, check_bounds
from fuseline.targets.cpu.kernel_ir.types import BITS, Value

AVX2 = machine("avx2")
SIZES = (11, 0, 3)
Index = Callable[..., Any]
_SIGNED: dict[str, Callable[[int, int], bool]] = {
    "lt": int.__lt__,
    "le": int.__le__,
    "gt": int.__gt__,
    "ge": int.__ge__,
    "eq": int.__eq__,
    "ne": int.__ne__,
}


def wrapped(number: int, dtype: str) -> int:
    """What is left of `number` in an integer of that type."""
    half = 2 ** (BITS[dtype] - 1)
    return (number + half) % (2 * half) - half


class Numbers:
    """What the builder's index arithmetic means, on ints."""

    min, max = staticmethod(min), staticmethod(max)
    add, sub = staticmethod(operator.add), staticmethod(operator.sub)
    mul, bitand = staticmethod(operator.mul), staticmethod(operator.and_)

    def div(self, a: int, b: int) -> int:
        """Of the same bits as numbers that are never negative."""
        return wrapped(a % 2**64 // (b % 2**64), "i64")

    def rem(self, a: int, b: int) -> int:
        """As `div`."""
        return wrapped(a % 2**64 % (b % 2**64), "i64")

    def narrow(self, a: int, dtype: str) -> int:
        """`a` in fewer bits, and back."""
        return wrapped(a, dtype)

    def narrow_sum(self, a: int, b: int, dtype: str) -> int:
        """The sum in fewer bits."""
        return wrapped(a + b, dtype)

    def unsigned(self, a: int, dtype: str) -> int:
        """The lowest bits."""
        return a % 2 ** BITS[dtype]

    def select(self, condition: bool, a: int, b: int) -> int:
        return a if condition else b

    def compare(self, predicate: str, a: int, b: int) -> bool:
        if predicate in _SIGNED:
            return _SIGNED[predicate](a, b)
        return {"ult": int.__lt__, "uge": int.__ge__}[predicate](a % 2**64, b % 2**64)

    def both(self, a: bool, b: bool) -> bool:
        return a and b

    def size(self, i: int) -> int:
        return SIZES[i]


class Builder(KernelBuilder):
    """A kernel builder with names for the conjunction of conditions and for arithmetic in fewer bits."""

    def both(self, a: Value, b: Value) -> Value:
        return self.bitand(a, b)

    def div(self, a: Any, b: Any) -> Any:
        """Negative numbers are not folded: by its contract the builder need not know what becomes of them."""
        return self._binary("udiv", a, b) if isinstance(a, int) and a < 0 else super().div(a, b)

    def rem(self, a: Any, b: Any) -> Any:
        """As `div`."""
        return self._binary("urem", a, b) if isinstance(a, int) and a < 0 else super().rem(a, b)

    def narrow(self, a: Any, dtype: str) -> Any:
        return self.cast(self.cast(self.as_value(a), dtype), "i64")

    def narrow_sum(self, a: Any, b: Any, dtype: str) -> Any:
        return self.cast(self.add(*(self.cast(self.as_value(part), dtype) for part in (a, b))), "i64")

    def unsigned(self, a: Any, dtype: str) -> Any:
        return self.cast(self.cast(self.as_value(a), dtype), "i64", unsigned=True)


class Nest(NamedTuple):
    """Loops from outer to inner, each `(lo, hi, step)` of what lies around it, and a condition on the innermost
    body."""

    loops: Sequence[Callable[..., tuple[Any, Any, int]]]
    condition: Index | None = None
    branch: bool = True


def loops(*bounds: tuple[int, int, int]) -> Nest:
    """A nest of loops with fixed ends."""
    return Nest([lambda o, *_, b=b: b for b in bounds])


def points(nest: Nest, outer: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """The iterations that reach the access."""
    o = Numbers()
    if len(outer) < len(nest.loops):
        for i in range(*nest.loops[len(outer)](o, *outer)):
            yield from points(nest, (*outer, i))
    elif nest.condition is None or nest.condition(o, *outer) is nest.branch:
        yield outer


def extremes(nest: Nest, index: Index) -> tuple[int, int]:
    """The least and the greatest element that is read."""
    found = [index(Numbers(), *point) for point in points(nest)]
    return min(found), max(found)


def problems(nest: Nest, index: Index, extent: int, shift: int = 0) -> list[Problem]:
    """What is not proved of reading element `index - shift` of `extent` at every point."""
    k = Builder("kernel", AVX2)
    for i in range(len(SIZES)):
        k.size(i)
    memory = k.binding(0, "f32", extent)

    def read(*point: Any) -> None:
        k.load(memory, k.sub(index(k, *point), shift))

    def body(*point: Any) -> None:
        if len(point) < len(nest.loops):
            k.loop(*nest.loops[len(point)](k, *point), lambda i: body(*point, i))
        elif nest.condition is None:
            read(*point)
        else:
            then, otherwise = (lambda: read(*point)), (lambda: None)
            k.when(nest.condition(k, *point), *((then, otherwise) if nest.branch else (otherwise, then)))

    body()
    return check_bounds(k.finish(), SIZES)


def upper_is_tight(nest: Nest, index: Index, high: int, low: int) -> None:
    """A buffer that ends behind `high` holds every access, one element less does not."""
    below = [p for p in problems(nest, index, high - low + 1, low) if "lies before" in p.detail]
    assert not below
    (problem,) = (p for p in problems(nest, index, high - low, low) if "lies before" in p.detail)
    assert (problem.operation, problem.buffer) == ("load", "b0")
    assert problem.detail.endswith(f"lies before {high - low}")


def lower_is_tight(nest: Nest, index: Index, low: int) -> None:
    """A buffer that starts at `low` holds every access, one element later does not."""
    assert not [p for p in problems(nest, index, 10**6, low) if "is not negative" in p.detail]
    (problem,) = problems(nest, index, 10**6, low + 1)
    assert (problem.operation, problem.buffer) == ("load", "b0")
    assert "is not negative" in problem.detail
