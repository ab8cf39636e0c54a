"""Where an outcome's dispatches say what choices did: paired times are taken, and noise is no difference."""

from __future__ import annotations

import msgspec
import pytest

from fuseline.tuning.attributed import is_noise, relative_time
from fuseline.tuning.trial import TrialOutcome

OPS = frozenset({"a", "b"})
BASE = TrialOutcome(number=0, state="complete", dispatch_seconds={"a+b": 4e-3, "c": 1e-3})
TRIAL = TrialOutcome(
    number=1,
    state="complete",
    dispatch_seconds={"a": 1e-3, "b": 1e-3, "c": 2e-3},
    incumbent_dispatch_seconds={"a+b": 2.2e-3, "c": 2e-3},
    dispatch_error={"a": 0.3e-4, "b": 0.4e-4, "a+b": 0.0},
)


def test_times_of_the_same_rounds_are_taken():
    assert relative_time(TRIAL, BASE, OPS, OPS) == pytest.approx(2 / 2.2)
    alone = msgspec.structs.replace(TRIAL, incumbent_dispatch_seconds={})
    assert relative_time(alone, BASE, OPS, OPS) == pytest.approx(0.25)  # the machine was at half its pace


@pytest.mark.parametrize(("before", "noise"), [(2.2e-3, False), (2.09e-3, True), (1.9e-3, True), (1.8e-3, False)])
def test_a_difference_of_less_than_two_errors_is_noise(before: float, noise: bool):
    """The error of the sum of both is 0.05 ms."""
    times = {**TRIAL.incumbent_dispatch_seconds, "a+b": before + (1e-9 if before < 2e-3 else 0)}
    assert is_noise(msgspec.structs.replace(TRIAL, incumbent_dispatch_seconds=times), OPS) is noise
    assert not is_noise(BASE, OPS)
