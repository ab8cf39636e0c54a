"""Images that lie in several bindings, or are computed: concats, upsampling, cheap ops in front; results in slices."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import SSAValue

from fuseline.targets.cpu.isa import machine
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, random
from tests.unit.targets.cpu.contraction_families.test_convolution import convolve, maps_of

from .convolutions import Forced, padded

SIZE = (9, 10)


def convolution(p: Program, image: SSAValue, filter_: SSAValue, columns: int) -> SSAValue:
    """3 x 3, of an image of `SIZE` with a border of zeros."""
    x = p.pad(image, [0, 1, 1, 0], [0, 1, 1, 0])
    return p.multiply_add(x, filter_, p.zeros(1, *SIZE, columns), maps_of(2, (1, 1), (1, 1)), "pppprrr")


def check(p: Program, result: SSAValue, image: Array, arrays: list[Array]) -> Runner:
    """`arrays` are the arguments, the filter last; `image` is what it is applied to."""
    run = Runner(Forced(), p.dispatch(result))
    expected = convolve(padded(image, 1, 1), arrays[-1], (1, 1), (1, 1))
    for at_end in (True, False):
        assert_close(run(*arrays, at_end=at_end)[0], expected, bits=16)
    return run


@pytest.mark.parametrize("parts", [(16, 16), (8, 16, 40), (16, 8, 3)])
def test_a_concat_of_whole_vectors_is_read_where_it_lies(parts: tuple[int, ...]):
    p = Program(*((1, *SIZE, c) for c in parts), (3, 3, sum(parts), 16), constants=[len(parts)])
    result = convolution(p, p.concat(*p.x[:-1], axis=3), p.x[-1], 16)
    images = [random((1, *SIZE, c), i) for i, c in enumerate(parts)]
    run = check(p, result, np.concatenate(images, 3), [*images, random((3, 3, sum(parts), 16), 9)])
    whole = all(start % machine().f32_lanes == 0 for start in np.cumsum(parts)[:-1])
    assert run.plan.notes["image"] == (f"{len(parts)} segments" if whole else "evaluated")


def test_a_concat_of_broken_vectors_is_evaluated():
    p = Program((1, *SIZE, 5), (1, *SIZE, 14), (3, 3, 19, 16), constants=[2])
    result = convolution(p, p.concat(p.x[0], p.x[1], axis=3), p.x[2], 16)
    a, b = random((1, *SIZE, 5), 1), random((1, *SIZE, 14), 2)
    assert (
        check(p, result, np.concatenate([a, b], 3), [a, b, random((3, 3, 19, 16), 3)]).plan.notes["image"]
        == "evaluated"
    )


def test_an_image_computed_in_a_prologue():
    p = Program((1, *SIZE, 12), (3, 3, 12, 16), constants=[1])
    a = random((1, *SIZE, 12), 1)
    result = convolution(p, p.relu(p.x[0]), p.x[1], 16)
    assert check(p, result, np.maximum(a, 0), [a, random((3, 3, 12, 16), 2)]).plan.notes["image"] == "evaluated"


def test_an_upsampled_image():
    p = Program((1, 9, 5, 16), (3, 3, 16, 16), constants=[1])
    a = random((1, 9, 5, 16), 1)
    check(
        p,
        convolution(p, p.repeated(p.x[0], [1, 1, 2, 1]), p.x[1], 16),
        a.repeat(2, axis=2),
        [a, random((3, 3, 16, 16), 2)],
    )


def test_an_image_with_its_channels_first():
    p = Program((1, 16, *SIZE), (3, 3, 16, 16), constants=[1])
    a = random((1, 16, *SIZE), 1)
    result = convolution(p, p.moved(p.x[0], [0, 3, 1, 2], 1, *SIZE, 16), p.x[1], 16)
    check(p, result, a.transpose(0, 2, 3, 1), [a, random((3, 3, 16, 16), 2)])


def test_padding_that_is_not_zero():
    p = Program((1, *SIZE, 16), (3, 3, 16, 16), constants=[1])
    x = p.pad(p.x[0], [0, 1, 1, 0], [0, 1, 1, 0], 2.5)
    y = p.multiply_add(x, p.x[1], p.zeros(1, *SIZE, 16), maps_of(2, (1, 1), (1, 1)), "pppprrr")
    a, f = random((1, *SIZE, 16), 1), random((3, 3, 16, 16), 2)
    expected = convolve(np.pad(a, [(0, 0), (1, 1), (1, 1), (0, 0)], constant_values=2.5), f, (1, 1), (1, 1))
    assert_close(Runner(Forced(), p.dispatch(y))(a, f)[0], expected, bits=16)


def test_a_slice_of_an_image():
    p = Program((1, 12, 14, 24), (3, 3, 16, 16), constants=[1])
    x = p.slice(p.x[0], [0, 1, 2, 8], [1, 11, 12, 16])
    y = p.multiply_add(x, p.x[1], p.zeros(1, *SIZE, 16), maps_of(2, (1, 1), (1, 1)), "pppprrr")
    a, f = random((1, 12, 14, 24), 1), random((3, 3, 16, 16), 2)
    run = Runner(Forced(), p.dispatch(y))
    assert run.plan.notes["image"] == "1 segments"
    assert_close(run(a, f)[0], convolve(a[:, 1:, 2:, 8:], f, (1, 1), (1, 1)), bits=16)
