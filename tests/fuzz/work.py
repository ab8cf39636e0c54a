"""What a child does with one seed or one case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.fuzz.case import Case
from tests.fuzz.cases import case_of
from tests.fuzz.check import check, check_all
from tests.fuzz.evaluate import Rejected
from tests.fuzz.finding import Finding

Stage = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Result:
    """The finding of a case (None: right), what the case was made of, and the combinations of fusion and numerics that
    it was compiled for."""

    finding: Finding | None
    op_types: tuple[str, ...]
    combinations: tuple[str, ...] = ()
    skipped: str = ""


def work_seed(seed: int, stage: Stage) -> Result:
    """Generate and check the case of a seed, under the combination that it draws."""
    stage("generate")
    return work_case(case_of(seed), stage)


def work_seed_fully(seed: int, stage: Stage) -> Result:
    """The same, under every combination; the first severe finding ends it."""
    stage("generate")
    case = case_of(seed)
    result = Result(None, tuple(case.op_types()))
    try:
        for choices, finding in check_all(case, stage):
            result = replace(
                result, combinations=(*result.combinations, choices.combination), finding=finding or result.finding
            )
            if finding is not None and finding.severe:
                break
    except Rejected as error:
        return replace(result, skipped=str(error))
    return result


def work_case(case: Case, stage: Stage) -> Result:
    """Check a case; one that the references cannot run is skipped."""
    operators: Sequence[str] = case.op_types()
    try:
        return Result(check(case, stage), tuple(operators), (case.choices.combination,))
    except Rejected as error:
        return Result(None, tuple(operators), skipped=str(error))
