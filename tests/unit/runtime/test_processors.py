"""Processors and cores."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest

from fuseline.buffers import BufferRef
from fuseline.runtime import TensorSpec, abi
from fuseline.runtime.memory import CodePages
from fuseline.runtime.processors import allowed_processors, core_of, spread
from fuseline.runtime.team import Team


@pytest.mark.parametrize(("text", "core"), [("0,4\n", 0), ("2-3\n", 2), ("7\n", 7), ("", 5), ("odd", 5)])
def test_core_is_the_lowest_sibling(text: str, core: int, tmp_path: Path) -> None:
    (tmp_path / "5").write_text(text)
    assert core_of(5, str(tmp_path / "{}")) == core


def test_core_of_an_unknown_processor_is_itself(tmp_path: Path) -> None:
    assert core_of(9, str(tmp_path / "{}")) == 9


def test_spread_takes_a_processor_of_every_core_first() -> None:
    assert spread([0, 1, 2, 3, 4], {0: 0, 1: 0, 2: 2, 3: 2, 4: 4}) == [0, 2, 4, 1, 3]
    assert spread([3, 4, 7], {3: 3, 4: 0, 7: 3}) == [3, 4, 7]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs processor affinity")
def test_allowed_processors_follow_the_mask() -> None:
    assert allowed_processors() == sorted(os.sched_getaffinity(0))


def _words(team: Team, offset: int, count: int, stride: int = 8) -> list[int]:
    return [ctypes.c_int64.from_address(offset + i * stride).value for i in range(count)]


def test_places_are_cores_while_there_are_enough(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores of two processors each: two threads keep off the caller's core, four only off its processor."""
    spec = TensorSpec("x", "float32", (16,))
    artifact = kit.artifact([spec], [spec], [kit.command("double", [BufferRef("input"), BufferRef("output")], 16)])
    monkeypatch.setattr("fuseline.runtime.team.allowed_processors", lambda: [0, 1, 2, 3])
    monkeypatch.setattr("fuseline.runtime.team.core_of", lambda processor: processor // 2 * 2)
    monkeypatch.setattr(Team, "_start", lambda self, number: None)
    team = Team(CodePages(artifact.code, artifact.fixups), artifact.entries["worker"], pin=True)
    if not team.pin:
        pytest.skip("needs processor affinity")
    table = _words(team, team.address + abi.TEAM_PLACES, 1)[0]
    for threads, places, workers in (
        (2, [0, 0, 2, 2], [0, 2]),
        (4, [0, 1, 2, 3], [0, 2, 1, 3]),
        (2, [0, 0, 2, 2], [0, 2, 0, 2]),
    ):
        team.ensure(threads)
        assert _words(team, table, 4) == places
        assert _words(team, team.address + abi.TEAM_LINES + abi.WORKER_PLACE, len(workers), abi.LINE_BYTES) == workers
