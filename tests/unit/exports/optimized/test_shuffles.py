"""Channel shuffles, however they are spelled: taken up by filters, or the best that all runtimes understand."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.optimized import checked


def _normal(*sizes: int) -> Any:
    return RNG.standard_normal(sizes).astype(np.float32)


def _array(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


SPELLINGS = {
    "transposed": "a = Reshape(x, i_split)  b = Transpose<perm = [0, 2, 1, 3, 4]>(a)  s = Reshape(b, i_whole)",
    "sliced": """h0 = Slice(x, i_0, i_4, i_1)  h1 = Slice(x, i_4, i_8, i_1)  h2 = Slice(x, i_8, i_12, i_1)
        u0 = Unsqueeze(h0, i_2)  u1 = Unsqueeze(h1, i_2)  u2 = Unsqueeze(h2, i_2)  c = Concat<axis = 2>(u0, u1, u2)
        s = Reshape(c, i_whole)""",
}


def _shuffled(spelling: str, rest: str, before: str = "x = Identity(z)", **weights: Any) -> onnx.ModelProto:
    """A shuffle of 12 channels in 3 groups from x to s, and what the rest makes of it."""
    body = f"{before}  {SPELLINGS[spelling]}  {rest}"
    held = {f"i_{number}": _array(number) for number in (0, 1, 2, 4, 8, 12)}
    held |= {"i_split": _array(1, 3, 4, 5, 6), "i_whole": _array(-1, 12, 5, 6)}
    held = {name: array for name, array in held.items() if f"{name}," in body or f"{name})" in body}
    return onnx_model(f"(float[1, 12, 5, 6] z) => (float[1, k, h, w] y) {{ {body} }}", {**held, **weights})


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_dense_convolution_takes_the_order_up(spelling: str):
    found = checked(_shuffled(spelling, "y = Conv(s, w)", w=_normal(5, 12, 3, 3)))
    assert found.operators == {"Conv": 1}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_order_goes_through_what_keeps_channels_apart(spelling: str):
    rest = """d = Conv<group = 12, pads = [1, 1, 1, 1]>(s, v, e)  r = Relu(d)  q = MaxPool<kernel_shape = [2, 2]>(r)
    m = Conv(q, w)  n = Conv<pads = [0, 0, 0, 0]>(q, w)  y = Add(m, n)"""
    found = checked(_shuffled(spelling, rest, v=_normal(12, 1, 3, 3), e=_normal(12), w=_normal(5, 12, 1, 1)))
    assert found.operators == {"Conv": 3, "Relu": 1, "MaxPool": 1, "Add": 1}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_convolution_that_makes_the_channels_takes_the_order_up(spelling: str):
    before, held = "g = Conv(z, v, e)  x = Relu(g)", {"v": _normal(12, 12, 1, 1), "w": _normal(6, 4, 1, 1)}
    found = checked(_shuffled(spelling, "y = Conv<group = 3>(s, w)", before, e=_normal(12), **held))
    assert found.operators == {"Conv": 2, "Relu": 1}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_between_grouped_convolutions_it_is_a_late_gather(spelling: str):
    before = "x = Conv<group = 3>(z, v)"
    rest = "d = Conv<group = 12, strides = [2, 2]>(s, u, e)  y = Conv<group = 3>(d, w)"
    held = {"v": _normal(12, 4, 1, 1), "u": _normal(12, 1, 2, 2), "e": _normal(12), "w": _normal(6, 4, 1, 1)}
    found = checked(_shuffled(spelling, rest, before, **held))
    assert found.operators == {"Conv": 3, "Gather": 1}
    assert [node.op_type for node in found.model.graph.node][2] == "Gather"


@pytest.mark.parametrize("rest", ["y = Softmax<axis = 1>(s)", "r = Relu(s)  y = Add(r, s)", "y = Neg(s)"])
def test_what_nothing_takes_up_is_spelled_shortly(rest: str):
    for spelling in SPELLINGS:
        found = checked(_shuffled(spelling, rest))
        assert found.operators["Reshape"] == 2 and found.operators["Transpose"] == 1
        assert any("misread" in reason for reason in found.reasons)


def test_an_order_that_is_its_own_inverse_is_a_gather():
    text = """(float[1, 4, 5, 4] x) => (float[1, 4, 5, 4] y)
    { a = Reshape(x, s)  b = Transpose<perm = [0, 2, 1, 3, 4]>(a)  y = Reshape(b, t) }"""
    assert checked(onnx_model(text, s=_array(1, 2, 2, 5, 4), t=_array(1, 4, 5, 4))).operators == {"Gather": 1}


@pytest.mark.parametrize(("perm", "last"), [([0, 2, 1, 3, 4], 3), ([1, 0, 2, 4, 3], 16), ([0, 1, 3, 2, 4], 16)])
def test_what_is_no_shuffle_of_long_rows_stays(perm: list[int], last: int):
    text = f"""(float[2, 4, {last}, 1] x) => (float[a, b, c, d] y)
    {{ a = Reshape(x, s)  b = Transpose<perm = {perm}>(a)  y = Reshape(b, t) }}"""
    found = checked(onnx_model(text, s=_array(2, 2, 2, last, 1), t=_array(2, 4, -1, 1)))
    assert "Gather" not in found.operators


def test_openvino_reads_what_is_written_as_it_is_meant():
    """It folds a Gather of all channels into the filter behind it the wrong way round: none may be written there."""
    openvino = pytest.importorskip("openvino")
    for spelling in SPELLINGS:
        for groups in (1, 3):
            rest = f"d = Conv<group = 12>(s, u)  r = Relu(d)  y = Conv<group = {groups}>(r, w)"
            model = _shuffled(
                spelling, rest, "x = Sigmoid(z)", u=_normal(12, 1, 2, 2), w=_normal(6, 12 // groups, 1, 1)
            )
            found, feed = checked(model), _normal(1, 12, 5, 6)
            core, results = openvino.Core(), []
            for proto in (model, found.model):
                read = core.read_model(proto.SerializeToString())
                compiled = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
                results.append(compiled([feed])[0])
            np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-5)
