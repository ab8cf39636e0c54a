"""What several products read along the same rows, of which a block fits the scratch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.shared_rows import ROWS, makes_shared_rows
from fuseline.ir.target_description import TargetDescription
from tests.draws import RNG
from tests.graphs.program import Program

TARGET = TargetDescription("rows")


def _maker(value: SSAValue) -> Operation:
    assert isinstance(value, OpResult)
    return value.op


def _is_shared(reader: str, target: TargetDescription = TARGET, steps: int = 24) -> bool:
    """Of what a product reads along its rows, and `reader` too."""
    rows, width = int(RNG.integers(2, 90)), int(RNG.integers(2, 90))
    p = Program((rows, steps), (steps, width), (steps, width + 1), (width, rows))
    made = p.unary(p.x[0])
    readers = {
        "rows": lambda: p.matmul(made, p.x[2]),
        "columns": lambda: p.matmul(p.x[3], made),
        "elements": lambda: p.relu(made),
        "sum": lambda: p.reduce(made),
    }
    results = [p.matmul(made, p.x[1]), readers[reader]()]
    if reader == "elements":
        results.append(readers["rows"]())
    p.done(*results)
    return makes_shared_rows(_maker(made), ShapeAnalysis(), target)


@pytest.mark.parametrize(("reader", "shared"), [("rows", True), ("elements", True), ("columns", False), ("sum", False)])
def test_only_products_share_rows(reader: str, shared: bool) -> None:
    assert _is_shared(reader) == shared


def test_a_target_runs_that_many_products() -> None:
    assert _is_shared("rows", replace(TARGET, roots_limit=2))
    assert not _is_shared("rows", replace(TARGET, roots_limit=1))


def test_a_block_of_rows_fits_the_scratch() -> None:
    steps = int(RNG.integers(10, 500))
    assert _is_shared("rows", replace(TARGET, scratch_bytes_limit=4 * ROWS * steps), steps)
    assert not _is_shared("rows", replace(TARGET, scratch_bytes_limit=4 * ROWS * steps - 1), steps)


def test_one_product_shares_with_nobody() -> None:
    p = Program((20, 30), (30, 40))
    made = p.unary(p.x[0])
    p.done(p.matmul(made, p.x[1]), p.relu(made))
    assert not makes_shared_rows(_maker(made), ShapeAnalysis(), TARGET)
