"""Networks with images as large as real ones compute what onnxruntime does, at each level and number of threads."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG, generator
from tests.properties.sized_networks import SizedNetwork
from tests.wishes.compared import by_default


@pytest.mark.parametrize("number", by_default(range(60), 3))
def test_networks_with_large_images(number: int):
    seed = int(generator(f"sized network {number}").integers(1 << 30))
    model = SizedNetwork(seed).model()
    (size,) = model.graph.input
    feeds = {"x": RNG.standard_normal([one.dim_value for one in size.type.tensor_type.shape.dim]).astype(np.float32)}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = dict(zip((one.name for one in session.get_outputs()), session.run(None, feeds), strict=True))
    for fusion, threads in [("default", 1), ("aggressive", 2)] if number % 2 else [("default", 2), ("none", 1)]:
        program = fuseline.compile(model, fusion=fusion, threads=threads, cache=False)
        assert program.stats["host_ops"] == 0
        for name, found in program.run(feeds).items():
            expected = np.asarray(wanted[name])
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            least = 1e-4 * max(1.0, float(np.abs(expected).max()))
            np.testing.assert_allclose(found, expected, rtol=0, atol=least, err_msg=f"{seed} {fusion} {threads} {name}")
