"""Small models run on values at the edges of their types, and compared with ONNX's reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

import fuseline
from tests.graphs.onnx_text import declared, onnx_model

Array = NDArray[Any]

RELATIVE = {2: 4e-3, 4: 2e-5, 8: 1e-9}
"""By bytes of an element: rounding differs, what is infinite, NaN or in the integers does not."""


def edges(shape: Sequence[int], dtype: str, generator: np.random.Generator, share: float = 0.2) -> Array:
    """Random numbers; a `share` of them NaN, infinite, zeros of both signs, denormal or the largest there are (of
    integers: the extremes)."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        f = np.finfo(kind)
        pool = [np.nan, np.inf, -np.inf, 0.0, -0.0, f.tiny / 4, -f.smallest_subnormal, f.max, f.min, 1.0, -2.5]
        plain = generator.standard_normal(shape).astype(kind)
    else:
        i = np.iinfo(kind)
        pool = [i.min, i.max, i.min + 1, i.max - 1, 0, 1, *([-1] if i.min else [])]
        plain = generator.integers(max(i.min, -9), 10, shape).astype(kind)
    return np.where(generator.random(shape) < share, generator.choice(np.array(pool, kind), shape), plain)


def model(
    nodes: str,
    feeds: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None,
    opset: int = 20,
) -> onnx.ModelProto:
    """A model of `nodes` that makes `y`."""
    return onnx.shape_inference.infer_shapes(
        onnx_model(f"({declared(feeds)}) => (y) {{ {nodes} }}", constants, opset=opset)
    )


def run(proto: onnx.ModelProto, feeds: Mapping[str, Array], target: str = "cpu") -> Array:
    """`y` as compiled for this machine (or another target)."""
    return np.asarray(fuseline.compile(proto, threads=1, target=target).run(feeds)["y"])


def check(
    nodes: str,
    feeds: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None,
    *,
    target: str = "cpu",
    relative: float | None = None,
) -> None:
    """The same type and shape as the reference; NaN and infinities at the same places; finite values up to rounding
    (`relative` to themselves; None: as usual of their type), integers exactly."""
    proto = model(nodes, feeds, constants)
    with np.errstate(all="ignore"):
        expected: Array = np.asarray(ReferenceEvaluator(proto).run(None, dict(feeds))[0])  # pyright: ignore
    same(run(proto, feeds, target), expected, relative)


def same(found: Array, expected: Array, relative: float | None = None) -> None:
    """As `check` compares."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected)
        return
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    unbounded = np.isinf(found) | np.isinf(expected)
    np.testing.assert_array_equal(found[unbounded], expected[unbounded])
    finite = np.isfinite(expected)
    most = relative if relative is not None else RELATIVE[found.itemsize]
    np.testing.assert_allclose(found[finite], expected[finite], rtol=most, atol=float(np.finfo(found.dtype).tiny) * 4)
