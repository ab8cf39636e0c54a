"""A program of linalg and tensor ops as it grows: values with sizes that are known or not, arguments with what to feed
them, lines of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Size = int | str


NUMPY = {"f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32}


SIZES = (1, 2, 3, 4, 5, 6, 8, 9, 16, 17, 32, 33)


MOST_ELEMENTS = 20000


LARGEST = 8


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value of the program: `dtype` is f32, f16, i64 or i32."""

    name: str
    dims: tuple[Size, ...]
    dtype: str = "f32"

    @property
    def type(self) -> str:
        """In MLIR's spelling."""
        return f"tensor<{''.join(f'{size}x' if isinstance(size, int) else '?x' for size in self.dims)}{self.dtype}>"


@dataclass
class Program:
    """A program as it grows. `extents`: what the unknown sizes are in a run."""

    rng: np.random.Generator
    arguments: list[Tensor] = field(default_factory=list[Tensor])
    values: list[Tensor] = field(default_factory=list[Tensor])
    lines: list[str] = field(default_factory=list[str])
    extents: dict[str, int] = field(default_factory=dict[str, int])
    feeds: dict[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    count: int = 0

    # what a program is made of ----------------------------------------------------------------------------------------

    def name(self, prefix: str = "v") -> str:
        """A new name."""
        self.count += 1
        return f"%{prefix}{self.count}"

    def say(self, line: str) -> None:
        """The next line."""
        self.lines.append(line)

    def number(self, value: int) -> str:
        """A constant of type `index`."""
        made = self.name("c")
        self.say(f"{made} = arith.constant {value} : index")
        return made

    def constant(self, value: int, dtype: str) -> str:
        """A constant of an element type."""
        made = self.name("k")
        self.say(f"{made} = arith.constant {f'{value}.0' if dtype[0] == 'f' else value} : {dtype}")
        return made

    def size(self, size: Size) -> int:
        """What a size is in a run."""
        return size if isinstance(size, int) else self.extents[size]

    def elements(self, dims: Sequence[Size]) -> int:
        """How many elements a tensor has in a run."""
        return prod(map(self.size, dims))

    def argument(self, sizes: Sequence[int], dtype: str, unknown: float = 0.0) -> Tensor:
        """A new argument of random numbers; a share of its sizes is unknown."""
        dims: list[Size] = ["?" if self.chance(unknown) else size for size in sizes]
        made = Tensor(f"%a{len(self.arguments)}", tuple(dims), dtype)
        self.arguments.append(made)
        self.feeds[made.name[1:]] = self.rng.integers(-3, 4, tuple(sizes)).astype(NUMPY[dtype])
        return self.add(self.named(made, sizes))

    def named(self, tensor: Tensor, sizes: Sequence[int]) -> Tensor:
        """`tensor` (with sizes `?`) with names for its unknown sizes, which are `sizes`."""
        dims: list[Size] = []
        for axis, (size, extent) in enumerate(zip(tensor.dims, sizes, strict=True)):
            if size == "?":
                at, size = self.number(axis), self.name("n")
                self.say(f"{size} = tensor.dim {tensor.name}, {at} : {tensor.type}")
                self.extents[size] = extent
            dims.append(size)
        return Tensor(tensor.name, tuple(dims), tensor.dtype)

    def empty(self, dims: Sequence[Size], dtype: str) -> Tensor:
        """`tensor.empty`."""
        made = Tensor(self.name("e"), tuple(dims), dtype)
        self.say(f"{made.name} = tensor.empty({', '.join(n for n in dims if isinstance(n, str))}) : {made.type}")
        return made

    def fill(self, dims: Sequence[Size], dtype: str, value: int) -> Tensor:
        """`linalg.fill`."""
        start, scalar = self.empty(dims, dtype), self.constant(value, dtype)
        made = Tensor(self.name("f"), tuple(dims), dtype)
        self.say(f"{made.name} = linalg.fill ins({scalar} : {dtype}) outs({start.name} : {start.type}) -> {made.type}")
        return made

    def add(self, tensor: Tensor) -> Tensor:
        """Let later ops read `tensor`."""
        self.values.append(tensor)
        return tensor

    def pick(self, wanted: Callable[[Tensor], bool] = lambda _: True) -> Tensor | None:
        """A value, late ones rather than early ones."""
        found = [value for value in self.values if wanted(value)]
        if not found:
            return None
        return found[-1] if self.rng.random() < 0.5 else found[int(self.rng.integers(len(found)))]

    def chance(self, share: float) -> bool:
        """Whether it happens."""
        return bool(self.rng.random() < share)

    def any(self, items: Sequence[Any]) -> Any:
        """One of them."""
        return items[int(self.rng.integers(len(items)))]
