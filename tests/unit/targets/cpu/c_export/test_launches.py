"""Steps as C statements: each arm calls its kernel with its buffers, sizes and scratch; loops count."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.buffers import BufferRef, LoopOffset
from fuseline.runtime.program import Arm, Command, Loop, Scratch
from fuseline.targets.cpu.c_export.launches import launches
from fuseline.targets.cpu.c_export.sizes import SizeTable

N = ("sum", ((1, "n"),))
X, Y, ARENA = BufferRef("input", 1), BufferRef("output"), BufferRef("arena", 0, 128)


def _lines(*steps: Any) -> list[str]:
    return list(launches(steps, SizeTable({"n": 0})))


def _arm(*bindings: BufferRef, sizes: tuple[Any, ...] = (), moves: tuple[LoopOffset, ...] = ()) -> Arm:
    return Arm(64, bindings, sizes, 3, loop_offsets=moves)


def _binding(line: str) -> str:
    """What stands between the first pair of braces inside of a statement."""
    return line.partition("b[] = {")[2].partition("};")[0]


def test_a_launch_passes_buffers_sizes_workgroups_and_scratch():
    (line,) = _lines(Command((_arm(X, ARENA, Y, sizes=(7, N)),)))
    assert _binding(line) == (
        "(char *)inputs[1] + INT64_C(0), (char *)arena + INT64_C(128), (char *)outputs[0] + INT64_C(0)"
    )
    assert "n[] = {INT64_C(7), v[0]};" in line and line.endswith("launch(code + 64, b, n, INT64_C(3), scratch); }")


def test_what_there_is_none_of_is_a_zero():
    (line,) = _lines(Command((_arm(),)))
    assert "b[] = {0};" in line and "n[] = {0};" in line


def test_scratch_may_lie_in_the_arena():
    (line,) = _lines(Command((_arm(X),), scratch=Scratch(256, 64)))
    assert line.endswith(", arena + INT64_C(256)); }")


def test_arms_are_launched_one_after_the_other():
    first, second = _lines(Command((_arm(X), _arm(Y))))
    assert "inputs[1]" in first and "outputs[0]" in second


def test_a_loop_runs_its_commands_as_often_as_it_says():
    lines = _lines(Command((_arm(X),)), Loop(N, (Command((_arm(X),)), Command((_arm(Y),)))), Command((_arm(Y),)))
    assert len(lines) == 6
    assert lines[1] == "for (int64_t i = 0; i < v[0]; ++i) {" and lines[4] == "}"


@pytest.mark.parametrize(
    ("move", "place"),
    [
        (LoopOffset(), "{x} + (i - 0) * INT64_C(0)"),
        (LoopOffset(16, 1), "{x} + (i - 1) * INT64_C(16)"),
        (LoopOffset(16, 1, alternates=True), "{x} + ((i - 1) & 1) * INT64_C(16)"),
        (LoopOffset(16, special=ARENA, at=2), "i == INT64_C(2) ? {arena} : {x} + (i - 0) * INT64_C(16)"),
        (LoopOffset(N), "{x} + (i - 0) * v[0]"),
    ],
)
def test_what_moves_through_a_loop_is_addressed_by_its_iteration(move: LoopOffset, place: str):
    _, line, _ = _lines(Loop(4, (Command((_arm(X, moves=(move,)),)),)))
    x, arena = "(char *)inputs[1] + INT64_C(0)", "(char *)arena + INT64_C(128)"
    assert _binding(line) == place.format(x=x, arena=arena)
