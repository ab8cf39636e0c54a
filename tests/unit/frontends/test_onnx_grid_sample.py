"""GridSample against its definition, pixel by pixel; what has no lowering stays on the host."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper
from xdsl.dialects import func

from .test_onnx_reading import FLOAT, model, read, run

Array = NDArray[np.float32]
SPATIAL = (4, 6, 3)


def proto(rank: int, **attributes: Any):
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], **attributes)
    image, grid = ("n", 2, *(f"s{i}" for i in range(rank))), ("n", *(f"o{i}" for i in range(rank)), rank)
    return model([node], {"x": (FLOAT, image), "grid": (FLOAT, grid)}, ["y"])


def expected(x: Array, grid: Array, mode: str, padding: str, align: int) -> Array:
    rank, sizes = x.ndim - 2, np.array(x.shape[2:])
    points = grid[..., ::-1].astype(np.float64)
    at = (points + 1) / 2 * (sizes - 1) if align else ((points + 1) * sizes - 1) / 2
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for place in np.ndindex(*grid.shape[:-1]):
        for offset in product((0, 1), repeat=rank) if mode == "linear" else [(0,) * rank]:
            low = np.floor(at[place]) if mode == "linear" else np.rint(at[place])
            corner = low.astype(int) + offset
            weight = np.prod(np.where(offset, at[place] - low, 1 - (at[place] - low))) if mode == "linear" else 1.0
            safe = np.clip(corner, 0, sizes - 1)
            if padding == "border" or (corner == safe).all():
                out[(place[0], slice(None), *place[1:])] += weight * x[(place[0], slice(None), *safe)]
    return out.astype(np.float32)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample(rank: int, mode: str, padding: str, align: int):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2, 2, *SPATIAL[:rank])).astype(np.float32)
    grid = rng.uniform(-1.5, 1.5, (2, *SPATIAL[:rank][::-1], rank)).astype(np.float32)
    (ours,) = run(proto(rank, mode=mode, padding_mode=padding, align_corners=align), x, grid)
    np.testing.assert_allclose(ours, expected(x, grid, mode, padding, align), rtol=1e-4, atol=1e-5)


def test_far_places_and_no_numbers_are_outside():
    x = np.ones((1, 2, 4, 6), np.float32)
    grid = np.array([[1e30, 0], [0, -1e30], [np.nan, 0], [np.inf, -np.inf]], np.float32).reshape(1, 2, 2, 2)
    assert not run(proto(2, mode="linear"), x, grid)[0].any()
    assert (run(proto(2, mode="linear", padding_mode="border"), x, grid)[0] == 1).all()


@pytest.mark.parametrize("attributes", [{"mode": "cubic"}, {"padding_mode": "reflection"}])
def test_other_modes_stay_on_the_host(attributes: dict[str, str]):
    module, ctx = read(proto(2, **attributes))
    assert [op.op_type for op in ctx.records.host_ops] == ["GridSample"]
    assert any(isinstance(op, func.CallOp) for op in module.walk())
