"""The case of a seed: a random graph, from `PAIRS` on a pair of operators, further on a theme's."""

from __future__ import annotations

from tests.fuzz.case import Case
from tests.fuzz.generate import make_case
from tests.fuzz.pairs import make_pair
from tests.fuzz.themed import make_themed, theme_of

PAIRS = 10**12
"""The first seed that stands for a pair."""


def case_of(seed: int) -> Case:
    """The same one on every machine with the same libraries."""
    themed = theme_of(seed)
    if themed is not None:
        theme, number = themed
        return make_themed(theme.name, number)
    return make_pair(seed - PAIRS) if seed >= PAIRS else make_case(seed)


def name_of(seed: int) -> str:
    """How a person names a seed: by its number, behind its theme where it has one."""
    themed = theme_of(seed)
    return str(seed) if themed is None else f"{themed[0].name}-{themed[1]}"
