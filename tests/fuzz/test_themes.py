"""Themes: a number stands for one case, symbols come by, every part fits somewhere, and a few cases of each are right.
`make fuzz THEME=name` runs more."""

from __future__ import annotations

from itertools import cycle, islice

import numpy as np
import pytest

from tests.fuzz.campaign import finding_of
from tests.fuzz.case import Case
from tests.fuzz.cases import PAIRS, case_of, name_of
from tests.fuzz.evaluate import Rejected
from tests.fuzz.generate import setting
from tests.fuzz.isolate import run_isolated
from tests.fuzz.tensors import F32
from tests.fuzz.theme import Part, Theme
from tests.fuzz.themed import ELEMENTS, ThemedGraph, make_themed, theme_seed
from tests.fuzz.themes import THEMES
from tests.fuzz.work import work_seed

FEW = 4
TRIES = 1000


def test_a_number_stands_for_one_case():
    for name in THEMES:
        first, again = make_themed(name, 3), case_of(theme_seed(name, 3))
        assert first.model.SerializeToString(deterministic=True) == again.model.SerializeToString(deterministic=True)
        assert (first.choices, first.seed) == (again.choices, again.seed) and name_of(first.seed) == f"{name}-3"
    assert min(theme_seed(name, 0) for name in THEMES) > PAIRS
    assert name_of(PAIRS) == str(PAIRS)


def _is_symbolic(case: Case) -> bool:
    return any(dim.dim_param for value in case.model.graph.input for dim in value.type.tensor_type.shape.dim)


@pytest.mark.parametrize("name", THEMES)
def test_some_sizes_are_symbols(name: str):
    found = [_is_symbolic(make_themed(name, number)) for number in range(20)]
    assert 1 <= sum(found) <= 19


@pytest.mark.parametrize("name", THEMES)
def test_every_part_fits_somewhere(name: str):
    theme = THEMES[name]
    missing = [part.name for part in theme.others if not _fits(theme, part)]
    assert not missing and all(part.weight > 0 for part in (*theme.first, *theme.others))


def _fits(theme: Theme, part: Part) -> bool:
    """Whether a part goes behind one of the inputs that graphs begin with, or behind what another made of them."""
    rng = np.random.default_rng(7)
    for first, between in islice(zip(cycle(theme.first), cycle(theme.others), strict=False), TRIES):
        opset = int(rng.choice([n for n in theme.opsets if part.since <= n <= part.until]))
        graph = ThemedGraph(rng, opset, setting(rng, symbolic=0.3, pool=theme.sizes), False, [F32], elements=ELEMENTS)
        for one in (first, between) if rng.random() < 0.5 else (first,):
            _try(one, graph)
        before = len(graph.steps)
        if _try(part, graph) and len(graph.steps) > before:
            return True
    return False


def _try(part: Part, graph: ThemedGraph) -> bool:
    try:
        part.function(graph)
    except Rejected:
        return False
    return True


@pytest.mark.parametrize("number", range(FEW))
def test_a_case_of_each_is_right(number: int):
    seeds = [theme_seed(name, number) for name in THEMES]
    found = [
        (name_of(answer.item), finding_of(answer)[0]) for answer in run_isolated(seeds, work_seed, batch=len(seeds))
    ]
    severe = [(case, finding.detail) for case, finding in found if finding is not None]
    assert not severe, severe
