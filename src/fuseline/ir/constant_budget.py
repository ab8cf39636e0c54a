"""What constants that are made at compile time may take together, those of the frontend and those of `fold-constants`:
each is bounded by what it is made from, but a hundred may be made from one weight.

It is counted in words: an element of up to 4 bytes is one, however narrow it is stored (what is dequantised is widened
once and for all), of 8 bytes two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseResourceAttr
from xdsl.ir import Operation

FOLDED = "_folded"
"""How the names of weights end that were computed at compile time, before the number that tells those of one name
apart."""

_COMPUTED = re.compile(rf"{FOLDED}(_\d+)*$")

ALWAYS_WORDS = 16 * 1024 * 1024
"""What may come to the weights of a model, however small they are (64 MiB); large models may double."""

WORD_BYTES = 4


def words_of(elements: int, dtype: np.dtype[Any]) -> int:
    """What so many elements count as."""
    return elements * max(1, ceil(dtype.itemsize / WORD_BYTES))


def words_to_make(own: int) -> int:
    """What may be made for a model whose weights are `own` words."""
    return max(ALWAYS_WORDS, own)


def folded_name(name: str) -> str:
    """What to call a weight that is computed from the one called `name`."""
    return _COMPUTED.sub("", name) + FOLDED


def of_the_model(resources: Mapping[str, Any]) -> list[Any]:
    """The arrays of `resources` that were not computed at compile time."""
    return [array for name, array in resources.items() if _COMPUTED.search(name) is None]


class ConstantBudget:
    """Words that constants may still take, beside those that `ops` hold.

    `resources` has the content of all constants by name, those of the model and those that were computed.
    """

    def __init__(self, resources: Mapping[str, Any], ops: Iterable[Operation]) -> None:
        own = sum(words_of(array.size, array.dtype) for array in of_the_model(resources))
        held = [resources[name] for name in _held(ops) if name in resources]
        self.left = own + words_to_make(own) - sum(words_of(array.size, array.dtype) for array in held)


def _held(ops: Iterable[Operation]) -> set[str]:
    constants = (op.value for op in ops if type(op) is arith.ConstantOp)
    return {value.resource_handle.data for value in constants if type(value) is DenseResourceAttr}
