"""Spans hold every extent that they stand for, in whatever iteration, and join what differs in clamped rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuseline.targets.cpu.kernel_ir.affine import Affine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.extents import Extent, Spans, spans_of
from fuseline.targets.cpu.kernel_ir.iterations import IterationBounds

from .index_algebra import AVX2

LAST = 9


def _spans(rows: list[int], stride: int) -> tuple[list[Extent], Spans, IterationBounds, list[Any]]:
    """Rows of a tile that has `LAST - tile` more than one, in a loop over 5 tiles."""
    kernel = KernelBuilder("kernel", AVX2)
    clamped: list[Any] = []
    loops: list[Any] = []

    def tile(number: Any) -> None:
        loops.append(number)
        clamped.extend(kernel.min(kernel.sub(LAST, number), row) for row in rows)

    kernel.loop(0, 5, 1, tile)
    known = IterationBounds(kernel.finish(), 1)
    forms = [known.form(row).times(stride).plus(Affine(0, {loops[0]: 1000})) for row in clamped]
    extents = [Extent(form, form.plus(Affine(8))) for form in forms]
    return extents, spans_of(known, extents), known, clamped


def _at(form: Affine, tile: int, values: list[Any], rows: list[int]) -> int:
    """A form's value in the iteration of a tile."""
    numbers = {value: min(LAST - tile, row) for value, row in zip(values, rows, strict=True)}
    return form.constant + sum(count * numbers.get(atom, tile) for atom, count in form.terms.items())


def test_rows_of_a_tile_are_one_span() -> None:
    _, spans, known, _ = _spans([5, 6, 7, 8], 16)
    assert spans.number_of == [0, 0, 0, 0]
    assert spans.joins
    assert known.most(spans.extents[0].end) == 4000 + 16 * min(8, LAST - 0) + 8


def test_rows_apart_in_other_terms_stay_apart() -> None:
    extents, _, known, clamped = _spans([5, 6], 16)
    (tile,) = [atom for atom in extents[1].first.terms if atom not in clamped]
    moved = Extent(*(form.plus(Affine(0, {tile: 1})) for form in extents[1]))
    spans = spans_of(known, [extents[0], moved])
    assert spans.number_of == [0, 1]
    assert not spans.joins


def test_random_rows_lie_in_their_spans() -> None:
    rng = np.random.default_rng()
    for _ in range(20):
        rows = [int(row) for row in rng.integers(0, LAST + 4, 6)]
        extents, spans, _, clamped = _spans(rows, int(rng.integers(1, 40)))
        for extent, number in zip(extents, spans.number_of, strict=True):
            for tile in range(5):
                first, end = (_at(form, tile, clamped, rows) for form in extent)
                low, high = (_at(form, tile, clamped, rows) for form in spans.extents[number])
                assert low <= first
                assert end <= high
