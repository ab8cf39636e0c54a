"""A fit from records: those that were measured on this kind of machine for this target, how well they are predicted
before and after, and the costs of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from fuseline.errors import FuselineError
from fuseline.ir.work_costs import ASSUMED_WORK_COSTS, WorkCosts
from fuseline.tuning.fit.classes import classes_of
from fuseline.tuning.fit.least_squares import LEAST_MODELS, fitted
from fuseline.tuning.fit.records import ProgramSamples
from fuseline.tuning.fit.validation import LeftOut, cross_validated
from fuseline.tuning.machine_kind import machine_kind


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a fit.

    Attributes:
        costs: fitted to all records that count. models: how each is predicted by costs that were fitted to the others.
        other_machines, other_targets: how many records were left out, and why.
    """

    costs: WorkCosts
    models: tuple[LeftOut, ...]
    other_machines: int = 0
    other_targets: int = 0


def fit(
    records: Sequence[ProgramSamples],
    target: str,
    before: WorkCosts,
    progress: Callable[[str, int, int], None] = lambda phase, done, total: None,
) -> Fit:
    """The fit of `records` for `target`, compared with the costs `before`.

    What no record shows stays as it is in `before`; else fits begin where a machine begins that nobody has measured, so
    that a second fit of the same records finds the same.

    Raises FuselineError: E0501 where too little is left to fit, E0503 without scipy.
    """
    machine = machine_kind()
    here = [record for record in records if record.machine == machine]
    mine = [record for record in here if record.target == target]
    others = len(records) - len(here), len(here) - len(mine)
    programs = classes_of(mine)
    try:
        costs = fitted(programs, ASSUMED_WORK_COSTS, before)
    except FuselineError as error:
        if not any(others) or error.code != "E0501":
            raise
        left_out = f"{others[0]} records of other machines and {others[1]} of other targets were left out"
        raise FuselineError("E0501", f"{error.message}; {left_out}", hint=error.hint) from error
    enough = len({one.digest for one in programs}) > LEAST_MODELS
    rows = cross_validated(programs, ASSUMED_WORK_COSTS, before, progress) if enough else []
    return Fit(costs=costs, models=tuple(rows), other_machines=others[0], other_targets=others[1])
