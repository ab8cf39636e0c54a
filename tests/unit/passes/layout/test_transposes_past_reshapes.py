"""What a permutation becomes below an expand or a collapse, and above an expand: checked against NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuseline.passes.layout.rewriting.permutation import apply, compose, inverse, is_identity
from fuseline.passes.layout.rewriting.transposes_down import gathered, parted, spread
from fuseline.passes.layout.rewriting.transposes_up import renumbered, whole_groups

SIZES = (2, 3, 4, 5)
permutations = st.permutations(range(4)).map(tuple)


@given(permutations, permutations)
def test_compose_and_inverse(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    x = np.arange(120).reshape(SIZES)
    assert np.array_equal(x.transpose(first).transpose(second), x.transpose(compose(first, second)))
    assert is_identity(compose(first, inverse(first)))


@given(permutations, st.lists(st.sampled_from([1, 2]), min_size=4, max_size=4))
def test_spread(permutation: tuple[int, ...], counts: list[int]) -> None:
    x = np.arange(120).reshape(SIZES)
    y = x.transpose(permutation)
    shape = [
        size
        for extent, count in zip(y.shape, counts, strict=True)
        for size in ([extent] if count == 1 else [1, extent])
    ]
    groups = renumbered([list(range(count)) for count in counts])
    below, new_groups = spread(permutation, groups)
    expanded = x.reshape(apply(inverse(below), shape))
    assert [len(group) for group in new_groups] == apply(inverse(permutation), counts)
    assert np.array_equal(expanded.transpose(below), y.reshape(shape))


@given(permutations, st.integers(0, 2))
def test_gathered(permutation: tuple[int, ...], at: int) -> None:
    x = np.arange(120).reshape(SIZES)
    y = x.transpose(permutation)
    groups = [[i] for i in range(at)] + [[at, at + 1]] + [[i] for i in range(at + 2, 4)]
    plan = gathered(permutation, groups)
    adjacent = permutation[at] + 1 == permutation[at + 1]
    assert (plan is not None) == adjacent
    if plan is not None:
        below, new_groups = plan
        collapsed = x.reshape([int(np.prod([SIZES[axis] for axis in group])) for group in new_groups])
        wanted = y.reshape([int(np.prod([y.shape[axis] for axis in group])) for group in groups])
        assert np.array_equal(collapsed.transpose(below), wanted)


@given(permutations, st.integers(0, 2))
def test_parted(permutation: tuple[int, ...], at: int) -> None:
    """What stays above leaves a transpose of whole groups, the innermost dimension of the operand still innermost."""
    x = np.arange(120).reshape(SIZES)
    y = x.transpose(permutation)
    groups = [[i] for i in range(at)] + [[at, at + 1]] + [[i] for i in range(at + 2, 4)]
    wanted = y.reshape([int(np.prod([y.shape[axis] for axis in group])) for group in groups])
    above = parted(permutation, groups)
    if above is None:
        ends = [max(permutation[axis] for axis in group) for group in groups]
        assert ends == sorted(ends)
        return
    assert any(3 in (permutation[axis] for axis in group) and above[-1] == permutation[group[-1]] for group in groups)
    plan = gathered(compose(inverse(above), permutation), groups)
    assert plan is not None
    below, new_groups = plan
    assert not is_identity(below)
    held = x.transpose(above)
    collapsed = held.reshape([int(np.prod([held.shape[axis] for axis in group])) for group in new_groups])
    assert np.array_equal(collapsed.transpose(below), wanted)


def test_whole_groups() -> None:
    assert whole_groups((2, 3, 0, 1), [[0, 1], [2], [3]]) == (1, 2, 0)
    assert whole_groups((1, 0, 2, 3), [[0, 1], [2], [3]]) is None
