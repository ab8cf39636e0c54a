"""What must hold among sizes for a program to be right: checked for every new combination of feed shapes, and where a
run learns a size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fuseline.errors import UnequalSizesError
from fuseline.runtime.sizes import Size, SizeEvaluator, size_from_json, symbols_of
from fuseline.runtime.strict import flag, text


class Requirement(NamedTuple):
    """`left` and `right` must be equal (or, `at_least`: `left` no smaller), or `node` (the model's name for it) would
    not make sense."""

    left: Size
    right: Size
    node: str
    at_least: bool = False

    def holds(self, evaluate: SizeEvaluator) -> bool:
        """Whether the sizes are as they must be."""
        return (
            evaluate(self.left) >= evaluate(self.right)
            if self.at_least
            else evaluate(self.left) == evaluate(self.right)
        )

    def broken(self, values: Mapping[str, int]) -> UnequalSizesError:
        """The error (E0203) for sizes that are not."""
        evaluate = SizeEvaluator(values)
        left, right = evaluate(self.left), evaluate(self.right)
        given = ", ".join(f"{name} = {values[name]}" for name in sorted(symbols_of(self.left) | symbols_of(self.right)))
        if self.at_least:
            message = f"size {left} must be at least {right} here; it follows from {given}"
            return UnequalSizesError(
                "E0203",
                message,
                node=self.node,
                hint="feed a larger input, or compile for these very sizes (shapes=, --shape)",
            )
        hint = "feed sizes for which they are equal"
        if 1 in (left, right):
            hint += ", or compile for these very sizes (shapes=, --shape), where a size of 1 may broadcast"
        return UnequalSizesError(
            "E0203", f"sizes {left} and {right} must be equal here; they follow from {given}", node=self.node, hint=hint
        )


def requirements_from_json(data: Iterable[Any]) -> tuple[Requirement, ...]:
    """Requirements from `[left, right, node, at_least]` each, the sizes in their JSON form; raises ValueError for
    anything else."""
    return tuple(
        Requirement(size_from_json(left), size_from_json(right), text(node), flag(at_least))
        for left, right, node, at_least in data
    )


def check_requirements(
    requirements: Iterable[Requirement], values: Mapping[str, int], *, new: str | None = None
) -> None:
    """Raises UnequalSizesError (E0203) for a requirement that `values` breaks; those with symbols that have no value
    yet wait for it.

    With `new` only those that the symbol of this name occurs in are looked at.
    """
    evaluate = SizeEvaluator(values)
    for requirement in requirements:
        symbols = symbols_of(requirement.left) | symbols_of(requirement.right)
        if symbols <= values.keys() and (new is None or new in symbols) and not requirement.holds(evaluate):
            raise requirement.broken(values)
