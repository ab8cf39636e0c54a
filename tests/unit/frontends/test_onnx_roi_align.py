"""RoiAlign against its definition, sample by sample; regions that say how many they take stay on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import attributes_of, element_of, onnx_model
from tests.native import assert_same, native

Array = NDArray[Any]
SIZES = {"output_height": 3, "output_width": 2}


def proto(dtype: str = "float32", opset: int = 16, **attributes: Any):
    given = f"{element_of(dtype)}[n, c, h, w] x, {element_of(dtype)}[r, 4] rois, int64[r] batch"
    node = f"y = RoiAlign{attributes_of({**SIZES, **attributes})}(x, rois, batch)"
    return onnx_model(f"({given}) => (y) {{ {node} }}", opset=opset)


def drawn(regions: int, dtype: str = "float32") -> dict[str, Array]:
    """Regions of any size, empty ones and such that lie outside among them."""
    first = RNG.uniform(-8, 24, (regions, 2))
    rois = np.concatenate([first, first + RNG.uniform(-2, 20, (regions, 2))], 1)
    x = RNG.standard_normal((2, 5, 9, 8))
    return {"x": x.astype(dtype), "rois": rois.astype(dtype), "batch": RNG.integers(0, 2, regions)}


def shares(at: float, size: int) -> list[tuple[int, float]]:
    """Two pixels along one axis with the share of each; none for a sample that does not count."""
    if not -1 <= at <= size:
        return []
    low, at = int(max(at, 0.0)), max(at, 0.0)
    return [(size - 1, 1.0), (size - 1, 0.0)] if low >= size - 1 else [(low, 1 - (at - low)), (low + 1, at - low)]


def expected(feeds: dict[str, Array], samples: int, scale: float, moved: bool, largest: bool) -> Array:
    x, out = feeds["x"].astype(np.float64), np.zeros((len(feeds["rois"]), feeds["x"].shape[1], 3, 2))
    for r, (region, image) in enumerate(zip(feeds["rois"].astype(np.float64), feeds["batch"], strict=True)):
        left, top, right, bottom = region * scale - (0.5 if moved else 0)
        spans = [extent if moved else max(extent, 1.0) for extent in (bottom - top, right - left)]
        for i, j in np.ndindex(3, 2):
            found: list[Array] = []
            for a, b in np.ndindex(samples, samples):
                y = top + spans[0] / 3 * (i + (a + 0.5) / samples)
                z = left + spans[1] / 2 * (j + (b + 0.5) / samples)
                terms = [
                    x[image, :, row, column] * high * wide
                    for row, high in shares(y, x.shape[2])
                    for column, wide in shares(z, x.shape[3])
                ] or [np.zeros(x.shape[1])]
                found.append(np.max(terms, 0) if largest else np.sum(terms, 0))
            out[r, :, i, j] = np.max(found, 0) if largest else np.mean(found, 0)
    return out


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("moved", ["half_pixel", "output_half_pixel", None])
@pytest.mark.parametrize("samples", [1, 2, 3])
def test_samples_of_bins_of_regions(mode: str, moved: str | None, samples: int):
    """Operator sets before 16 have corners where their numbers are."""
    attributes: dict[str, Any] = {"mode": mode, "sampling_ratio": samples, "spatial_scale": 0.5}
    attributes |= {} if moved is None else {"coordinate_transformation_mode": moved}
    model = proto(opset=10 if moved is None else 16, **attributes)
    for regions in (7, 1, 0):
        feeds = drawn(regions)
        wanted = expected(feeds, samples, 0.5, moved == "half_pixel", mode == "max")
        assert_same(native(model, feeds), [wanted.astype(np.float32)], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_element_types(dtype: str):
    feeds = drawn(4, dtype)
    (found,) = fuseline.compile(proto(dtype, sampling_ratio=2), threads=1).run(feeds).values()
    assert found.dtype == dtype
    tolerance = 4e-3 if dtype == "float16" else 1e-9
    np.testing.assert_allclose(found, expected(feeds, 2, 1.0, True, False), rtol=tolerance, atol=tolerance)


def test_regions_nowhere_are_zeros():
    corners = np.array([[np.nan] * 4, [1e30, 1e30, 2e30, 2e30], [-np.inf, -np.inf, -np.inf, -np.inf]], np.float32)
    feeds = {**drawn(3), "rois": corners}
    for (found,) in native(proto(sampling_ratio=2), feeds):
        assert not found.any()


def test_regions_of_what_convolutions_make_are_read_where_they_lie():
    """No copy of the image, and the product behind takes the order of the bins."""
    weights = {
        "w": RNG.standard_normal((16, 4, 1, 1)).astype(np.float32) / 2,
        "v": RNG.standard_normal((16 * 6, 5)).astype(np.float32) / 10,
        "rows": np.array([0, -1]),
    }
    node = f"p = RoiAlign{attributes_of({**SIZES, 'sampling_ratio': 2})}(f, rois, batch)"
    model = onnx_model(
        f"""(float[2, 4, 9, 8] x, float[r, 4] rois, int64[r] batch) => (y) {{
            c = Conv(x, w)  f = Relu(c)  {node}  flat = Reshape(p, rows)  y = MatMul(flat, v)
        }}""",
        weights,
    )
    program = fuseline.compile(model, threads=1)
    assert not program.record.host_ops and program.stats["dispatches"] == 3
    assert not program.stats["standalone_transposes"] and not program.stats["copies"]
    feeds = drawn(6)
    feeds["x"] = feeds["x"][:, :4]
    image = np.maximum(np.einsum("nchw,oc->nohw", feeds["x"].astype(np.float64), weights["w"][:, :, 0, 0]), 0)
    pooled = expected({**feeds, "x": image}, 2, 1.0, True, False)
    (found,) = program.run(feeds).values()
    np.testing.assert_allclose(found, pooled.reshape(6, -1) @ weights["v"].astype(np.float64), rtol=1e-3, atol=1e-3)


def test_as_many_samples_as_regions_are_large_stay_on_the_host():
    (host,) = fuseline.compile(proto(sampling_ratio=0), threads=1).record.host_ops
    assert host.reason.startswith("runtime-value")
