"""What must hold among sizes for a program to be right: checked for every new combination of feed shapes, and where a
run learns a size."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from fuseline.errors import UnequalSizesError
from fuseline.runtime.sizes import SizeEvaluator, size_from_json, symbols_of
from fuseline.runtime.strict import text
from fuseline.size_requirement import RELATIONS, Relation, SizeRequirement

HOLDS: Mapping[Relation, Callable[[int, int], bool]] = {
    "equal": operator.eq,
    "at_least": operator.ge,
    "differ": operator.ne,
}
"""Whether two sizes are in a relation."""


def holds(requirement: SizeRequirement, evaluate: SizeEvaluator) -> bool:
    """Whether the sizes of a program's requirement are as they must be."""
    left, right = evaluate(requirement.left), evaluate(requirement.right)
    return HOLDS[requirement.relation](left, right)


def _symbols(requirement: SizeRequirement) -> frozenset[str]:
    return symbols_of(requirement.left) | symbols_of(requirement.right)


def _broken(requirement: SizeRequirement, values: Mapping[str, int]) -> UnequalSizesError:
    """The error (E0203) for sizes that are not."""
    evaluate = SizeEvaluator(values)
    left, right = evaluate(requirement.left), evaluate(requirement.right)
    given = ", ".join(f"{name} = {values[name]}" for name in sorted(_symbols(requirement)))
    if requirement.relation == "at_least":
        return UnequalSizesError(
            "E0203",
            f"size {left} must be at least {right} here; it follows from {given}",
            node=requirement.node,
            hint="feed a larger input, or compile for these very sizes (shapes=, --shape)",
        )
    if requirement.relation == "differ":
        return UnequalSizesError(
            "E0203",
            f"a size may not be {right} here; it follows from {given}",
            node=requirement.node,
            hint="feed another size, or compile for these very sizes (shapes=, --shape)",
        )
    hint = "feed sizes for which they are equal"
    if 1 in (left, right):
        hint += ", or compile for these very sizes (shapes=, --shape), where a size of 1 may broadcast"
    message = f"sizes {left} and {right} must be equal here; they follow from {given}"
    return UnequalSizesError("E0203", message, node=requirement.node, hint=hint)


def _relation(data: Any) -> Relation:
    if text(data) not in RELATIONS:
        raise ValueError(f"no relation of two sizes: {data[:60]!r}")
    return data


def requirements_from_json(data: Iterable[Any]) -> tuple[SizeRequirement, ...]:
    """Requirements from `[left, right, node, relation]` each, the sizes in their JSON form; raises ValueError for
    anything else."""
    return tuple(
        SizeRequirement(size_from_json(left), size_from_json(right), text(node), _relation(relation))
        for left, right, node, relation in data
    )


_WithSymbols: TypeAlias = tuple[SizeRequirement, frozenset[str]]

_Indexed: TypeAlias = Mapping[str, Sequence[_WithSymbols]]
"""Requirements with their symbols, by each of those."""

_MOST_INDEXED = 256
_indexed: dict[int, tuple[Sequence[SizeRequirement], _Indexed]] = {}


def _by_symbol(requirements: Sequence[SizeRequirement]) -> _Indexed:
    """`requirements` by symbol, or as they were the last time: told by identity, since hashing sizes takes longer than
    looking at them."""
    found = _indexed.get(id(requirements))
    if found is None or found[0] is not requirements:
        if len(_indexed) >= _MOST_INDEXED:
            _indexed.clear()
        made: dict[str, list[_WithSymbols]] = {}
        for requirement in requirements:
            symbols = _symbols(requirement)
            for name in symbols:
                made.setdefault(name, []).append((requirement, symbols))
        found = _indexed[id(requirements)] = requirements, made
    return found[1]


def check_requirements(requirements: Sequence[SizeRequirement], values: Mapping[str, int]) -> None:
    """Raises UnequalSizesError (E0203) for a requirement that `values` breaks; those with symbols that have no value
    yet wait for it."""
    _check([(requirement, _symbols(requirement)) for requirement in requirements], values)


def check_learned(requirements: Sequence[SizeRequirement], values: Mapping[str, int], new: str) -> None:
    """The same of those alone that the symbol `new` occurs in."""
    _check(_by_symbol(requirements).get(new, ()), values)


def _check(requirements: Sequence[_WithSymbols], values: Mapping[str, int]) -> None:
    evaluate = SizeEvaluator(values)
    for requirement, symbols in requirements:
        if symbols <= values.keys() and not holds(requirement, evaluate):
            raise _broken(requirement, values)
