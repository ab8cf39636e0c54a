"""The conditions of `diff --fail-if`: each looks at its statistic, and says so where that was not saved."""

from __future__ import annotations

import msgspec
import pytest

from fuseline.errors import FuselineError
from fuseline.report.records import CompileRecord
from fuseline.report.regressions import STATISTIC_OF, condition, figure, regression
from tests.unit.report.records import RECORD


def _record(statistic: str, value: int) -> CompileRecord:
    head, _, rest = statistic.partition(".")
    return CompileRecord(statistics={head: {rest: value} if rest else value})


@pytest.mark.parametrize("name", STATISTIC_OF)
def test_only_growth_is_a_regression(name: str):
    statistic = STATISTIC_OF[name]
    assert regression(condition(name), _record(statistic, 3), _record(statistic, 4)) == f"{statistic}: 3 -> 4"
    assert regression(condition(name), _record(statistic, 3), _record(statistic, 3)) is None
    assert regression(condition(name), _record(statistic, 4), _record(statistic, 3)) is None


def test_missed_edges_are_summed_over_reasons():
    worse = msgspec.structs.replace(RECORD, statistics={"edges": {"fused": 0, "missed": {"scratch": 1, "cycle": 2}}})
    none = msgspec.structs.replace(RECORD, statistics={"edges": {"fused": 2, "missed": {}}})
    assert regression(condition("more-missed"), RECORD, worse) == "edges.missed: 1 -> 3"
    assert regression(condition("more-missed"), none, RECORD) == "edges.missed: 0 -> 1"


@pytest.mark.parametrize("text", ["more-bytes", "bytes>5", "bytes>900%"])
def test_what_only_the_run_knows_is_more_than_any_number(text: str):
    known = CompileRecord(statistics={"bytes_moved": 40})
    unknown = CompileRecord(statistics={"bytes_moved": None})
    assert regression(condition(text), known, unknown) == "bytes_moved: 40 -> what the run knows"
    assert regression(condition(text), unknown, unknown) is None
    assert regression(condition(text), unknown, known) is None


def test_what_was_not_saved_cannot_be_a_condition():
    with pytest.raises(FuselineError, match="needs code_bytes, which was not saved") as caught:
        regression(condition("more-code-bytes"), RECORD, RECORD)
    assert caught.value.code == "E0501"


@pytest.mark.parametrize(
    ("text", "old", "new", "met"),
    [
        ("transient-bytes>2%", 1000, 1020, False),
        ("transient-bytes>2%", 1000, 1021, True),
        ("transient-bytes>100", 1000, 1100, False),
        ("transient-bytes>100", 1000, 1101, True),
        ("transient-bytes>50%", 0, 1, True),
        ("transient-bytes>0", 7, 6, False),
    ],
)
def test_a_threshold_allows_so_much(text: str, old: int, new: int, met: bool):
    before, after = (_record("transient_bytes", value) for value in (old, new))
    expected = f"transient_bytes: {old} -> {new}" if met else None
    assert regression(condition(text), before, after) == expected


def test_seconds_are_summed_over_phases():
    before, after = (CompileRecord(statistics={"phase_seconds": {"a": 1.0, "b": x}}) for x in (1.0, 3.0))
    assert figure(after, "phase_seconds") == 4.0
    assert regression(condition("compile-seconds>1"), before, after) == "phase_seconds: 2 -> 4"
    assert regression(condition("compile-seconds>150%"), before, after) is None


@pytest.mark.parametrize(
    "text", ["", "fewer-dispatches", "dispatches>", "dispatches>-1", "nothing>3%", "dispatches>3x"]
)
def test_what_is_no_condition(text: str):
    with pytest.raises(FuselineError, match="does not understand") as caught:
        condition(text)
    assert caught.value.code == "E0501" and "transient-bytes" in str(caught.value.hint)
