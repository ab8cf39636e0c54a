"""The case of a seed: a random graph, or from `PAIRS` on a pair of operators."""

from __future__ import annotations

from tests.fuzz.case import Case
from tests.fuzz.generate import make_case
from tests.fuzz.pairs import make_pair

PAIRS = 10**12
"""The first seed that stands for a pair."""


def case_of(seed: int) -> Case:
    """The same one on every machine with the same libraries."""
    return make_pair(seed - PAIRS) if seed >= PAIRS else make_case(seed)
