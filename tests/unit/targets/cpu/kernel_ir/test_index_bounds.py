"""How index values are bounded: what is kept of their forms, and in how many steps."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.targets.cpu.kernel_ir.affine import Affine
from fuseline.targets.cpu.kernel_ir.functions import FunctionBuilder
from fuseline.targets.cpu.kernel_ir.index_bounds import IndexBounds
from fuseline.targets.cpu.kernel_ir.types import I32, I64, Type

from .index_algebra import AVX2, Builder


@pytest.mark.parametrize(("type_", "kept"), [(I64, True), (I32, False)])
def test_a_sum_of_unknown_size_is_a_form_in_64_bits_only(type_: Type, kept: bool) -> None:
    """There it is taken not to wrap, as `nsw` says; in fewer bits it might, and is a term of its own."""
    f = FunctionBuilder("f", (type_,))
    n = f.parameters[0]
    more = f.add(n, n)
    known = IndexBounds(f.finish(), (), 1, {})
    assert known.form(more).terms == ({n: 2} if kept else {more: 1})


def _chain(levels: int) -> tuple[IndexBounds, Any]:
    """Minima of maxima in which each level reads the one before on both sides."""
    k = Builder("kernel", AVX2)
    ends: list[Any] = []

    def body(i: Any) -> None:
        value = i
        for level in range(levels):
            value = k.min(k.add(value, 1), k.max(value, level))
        ends.append(value)

    k.loop(0, 9, 1, body)
    return IndexBounds(k.finish(), (), 1, {}), ends[0]


@pytest.mark.parametrize("levels", [3, 11, 30])
def test_terms_that_both_sides_share_are_bounded_once(monkeypatch: pytest.MonkeyPatch, levels: int) -> None:
    """Each level adds forms, up to one for each number that is added on the way, and does not double them."""
    known, value = _chain(levels)
    steps, search = [0], IndexBounds._upper  # pyright: ignore[reportPrivateUsage]

    def counted(self: IndexBounds, form: Affine, depth: int) -> int | None:
        steps[0] += 1
        return search(self, form, depth)

    monkeypatch.setattr(IndexBounds, "_upper", counted)
    bound = known.upper(known.form(value))
    assert steps[0] <= 4 * levels * levels + 8
    if levels == 3:
        value = [8]
        for level in range(levels):
            value.append(min(value[-1] + 1, max(value[-1], level)))
        assert bound == value[-1]


def test_a_condition_tightens_what_was_found_without_it() -> None:
    k = Builder("kernel", AVX2)
    seen: list[Any] = []
    k.loop(0, 30, 1, seen.append)
    known = IndexBounds(k.finish(), (), 1, {})
    index = known.form(seen[0])
    assert known.upper(index) == 29 and not known.at_most(index, 7)
    with known.conditions.assuming([(index, Affine(7))]):
        assert known.at_most(index, 7) and known.most(index) == 29
        with known.conditions.unconditionally():
            assert not known.at_most(index, 7)
        assert known.at_most(index, 7)
    assert not known.at_most(index, 7)
