"""What is computed in halves, cut and put together in another order is narrowed once, before it is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import element_of, onnx_model


def _rolled(dtype: Any, dims: list[int], axis: int, ends: tuple[int, int]) -> Any:
    """A product, Relu, and what lies from `ends[1]` on before what lies up to `ends[0]`."""
    width = int(RNG.integers(8, 30))
    element, sizes = element_of(dtype), ", ".join(map(str, [*dims[:-1], width]))
    weights = {name: np.array([n]) for name, n in (("zero", 0), ("first", ends[0]), ("second", ends[1]), ("end", 9999))}
    weights["w"] = (RNG.standard_normal((width, dims[-1])) / 4).astype(dtype)
    weights["axis"] = np.array([axis])
    return onnx_model(
        f"({element}[{sizes}] x) => ({element}[] y) {{ m = MatMul(x, w)  r = Relu(m)  a = Slice(r, second, end, axis)"
        f" b = Slice(r, zero, first, axis)  y = Concat<axis = {axis}>(a, b) }}",
        weights,
    ), (*dims[:-1], width)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("rank", [2, 3])
def test_a_roll_moves_halves(rank: int, axis: int) -> None:
    """As many dispatches as in f32, and the values of f32, rounded; what lies between the two is no wider."""
    dims = [int(size) for size in RNG.integers(9, 40, rank)]
    at = int(RNG.integers(1, dims[axis]))
    counts = []
    state = RNG.bit_generator.state
    for dtype in (np.float32, np.float16):
        RNG.bit_generator.state = state
        model, shape = _rolled(dtype, dims, axis, (at, at))
        program = fuseline.compile(model, threads=int(RNG.integers(1, 3)))
        counts.append(program.stats["dispatches"])
        x = RNG.standard_normal(shape).astype(dtype)
        (found,) = program.run({"x": x}).values()
        (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
        limit = 1e-4 if dtype is np.float32 else 4e-3
        np.testing.assert_allclose(found, wanted, rtol=limit, atol=limit)
    assert counts[1] == counts[0]
    assert _narrowed_before_it_is_cut(model)


def _narrowed_before_it_is_cut(model: Any) -> bool:
    text = fuseline.api.emit(model, "cleanup")
    return "xf16>" in next(line for line in text.splitlines() if "tensor.concat" in line)


@pytest.mark.parametrize("ends", [(3, 2), (5, 1)])
def test_more_elements_than_there_are_are_cut_before_or_not_at_all(ends: tuple[int, int]) -> None:
    """Slices that overlap are no fewer elements than what they are cut from; slices that leave something out are."""
    model, _ = _rolled(np.float16, [9, 20], 0, ends)
    assert _narrowed_before_it_is_cut(model)
    model, _ = _rolled(np.float16, [9, 20], 0, (ends[1], ends[0] + 1))
    assert not _narrowed_before_it_is_cut(model)
