"""Random dispatches: chains of elementwise ops, reductions, transposes, pads, slices, concats and reshapes with several
results."""

from __future__ import annotations

import numpy as np
import pytest

from .generics import empty, fill, function, generic, tensor
from .texts import check

BINARY = ["arith.addf %i0, %i1", "arith.subf %i0, %i1", "arith.mulf %i0, %i1", "arith.maximumf %i0, %i1"]
UNARY = ["math.tanh %i0", "arith.negf %i0", "math.sin %i0", "math.absf %i0"]
COMBINE = [
    ("arith.addf %o0, %i0", "0.0"),
    ("arith.maximumf %o0, %i0", "0xFF800000"),
    ("arith.minimumf %i0, %o0", "0x7F800000"),
]


class Maker:
    """Writes a dispatch over named dimensions; a value is `(name, dimension names)`."""

    def __init__(self, seed: int, *, dynamic: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        choices = [1, 2, 3, 5, 8, 9, 16, 19, 33]
        self.sizes = {name: int(self.rng.choice(choices)) for name in "abc"}
        self.dynamic = {name for name in "abc" if dynamic and self.rng.random() < 0.5}
        self.lines: list[str] = []
        self.count = 0
        self.arguments = [
            (f"x{i}", self._dims(1 + int(self.rng.integers(3)))) for i in range(1 + int(self.rng.integers(3)))
        ]
        self.values = list(self.arguments)

    def _dims(self, count: int) -> tuple[str, ...]:
        return tuple(self.rng.permutation(list("abc"))[:count])

    def shape(self, dims: tuple[str, ...]) -> tuple[int | str, ...]:
        """Sizes, or the names of those that are only known at run time."""
        return tuple(name if name in self.dynamic else self.size(name) for name in dims)

    def size(self, name: str) -> int:
        """The size of a dimension; derived ones (padded, sliced, merged) have a number in their name's place."""
        return self.sizes[name] if name in self.sizes else int(name)

    def fresh(self) -> str:
        """A new value name."""
        self.count += 1
        return f"v{self.count}"

    def pick(self) -> tuple[str, tuple[str, ...]]:
        """A value made so far; late ones are likelier."""
        return self.values[-1 - int(min(self.rng.exponential(1.2), len(self.values) - 1))]

    def step(self) -> None:
        """One more op."""
        kinds = [
            self.elementwise,
            self.elementwise,
            self.unary,
            self.reduce,
            self.transpose,
            self.concat,
            self.pad,
            self.slice,
            self.merge,
        ]
        kinds[int(self.rng.integers(len(kinds)))]()

    def _generic(
        self,
        inputs: list[tuple[str, tuple[str, ...]]],
        out: tuple[str, ...],
        reduced: tuple[str, ...],
        body: str,
        start: str | None,
    ) -> None:
        name, loops = self.fresh(), [*out, *reduced]
        place = {dim: f"d{i}" for i, dim in enumerate(loops)}
        maps = [", ".join(place[d] for d in dims) for _, dims in (*inputs, ("", out))]
        init = f"init{self.count}"
        self.lines.append(empty(init, self.shape(out)) if start is None else fill(init, start, self.shape(out)))
        operands = [(f"%{v}", tensor(self.shape(dims))) for v, dims in inputs]
        kinds = "p" * len(out) + "r" * len(reduced)
        self.lines.append(
            generic(
                f"%{name}",
                operands,
                [(f"%{init}", tensor(self.shape(out)))],
                maps,
                kinds,
                f"%s{name} = {body} : f32",
                [(f"%s{name}", "f32")],
            )
        )
        self.values.append((name, out))

    def elementwise(self) -> None:
        """Two values, broadcast against each other in a random order of dimensions."""
        a, b = self.pick(), self.pick()
        union = list(dict.fromkeys((*a[1], *b[1])))
        if len(union) <= 4:
            out = tuple(self.rng.permutation(union)) if self.rng.random() < 0.3 else tuple(union)
            self._generic([a, b], out, (), str(self.rng.choice(BINARY)), None)

    def unary(self) -> None:
        """One value."""
        a = self.pick()
        self._generic([a], a[1], (), str(self.rng.choice(UNARY)), None)

    def transpose(self) -> None:
        """A value in another order."""
        a = self.pick()
        self._generic([a], tuple(self.rng.permutation(list(a[1]))), (), "arith.negf %i0", None)

    def reduce(self) -> None:
        """Some dimensions folded."""
        a = self.pick()
        if a[1]:
            kept = tuple(d for d in a[1] if self.rng.random() < 0.5)
            gone = tuple(d for d in a[1] if d not in kept)
            if gone:
                body, start = COMBINE[int(self.rng.integers(len(COMBINE)))]
                self._generic([a], kept, gone, body, start)

    def _static(self) -> tuple[str, tuple[str, ...]] | None:
        a = self.pick()
        return a if a[1] and not set(a[1]) & self.dynamic else None

    def _derived(self, dims: tuple[str, ...], axis: int, size: int) -> tuple[str, ...]:
        return (*dims[:axis], str(size), *dims[axis + 1 :])

    def _moved(self, text: str, source: tuple[str, tuple[str, ...]], out: tuple[str, ...], arrow: str = "to") -> None:
        if len(set(out)) == len(out):
            name = self.fresh()
            types = f"{tensor(self.shape(source[1]))} {arrow} {tensor(self.shape(out))}"
            self.lines.append(f"%{name} = {text} : {types}")
            self.values.append((name, out))

    def pad(self) -> None:
        """A border along one dimension."""
        a = self._static()
        if a is not None:
            axis, low, high = int(self.rng.integers(len(a[1]))), int(self.rng.integers(4)), int(self.rng.integers(4))
            out = self._derived(a[1], axis, self.size(a[1][axis]) + low + high)
            lows, highs = ([str(n if i == axis else 0) for i in range(len(a[1]))] for n in (low, high))
            indices = ", ".join(f"%q{i}: index" for i in range(len(a[1])))
            self.lines.append(f"%b{self.count + 1} = arith.constant 0.25 : f32")
            body = f"^bb0({indices}):\ntensor.yield %b{self.count + 1} : f32\n"
            self._moved(f"tensor.pad %{a[0]} low[{', '.join(lows)}] high[{', '.join(highs)}] {{\n{body}}}", a, out)

    def slice(self) -> None:
        """A strided part along one dimension."""
        a = self._static()
        if a is not None:
            axis = int(self.rng.integers(len(a[1])))
            size = self.size(a[1][axis])
            offset, stride = int(self.rng.integers(size)), 1 + int(self.rng.integers(2))
            count = (size - offset + stride - 1) // stride
            columns = [(offset, count, stride) if i == axis else (0, self.size(d), 1) for i, d in enumerate(a[1])]
            parts = "".join("[" + ", ".join(str(c[k]) for c in columns) + "] " for k in range(3))
            self._moved(f"tensor.extract_slice %{a[0]}{parts.rstrip()}", a, self._derived(a[1], axis, count))

    def concat(self) -> None:
        """A value after itself."""
        a = self._static()
        if a is not None:
            axis = int(self.rng.integers(len(a[1])))
            out = self._derived(a[1], axis, 2 * self.size(a[1][axis]))
            if len(set(out)) == len(out):
                name, t = self.fresh(), tensor(self.shape(a[1]))
                self.lines.append(
                    f"%{name} = tensor.concat dim({axis}) %{a[0]}, %{a[0]} : ({t}, {t}) -> {tensor(self.shape(out))}"
                )
                self.values.append((name, out))

    def merge(self) -> None:
        """The last two dimensions as one."""
        a = self._static()
        if a is not None and len(a[1]) > 1:
            groups = [[i] for i in range(len(a[1]) - 2)] + [[len(a[1]) - 2, len(a[1]) - 1]]
            out = (*a[1][:-2], str(self.size(a[1][-2]) * self.size(a[1][-1])))
            self._moved(f"tensor.collapse_shape %{a[0]} {groups}", a, out, "into")

    def text(self) -> str:
        """The function; its results are the last value and sometimes another one."""
        for _ in range(2 + int(self.rng.integers(6))):
            self.step()
        chosen = [self.values[-1]]
        if self.rng.random() < 0.5 and len(self.values) > 1:
            chosen.append(self.values[-2])
        results = [(f"%{name}", tensor(self.shape(dims))) for name, dims in chosen]
        arguments = [(name, self.shape(dims), "f32") for name, dims in self.arguments]
        used = sorted({s for _, dims in self.values for s in self.shape(dims) if isinstance(s, str)})
        return function(arguments, used, "\n".join(self.lines), results)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("dynamic", [False, True])
def test_random_dispatch(seed: int, dynamic: bool) -> None:
    maker = Maker(seed, dynamic=dynamic)
    check(maker.text(), sizes={name: maker.sizes[name] for name in maker.dynamic}, seed=seed, bits=14, compiled=True)
