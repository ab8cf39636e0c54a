"""A campaign: seeds in turn, findings sorted by what they look like, shrunk once per kind, kept in a folder, resumed
from there."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.case import Case, Choices, save_case
from tests.fuzz.cases import case_of, name_of
from tests.fuzz.finding import Finding
from tests.fuzz.isolate import Answer, run_isolated
from tests.fuzz.shrink import shrink
from tests.fuzz.work import Result, work_case, work_seed, work_seed_fully

Say = Callable[[str], None]

BATCH = 25
PROGRESS = 30.0
"""Seconds between two lines that say how far a campaign is."""

HARMLESS = ("generate", "references")
"""Stages before fuseline runs: where a child dies or hangs there, a reference did."""


@dataclass(slots=True)
class State:
    """What a campaign has done: the next seed, counts by outcome, operator and combination of fusion and numerics, and
    the findings."""

    next_seed: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    operators: Counter[str] = field(default_factory=Counter[str])
    combinations: Counter[str] = field(default_factory=Counter[str])
    findings: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def severe(self) -> int:
        """How many findings are no refusals."""
        return sum(1 for finding in self.findings if finding["severe"])

    def to_json(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        counts = {
            "outcomes": dict(self.outcomes),
            "operators": dict(self.operators),
            "combinations": dict(self.combinations),
        }
        return {"next_seed": self.next_seed, **counts, "findings": self.findings}

    def summary(self) -> str:
        """One line."""
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common())
        return (
            f"{self.outcomes.total()} graphs with {len(self.operators)} operators: {counts}; {self.severe} unexplained"
        )


class Campaign:
    """Runs cases and keeps what they show in `folder` (state.json, one .onnx per finding); without a folder nothing is
    written.

    Args:
        say: takes a line of text as findings turn up, and how far it is every half minute. fully: whether a graph is
        compiled for every combination of fusion and numerics, not for the one that its seed draws. shrinks: whether
        findings are made small. seconds: the longest time for one graph.
    """

    def __init__(
        self, folder: Path | None, say: Say, *, fully: bool = False, shrinks: bool = True, seconds: float = 60.0
    ) -> None:
        self.folder, self.say, self.shrinks, self.seconds = folder, say, shrinks, seconds
        self.work = work_seed_fully if fully else work_seed
        self.state = State()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._resume(folder / "state.json")

    def run(self, first: int | None = None, count: int | None = None, seconds: float | None = None) -> State:
        """Seeds from `first` (default: where the last run stopped) until `count` are done or `seconds` have passed."""
        start, done = time.monotonic(), 0
        told = start
        self.state.next_seed = self.state.next_seed if first is None else first
        while (count is None or done < count) and (seconds is None or time.monotonic() - start < seconds):
            size = BATCH if count is None else min(BATCH, count - done)
            for answer in run_isolated(
                range(self.state.next_seed, self.state.next_seed + size), self.work, seconds=self.seconds, batch=size
            ):
                self._take(answer)
            done += size
            self.state.next_seed += size
            self._keep()
            if time.monotonic() - told > PROGRESS:
                told = time.monotonic()
                rate = done / (told - start)
                self.say(f"seed {name_of(self.state.next_seed)}, {rate:.1f} a second: {self.state.summary()}")
        return self.state

    def _take(self, answer: Answer) -> None:
        finding, result = finding_of(answer)
        if result is not None:
            self.state.operators.update(set(result.op_types))
            self.state.combinations.update(result.combinations)
        outcome = "right" if finding is None else finding.kind
        if (result is not None and result.skipped) or (finding is not None and finding.kind == "reference"):
            outcome, finding = "not comparable", None
        self.state.outcomes[outcome] += 1
        if finding is not None:
            self._note(int(answer.item), finding)

    def _note(self, seed: int, finding: Finding) -> None:
        case = case_of(seed)
        case = case.replace(choices=finding.choices or _choices_at(case.choices, finding.extra.get("stage", "")))
        if self.shrinks and finding.severe:
            case, finding = shrunk(case, finding, self.seconds)
        signature = signature_of(finding, case)
        if any(other["signature"] == signature for other in self.state.findings):
            return
        entry = {**asdict(finding), "choices": asdict(case.choices), "severe": finding.severe}
        self.state.findings.append({**entry, "seed": seed, "signature": signature, "operators": case.op_types()})
        self.say(
            f"seed {name_of(seed)}: {finding.kind} at {case.choices.combination}: {' '.join(case.op_types())}: "
            f"{finding.detail.strip()[-600:]}"
        )
        if self.folder is not None:
            save_case(case, self.folder / f"{finding.kind}_{name_of(seed)}.onnx")

    def _resume(self, path: Path) -> None:
        if path.exists():
            data = json.loads(path.read_text())
            self.state = State(
                data["next_seed"],
                Counter(data["outcomes"]),
                Counter(data["operators"]),
                Counter(data["combinations"]),
                data["findings"],
            )

    def _keep(self) -> None:
        if self.folder is not None:
            temporary = self.folder / "state.json.new"
            temporary.write_text(json.dumps(self.state.to_json(), indent=1))
            temporary.replace(self.folder / "state.json")


def finding_of(answer: Answer) -> tuple[Finding | None, Result | None]:
    """What an answer shows; kind `reference` where a reference died."""
    if not answer.failure:
        return answer.value.finding, answer.value
    kind = "reference" if answer.failure != "error" and answer.stage.split(":")[0] in HARMLESS else answer.failure
    return Finding(kind, f"{answer.failure} in {answer.stage}", extra={"stage": answer.stage}), None


def _choices_at(choices: Choices, stage: str) -> Choices:
    """The choices under which a child came to a stage such as `run none/strict`."""
    return next((one for one in choices.every_combination() if one.combination in stage.split()), choices)


def shrunk(case: Case, finding: Finding, seconds: float) -> tuple[Case, Finding]:
    """The smallest case with a finding of the same kind (the same exception, too), and that finding."""
    latest = [finding]

    def still(smaller: Case) -> bool:
        answer = next(iter(run_isolated([smaller], work_case, seconds=seconds)))
        found, _ = finding_of(answer)
        same = found is not None and found.kind == finding.kind and found.severe and _head(found) == _head(finding)
        if same and found is not None:
            latest[0] = found
        return same

    return shrink(case, still), latest[0]


def _head(finding: Finding) -> str:
    """What must not change while a case shrinks: the exception, the code."""
    if finding.kind == "traceback":
        return finding.detail.strip().splitlines()[-1].split(":")[0]
    return finding.detail.split(":")[0].split(" ")[0] if finding.kind in ("internal", "refused") else ""


def signature_of(finding: Finding, case: Case) -> str:
    """Findings that look the same are kept once: kind, operators of the shrunk model, and the message without names and
    numbers."""
    coded = finding.kind in ("traceback", "internal", "refused")
    message = finding.detail.strip().splitlines()[-1] if coded else ""
    operators = "" if coded else " ".join(case.op_types())
    plain = re.sub(r"[0-9]+", "#", re.sub(r"\[[^]]*\]", "[]", message))
    return f"{finding.kind}|{operators}|{plain[:120]}"


def run_all(cases: Iterator[Case]) -> Iterator[tuple[Case, Finding | None]]:
    """Check cases that are kept, each in a child of its own."""
    listed = list(cases)
    for case, answer in zip(listed, run_isolated(listed, work_case), strict=True):
        yield case, finding_of(answer)[0]
