"""GridSample against its definition, pixel by pixel; what has no lowering stays on the host."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import func

from tests.graphs.onnx_text import attributes_of, element_of
from tests.native import assert_as_onnxruntime

from .test_onnx_reading import model, read, run

Array = NDArray[np.float32]
SPATIAL = (4, 6, 3)


def proto(rank: int, **attributes: Any):
    image, grid = (", ".join(f"{letter}{i}" for i in range(rank)) for letter in "so")
    node = f"y = GridSample{attributes_of(attributes)}(x, grid)"
    return model(f"(float[n, 2, {image}] x, float[n, {grid}, {rank}] grid) => (y) {{ {node} }}")


def expected(x: Array, grid: Array, mode: str, padding: str, align: int) -> Array:
    rank, sizes = x.ndim - 2, np.array(x.shape[2:])
    points = grid[..., ::-1].astype(np.float64)
    at = (points + 1) / 2 * (sizes - 1) if align else ((points + 1) * sizes - 1) / 2
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for position in np.ndindex(*grid.shape[:-1]):
        for offset in product((0, 1), repeat=rank) if mode == "linear" else [(0,) * rank]:
            low = np.floor(at[position]) if mode == "linear" else np.rint(at[position])
            corner = low.astype(int) + offset
            weight = (
                np.prod(np.where(offset, at[position] - low, 1 - (at[position] - low))) if mode == "linear" else 1.0
            )
            safe = np.clip(corner, 0, sizes - 1)
            if padding == "border" or (corner == safe).all():
                out[(position[0], slice(None), *position[1:])] += weight * x[(position[0], slice(None), *safe)]
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


def test_places_that_are_no_numbers_are_reflected_to_somewhere():
    x = np.ones((1, 2, 4, 6), np.float32)
    grid = np.array([[1e30, 0], [0, -1e30], [np.nan, 0], [np.inf, -np.inf]], np.float32).reshape(1, 2, 2, 2)
    assert (run(proto(2, mode="nearest", padding_mode="reflection"), x, grid)[0] == 1).all()


@pytest.mark.parametrize(
    ("opset", "mode"),
    [(16, "nearest"), (16, "bilinear"), (16, "bicubic"), (20, "nearest"), (22, "linear"), (20, "cubic")],
)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_as_onnxruntime_does(opset: int, mode: str, padding: str, align: int):
    """Every pixel is brought into the image by itself, also into one that is a pixel wide."""
    rng = np.random.default_rng(7)
    for image, positions in (((2, 3, 5, 4), (6, 7)), ((1, 2, 3, 1), (3, 5))):
        x, grid = (
            rng.standard_normal(image, np.float32),
            rng.uniform(-2.3, 2.3, (image[0], *positions, 2)).astype(np.float32),
        )
        attributes = {"mode": mode, "padding_mode": padding, "align_corners": align}
        assert_as_onnxruntime("GridSample", [x, grid], attributes=attributes, opset=opset, rtol=1e-4, atol=2e-5)


def keys(distance: NDArray[np.float64], a: float = -0.75) -> NDArray[np.float64]:
    near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    return np.where(
        distance <= 1, near, np.where(distance < 2, a * (distance**3 - 5 * distance**2 + 8 * distance - 4), 0)
    )


def test_cubic_over_three_axes():
    """Which onnxruntime has not: every pixel in the share that Keys' kernel gives its distance, the nearest one for
    those outside."""
    rng = np.random.default_rng(3)
    x, grid = (
        rng.standard_normal((1, 2, *SPATIAL), np.float32),
        rng.uniform(-1.2, 1.2, (1, 2, 3, 4, 3)).astype(np.float32),
    )
    (ours,) = run(proto(3, mode="cubic", align_corners=1, padding_mode="border"), x, grid)
    wide, margin = np.pad(x[0], [(0, 0), *[(4, 4)] * 3], mode="edge"), 4
    for position in np.ndindex(2, 3, 4):
        at = (grid[(0, *position)][::-1].astype(np.float64) + 1) / 2 * (np.array(SPATIAL) - 1)
        shares = [
            keys(np.abs(np.arange(-margin, size + margin) - centre)) for size, centre in zip(SPATIAL, at, strict=True)
        ]
        np.testing.assert_allclose(
            ours[(0, slice(None), *position)], np.einsum("cijk,i,j,k->c", wide, *shares), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(
    ("image", "positions"),
    [("float16", "float16"), ("float32", "float64"), ("float64", "float32"), ("int32", "float32")],
)
def test_element_types(image: str, positions: str):
    rng = np.random.default_rng(9)
    x, grid = (
        (rng.standard_normal((1, 2, 4, 6)) * 9).astype(image),
        rng.uniform(-1.2, 1.2, (1, 3, 5, 2)).astype(positions),
    )
    mode = "nearest" if image == "int32" else "linear"
    types = [f"{element_of(value.dtype)}{list(value.shape)}" for value in (x, grid)]
    text = f'({types[0]} x, {types[1]} grid) => (y) {{ y = GridSample<mode = "{mode}">(x, grid) }}'
    (ours,) = run(model(text), x, grid)
    assert ours.dtype == x.dtype
    np.testing.assert_allclose(
        ours, expected(x, grid, mode, "zeros", 0), rtol=2e-2 if image == "float16" else 1e-4, atol=2e-2
    )


def test_what_is_between_integers_stays_on_the_host():
    text = '(int32[1, 2, 4, 6] x, float[1, 3, 5, 2] grid) => (y) { y = GridSample<mode = "linear">(x, grid) }'
    whole = model(text)
    module, ctx = read(whole)
    assert [op.op_type for op in ctx.records.host_ops] == ["GridSample"]
    assert any(isinstance(op, func.CallOp) for op in module.walk())
