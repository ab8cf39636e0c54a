"""Programs that read through random affine maps, with sizes that only a run tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LOOPS = "ijk"
SIZES = (1, 2, 3, 5, 8, 17)

PROGRAM = """func.func @main(%x: tensor<{x}xf32>, %l: tensor<{l}xf32>) -> tensor<{out}xf32> {{
  %z = arith.constant 0.0 : f32
{dims}  %e = tensor.empty({named}) : tensor<{out}xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<{out}xf32>) -> tensor<{out}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({places})>, affine_map<({loops}) -> ({loops})>,
      affine_map<({loops}) -> ({kept})>],
      iterator_types = [{iterators}]}} ins(%x, %l : tensor<{x}xf32>, tensor<{l}xf32>) outs(%f : tensor<{out}xf32>) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  }} -> tensor<{out}xf32>
  return %r : tensor<{out}xf32>
}}"""


class Reading(NamedTuple):
    """A program that reads `x` through a map, one place per axis, in loops as many and as long as `l` has axes; it sums
    over some of them."""

    text: str
    places: tuple[str, ...]
    loops: str


def random_reading(rng: np.random.Generator) -> Reading:
    """A random program: one or two axes of `x`, two or three loops, most sizes unknown."""
    loops = LOOPS[: int(rng.integers(2, 4))]
    places = tuple(_place(rng, loops) for _ in range(int(rng.integers(1, 3))))
    kept = loops[: int(rng.integers(1, len(loops) + 1))]
    dims = "".join(
        f"  %c{i} = arith.constant {i} : index\n  %n{i} = tensor.dim %l, %c{i} : tensor<{_sizes(loops)}xf32>\n"
        for i in range(len(kept))
    )
    parts = {
        "x": _sizes(places),
        "l": _sizes(loops),
        "out": _sizes(kept),
        "dims": dims,
        "named": ", ".join(f"%n{i}" for i in range(len(kept))),
        "loops": ", ".join(loops),
        "places": ", ".join(places),
        "kept": ", ".join(kept),
        "iterators": ", ".join('"parallel"' if loop in kept else '"reduction"' for loop in loops),
    }
    return Reading(PROGRAM.format(**parts), places, loops)


def _sizes(axes: Sequence[str]) -> str:
    return "x".join("?" for _ in axes)


def _place(rng: np.random.Generator, loops: str) -> str:
    """A sum of a loop or two with small factors, perhaps divided, perhaps shifted."""
    chosen = rng.permutation(list(loops))[: int(rng.integers(1, 3))]
    text = " + ".join(f"{loop} * {rng.choice([1, 1, 1, 2, 3, -1])}" for loop in chosen)
    if rng.random() < 0.4:
        text = f"({text} + {rng.integers(-3, 4)}) {rng.choice(['floordiv', 'ceildiv', 'mod'])} {rng.integers(1, 6)}"
    return f"{text} + {rng.choice([0, 0, 0, 1, 2, 5])}"


def feeds(rng: np.random.Generator, reading: Reading) -> dict[str, NDArray[Any]]:
    """Random arrays; `x` is about as large as what is read of it, often a little too small."""
    extents = [int(rng.choice(SIZES)) for _ in reading.loops]
    ends = [_last(place, dict(zip(reading.loops, extents, strict=True))) for place in reading.places]
    shape = [max(1, end + int(rng.choice([0, 1, 1, 1, 2, 9]))) for end in ends]
    return {"x": rng.standard_normal(shape, dtype=np.float32), "l": rng.standard_normal(extents, dtype=np.float32)}


def _last(place: str, extents: dict[str, int]) -> int:
    """The greatest value of a place."""
    loops = dict(zip(extents, np.indices(list(extents.values())), strict=True))
    numerator, _, divided = place.partition(") ")
    if not divided:
        return int(np.max(eval(place, {}, loops)))
    kind, divisor, _, shift = divided.split()
    value = eval(numerator + ")", {}, loops)
    by = {"floordiv": lambda a, b: a // b, "ceildiv": lambda a, b: -(-a // b), "mod": lambda a, b: a % b}[kind]
    return int(np.max(by(value, int(divisor)))) + int(shift)
