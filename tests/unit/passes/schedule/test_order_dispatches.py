"""Waves: dependencies kept, as few as possible, peak bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fuseline.passes.schedule.dependencies import StepNeeds, earliest_waves
from fuseline.passes.schedule.order_dispatches import latest_waves, live_bytes, order_dispatches


@st.composite
def _graphs(draw: st.DrawFn) -> list[StepNeeds]:
    count = draw(st.integers(0, 12))
    steps: list[StepNeeds] = []
    for number in range(count):
        after = tuple(sorted(draw(st.sets(st.integers(0, number - 1), max_size=3)))) if number else ()
        steps.append(StepNeeds(after, after, (number,), draw(st.integers(0, 9)) == 0))
    return steps


@given(_graphs())
def test_dependencies_and_solitude_hold(steps: list[StepNeeds]) -> None:
    waves = order_dispatches(steps, [64] * len(steps))
    for step, wave in zip(steps, waves, strict=True):
        assert all(waves[i] < wave for i in step.after)
        assert not step.alone or waves.count(wave) == 1
    assert sorted(set(waves)) == list(range(len(set(waves))))


@given(_graphs())
def test_waves_are_as_few_as_the_longest_chain(steps: list[StepNeeds]) -> None:
    assert max(latest_waves(steps), default=-1) == max(earliest_waves(steps), default=-1)
    if not any(step.alone for step in steps):
        assert max(order_dispatches(steps, [1] * len(steps)), default=-1) == max(earliest_waves(steps), default=-1)


def _step(number: int, *after: int) -> StepNeeds:
    return StepNeeds(after, after, (number,))


def test_a_result_used_late_is_made_late() -> None:
    """A large tensor made from nothing and only read at the end does not sit in memory through the chain."""
    chain = [_step(0), _step(1, 0), _step(2, 1), _step(3, 2)]
    steps = [*chain, _step(4), _step(5, 3, 4)]
    assert order_dispatches(steps, [1, 1, 1, 1, 1000, 1])[4] == 3


def test_large_operands_are_consumed_early() -> None:
    """Three small tensors made of one large one: all at once frees it soonest."""
    steps = [_step(0), _step(1, 0), _step(2, 0), _step(3, 1), _step(4, 3), _step(5, 4, 2)]
    assert order_dispatches(steps, [1000, 1, 1, 1, 1, 1])[2] == 1


def test_live_bytes_count_operands_and_results_of_one_wave() -> None:
    steps = [_step(0), _step(1, 0), _step(2, 1)]
    assert live_bytes(steps, [0, 1, 2], [10, 20, 40]) == [10, 30, 60]
