"""The scheduler's functions: accesses inside their structures, who is summoned, what is patched before a run."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.runtime import abi
from fuseline.runtime.sizes import SizeEvaluator
from fuseline.targets.cpu.isa.baseline import MACHINE as BASELINE
from fuseline.targets.cpu.isa.neon import MACHINE as NEON
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.types import Function, Kernel
from fuseline.targets.cpu.link.built_in_kernels import COPY_ROWS_SYMBOL
from fuseline.targets.cpu.link.scheduler import scheduler_functions
from fuseline.targets.cpu.link.signature import BUILT_IN
from tests.unit.targets.cpu.link.threads import WORD, Table, Team, call

_COUNTS = [(count,) for count in (0, 1, 63, 64, 65, 65536, 65537, 300031)]
_ROWS = [
    (12, 1, 1, 2, 0, 0, 20),
    (1, 1, 3, 2, 0, 35, 7),
    (77, 4, 3, 2, 5000, 1000, 100),
    (64, 1, 1, 1, 0, 0, 0),
    (0, 2, 2, 2, 4, 2, 1),
    (5, 0, 3, 2, 100, 20, 6),
    (5, 3, 2, 0, 100, 20, 6),
    (513, 1, 1, 70000, 0, 0, 513),
]
"""Bytes of a row, rows of three loops, bytes between rows of each."""


def _grid(kernel: Kernel, *sizes: int) -> int:
    """The workgroups that the kernel's signature tells."""
    signature = BUILT_IN[kernel.symbol]
    assert signature.sizes is not None
    return SizeEvaluator(dict(zip((size.name for size in signature.sizes), sizes, strict=True)))(signature.workgroups)


@pytest.mark.parametrize("machine", [BASELINE, NEON], ids=["x86_64", "aarch64"])
def test_every_access_stays_in_its_structure(machine: Any) -> None:
    for part in scheduler_functions(machine):
        if isinstance(part, Function):
            assert check_bounds(part) == [], part.symbol
        else:
            for sizes in _ROWS if part.symbol == COPY_ROWS_SYMBOL else _COUNTS:
                assert check_bounds(part, sizes, _grid(part, *sizes)) == [], part.symbol


@pytest.mark.parametrize(
    ("places", "processor", "threads", "summoned"),
    [
        ([10, 11, 12], 1, 3, [0, 2]),  # the one at the caller's place is spared
        ([10, 11, 12], 1, 4, [0, 1, 2]),  # unless all are needed
        ([10, 11, 12], 7, 3, [0, 1]),  # a processor that nobody listed
        ([10, 11, 12], None, 3, [0, 1]),
        ([11, 11, 12], 1, 3, [1, 2]),  # the first one alone
    ],
)
def test_who_is_summoned(places: list[int], processor: int | None, threads: int, summoned: list[int]) -> None:
    team = Team()
    listed, table = team.space.words(3)
    table[:] = 10, 11, 12
    team[abi.TEAM_PLACES], team[abi.TEAM_PLACE_COUNT], team[abi.TEAM_WORKERS] = listed, 3, len(places)
    if processor is not None:
        team[abi.TEAM_GETCPU] = team.space.function(lambda: processor)
    for number, place in enumerate(places):
        team[abi.TEAM_LINES + number * abi.LINE_BYTES + abi.WORKER_PLACE] = place
    context, _ = team.space.words(1)
    team.call("summon", context, threads)
    lines = [abi.TEAM_LINES + number * abi.LINE_BYTES for number in range(len(places))]
    assert [n for n, line in enumerate(lines) if team[line + abi.WORKER_GO] == 1] == summoned
    assert [team[lines[n] + abi.WORKER_THREAD] for n in summoned] == list(range(1, threads))
    assert all(team[lines[n] + abi.WORKER_CONTEXT] == context for n in summoned)


def test_addresses_of_the_caller_are_put_into_bindings() -> None:
    table = Table([], [])
    space = table.space
    (patches, rows), (segments, bases), (slots, bound) = (space.words(count) for count in (6, 2, 3))
    rows[:], bases[:] = [slots + 16, 1, 24, slots, 0, -8], [100, 200]
    for offset, value in (
        (abi.CONTEXT_PATCHES, patches),
        (abi.CONTEXT_PATCH_COUNT, 2),
        (abi.CONTEXT_SEGMENTS, segments),
    ):
        table.context[offset // WORD] = value
    call(space, "patch", table.address)
    assert bound.tolist() == [92, 0, 224]


def test_a_worker_ends_when_it_is_given_nothing() -> None:
    team = Team()
    line = abi.TEAM_LINES
    team[line + abi.WORKER_TEAM], team[line + abi.WORKER_GO] = team.address, 1
    assert call(team.space, "fuseline_worker", team.address + line) == 0
