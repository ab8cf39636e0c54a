"""One case: compiled, run several times on one session, compared with two references. The answer is a finding or
None."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import fuseline
from fuseline.errors import FuselineError
from tests.fuzz.case import Case, Choices
from tests.fuzz.compare import same_bits, worst
from tests.fuzz.finding import Finding
from tests.fuzz.references import References, bounds

Stage = Callable[[str], None]
Runs = Sequence[Mapping[str, Any]]


def check(case: Case, stage: Stage = lambda _: None) -> Finding | None:
    """Compile, run and compare a case as its choices say. Raises Rejected where no reference can run it."""
    stage("references")
    return _check(case, References(case), stage)


def check_all(case: Case, stage: Stage = lambda _: None) -> Iterator[tuple[Choices, Finding | None]]:
    """`check` under every level of fusion and numerics, against references that are made once."""
    stage("references")
    references = References(case)
    for choices in case.choices.every_combination():
        yield choices, _check(case.replace(choices=choices), references, stage)


OURS = frozenset({"E0301", "E0302", "E0303", "E0304", "E0305", "E0901"})
"""Codes of defects, of IR that is not well formed and of passes: no ONNX graph may meet them."""


def _check(case: Case, references: References, stage: Stage) -> Finding | None:
    found = _found(case, references, stage)
    return None if found is None else replace(found, choices=case.choices)


def _found(case: Case, references: References, stage: Stage) -> Finding | None:
    stage(f"compile {case.choices.combination}")
    try:
        program = _compile(case)
        stage(f"run {case.choices.combination}")
        runs, problem = _run(case, program)
    except FuselineError as error:
        return Finding("internal" if error.code in OURS else "refused", str(error))
    except Exception:  # noqa: BLE001
        return Finding("traceback", traceback.format_exc(limit=-4))
    stage("compare")
    numerics = case.choices.numerics
    return problem or references.judge(runs, loose=16.0 if numerics == "fast" else 1.0, filtered=numerics != "strict")


def _compile(case: Case) -> fuseline.CompiledModel:
    choices = case.choices
    program = fuseline.compile(
        case.model,
        target=choices.target,
        threads=choices.threads,
        shapes=bounds(case),
        fusion=choices.fusion,
        numerics=choices.numerics,
    )
    if not choices.saved:
        return program
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.fuse"
        program.save(path)
        return fuseline.load(path, threads=choices.threads, verify=True)


def _run(case: Case, program: fuseline.CompiledModel) -> tuple[Runs, Finding | None]:
    """Every feed in turn, then all again: results must stay what they were, feeds unchanged, and both rounds equal."""
    given = [{name: array.copy() for name, array in feeds.items()} for feeds in case.feeds]
    first = [program.run(feeds) for feeds in given]
    kept = [{name: _copy(value) for name, value in outputs.items()} for outputs in first]
    second = [program.run(feeds) for feeds in given]
    for feeds, original in zip(given, case.feeds, strict=True):
        for name in feeds:
            if not same_bits(feeds[name], original[name]):
                return kept, Finding("changed-feeds", f"input {name} was written to", name)
    for before, later, again in zip(kept, first, second, strict=True):
        for name, value in before.items():
            if not same_bits(value, later[name]):
                return kept, Finding("unstable", f"the first run's {name} changed with the second", name)
            if not same_bits(value, again[name]):
                return kept, Finding(
                    "unstable", f"two runs give two results for {name}: {_difference(again[name], value)}", name
                )
    return kept, None


def _difference(ours: Any, theirs: Any) -> str:
    return worst(ours, theirs) if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray) else ""


def _copy(value: Any) -> Any:
    return [_copy(item) for item in value] if isinstance(value, list) else None if value is None else value.copy()
