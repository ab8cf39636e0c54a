"""Tables in Markdown: every line has as many cells as the header, whatever is in them."""

from __future__ import annotations

import pytest

from fuseline.report.markdown import markdown_table


@pytest.mark.parametrize(("columns", "rule"), [(1, "|---|"), (2, "|---|---:|"), (4, "|---|---:|---:|---:|")])
def test_only_the_first_column_is_to_the_left(columns: int, rule: str):
    assert markdown_table(["x"] * columns, [])[1] == rule


def test_the_lines_are_the_header_the_rule_and_the_rows_in_their_order():
    rows = (row for row in (["b", "2"], ["a", ""]))
    assert markdown_table(["model", "fills"], rows) == ["| model | fills |", "|---|---:|", "| b | 2 |", "| a |  |"]


@pytest.mark.parametrize(("text", "shown"), [("a|b||c", r"a\|b\|\|c"), ("a\nb\nc", "a b c"), ("|\n|", r"\| \|")])
def test_a_cell_breaks_neither_its_row_nor_its_column(text: str, shown: str):
    assert markdown_table([text, "n"], [["r", text]]) == [f"| {shown} | n |", "|---|---:|", f"| r | {shown} |"]
