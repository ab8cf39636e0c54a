"""Mutated files are refused with a code, or right. `make fuzz-files` tries thousands; those that were bad are tests
where they were mended."""

from __future__ import annotations

import json

import pytest

from tests.fuzz.mutants import __main__ as command
from tests.fuzz.mutants import work
from tests.fuzz.mutants.campaign import run_mutants
from tests.fuzz.mutants.work import KINDS

FILES = 20


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_mutated_files(kind: str):
    outcomes = run_mutants(kind, 0, FILES, lambda _: None)
    assert outcomes.counts.total() == FILES and not outcomes.bad, outcomes.bad


def test_what_has_no_code_is_bad(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def broken(*_: object) -> str:
        raise ZeroDivisionError("3 / 0")

    monkeypatch.setitem(work.KINDS, "plan", broken)
    assert command.main(["--kind", "plan", "--count", "3", "--json"]) == 1
    out, err = capsys.readouterr()
    (reason,) = (found := json.loads(out)["plan"])["bad"]
    assert (
        "error" in reason and "ZeroDivisionError" in reason and found["counts"] == {"bad": 3} and "plan 0: BAD" in err
    )
