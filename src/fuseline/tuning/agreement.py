"""Whether a trial's program computes what the default one does: on two random inputs that are shown to give different
outputs, and where sizes are symbolic on a third of other sizes.

How far two right programs may lie apart is a matter of the types of their outputs, and, where that is not enough, of
the model: one that rounds on the way (8-bit steps, halves, an argmax) is compiled once more with one op per dispatch,
and a trial may lie `SPREADS` times as far from the default as that program does. Whole numbers must be equal, but where
that other program shows that they hang on rounding and `numerics` is not `strict`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from fuseline.errors import FuselineError
from fuseline.runtime.feed_files import Feeds, flat_outputs
from fuseline.verify.compare import TOLERANCE, Comparison, compare, dependent_outputs
from fuseline.verify.inputs import Hints, Input
from fuseline.verify.model_feeds import FedProgram, complete_feeds, default_sizes

TOLERANCES = {"float64": 1e-9, "float32": TOLERANCE, "float16": 4e-3, "bfloat16": 3e-2}
"""Largest difference by type, as a part of the largest magnitude of the output; other types: none."""

SPREADS = 4.0
WIDEST = 0.05
"""No model makes a larger difference right."""


class RunnableProgram(FedProgram, Protocol):
    """A compiled program."""

    @property
    def outputs(self) -> Sequence[Input]:
        """Its outputs, in order."""
        ...

    def run(self, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
        """Outputs by name."""
        ...


class Agreement:
    """Judges programs by the outputs of `default`.

    Args:
        apart: compiles the model with one op per dispatch; it is called when a difference asks for it. numerics: of the
        compile: `strict` leaves whole numbers no room.

    Raises FuselineError (E0602) where the outputs of `default` do not depend on its inputs.
    """

    def __init__(
        self,
        default: RunnableProgram,
        hints: Hints,
        seed: int,
        *,
        apart: Callable[[], RunnableProgram],
        numerics: str = "default",
    ) -> None:
        self._apart, self._exact = apart, numerics == "strict"
        self._types = {item.name: item.dtype.name for item in default.outputs}
        first = complete_feeds(default, {}, hints, seed)
        self.feeds: list[Feeds] = [first, complete_feeds(default, {}, hints, seed + 1, like=first)]
        self._expected = [flat_outputs(default.run(feeds)) for feeds in self.feeds]
        self._dependent = dependent_outputs(*self._expected)
        self._add_other_sizes(default, hints, seed + 2)

    def _add_other_sizes(self, default: RunnableProgram, hints: Hints, seed: int) -> None:
        """A run of larger, odd sizes, if the model takes them."""
        if not default.symbols:
            return
        feeds = complete_feeds(default, {}, Hints(hints.ranges, other_sizes(default, hints)), seed)
        try:
            expected = flat_outputs(default.run(feeds))
        except FuselineError:  # sizes that hang together in a way that their names do not tell
            return
        self.feeds.append(feeds)
        self._expected.append(expected)

    def require(self, program: RunnableProgram) -> None:
        """Raises FuselineError E0601, naming the worst output, unless `program` agrees, and whatever its runs raise."""
        for index in range(len(self.feeds)):
            outside = [
                (item, allowed)
                for item in self._compared(program, index)
                if item.error > (allowed := self._allowed(item, index))
            ]
            if outside:
                raise _difference(*max(outside, key=lambda found: found[0].error))

    def _compared(self, program: RunnableProgram, index: int) -> list[Comparison]:
        return compare(flat_outputs(program.run(self.feeds[index])), self._expected[index], self._dependent)

    def _allowed(self, item: Comparison, index: int) -> float:
        kind = self._expected[index][item.output].dtype
        plain = TOLERANCES.get(self._types.get(item.output, kind.name), 0.0)
        if item.error <= plain or item.problem or (self._exact and kind.kind not in "fc"):
            return plain
        return max(plain, min(SPREADS * self._spreads[index].get(item.output, 0.0), WIDEST))

    @cached_property
    def _spreads(self) -> Sequence[Mapping[str, float]]:
        """By input and output, how far the program of one op per dispatch lies from the default."""
        program = self._apart()
        return [
            {item.output: item.error for item in self._compared(program, index) if np.isfinite(item.error)}
            for index in range(len(self.feeds))
        ]


def other_sizes(program: FedProgram, hints: Hints) -> dict[str, int]:
    """For every symbol another size than runs are timed with: about twice as large, odd, within its bounds."""
    usual = {**default_sizes(program), **hints.sizes}
    return {
        name: max(low, 2 * usual[name] + 1 if high is None else min(2 * usual[name] + 1, high))
        for name, (low, high) in program.symbols.items()
    }


def _difference(item: Comparison, allowed: float) -> FuselineError:
    detail = item.problem or (
        f"relative error {item.error:.3g} of the largest magnitude {item.magnitude:.3g}, allowed {allowed:.3g}"
    )
    return FuselineError("E0601", f"differs from the default program: {detail}", node=item.output)
