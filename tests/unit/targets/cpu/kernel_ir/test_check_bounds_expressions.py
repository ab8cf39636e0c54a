"""Random indices under random conditions: no access that leaves its buffer is proved."""

from __future__ import annotations

import random

import pytest

from .index_algebra import (
    Index,
    Nest,
    extremes,
    points,
    problems,
)


class Random:
    """Draws indices over two loop values, and conditions."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def index(self, depth: int) -> Index:
        if depth == 0:
            return self.rng.choice([lambda o, i, j: i, lambda o, i, j: j, lambda o, i, j: o.size(0)])
        a, b, c, m = self.index(depth - 1), self.index(depth - 1), self.rng.randint(1, 9), self.rng.randint(-3, 4)
        kinds: list[Index] = [
            lambda o, *p: o.add(a(o, *p), b(o, *p)),
            lambda o, *p: o.sub(a(o, *p), b(o, *p)),
            lambda o, *p: o.mul(a(o, *p), m),
            lambda o, *p: o.mul(a(o, *p), b(o, *p)),
            lambda o, *p: o.div(o.max(a(o, *p), 0), o.max(b(o, *p), c)),
            lambda o, *p: o.rem(o.max(a(o, *p), 0), o.max(b(o, *p), c)),
            lambda o, *p: o.div(o.div(o.max(o.mul(a(o, *p), b(o, *p)), 0), o.max(b(o, *p), 1)), c),
            lambda o, *p: o.mul(o.div(o.max(a(o, *p), 0), c), c),
            lambda o, *p: o.mul(o.div(a(o, *p), c), m),
            lambda o, *p: o.min(o.div(a(o, *p), c), b(o, *p)),
            lambda o, *p: o.div(o.max(a(o, *p), 0), o.max(b(o, *p), 1)),
            lambda o, *p: o.rem(o.max(a(o, *p), 0), o.max(b(o, *p), 1)),
            lambda o, *p: o.rem(o.max(a(o, *p), 0), c),
            lambda o, *p: o.rem(a(o, *p), c),
            lambda o, *p: o.narrow(o.mul(a(o, *p), 7 * m), "i8"),
            lambda o, *p: o.narrow_sum(o.mul(a(o, *p), 7), b(o, *p), "i8"),
            lambda o, *p: o.unsigned(a(o, *p), "i8"),
            lambda o, *p: o.min(a(o, *p), b(o, *p)),
            lambda o, *p: o.max(a(o, *p), c),
            lambda o, *p: o.bitand(a(o, *p), c),
            lambda o, *p: o.select(o.compare("lt", a(o, *p), c), a(o, *p), b(o, *p)),
        ]
        return self.rng.choice(kinds)

    def nest(self) -> Nest:
        """A loop, a loop inside it that starts at a multiple of the first, and mostly a condition."""
        draw = self.rng.randint
        lo, n, step, times, m, inner = draw(-4, 4), draw(2, 9), draw(1, 4), draw(0, 2), draw(2, 9), draw(1, 3)
        return Nest(
            [lambda o: (lo, lo + n, step), lambda o, i: (o.mul(i, times), o.add(o.mul(i, times), m), inner)],
            self.rng.choice([None, self._condition(), self._conditions()]),
            self.rng.random() < 0.5,
        )

    def _condition(self) -> Index:
        predicate = self.rng.choice(["lt", "le", "gt", "ge", "eq", "ne", "ult"])
        a, b = self.index(1), self.index(self.rng.randint(0, 1))
        return lambda o, *p: o.compare(predicate, a(o, *p), b(o, *p))

    def _conditions(self) -> Index:
        one, two = self._condition(), self._condition()
        return lambda o, *p: o.both(one(o, *p), two(o, *p))


@pytest.mark.parametrize("seed", range(8))
def test_no_access_that_leaves_its_buffer_is_proved(seed: int):
    draw, proved = Random(seed), 0
    for _ in range(60):
        nest, index = draw.nest(), draw.index(draw.rng.randint(0, 3))
        if not any(True for _ in points(nest)):
            continue
        low, high = extremes(nest, index)
        assert problems(nest, index, high - low, low), (low, high)
        assert problems(nest, index, 10**6, low + 1), (low, high)
        proved += not problems(nest, index, high - low + 1, low)
    assert proved >= 5
