"""Indices outside their tensor: fed or stored in the model, they may give any value but never a read outside."""

from __future__ import annotations

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.graphs.onnx_text import onnx_model

TABLE = np.random.default_rng(0).standard_normal((7, 33), dtype=np.float32)
WILD = np.array([0, 6, -1, -7, 7, -8, 10**9, -(10**9), 2**62, -(2**63)], np.int64)


FED = f"(float[7, 33] x, int64[{len(WILD)}] ids) => (float[{len(WILD)}, 33] y) {{ y = Gather<axis = 0>(x, ids) }}"
STORED = FED.replace(f", int64[{len(WILD)}] ids", "")


@pytest.mark.parametrize("constant", [False, True])
def test_wild_indices_stay_inside(constant: bool):
    model = fuseline.compile(
        onnx_model(STORED, opset=17, ids=WILD) if constant else onnx_model(FED, opset=17), threads=1
    )
    out = model.run({"x": TABLE} if constant else {"x": TABLE, "ids": WILD})["y"]
    np.testing.assert_array_equal(out[:4], TABLE[[0, 6, 6, 0]])
    assert all((row == TABLE).all(axis=1).any() for row in out)


FREE = {
    "Gather": ("Gather(x, i)", (0, 3), (4,)),
    "GatherElements": ("GatherElements<axis = 1>(x, i)", (2, 3), (5, 3)),
    "GatherND": ("GatherND(x, i)", (0, 3), (4, 1)),
    "GatherND in batches": ("GatherND<batch_dims = 1>(x, i)", (2, 3), (3, 1)),
    "GatherND in more batches": ("GatherND<batch_dims = 1>(x, i)", (4, 3), (3, 1)),
}


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", FREE)
def test_sizes_without_the_places_are_refused(name: str, target: str):
    call, table, places = FREE[name]
    indices = ", ".join(["m", *map(str, places[1:])])
    proto = onnx_model(f"(float[n, 3] x, int64[{indices}] i) => (y) {{ y = {call} }}", opset=17)
    model = fuseline.compile(proto, threads=1, target=target, shapes={"n": (0, 9), "m": (0, 9)})
    with pytest.raises(FuselineError) as error:
        model.run({"x": np.ones(table, np.float32), "i": np.zeros(places, np.int64)})
    assert error.value.code == "E0203" and error.value.node
    assert model.run({"x": np.ones((0, 3), np.float32), "i": np.zeros((0, *places[1:]), np.int64)})["y"].shape[0] == 0


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("step", [-1, -2])
@pytest.mark.parametrize("size", ["0", "n"])
def test_slices_of_nothing_read_nothing(size: str, step: int, target: str):
    numbers = {name: np.array([value]) for name, value in {"s": 99, "e": -99, "a": 0, "t": step}.items()}
    proto = onnx_model(f"(float[{size}, 2] x) => (y) {{ y = Slice(x, s, e, a, t) }}", weights=numbers, opset=17)
    model = fuseline.compile(proto, threads=1, target=target, shapes={} if size == "0" else {"n": (0, 9)})
    for count in [0] if size == "0" else [0, 1, 4]:
        rows = np.random.default_rng(count).standard_normal((count, 2), dtype=np.float32)
        np.testing.assert_array_equal(model.run({"x": rows})["y"], rows[::step])
