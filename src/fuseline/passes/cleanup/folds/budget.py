"""What constants may take together: each fold is bounded by what it reads, but a hundred folds may read one weight."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseResourceAttr
from xdsl.ir import Operation

FOLDED = "_folded"
"""How the names of weights end that were computed at compile time, before the number that tells those of one name
apart."""

_COMPUTED = re.compile(rf"{FOLDED}(_\d+)?$")

ALWAYS_ELEMENTS = 16 * 1024 * 1024
"""What may come to the weights of a model, however small they are; large models may double."""


def folded_name(name: str) -> str:
    """What to call a weight that is computed from the one called `name`."""
    return _COMPUTED.sub("", name) + FOLDED


def of_the_model(resources: Mapping[str, Any]) -> list[Any]:
    """The arrays of `resources` that were not computed at compile time."""
    return [array for name, array in resources.items() if _COMPUTED.search(name) is None]


class ConstantBudget:
    """Elements (not bytes: a narrow weight is widened once and for all) that constants may still take, beside those
    that `ops` hold.

    `resources` has the content of all constants by name, those of the model and those that were computed.
    """

    def __init__(self, resources: Mapping[str, Any], ops: Iterable[Operation]) -> None:
        own = sum(array.size for array in of_the_model(resources))
        self.left = (
            own + max(ALWAYS_ELEMENTS, own) - sum(resources[name].size for name in _held(ops) if name in resources)
        )


def _held(ops: Iterable[Operation]) -> set[str]:
    constants = (op.value for op in ops if type(op) is arith.ConstantOp)
    return {value.resource_handle.data for value in constants if type(value) is DenseResourceAttr}
