"""What a child does with one seed or one case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.case import Case
from tests.fuzz.check import Finding, check
from tests.fuzz.evaluate import Rejected
from tests.fuzz.generate import make_case

Stage = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Result:
    """The finding of a case (None: right), and what the case was made of."""

    finding: Finding | None
    op_types: tuple[str, ...]
    skipped: str = ""


def work_seed(seed: int, stage: Stage) -> Result:
    """Generate and check the case of a seed."""
    stage("generate")
    return work_case(make_case(seed), stage)


def work_case(case: Case, stage: Stage) -> Result:
    """Check a case; one that the references cannot run is skipped."""
    operators = tuple(case.op_types())
    try:
        return Result(check(case, stage), operators)
    except Rejected as error:
        return Result(None, operators, skipped=str(error))
