"""Two tables of models: which rows are the same model, what differs in them, and which conditions that meets."""

from __future__ import annotations

import pytest

from fuseline.errors import FuselineError
from fuseline.report.model_table import ModelRow
from fuseline.report.records import CompileRecord
from fuseline.report.regressions import condition
from fuseline.report.table_difference import (
    RowChange,
    change_lines,
    change_markdown,
    paired,
    row_changes,
    table_failures,
)


def _row(model: str, seconds: float = 1.0, **statistics: int) -> ModelRow:
    return ModelRow(model=model, record=CompileRecord(statistics={**statistics, "phase_seconds": {"all": seconds}}))


def _failed(model: str, code: str = "E0301") -> ModelRow:
    return ModelRow(model=model, error={"code": code})


def _names(before: list[str], after: list[str]) -> list[tuple[str | None, str | None]]:
    pairs = paired(*([_row(name) for name in names] for names in (before, after)))
    return [(old and old.model, new and new.model) for old, new in pairs]


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        ([], [], []),
        (["b", "a"], ["a", "b"], [("b", "b"), ("a", "a")]),
        (["a", "b"], ["c", "b"], [("a", None), ("b", "b"), (None, "c")]),
        (["d/a.onnx"], ["d/a.fsl"], [("d/a.onnx", "d/a.fsl")]),
        (["d/a.onnx"], ["e/a.fsl"], [("d/a.onnx", None), (None, "e/a.fsl")]),
        (["a.onnx"], ["a"], [("a.onnx", "a")]),
        (["a.onnx"], ["a.fsl", "a.onnx"], [("a.onnx", "a.onnx"), (None, "a.fsl")]),
        (["a.onnx"], ["a.fsl", "a.mlir"], [("a.onnx", None), (None, "a.fsl"), (None, "a.mlir")]),
        (["a.onnx", "a.mlir"], ["a.fsl"], [("a.onnx", None), ("a.mlir", None), (None, "a.fsl")]),
    ],
)
def test_models_are_paired_by_name_and_by_an_unambiguous_stem(
    before: list[str], after: list[str], pairs: list[tuple[str | None, str | None]]
):
    assert _names(before, after) == pairs


def test_only_figures_that_differ_are_changes_and_seconds_never():
    before = [_row("same", 1.0, dispatches=3), _row("more", dispatches=3, fills=2), _row("new figure")]
    after = [_row("same", 9.0, dispatches=3), _row("more", dispatches=4, fills=2), _row("new figure", copies=0)]
    assert row_changes(paired(before, after)) == [
        RowChange(model="more", figures={"dispatches": (3, 4)}),
        RowChange(model="new figure", figures={"copies": (None, 0)}),
    ]


BEFORE = [_row("gone"), _failed("mended"), _row("broken"), _failed("other", "E0101"), _failed("still")]
AFTER = [_row("mended"), _failed("broken"), _failed("other"), _failed("still"), _row("new"), _failed("bad", "E0102")]


def test_what_happened_to_a_model_is_said_in_words():
    assert change_lines(row_changes(paired(BEFORE, AFTER))) == [
        "gone: vanished",
        "mended: works again (before: E0301)",
        "broken: fails now: E0301",
        "other: fails now: E0301 (before: E0101)",
        "new: appeared",
        "bad: appeared, fails: E0102",
    ]


CHANGES = [
    RowChange(model="a", figures={"transient bytes": (1000, 2500), "dispatches": (3, 4)}),
    RowChange(model="b", figures={"dispatches": (None, 5)}),
]


def test_a_new_model_that_fails_meets_every_condition_and_one_that_compiles_only_any():
    wanted = [condition(text) for text in ("dispatches>5", "any")]
    found = table_failures(wanted, paired([_row("a", dispatches=1)], [_row("a", dispatches=1), _failed("b")]))
    assert found == {"dispatches>5": ["b fails now: E0301"], "any": ["b differs"]}
    assert table_failures(wanted, paired([], [_row("a", dispatches=9)])) == {"any": ["a differs"]}


def test_a_line_has_all_figures_of_a_model():
    assert change_lines(CHANGES) == ["a: transient bytes 1,000 -> 2,500, dispatches 3 -> 4", "b: dispatches - -> 5"]


def test_the_table_has_the_columns_that_differ_in_the_order_of_rows():
    assert change_markdown(CHANGES) == [
        "| model | dispatches | transient bytes |",
        "|---|---:|---:|",
        "| a | 3 -> 4 | 1,000 -> 2,500 |",
        "| b | - -> 5 |  |",
    ]


def test_a_state_has_a_column_where_there_is_one():
    assert change_markdown([*CHANGES[1:], RowChange(model="c", state="vanished")]) == [
        "| model | state | dispatches |",
        "|---|---:|---:|",
        "| b |  | - -> 5 |",
        "| c | vanished |  |",
    ]


def test_a_condition_is_met_by_growth_and_by_what_fails_now():
    before = [_row("more", dispatches=3), _row("less", dispatches=3), _row("broken", dispatches=3), _failed("still")]
    after = [_row("more", dispatches=4), _row("less", dispatches=2), _failed("broken"), _failed("still")]
    wanted = [condition(text) for text in ("more-dispatches", "dispatches>1", "any")]
    assert table_failures(wanted, paired(before, after)) == {
        "more-dispatches": ["more dispatches: 3 -> 4", "broken fails now: E0301"],
        "dispatches>1": ["broken fails now: E0301"],
        "any": ["more differs", "less differs", "broken differs"],
    }


def test_a_condition_that_nothing_meets_is_not_listed():
    pairs = paired([_row("a", 1.0, dispatches=3), _failed("mended")], [_row("a", 2.0, dispatches=3), _row("mended")])
    assert table_failures([condition("more-dispatches")], pairs) == {}
    assert table_failures([condition("any")], pairs[:1]) == {}


def test_models_on_one_side_meet_only_any():
    pairs = paired([_row("gone", dispatches=3)], [_row("new", dispatches=9)])
    wanted = [condition("more-dispatches"), condition("any")]
    assert table_failures(wanted, pairs) == {"any": ["gone differs", "new differs"]}


def test_a_condition_needs_its_statistic_in_both_tables():
    with pytest.raises(FuselineError, match="more-dispatches needs dispatches, which was not saved") as caught:
        table_failures([condition("more-dispatches")], paired([_row("a", dispatches=3)], [_row("a")]))
    assert caught.value.code == "E0501"
