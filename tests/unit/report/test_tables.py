"""Tables show every record once."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

from fuseline.report.dispatches import dispatches_json, dispatches_table
from fuseline.report.quantities import LONG, quantity, seconds, short_name, shortened
from fuseline.report.statistics import statistics_rows, statistics_table
from tests.unit.report.records import RECORD


def _text(content: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(content)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_dispatch_table_has_root_nodes_flops_and_bytes():
    row = next(line for line in _text(dispatches_table(RECORD)).splitlines() if "main_dispatch_0" in line)
    assert row.split() == ["main_dispatch_0", "convolution", "Conv_0,", "Relu_1", "convolution", "2", "M", "5120"]


def test_the_dispatch_json_lists_nodes():
    assert dispatches_json(RECORD)[0]["nodes"] == ["Conv_0", "Relu_1"]


def test_statistics_are_flattened_in_order():
    rows = dict(statistics_rows(RECORD))
    assert rows["edges.missed.consumer-reduces"] == "1"
    assert rows["phase_seconds.frontend"] == "10 ms"
    assert next(iter(rows)) == "dispatches"
    assert "123 kB" in _text(statistics_table(RECORD))


def test_units_keep_three_digits():
    assert [quantity(value) for value in (0, 9999, 12_345, 4.09e9)] == ["0", "9999", "12.3 k", "4.09 G"]
    assert [seconds(value) for value in (2.5, 0.0178, 3e-7)] == ["2.5 s", "17.8 ms", "300 ns"]
    assert shortened(["a", "b", "c"], 2) == "a, b, +1"


def test_of_long_names_the_end_is_shown():
    end = "/layer.0/MatMul"
    shown = shortened(["x" * 5000 + end, "b"], 1)
    assert shown.startswith("..x") and shown.endswith(f"{end}, +1") and len(shown) == LONG + len(", +1")
    assert short_name("x" * LONG) == "x" * LONG
