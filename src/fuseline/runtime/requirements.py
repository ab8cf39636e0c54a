"""Sizes that must be equal for a program to be right: checked for every new combination of feed shapes, and where a run learns a size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fuseline.errors import FuselineError
from fuseline.runtime.sizes import Size, SizeEvaluator, size_from_json, symbols_of


class Requirement(NamedTuple):
    """`left` and `right` must be equal, or `node` (the model's name for it) would not make sense."""

    left: Size
    right: Size
    node: str


def requirements_from_json(data: Iterable[Any]) -> tuple[Requirement, ...]:
    """Requirements from `[left, right, node]` each, the sizes in their JSON form; raises ValueError for anything else."""
    return tuple(Requirement(size_from_json(left), size_from_json(right), str(node)) for left, right, node in data)


def check_requirements(requirements: Iterable[Requirement], values: Mapping[str, int], *, new: str | None = None) -> None:
    """Raises FuselineError (E0203) for a requirement that `values` breaks; those with symbols that have no value yet wait for it.

    With `new` only those that the symbol of this name occurs in are looked at.
    """
    evaluate = SizeEvaluator(values)
    for left, right, node in requirements:
        symbols = symbols_of(left) | symbols_of(right)
        if symbols <= values.keys() and (new is None or new in symbols) and evaluate(left) != evaluate(right):
            given = ", ".join(f"{name} = {values[name]}" for name in sorted(symbols))
            raise FuselineError(
                "E0203",
                f"sizes {evaluate(left)} and {evaluate(right)} must be equal here; they follow from {given}",
                node=node,
                hint="feed sizes for which they are equal, or compile for these very sizes (shapes=, --shape), where a size of 1 broadcasts",
            )
