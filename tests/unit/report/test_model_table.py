"""A row for each model: exact figures, what was not counted, and the code of what did not compile."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fuseline.errors import FuselineError
from fuseline.report.model_table import COLUMNS, SECONDS, ModelRow, cell, markdown_of, table_of
from fuseline.report.records import CompileRecord

COUNTED = {
    "dispatches": 12,
    "fills": 1,
    "copies": 2,
    "standalone_transposes": 3,
    "host_ops": 4,
    "executables": 10,
    "transient_bytes": 1_234_567,
    "constant_bytes": {"packed": 89_012, "source": 5},
    "code_bytes": 4096,
    "phase_seconds": {"frontend": 0.5, "fusion": 0.25},
}
CELLS = ["mlp.onnx", "12", "1", "2", "3", "4", "10", "1,234,567", "89,012", "4,096", "0.75"]
FULL = ModelRow(model="mlp.onnx", record=CompileRecord(statistics=COUNTED))
PART = ModelRow(model="plan.json", record=CompileRecord(statistics={"dispatches": 7, "transient_bytes": "unbounded"}))
FAILED = ModelRow(model="broken.onnx", error=FuselineError("E0301", "no such operator").to_json())


def _cells(line: str) -> list[str]:
    return [text.strip() for text in line.strip("|").split("|")]


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("dispatches", None, "-"),
        (SECONDS, None, "-"),
        ("dispatches", 0.0, "0"),
        ("code bytes", 9_876_543_210.0, "9,876,543,210"),
        (SECONDS, 0.0, "0.00"),
        (SECONDS, 1234.0, "1234.00"),
    ],
)
def test_a_figure_is_exact_but_for_seconds(column: str, value: float | None, text: str):
    assert cell(column, value) == text


def test_an_error_has_its_code_and_what_compiled_has_none():
    assert (FAILED.error_code, FULL.error_code) == ("E0301", "")
    assert ModelRow(model="x", error={"message": "of another tool"}).error_code == ""


def test_the_columns_have_their_statistics():
    header, _, full, *_ = markdown_of([FULL])
    assert _cells(header) == ["model", *COLUMNS]
    assert _cells(full) == CELLS


def test_what_has_no_number_is_a_dash_and_what_failed_an_error():
    part, failed = map(_cells, markdown_of([PART, FAILED])[2:])
    assert part == ["plan.json", "7", *["-"] * (len(COLUMNS) - 1)]
    assert failed == ["broken.onnx", "error E0301", *[""] * (len(COLUMNS) - 1)]


def test_the_plain_table_has_the_same_cells():
    table = table_of([FULL, PART, FAILED])
    console = Console(file=io.StringIO(), width=300)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    _, full, part, failed = console.file.getvalue().splitlines()
    assert full.split() == CELLS
    assert part.split() == ["plan.json", "7", *["-"] * (len(COLUMNS) - 1)]
    assert failed.split() == ["broken.onnx", "error", "E0301"]
    assert [column.justify for column in table.columns] == ["left", *["right"] * len(COLUMNS)]
