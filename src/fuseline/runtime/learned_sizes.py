"""Sizes that a host operator is the first to know: read from what it answers, checked against what the program says of
them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuseline.errors import FuselineError
from fuseline.runtime.program import Program
from fuseline.runtime.requirements import check_learned
from fuseline.runtime.sizes import Size, symbol_of


def told_shape(answer: Any) -> tuple[int, ...]:
    """What an answer makes known: an array its sizes, a number itself."""
    return (answer,) if isinstance(answer, int) else answer.shape


def learn_sizes(
    program: Program, label: str, dims: Sequence[Size], shape: Sequence[int], values: dict[str, int]
) -> None:
    """Add to `values` the symbols that an answer of `shape`, planned with `dims`, makes known.

    Raises FuselineError (E0107) for another rank and for a size outside its bounds, and what unmet requirements raise.
    """
    if len(dims) != len(shape):
        message = f"host operator answered rank {len(shape)}, planned was {len(dims)}"
        raise FuselineError(
            "E0107",
            message,
            node=label,
            hint="if the model declares the rank of this output, correct or drop the declaration",
        )
    for size, actual in zip(dims, shape, strict=True):
        name = symbol_of(size)
        if name is None or name in values:
            continue
        low, high = program.symbols.get(name, (0, None))
        if actual < low or (high is not None and actual > high):
            raise FuselineError(
                "E0107", f"host operator answered size {actual} for {name}, which must be in {low}..{high}", node=label
            )
        values[name] = actual
        check_learned(program.requirements, values, name)
