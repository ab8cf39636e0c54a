"""Traffic of a dispatch."""

from __future__ import annotations

from fuseline.targets.cpu.families.estimates import bytes_read, bytes_written
from fuseline.weight_layouts import PackedLayout
from tests.graphs.program import Program


def test_arguments_count_as_they_are_laid_out():
    p = Program((5, 7), (7, 20), (99,), constants=[1])
    view = p.dispatch(p.matmul(p.x[0], p.x[1]))
    assert bytes_read(view) == 4 * (35 + 140)  # the third is not read
    assert bytes_read(view, {1: PackedLayout((7, 32), (7, 2, 16), (1, 0, 2))}) == 4 * (35 + 224)
    assert bytes_written(view) == 400
