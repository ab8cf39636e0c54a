"""Parts of a tensor that something is added to, put back beside the rest: one op over all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

SUMS = {"added": "Add(b, s)", "added to": "Add(s, b)", "less": "Sub(b, s)", "times": "Mul(b, s)"}
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45], np.float32)


def _model(sum_: str, cuts: tuple[int, int, int], before: str, batch: int | str, order: str) -> onnx.ModelProto:
    """`a` to `c` are the channels of `x` up to each cut; something is done to `b`."""
    first, second, last = cuts
    ends = {"zero": [0], "first": [first], "second": [second], "last": [last], "axis": [1]}
    weights: dict[str, Any] = {name: np.array(numbers) for name, numbers in ends.items()}
    weights["w"] = (RNG.standard_normal((last, 5, 1, 1)) / 3).astype(np.float32)
    text = f"""(float[{batch}, 5, 9, 7] u, float[{batch}, {last}, 9, 7] v, float[{batch}, {second - first}, 9, 7] s)
        => (y) {{ {before}
        a = Slice(x, zero, first, axis)  b = Slice(x, first, second, axis)  c = Slice(x, second, last, axis)
        d = {sum_}  y = Concat<axis = 1>({order}) }}"""
    return onnx_model(text, {name: array for name, array in weights.items() if name != "w" or ", w)" in before})


def _run(model: onnx.ModelProto, feeds: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any], dict[str, Any]]:
    given = {name: feeds[name] for name in feeds if name in [one.name for one in model.graph.input]}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    program = fuseline.compile(model, threads=int(RNG.integers(1, 4)))
    wanted: Any = session.run(None, given)[0]
    return program.run(given)["y"], wanted, dict(program.stats)


def _feeds(cuts: tuple[int, int, int], batch: int) -> dict[str, NDArray[Any]]:
    shapes = {"u": 5, "v": cuts[2], "s": cuts[1] - cuts[0]}
    return {name: RNG.standard_normal((batch, count, 9, 7)).astype(np.float32) for name, count in shapes.items()}


@pytest.mark.parametrize("cuts", [(0, 4, 9), (3, 8, 8), (2, 5, 11), (16, 48, 64)])
@pytest.mark.parametrize("sum_", SUMS)
def test_it_follows_the_convolution(sum_: str, cuts: tuple[int, int, int]):
    batch = int(RNG.integers(1, 4))
    declared = "N" if RNG.integers(2) else batch
    model = _model(SUMS[sum_], cuts, "x = Conv(u, w)", declared, "a, d, c")
    found, wanted, stats = _run(model, _feeds(cuts, batch))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert (stats["dispatches"], stats["copies"]) == (1, 0)


@pytest.mark.parametrize("sum_", SUMS)
def test_what_stands_beside_stays_as_it_is(sum_: str):
    """Zeros of either sign, infinities, and what is no number."""
    cuts = (2, 5, 9)
    model = _model(SUMS[sum_], cuts, "x = Identity(v)", 1, "a, d, c")
    feeds = {name: RNG.choice(SPECIAL, array.shape) for name, array in _feeds(cuts, 1).items()}
    found, wanted, _ = _run(model, feeds)
    np.testing.assert_array_equal(found, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


@pytest.mark.parametrize("order", ["c, d, a", "a, d", "d, c, a", "a, d, c, a"])
def test_parts_in_another_order_are_no_whole(order: str):
    cuts = (3, 6, 9)
    found, wanted, _ = _run(_model("Add(b, s)", cuts, "x = Exp(v)", 2, order), _feeds(cuts, 2))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_sum_that_others_read_is_made_once():
    cuts = (3, 6, 9)
    model = _model("Add(b, s)", cuts, "x = Exp(v)", 2, "a, d, c")
    model.graph.output.append(onnx.helper.make_tensor_value_info("d", onnx.TensorProto.FLOAT, None))
    feeds = {name: array for name, array in _feeds(cuts, 2).items() if name != "u"} | {
        "u": RNG.standard_normal((2, 5, 9, 7)).astype(np.float32)
    }
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    answers: Any = session.run(None, feeds)
    for found, wanted in zip(fuseline.compile(model).run(feeds).values(), answers, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
