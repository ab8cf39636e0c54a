"""An artifact whose header was changed and signed again is refused with a code; where the change is a program of its
own, it stays in its memory.

Kept small here; `-m slow` has five thousand cases, and `mutations` is there for whoever wants more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fuseline
from fuseline.errors import ERROR_TITLES
from tests.properties.artifact_models import MODELS
from tests.properties.mutated_artifacts import branch_mutations, header_of, mutations, outcomes

FEW, MANY = 25, 5000


class Saved(NamedTuple):
    """An artifact, feeds for it and what it answers."""

    data: bytes
    feeds: Mapping[str, Any]
    outputs: Mapping[str, Any]


@pytest.fixture(scope="module")
def saved() -> dict[str, Saved]:
    made: dict[str, Saved] = {}
    for name, model in MODELS.items():
        proto, feeds = model()
        program = fuseline.compile(proto, threads=2)
        made[name] = Saved(program.to_bytes(), feeds, program.run(feeds))
    return made


def _run(artifact: Saved, cases: list[tuple[str, bytes]], folder: Path, threads: int) -> dict[str, str]:
    found = outcomes([case for _, case in cases], folder, artifact.feeds, artifact.outputs, threads)
    return {f"{i}: {words}": outcome for i, ((words, _), outcome) in enumerate(zip(cases, found, strict=True))}


def _must_be(outcomes_: dict[str, str], allowed: set[str]) -> Counter[str]:
    wrong = {words: outcome for words, outcome in outcomes_.items() if outcome not in allowed}
    assert not wrong, wrong
    return Counter(outcomes_.values())


def test_the_models_have_every_part_that_a_header_can_describe(saved: dict[str, Saved]):
    programs = {name: header_of(artifact.data)["program"] for name, artifact in saved.items()}
    kinds = {step[0] for program in programs.values() for step in program["steps"]}
    executors = {step[1] for program in programs.values() for step in program["steps"] if step[0] == "host"}
    assert (kinds, executors) == ({"launch", "loop", "host"}, {"onnx", "branches"})
    assert any(program["slots"] for program in programs.values())
    assert header_of(saved["fallback"].data)["fallback"] and not header_of(saved["mlp"].data)["fallback"]
    assert any(len(step[1]) > 1 for program in programs.values() for step in program["steps"] if step[0] == "launch")
    assert all(outcomes([one.data], Path("/tmp"), one.feeds, one.outputs) == ["same"] for one in saved.values())


@pytest.mark.parametrize("name", MODELS)
def test_a_changed_header_is_refused_or_changes_nothing(name: str, saved: dict[str, Saved], tmp_path: Path):
    cases = list(mutations(saved[name].data, FEW, seed=1))
    _must_be(_run(saved[name], cases, tmp_path, 2), {*ERROR_TITLES, "same"} - {"E0901"})


@pytest.mark.parametrize("name", MODELS)
def test_a_changed_program_never_leaves_its_memory(name: str, saved: dict[str, Saved], tmp_path: Path):
    cases = list(mutations(saved[name].data, FEW, seed=2, relinked=True))
    counts = _must_be(_run(saved[name], cases, tmp_path, 1), {*ERROR_TITLES, "same", "other"} - {"E0901"})
    assert counts["E0401"] > FEW / 2


@pytest.mark.parametrize("relinked", [False, True])
def test_programs_inside_an_operator_are_checked_as_well(relinked: bool, saved: dict[str, Saved], tmp_path: Path):
    cases = list(branch_mutations(saved["branches"].data, FEW, seed=3, relinked=relinked))
    _must_be(
        _run(saved["branches"], cases, tmp_path, 1),
        {*ERROR_TITLES, "same", *(["other"] if relinked else [])} - {"E0901"},
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("relinked", [False, True])
def test_many_changed_headers(relinked: bool, saved: dict[str, Saved], tmp_path: Path):
    share = MANY // (2 * len(saved) + 2)
    allowed = {*ERROR_TITLES, "same", *(["other"] if relinked else [])} - {"E0901"}
    for artifact in saved.values():
        for threads in (1, 2):
            _must_be(
                _run(
                    artifact,
                    list(mutations(artifact.data, share // 2, seed=100 + threads, relinked=relinked)),
                    tmp_path,
                    threads,
                ),
                allowed,
            )
    _must_be(
        _run(
            saved["branches"],
            list(branch_mutations(saved["branches"].data, share, seed=9, relinked=relinked)),
            tmp_path,
            1,
        ),
        allowed,
    )
