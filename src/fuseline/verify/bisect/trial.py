"""One compile with so much fuel, judged; what was tried once is not tried again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fuseline.border import coded
from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.ir.fuel import Decision, Fuel
from fuseline.runtime.artifact import Artifact
from fuseline.verify.bisect.criterion import Criterion, judged

Limits = Mapping[str, int]
"""Fuel by kind; a kind that is left out has no limit."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a program with this fuel shows (empty: nothing), the decisions that made it, whether there is one, and it
    itself, where trials keep programs; `records` is its record as JSON bytes."""

    shown: str
    decisions: Sequence[Decision]
    artifact: Artifact | None
    compiled: bool = True
    records: bytes = b""

    def of_kind(self, kind: str) -> list[Decision]:
        """The decisions of a kind, in order."""
        return [one for one in self.decisions if one.kind == kind]


class Tried(Protocol):
    """Outcomes by how many decisions of each kind may be made."""

    def __call__(self, limits: Limits) -> Outcome:
        """The outcome where kinds that are named have a limit."""
        ...


class Trials:
    """Compiles of `source`. `tell` is called with what is tried and how many runs there were. `keeps`: programs are
    kept, with their weights, until the trials are gone."""

    def __init__(
        self,
        source: Any,
        options: CompileOptions,
        criterion: Criterion,
        tell: Callable[[str, int], object] = lambda what, runs: None,
        *,
        keeps: bool = False,
    ) -> None:
        self._keeps = keeps
        self._source, self._options, self._criterion, self._tell = source, options, criterion, tell
        self._known: dict[tuple[tuple[str, int], ...], Outcome] = {}

    @property
    def options(self) -> CompileOptions:
        """How programs are compiled."""
        return self._options

    def under(self, options: CompileOptions) -> Trials:
        """Trials under other options, nothing tried yet; their programs are kept."""
        return Trials(self._source, options, self._criterion, self._tell, keeps=True)

    @property
    def runs(self) -> int:
        """How many programs were compiled and judged."""
        return len(self._known)

    def __call__(self, limits: Limits) -> Outcome:
        """The outcome for some fuel. Raises what the criterion raises; what compiling raises is an outcome."""
        key = tuple(sorted(limits.items()))
        if key not in self._known:
            self._tell(", ".join(f"{kind}={number}" for kind, number in key) or "all", len(self._known))
            fuel = Fuel(dict(limits))
            shown, artifact = judged(lambda: self.compile_once(fuel), self._criterion)
            kept = artifact if self._keeps else None
            records = b"" if artifact is None else bytes(artifact.records)
            self._known[key] = Outcome(shown, tuple(fuel.spent), kept, artifact is not None, records)
        return self._known[key]

    def compile_once(self, fuel: Fuel) -> Artifact:
        """The program with some fuel. Raises what compiling raises."""
        try:
            return compile_program(self._source, replace(self._options, fuel=fuel, cache=False, progress=None))
        except FuselineError:
            raise
        except Exception as problem:
            raise coded(problem, "compile") from problem
