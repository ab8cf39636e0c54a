"""What `fuseline bisect` found: the decision, in words and as data."""

from __future__ import annotations

import msgspec

from fuseline.report.quantities import plural, shortened


class Culprit(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a program wrong, or slow.

    `kind`: `fusion` (a merge, `what` is its rule), `kernel` (a family), `rewrite` (a fold of `canonicalize`), `pass`
    (one that could be left out), `needed-pass` (one that could not), `frontend` (the model as it was read),
    `plain-kernel` (the code of a dispatch without any choice), `schedule` (no dispatch by itself). Between two plans:
    `split`, `join`, `regroup` (of groups), `apart`, `may-meet` (what only one of them forbids), `choice` (what it says
    beside groups), `family` (the kernels of what a change of groups made). `ops` are structural ids, or names of ops,
    `nodes` the source nodes behind them.
    """

    kind: str
    what: str
    number: int = -1
    ops: list[str] = msgspec.field(default_factory=list[str])
    nodes: list[str] = msgspec.field(default_factory=list[str])
    detail: str = ""


class BisectResult(msgspec.Struct, frozen=True, kw_only=True):
    """`shown` is what the whole program shows; `culprits` what does it, the cause first, then what it takes beside that
    (a merge, and the family that emits what it made). `fuel` are the options with which it shows and with one less of
    `lacking` no more. `decisions` counts those that were searched, `runs` the programs that were tried.

    Of a merge `alone` says what a compile shows that a plan keeps from this merge and from nothing else: `gone`,
    `there`, `refused` (no program, `alone_detail` is why); empty where no merge does it. `plan` is the text of that
    plan, empty where there is no program.

    `plans` are the files of two plans between which was searched: `decisions` counts what the second decides otherwise,
    `alone` and `plan` are about the second without what was found."""

    model: str
    criterion: str
    shown: str
    culprits: list[Culprit]
    decisions: int
    runs: int
    fuel: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    lacking: str = ""
    alone: str = ""
    alone_detail: str = ""
    plan: str = ""
    plans: list[str] = msgspec.field(default_factory=list[str])


_ALONE = {
    "gone": "A plan that forbids this merge alone: gone",
    "there": "A plan that forbids this merge alone: still there, other merges show it too",
    "refused": "No plan forbids this merge alone",
    "": "",
}

_ALONE_OF_PLANS = {
    "gone": "The second plan without this decision: gone",
    "there": "The second plan without this decision: still there, other decisions show it too",
    "refused": "The second plan without this decision is none",
    "": "",
}

_WORDS = {
    "fusion": "merge number {number}, which rule {what} allows,",
    "kernel": "the kernel of family {what} (choice number {number})",
    "rewrite": "fold {what} of canonicalize (number {number})",
    "pass": "pass {what} (number {number} of those that could be left out)",
    "needed-pass": "pass {what}, which could not be left out,",
    "frontend": "reading the model: {what}",
    "plain-kernel": "the plain kernel of {what}",
    "schedule": "the schedule: {what}",
    "split": "splitting {what}",
    "join": "joining {what}",
    "regroup": "regrouping {what}",
    "apart": "keeping apart {what}",
    "may-meet": "no longer keeping apart {what}",
    "choice": "the choice {what}",
    "family": "the kernel of family {what}, where a plain loop nest is right,",
}

_NAMED = ("split", "join", "regroup", "apart", "may-meet", "choice", "family")
"""What says in `what` which ops it is about, or is said with something that does."""


def verdict(result: BisectResult) -> str:
    """One paragraph."""
    words = [_told(culprit) for culprit in result.culprits]
    cause = "; with it ".join(words)
    between = f" of what {result.plans[1]} decides otherwise than {result.plans[0]}" if result.plans else ""
    found = f"{result.shown}. What does it{between}: {cause}."
    if result.fuel:
        given = " ".join(f"--fuel {kind}={count}" for kind, count in result.fuel.items())
        found += f" {given} shows it, one less of {result.lacking} does not."
    if result.alone:
        detail = f" ({result.alone_detail})" if result.alone_detail else ""
        found += f" {(_ALONE_OF_PLANS if result.plans else _ALONE)[result.alone]}{detail}."
    runs = plural(result.runs, "run")
    return f"{found} Found in {runs} among {plural(result.decisions, 'decision')}."


def _told(culprit: Culprit) -> str:
    about = _WORDS[culprit.kind].format(what=culprit.what, number=culprit.number)
    details = [
        *([f"on {', '.join(culprit.ops)}"] if culprit.ops and culprit.kind not in _NAMED else []),
        *([f"from {shortened(culprit.nodes, 6)}"] if culprit.nodes else []),
        *([culprit.detail] if culprit.detail else []),
    ]
    return " ".join([about, *details])
