"""The conditions of `diff --fail-if`: each looks at its statistic, and says so where that was not saved."""

from __future__ import annotations

import msgspec
import pytest

from fuseline.errors import FuselineError
from fuseline.report.records import CompileRecord
from fuseline.report.regressions import STATISTIC_OF, regression
from tests.unit.report.records import RECORD


def _record(statistic: str, value: int) -> CompileRecord:
    head, _, rest = statistic.partition(".")
    return CompileRecord(statistics={head: {rest: value} if rest else value})


@pytest.mark.parametrize("condition", STATISTIC_OF)
def test_only_growth_is_a_regression(condition: str):
    statistic = STATISTIC_OF[condition]
    assert regression(condition, _record(statistic, 3), _record(statistic, 4)) == f"{statistic}: 3 -> 4"
    assert regression(condition, _record(statistic, 3), _record(statistic, 3)) is None
    assert regression(condition, _record(statistic, 4), _record(statistic, 3)) is None


def test_missed_edges_are_summed_over_reasons():
    worse = msgspec.structs.replace(RECORD, statistics={"edges": {"fused": 0, "missed": {"scratch": 1, "cycle": 2}}})
    none = msgspec.structs.replace(RECORD, statistics={"edges": {"fused": 2, "missed": {}}})
    assert regression("more-missed", RECORD, worse) == "edges.missed: 1 -> 3"
    assert regression("more-missed", none, RECORD) == "edges.missed: 0 -> 1"


def test_what_was_not_saved_cannot_be_a_condition():
    with pytest.raises(FuselineError, match="needs code_bytes, which was not saved") as caught:
        regression("more-code-bytes", RECORD, RECORD)
    assert caught.value.code == "E0501"
