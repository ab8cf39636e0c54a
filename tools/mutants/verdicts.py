"""What became of each mutant, the ones known to change nothing, and the sums."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .changes import Mutant, module_name
from .forks import Outcome

KILLED, SURVIVED, UNREACHED, EQUIVALENT, UNPLACED = "killed", "survived", "unreached", "equivalent", "unplaced"
"""`unreached`: no test runs the line, which counts as survived. `unplaced`: no live function has the code, which counts
for nothing."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, and the test that noticed it ("" where none did, or where time or memory ran out)."""

    kind: str
    by: str = ""

    @property
    def left(self) -> bool:
        """Did nothing notice it?"""
        return self.kind in (SURVIVED, UNREACHED)


def verdict(outcome: Outcome) -> Verdict:
    """Read a child's answer: one that ended by a signal, or that raised past the test, was noticed."""
    value = outcome.value
    if outcome.signal or not isinstance(value, dict) or "error" in value:
        return Verdict(KILLED)
    if not value["tests"]:
        return Verdict(UNREACHED)
    if not value["placed"]:
        return Verdict(UNPLACED)
    return Verdict(KILLED, value["killer"]) if value["killer"] else Verdict(SURVIVED)


@dataclass(frozen=True)
class Equivalents:
    """Mutants that change nothing that can be seen: (module.function, removed lines, added lines) -> the reason.

    `patterns` are regular expressions of what may change, or go, anywhere: a mutant that changes only such text is
    equivalent, too.
    """

    reasons: Mapping[tuple[str, str, str], str]
    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def read(cls, place: Path) -> Equivalents:
        """From TOML: tables `mutant` of `function`, `removed`, `added` and `reason`, tables `pattern` of `text` and
        `reason`."""
        found = tomllib.loads(place.read_text(encoding="utf-8"))
        reasons = {
            (entry["function"], entry["removed"], entry["added"]): entry["reason"] for entry in found.get("mutant", [])
        }
        return cls(reasons, tuple(re.compile(entry["text"]) for entry in found.get("pattern", [])))

    def __contains__(self, mutant: Mutant) -> bool:
        if (f"{module_name(mutant.file)}.{mutant.function}", mutant.removed, mutant.added) in self.reasons:
            return True
        return any(pattern.sub("", mutant.removed) == pattern.sub("", mutant.added) for pattern in self.patterns)


def area(file: str) -> str:
    """The part of the compiler a file belongs to.

    >>> area("src/fuseline/passes/layout/rewriting/pads.py"), area("src/fuseline/analysis/walks.py")
    ('passes/layout', 'analysis')
    """
    parts = Path(file).parts[2:-1]
    return "/".join(parts[:2]) if parts[0] == "passes" else parts[0] if parts[0] == "analysis" else "/".join(parts)


@dataclass(frozen=True)
class Summary:
    """The verdicts of a sample."""

    verdicts: Mapping[str, Verdict]
    mutants: Mapping[str, Mutant]

    @property
    def left(self) -> list[Mutant]:
        """The mutants that nothing noticed, in order."""
        return [self.mutants[name] for name in sorted(self.verdicts) if self.verdicts[name].left]

    @property
    def share(self) -> float:
        """Percent that nothing noticed, of those that could be noticed."""
        kinds = Counter(verdict.kind for verdict in self.verdicts.values())
        return 100.0 * len(self.left) / max(kinds[KILLED] + len(self.left), 1)

    def by_area(self) -> dict[str, Counter[str]]:
        """How many mutants of each kind there are in each area."""
        found: dict[str, Counter[str]] = {}
        for name in sorted(self.verdicts):
            found.setdefault(area(self.mutants[name].file), Counter())[self.verdicts[name].kind] += 1
        return found


def as_json(summary: Summary, seed: int, allowed: float) -> dict[str, Any]:
    """The summary as `--json` prints it."""
    left = [
        {"name": mutant.name, "kind": summary.verdicts[mutant.name].kind, "diff": mutant.diff}
        for mutant in summary.left
    ]
    areas = {name: dict(kinds) for name, kinds in summary.by_area().items()}
    killers = {name: verdict.by for name, verdict in summary.verdicts.items() if verdict.kind == KILLED}
    figures = {"seed": seed, "ran": len(summary.verdicts), "percent": round(summary.share, 1), "allowed": allowed}
    return {"schema": 2, **figures, "areas": areas, "left": left, "killed_by": killers}


def table(summary: Summary) -> Sequence[str]:
    """The summary as lines: the survivors' diffs, a line per area, the share."""
    lines = [f"{mutant.diff}\n  ({summary.verdicts[mutant.name].kind})" for mutant in summary.left]
    for name, kinds in sorted(summary.by_area().items()):
        lines.append(
            f"{name:24} "
            + "  ".join(f"{kind} {kinds[kind]}" for kind in (KILLED, SURVIVED, UNREACHED, EQUIVALENT, UNPLACED))
        )
    return [*lines, f"{len(summary.left)} of {len(summary.verdicts)} mutants left: {summary.share:.1f} %"]
