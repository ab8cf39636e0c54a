"""A merge that is found guilty, forbidden by a plan while all else is as ever: is what was looked for gone then?

merges       a+b   c+d   ab+cd (guilty: its edges are b -> c and b -> d)
sides                    {b} {c, d}
forbid                   [[b, c], [b, d]]     nothing that is together before it is kept apart
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.ir.fuel import Decision, Fuel
from fuseline.passes.fusion.plan import FusionPlan, Ids, id_of, read_plan, spelled
from fuseline.report.quantities import shortened
from fuseline.report.records import CompileRecord, decode
from fuseline.runtime.artifact import Artifact
from fuseline.verify.bisect.trial import Outcome, Trials


class WithoutMerge(NamedTuple):
    """The plan as text, and what comes of it; `refused`: why there is no program, `plan` is empty then."""

    plan: str
    outcome: Outcome
    refused: str = ""


def pairs_apart(merge: Decision, made: Sequence[Decision]) -> list[Ids]:
    """The pairs of ids that a plan has to keep apart so that `merge` is not made, `made` being all decisions up to it:
    those of its ops that no merge before it brought together."""
    home: dict[str, int] = {}
    for number, earlier in enumerate(one for one in made if one.kind == "fusion" and one.number < merge.number):
        joined = {home[op] for op in earlier.ops if op in home}
        home.update({op: number for op, at in home.items() if at in joined} | dict.fromkeys(earlier.ops, number))
    ops = list(dict.fromkeys(merge.ops))
    return [
        (id_of(one), id_of(other))
        for one, other in combinations(ops, 2)
        if one not in home or home.get(one) != home.get(other)
    ]


def without_merge(trials: Trials, merge: Decision, made: Sequence[Decision]) -> WithoutMerge:
    """The program of `trials` with all decisions but this merge. Raises E0701 for a plan of the user that cannot be
    read, and what the criterion raises."""
    options = trials.options
    given = FusionPlan() if options.plan is None else read_plan(options.plan)
    plan = replace(given, forbid=(*given.forbid, *pairs_apart(merge, made)))
    with tempfile.TemporaryDirectory(prefix="fuseline-") as folder:
        path = Path(folder) / "forbidden.plan"
        path.write_text(spelled(plan, CompileRecord()), encoding="utf-8")
        tried = trials.under(_planned(options, path))
        outcome = tried({})
        if outcome.artifact is None and not outcome.shown:
            return WithoutMerge("", outcome, _why_not(tried))
    return WithoutMerge(spelled(plan, _record(outcome.artifact), _head(merge)), outcome)


def _planned(options: CompileOptions, path: Path) -> CompileOptions:
    """A pair of ids that is not there would forbid nothing, so it is refused; stale entries of the user's are not."""
    return replace(options, plan=path, plan_strict=options.plan_strict or options.plan is None)


def _why_not(trials: Trials) -> str:
    try:
        trials.compile_once(Fuel())
    except FuselineError as error:
        return f"{error.code}: {error.message}"
    return ""


def _record(artifact: Artifact | None) -> CompileRecord:
    return CompileRecord() if artifact is None else decode(artifact.records)


def _head(merge: Decision) -> str:
    about = shortened(list(merge.nodes), 6) or ", ".join(merge.ops)
    about = "".join(letter if letter.isprintable() else "?" for letter in about)
    return f"# `fuseline bisect` found this merge guilty ({merge.what}: {about}); the plan forbids it.\n"
