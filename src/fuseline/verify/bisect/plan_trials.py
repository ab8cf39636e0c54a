"""Programs between two plans: of what the second decides otherwise so much is done, the rest is as in the first."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any

from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.ir.fuel import Decision, Fuel
from fuseline.passes.fusion.plan import FusionPlan, Ids, id_of, spelled
from fuseline.report.records import CompileRecord
from fuseline.verify.bisect.criterion import Criterion
from fuseline.verify.bisect.plan_changes import PlanChange, PlanState, as_tuned, with_choices_of
from fuseline.verify.bisect.plan_steps import Merges
from fuseline.verify.bisect.trial import Outcome, Trials

PLAN = "plan"
"""The kind of decision that is limited here."""

Tell = Callable[[str, int], object]


class PlanTrials:
    """Compiles of `source` from the state `start` with some of `changes`; what was tried once is not tried again.
    `record`: of a compile of the same ops, for their names. `keeps`: programs are kept, with their weights."""

    def __init__(
        self,
        source: Any,
        options: CompileOptions,
        start: PlanState,
        changes: Sequence[PlanChange],
        criterion: Criterion,
        record: CompileRecord,
        tell: Tell = lambda what, runs: None,
        *,
        keeps: bool = False,
    ) -> None:
        self.changes = list(changes)
        self._keeps = keeps
        self._source, self._options, self._start = source, options, start
        self._criterion, self._record, self._tell = criterion, record, tell
        self._known: dict[Hashable, Outcome] = {}

    @property
    def runs(self) -> int:
        """How many programs were compiled and judged."""
        return len(self._known)

    def judging(self, criterion: Criterion) -> PlanTrials:
        """The same programs, judged otherwise, nothing tried yet."""
        found = copy(self)
        found._criterion, found._known = criterion, {}
        return found

    def with_steps(self, number: int, steps: Sequence[PlanChange]) -> PlanTrials:
        """The same programs with change `number` as several; what was tried stays known."""
        found = copy(self)
        found.changes = [*self.changes[:number], *steps, *self.changes[number + 1 :]]
        return found

    def __call__(self, limits: Mapping[str, int]) -> Outcome:
        """The outcome with the first `limits[PLAN]` changes (default: all), and fuel of other kinds."""
        count = limits.get(PLAN, len(self.changes))
        outcome = self._first(count, {kind: number for kind, number in limits.items() if kind != PLAN})
        made = enumerate(self.changes[:count])
        return replace(outcome, decisions=[Decision(PLAN, number, one.kind, one.ops) for number, one in made])

    def merges(self, count: int) -> Merges:
        """The ops that each merge of the program with the first `count` changes brought together, in order."""
        return [tuple(map(id_of, merge.ops)) for merge in self._first(count, {}).of_kind("fusion")]

    def without(self, numbers: Collection[int]) -> Outcome:
        """The outcome with all changes but these."""
        return self._tried(self._but(numbers), {}, "all decisions but what was found")

    def plan_without(self, numbers: Collection[int], head: str) -> str:
        """The plan of all changes but these as text."""
        return spelled(plan_of(self._state(self._but(numbers))), self._record, head)

    def why_not(self, numbers: Collection[int]) -> str:
        """Why there is no program with all changes but these."""
        try:
            self._compile(self._state(self._but(numbers)))
        except FuselineError as error:
            return f"{error.code}: {error.message}"
        return ""

    def compile_all(self) -> None:
        """The program with all changes once more. Raises what compiling raises."""
        self._compile(self._state(self.changes))

    def _first(self, count: int, fuel: Mapping[str, int]) -> Outcome:
        return self._tried(self.changes[:count], fuel, f"{count} of {len(self.changes)} decisions")

    def _but(self, numbers: Collection[int]) -> list[PlanChange]:
        return [change for number, change in enumerate(self.changes) if number not in numbers]

    def _state(self, made: Sequence[PlanChange]) -> PlanState:
        return reduce(lambda state, change: change.on(state), made, self._start)

    def _tried(self, made: Sequence[PlanChange], fuel: Mapping[str, int], words: str) -> Outcome:
        state = self._state(made)
        key = (state.groups, state.forbid, frozenset(state.choices.items()), frozenset(fuel.items()))
        if key not in self._known:
            self._tell(words, len(self._known))
            with self._trials(state) as trials:
                self._known[key] = trials(fuel)
        return self._known[key]

    def _compile(self, state: PlanState) -> None:
        with self._trials(state) as trials:
            trials.compile_once(Fuel())

    @contextmanager
    def _trials(self, state: PlanState) -> Generator[Trials]:
        options = replace(with_choices_of(self._options, state.choices), plan_strict=False)
        with tempfile.TemporaryDirectory(prefix="fuseline-") as folder:
            path = Path(folder) / "between.plan"
            path.write_text(spelled(plan_of(state), self._record), encoding="utf-8")
            yield Trials(self._source, replace(options, plan=path), self._criterion, keeps=self._keeps)


def plan_of(state: PlanState) -> FusionPlan:
    """The plan that asks for a state. A group that was not parted keeps what a set of its plan would keep apart."""
    forbid = [ids for kept in sorted(state.forbid) for ids in _across(kept, state.groups)]
    return FusionPlan(groups=tuple(sorted(state.groups)), forbid=tuple(forbid), tuned=as_tuned(state.choices))


def _across(ids: Ids, groups: Collection[Ids]) -> Iterable[Ids]:
    """What a set keeps apart of different groups: itself, or pairs where some of it share one."""
    home = {id: group for group in groups for id in group}
    if len({home.get(id, (id,)) for id in ids}) == len(ids):
        return [ids]
    return [pair for pair in combinations(ids, 2) if home.get(pair[0]) != home.get(pair[1])]
