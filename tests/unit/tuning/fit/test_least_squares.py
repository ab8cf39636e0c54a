"""Costs that times were made with are found again, whatever disturbed some of the times."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.ir.work_costs import KINDS, WorkCosts
from fuseline.tuning.fit.classes import classes_of
from fuseline.tuning.fit.least_squares import SPAN, fitted
from fuseline.tuning.fit.records import ProgramSamples
from tests.unit.tuning.fit.measured import TRUE, USED, program

START = WorkCosts()


def _fit(*records: ProgramSamples) -> WorkCosts:
    return fitted(classes_of(records), START)


def test_known_costs_are_recovered_and_what_no_data_show_stays():
    costs = _fit(*(program(f"m{i}", 25, threads=1 + i % 2) for i in range(6)))
    for kind in ("launch", "barrier", *USED):
        assert getattr(costs, kind) == pytest.approx(getattr(TRUE, kind), rel=0.1), kind
    assert all(getattr(costs, kind) == getattr(START, kind) for kind in KINDS if kind not in USED)


def test_outliers_move_the_costs_little():
    disturbed = _fit(*(program(f"m{i}", 25, outliers=3) for i in range(6)))
    for kind in USED:
        assert getattr(disturbed, kind) == pytest.approx(getattr(TRUE, kind), rel=0.2), kind


def test_costs_stay_within_what_a_machine_can_have():
    slow = WorkCosts(**{name: 1e6 * getattr(START, name) for name in ("launch", *USED)})
    costs = _fit(*(program(f"m{i}", costs=slow) for i in range(3)))
    assert all(0 < getattr(costs, kind) <= 1.01 * SPAN * getattr(START, kind) for kind in ("launch", *KINDS))


@pytest.mark.parametrize("records", [1, 0])
def test_too_few_models_are_refused(records: int):
    with pytest.raises(FuselineError, match="too few") as caught:
        _fit(*(program("m", 40) for _ in range(records)))
    assert caught.value.code == "E0501"


def test_too_few_different_dispatches_are_refused():
    with pytest.raises(FuselineError, match="too few"):
        _fit(program("a", 3), program("b", 3))


def test_dispatches_of_one_kind_are_refused():
    records = [program(name, 20) for name in ("a", "b")]
    alike = [_only(record, "product") for record in records]
    with pytest.raises(FuselineError, match="one kind of work: product") as caught:
        _fit(*alike)
    assert caught.value.code == "E0501"


def _only(record: ProgramSamples, kind: str) -> ProgramSamples:
    import msgspec

    found = [msgspec.structs.replace(one, work={kind: 1e9 * (1 + i)}) for i, one in enumerate(record.dispatches)]
    return msgspec.structs.replace(record, dispatches=tuple(found))


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(FuselineError) as caught:
        _fit(program("a"), program("b"))
    assert caught.value.code == "E0503" and "fuseline[tune]" in str(caught.value.hint)


def test_equal_launches_are_one_class_with_the_least_of_their_times():
    import msgspec

    record = program("m", 2)
    first, second = record.dispatches
    again = msgspec.structs.replace(first, name="002", seconds=first.seconds / 2)
    (found,) = classes_of([msgspec.structs.replace(record, dispatches=(first, second, again)), record])
    assert list(found.counts) == [1, 1]  # of the last round
    (found,) = classes_of([record, msgspec.structs.replace(record, dispatches=(first, second, again), round=1)])
    assert list(found.counts) == [2, 1] and found.seconds[0] == first.seconds / 2
    assert np.array_equal(found.each(found.counts), [2, 2, 1])
