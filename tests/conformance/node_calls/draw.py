"""What the strategies of all operators are made of: one random draw for one operator, version and choice of types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import defs

Array = NDArray[Any]
DType = np.dtype[Any]
WORDS = ("", "a", "b", "fuse", "line", "A b", "é", "12", "-3.5")


@dataclass(frozen=True)
class Call:
    """One node with its inputs (None: left out; a list: a sequence). `places` are inputs that the operator takes as
    shapes, axes and the like."""

    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: int | Sequence[str] = 1


@dataclass(frozen=True)
class Draw:
    """One random draw. `dtypes` is what each type variable of the schema stands for."""

    rng: np.random.Generator
    schema: defs.OpSchema
    opset: int
    dtypes: Mapping[str, DType]

    # -- choices -------------------------------------------------------------------------------------------------------

    def chance(self, share: float = 0.5) -> bool:
        """True in this share of all draws."""
        return bool(self.rng.random() < share)

    def whole(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def one_of(self, *items: Any) -> Any:
        """One of the items."""
        return items[self.whole(0, len(items) - 1)]

    def number(self, low: float = -2.0, high: float = 2.0) -> float:
        """A float that float32 holds."""
        return float(np.float32(self.rng.uniform(low, high)))

    def some(self, **attributes: Any) -> dict[str, Any]:
        """A random part of the attributes; None is never given."""
        return {name: value for name, value in attributes.items() if value is not None and self.chance(0.6)}

    def axis(self, rank: int) -> int:
        """An axis, counted from either end."""
        return self.whole(-rank, rank - 1)

    def axes(self, rank: int, least: int = 1) -> list[int]:
        """Distinct axes, each counted from either end."""
        chosen = self.rng.permutation(rank)[: self.whole(min(least, rank), rank)]
        return [int(axis) - (rank if self.chance(0.3) else 0) for axis in sorted(chosen)]

    # -- arrays --------------------------------------------------------------------------------------------------------

    def dtype(self, place: int = 0) -> DType:
        """The element type of a formal input."""
        formal = self.schema.inputs[min(place, len(self.schema.inputs) - 1)]
        return self.dtypes.get(formal.type_str) or NAMED.get(
            formal.type_str.removeprefix("tensor(").removesuffix(")"), np.dtype(np.float32)
        )

    def holds_words(self, place: int = 0) -> bool:
        """Whether a formal input is of strings."""
        return self.dtype(place).kind == "O"

    def sizes(self, low: int = 1, high: int = 4, most: int = 5) -> tuple[int, ...]:
        """A shape of `low` to `high` dimensions."""
        return tuple(self.whole(1, most) for _ in range(self.whole(low, high)))

    def values(self, sizes: Sequence[int], dtype: Any = None, place: int = 0, scale: float = 1.0) -> Array:
        """Random elements of every sign, a few of them whole or zero; words where the type is string."""
        kind = np.dtype(dtype) if dtype is not None else self.dtype(place)
        if kind.kind == "O":
            return self.words(sizes)
        if kind.kind == "b":
            return np.asarray(self.rng.random(sizes) < 0.5)
        if kind.kind in "iu":
            return np.asarray(self.rng.integers(-9 if kind.kind == "i" else 0, 10, sizes), kind)
        drawn = self.rng.standard_normal(sizes) * 2 * scale
        return np.where(self.rng.random(sizes) < 0.2, np.rint(drawn), drawn).astype(kind)

    def positive(self, sizes: Sequence[int], dtype: Any = None, place: int = 0) -> Array:
        """Random elements that are not 0 and have no sign."""
        kind = np.dtype(dtype) if dtype is not None else self.dtype(place)
        if kind.kind in "iu":
            return np.asarray(self.rng.integers(1, 10, sizes), kind)
        return (np.abs(self.rng.standard_normal(sizes)) + 0.25).astype(kind)

    def distinct(self, sizes: Sequence[int], place: int = 0) -> Array:
        """Elements that differ, for operators that order them."""
        kind, count = self.dtype(place), int(np.prod(sizes))
        order = self.rng.permutation(count).reshape(tuple(sizes))
        return (order if kind.kind in "ub" else order - count // 2).astype(kind)

    def extreme(self, x: Array) -> Array:
        """`x` with some elements that are not finite, or as large as the type has."""
        special = (
            [np.nan, np.inf, -np.inf, -0.0]
            if x.dtype.kind == "f"
            else [np.iinfo(x.dtype).max, np.iinfo(x.dtype).min]
            if x.dtype.kind in "iu"
            else []
        )
        if not special:
            return x
        chosen = np.array(special, x.dtype)[self.rng.integers(0, len(special), x.shape)]
        return np.where(self.rng.random(x.shape) < 0.3, chosen, x)

    def words(self, sizes: Sequence[int]) -> Array:
        """Random strings."""
        out = np.empty(int(np.prod(sizes)), object)
        out[:] = [WORDS[i] for i in self.rng.integers(0, len(WORDS), out.size)]
        return out.reshape(tuple(sizes))

    def integers(self, values: Sequence[int], dtype: Any = np.int64) -> Array:
        """A vector."""
        return np.array(list(values), dtype)

    def broadcast(self, count: int) -> list[tuple[int, ...]]:
        """Shapes that broadcast together."""
        whole = self.sizes(0, 4, 4)
        return (
            [whole, *(self.part_of(whole) for _ in range(count - 1))]
            if self.chance(0.7)
            else [self.part_of(whole) for _ in range(count)]
        )

    def part_of(self, whole: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to `whole`."""
        return tuple(
            1 if self.chance(0.25) else size for size in whole[self.whole(0, len(whole)) if self.chance(0.4) else 0 :]
        )

    # -- versions ------------------------------------------------------------------------------------------------------

    def before(self, version: int) -> bool:
        """Whether the operator set is an older one."""
        return self.opset < version


NAMED: dict[str, DType] = {
    **{
        name: np.dtype(name)
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bool")
    },
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "string": np.dtype(object),
}
"""The element types that are drawn, as schemas name them."""

Strategy: TypeAlias = Callable[[Draw], Call]
STRATEGIES: dict[tuple[str, str], Strategy] = {}


def calls(*names: str, domain: str = "") -> Callable[[Strategy], Strategy]:
    """Register a strategy for operators."""

    def register(strategy: Strategy) -> Strategy:
        for name in names:
            if (domain, name) in STRATEGIES:
                raise KeyError(name)
            STRATEGIES[domain, name] = strategy
        return strategy

    return register
