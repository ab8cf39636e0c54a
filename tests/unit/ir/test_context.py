"""Names of the arrays behind constants."""

from __future__ import annotations

import numpy as np

from fuseline.ir.context import new_context


def test_names_are_fresh_and_found_at_once() -> None:
    """Very many constants of one stem: a search from the first name each time would be quadratic (30 s)."""
    ctx = new_context()
    names = [ctx.add_resource("weight", np.zeros(1)) for _ in range(20_000)]
    assert len(set(names)) == 20_000
    assert names[:3] == ["weight", "weight_1", "weight_2"]


def test_a_name_that_another_stem_gave() -> None:
    ctx = new_context()
    names = [ctx.add_resource(stem, np.zeros(1)) for stem in ("w", "w_1", "w", "w", "w_1")]
    assert len(set(names)) == 5
