"""Random programs of linalg and tensor ops on small whole numbers: nothing rounds, so that every program that is right
gives the same bits."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.programs.folds import fold, window
from tests.programs.moves import collapsed, expanded, inserted, joined, moving_slice, padded, sliced, transposed
from tests.programs.named import named
from tests.programs.points import elementwise, gather, settled
from tests.programs.products import convolution, product
from tests.programs.program import MOST_ELEMENTS, SIZES, Program

OPERATIONS: tuple[tuple[Callable[[Program], None], int], ...] = (
    (elementwise, 6), (fold, 4), (transposed, 2), (collapsed, 2), (expanded, 2), (sliced, 2), (padded, 1),
    (joined, 1), (inserted, 1), (gather, 1), (window, 2), (product, 3), (convolution, 2), (settled, 1),
    (named, 4), (moving_slice, 1),
)  # fmt: skip


def random_program(rng: np.random.Generator) -> tuple[str, dict[str, NDArray[Any]]]:
    """The text of a program, and what to feed it."""
    p = Program(rng)
    common = [int(n) for n in rng.choice(SIZES, 3)]
    for _ in range(int(rng.integers(1, 4))):
        sizes = [int(n) for n in rng.choice(common, int(rng.integers(1, 5)))]
        while prod(sizes) > MOST_ELEMENTS // 4:
            sizes.pop()
        p.argument(sizes, p.any(["f32", "f32", "f32", "i64", "f16", "i32"]), 0.12)
    weights = np.array([weight for _, weight in OPERATIONS], float)
    for _ in range(int(rng.integers(2, 12))):
        OPERATIONS[int(rng.choice(len(OPERATIONS), p=weights / weights.sum()))][0](p)
    return _text(p), p.feeds


def _text(p: Program) -> str:
    """The last value and some others are results."""
    made = [value for value in p.values if all(value.name != argument.name for argument in p.arguments)] or p.values
    results = list(dict.fromkeys([made[-1], *(value for value in made if p.chance(0.2))]))
    types = ", ".join(value.type for value in results)
    given = ", ".join(f"{argument.name}: {argument.type}" for argument in p.arguments)
    lines = "\n".join(f"  {line}" for line in p.lines)
    names = ", ".join(value.name for value in results)
    return f"func.func @main({given}) -> ({types}) {{\n{lines}\n  return {names} : {types}\n}}\n"
