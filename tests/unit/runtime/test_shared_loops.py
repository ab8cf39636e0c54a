"""Cutting the grids of loops: every workgroup once, and a barrier between threads wherever an iteration follows
another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fuseline.runtime.program import Arm, Command, Loop
from fuseline.runtime.sharing import Shares, cost_ns, rows_of, share_grids, workgroups_of
from fuseline.runtime.sizes import SizeEvaluator

SIZES = SizeEvaluator({})


def _grid(workgroups: int, cost_ns: int = 0) -> Arm:
    return Arm(0, (), (), workgroups, cost_ns)


def _shares(steps: list[Command | Loop], threads: int, split_above: int = 0) -> Shares:
    return share_grids(steps, threads, SIZES, split_above)


COMMANDS = st.lists(
    st.builds(
        lambda arm, barrier: Command((arm,), barrier),
        st.builds(_grid, st.integers(1, 9), st.integers(0, 300)),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)
STEPS = st.lists(st.one_of(COMMANDS, COMMANDS.map(lambda body: Loop(3, tuple(body), barrier=True))), max_size=4)


def _steps(drawn: list[list[Command] | Loop]) -> list[Command | Loop]:
    """Steps as programs have them: a barrier behind every loop."""
    out: list[Command | Loop] = []
    for item in drawn:
        if isinstance(item, Loop):
            out.append(item)
        else:
            out += [item[0]._replace(barrier=True), *item[1:]]
    return out


@given(STEPS, st.integers(1, 4), st.integers(0, 200))
def test_every_workgroup_of_an_iteration_runs_once(
    drawn: list[list[Command] | Loop], threads: int, split_above: int
) -> None:
    steps = _steps(drawn)
    barriers, ranges = _shares(steps, threads, split_above)
    counts = [workgroups_of(row, SIZES) if isinstance(row, Arm) else 0 for row in rows_of(steps)]
    assert len(barriers) == len(counts) == ranges.shape[1]
    for row, count in enumerate(counts):
        assert sorted(w for begin, end in ranges[:, row] for w in range(begin, end)) == list(range(count))


@given(STEPS, st.integers(2, 4), st.integers(0, 200))
def test_waves_that_follow_each_other_without_a_barrier_are_on_one_thread(
    drawn: list[list[Command] | Loop], threads: int, split_above: int
) -> None:
    steps = _steps(drawn)
    barriers, ranges = _shares(steps, threads, split_above)
    since: set[int] = set()
    for row, starts in _order(steps):
        used = {thread for thread, (begin, end) in enumerate(ranges[:, row]) if begin < end}
        if barriers[row]:
            since = set()
        elif starts:
            assert used <= {0} and since <= {0}
        since |= used


def _order(steps: list[Command | Loop]) -> list[tuple[int, bool]]:
    """Rows as a run takes them, loops twice round, with whether a wave begins there."""
    out: list[tuple[int, bool]] = []
    row = 0
    for step in steps:
        if isinstance(step, Command):
            out.append((row, step.barrier))
            row += 1
            continue
        body = [(row + 1 + i, command.barrier or i == 0) for i, command in enumerate(step.commands)]
        out += [(row, False), *body, *body]
        row += 1 + len(body)
    return out


def test_a_loop_on_one_thread_has_no_barriers() -> None:
    cheap = Command((_grid(4, 10),), barrier=True)
    assert _shares([cheap, Loop(100, (cheap, cheap), barrier=True), cheap], 2, 500).barriers == [False] * 5


def test_a_shared_loop_has_one_barrier_per_wave() -> None:
    dear = Command((_grid(4, 1000),), barrier=True)
    assert _shares([dear, Loop(100, (dear._replace(barrier=False), dear), barrier=True), dear], 2, 500).barriers == [
        True,
        True,
        True,
        True,
        True,
    ]


def test_the_cost_of_a_loop_is_that_of_all_iterations() -> None:
    assert cost_ns(Loop(100, (Command((_grid(4, 7),)), Command((_grid(1, 3),)))), SIZES) == 1000
