"""Arrays that lie in memory in any way give what a plain copy gives, stay as they were, and never fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import fuseline
from tests.small_models import mlp

Array = np.ndarray[Any, np.dtype[Any]]
X = np.random.default_rng(11).standard_normal((4, 16), np.float32)


def _misaligned(x: Array) -> Array:
    raw = np.zeros(x.nbytes + 1, np.uint8)
    found = raw[1:].view(np.float32).reshape(x.shape)
    found[...] = x
    return found


def _read_only(x: Array) -> Array:
    found = x.copy()
    found.flags.writeable = False
    return found


def _huge_strides(x: Array) -> Array:
    """Rows 2**26 elements apart: never written, so never there."""
    raw = np.zeros((len(x) - 1) * 2**26 + x.shape[1], np.float32)
    found = as_strided(raw, x.shape, (4 * 2**26, 4))
    found[...] = x
    return found


def _between(x: Array) -> Array:
    raw = np.full((x.shape[0], 3 * x.shape[1]), np.nan, np.float32)
    raw[:, ::3] = x
    return raw[:, ::3]


LAID: dict[str, Callable[[Array], Array]] = {
    "Fortran order": np.asfortranarray,
    "negative strides": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "gaps": _between,
    "huge strides": _huge_strides,
    "misaligned": _misaligned,
    "read-only": _read_only,
    "a transposed view": lambda x: np.ascontiguousarray(x.T).T,
}


@pytest.fixture(scope="module")
def program() -> fuseline.CompiledModel:
    return fuseline.compile(mlp(), threads=1)


@pytest.mark.parametrize("name", LAID)
def test_any_layout(name: str, program: fuseline.CompiledModel):
    feed = LAID[name](X)
    np.testing.assert_array_equal(feed, X)
    (expected,), (found,) = program.run({"x": X}).values(), program.run({"x": feed}).values()
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(feed, X)


def test_rows_that_are_one_row(program: fuseline.CompiledModel):
    """A stride of 0."""
    feed = np.broadcast_to(X[:1], X.shape)
    (expected,), (found,) = program.run({"x": feed.copy()}).values(), program.run({"x": feed}).values()
    np.testing.assert_array_equal(found, expected)


def test_the_other_byte_order_is_refused_or_read(program: fuseline.CompiledModel):
    feed = X.astype(">f4")
    with pytest.raises(fuseline.FuselineError) as caught:
        program.run({"x": feed})
    assert (caught.value.code, caught.value.node) == ("E0204", "x")
