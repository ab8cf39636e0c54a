"""A campaign: seeds in turn, findings sorted by what they look like, shrunk once per kind, kept in a folder, resumed from there."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.case import Case, save_case
from tests.fuzz.check import Finding
from tests.fuzz.generate import make_case
from tests.fuzz.isolate import Answer, run_isolated
from tests.fuzz.shrink import shrink
from tests.fuzz.work import Result, work_case, work_seed

Say = Callable[[str], None]

BATCH = 25
HARMLESS = ("generate", "references")
"""Stages before fuseline runs: what fails there is the references' own failure."""


@dataclass(slots=True)
class State:
    """What a campaign has done: the next seed, counts by outcome and by operator, and the findings."""

    next_seed: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    operators: Counter[str] = field(default_factory=Counter[str])
    findings: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def severe(self) -> int:
        """How many findings are neither refusals nor known."""
        return sum(1 for finding in self.findings if finding["severe"])

    def to_json(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return {"next_seed": self.next_seed, "outcomes": dict(self.outcomes), "operators": dict(self.operators), "findings": self.findings}


class Campaign:
    """Runs cases and keeps what they show in `folder` (state.json, one .onnx per finding); without a folder nothing is written.

    Args:
        say: takes a line of text as findings turn up.
        shrinks: whether findings are made small.
    """

    def __init__(self, folder: Path | None, say: Say, *, shrinks: bool = True, seconds: float = 60.0) -> None:
        self.folder, self.say, self.shrinks, self.seconds = folder, say, shrinks, seconds
        self.state = State()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._resume(folder / "state.json")

    def run(self, first: int | None = None, count: int | None = None, seconds: float | None = None) -> State:
        """Seeds from `first` (default: where the last run stopped) until `count` are done or `seconds` have passed."""
        start, done = time.monotonic(), 0
        self.state.next_seed = self.state.next_seed if first is None else first
        while (count is None or done < count) and (seconds is None or time.monotonic() - start < seconds):
            size = BATCH if count is None else min(BATCH, count - done)
            for answer in run_isolated(range(self.state.next_seed, self.state.next_seed + size), work_seed, seconds=self.seconds, batch=size):
                self._take(answer)
            done += size
            self.state.next_seed += size
            self._keep()
        return self.state

    def _take(self, answer: Answer) -> None:
        finding, result = finding_of(answer)
        if result is not None:
            self.state.operators.update(set(result.op_types))
        outcome = "right" if finding is None else f"{finding.kind} (known)" if finding.known else finding.kind
        if (result is not None and result.skipped) or (finding is not None and finding.kind == "reference"):
            outcome, finding = "not comparable", None
        self.state.outcomes[outcome] += 1
        if finding is not None:
            self._note(int(answer.item), finding)

    def _note(self, seed: int, finding: Finding) -> None:
        case = make_case(seed) if finding.kind not in ("crash", "hang") or not finding.extra.get("stage", "").startswith("generate") else None
        if case is not None and self.shrinks and finding.severe:
            case, finding = shrunk(case, finding, self.seconds)
        signature = signature_of(finding, case)
        if any(other["signature"] == signature for other in self.state.findings):
            return
        entry = {**asdict(finding), "seed": seed, "severe": finding.severe, "signature": signature, "operators": case.op_types() if case else []}
        self.state.findings.append(entry)
        operators = " ".join(case.op_types()) if case is not None else ""
        self.say(f"seed {seed}: {finding.kind}{' (known)' if finding.known else ''}: {operators}: {finding.detail.strip()[-600:]}")
        if self.folder is not None and case is not None:
            save_case(case, self.folder / f"{finding.kind}_{seed}.onnx")

    def _resume(self, path: Path) -> None:
        if path.exists():
            data = json.loads(path.read_text())
            self.state = State(data["next_seed"], Counter(data["outcomes"]), Counter(data["operators"]), data["findings"])

    def _keep(self) -> None:
        if self.folder is not None:
            temporary = self.folder / "state.json.new"
            temporary.write_text(json.dumps(self.state.to_json(), indent=1))
            temporary.replace(self.folder / "state.json")


def finding_of(answer: Answer) -> tuple[Finding | None, Result | None]:
    """What an answer shows; kind `reference` where a reference died."""
    if not answer.failure:
        return answer.value.finding, answer.value
    kind = "reference" if answer.stage.split(":")[0] in HARMLESS else answer.failure
    return Finding(kind, f"{answer.failure} in {answer.stage}", extra={"stage": answer.stage}), None


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


def signature_of(finding: Finding, case: Case | None) -> str:
    """Findings that look the same are kept once: kind, operators of the shrunk model, and the message without names and numbers."""
    coded = finding.kind in ("traceback", "internal", "refused")
    message = finding.detail.strip().splitlines()[-1] if coded else ""
    operators = " ".join(case.op_types()) if case is not None and not coded else ""
    plain = re.sub(r"[0-9]+", "#", re.sub(r"\[[^]]*\]", "[]", message))
    return f"{finding.kind}|{operators}|{plain[:120]}"


def run_all(cases: Iterator[Case]) -> Iterator[tuple[Case, Finding | None]]:
    """Check cases that are kept, each in a child of its own."""
    listed = list(cases)
    for case, answer in zip(listed, run_isolated(listed, work_case), strict=True):
        yield case, finding_of(answer)[0]
