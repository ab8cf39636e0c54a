"""Bytes are compared, whatever they stand for."""

from __future__ import annotations

import numpy as np

from fuseline.passes.schedule.equal_bytes import same_bytes, sample


def _drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng().integers(1, 200, shape, np.uint8).repeat(8).view(np.float64).reshape(shape)


def test_equal_bytes_are_equal_in_another_shape_type_and_order_of_memory():
    array = _drawn(97, 61)
    for other in (array.copy(), array.reshape(61, 97), array.view(np.int64), np.asfortranarray(array)):
        assert sample(other) == sample(array) and same_bytes(array, other)
    assert not same_bytes(array, np.ascontiguousarray(array.T))


def test_one_byte_in_the_middle_tells_two_apart():
    array = _drawn(1500, 700)
    other = array.copy()
    other.view(np.uint8).reshape(-1)[array.nbytes // 2] ^= 1
    assert sample(other) == sample(array) and not same_bytes(array, other)


def test_zeros_of_either_sign_differ_and_equal_nan_do_not():
    assert not same_bytes(np.zeros(5), -np.zeros(5))
    assert same_bytes(np.full(5, np.nan), np.full(5, np.nan))


def test_other_lengths_and_a_prefix_differ():
    array = _drawn(50)
    assert sample(array) != sample(array[:49]) and not same_bytes(array, array[:49])
    assert same_bytes(array[:0], _drawn(0))
