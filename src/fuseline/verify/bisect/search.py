"""The first decision of a kind with which a program is wrong, by halving.

fuel   0 ......... k-1   k ......... n
shows  no           no  yes         yes      decision number k - 1 is it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fuseline.ir.fuel import Decision
from fuseline.verify.bisect.halving import halved
from fuseline.verify.bisect.trial import Tried

ORDER = ("fusion", "kernel", "rewrite", "pass")
"""In which order kinds are turned off, each with those before it: what is left on then is still at fault."""


class Guilty(NamedTuple):
    """A decision, the fuel with which a program is wrong (one less: right), and what the wrong one shows."""

    decision: Decision
    limits: Mapping[str, int]
    shown: str


def guilty(trials: Tried) -> Guilty | None:
    """The decision with which a program becomes wrong; None where it is wrong without any. The program with all of them
    is wrong."""
    off: dict[str, int] = {}
    for kind in ORDER:
        without = trials({**off, kind: 0})
        if not without.shown:
            return first_of(trials, kind, off)
        off[kind] = 0
    return None


def first_of(trials: Tried, kind: str, off: Mapping[str, int]) -> Guilty:
    """The first decision of `kind` with which it shows, other kinds limited to `off`: with all of them it does, without
    any it does not."""
    count = len(trials(off).of_kind(kind))
    _, wrong = halved(lambda number: bool(trials({**off, kind: number}).shown), 0, count)
    limits = {**off, kind: wrong}
    outcome = trials(limits)
    return Guilty(outcome.of_kind(kind)[wrong - 1], limits, outcome.shown)
