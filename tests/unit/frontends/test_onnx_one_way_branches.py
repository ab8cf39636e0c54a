"""An `If` over sizes of which only one way makes sense of the rest: the program requires the sizes that go with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

HIDDEN, FEATURES = 6, 5
TARGETS = pytest.mark.parametrize("target", ["cpu", "interpreter"])


def squeezed_if(x: str, test: str, *, squeeze_first: bool = True, end: str = "") -> str:
    """`x`, without its last axis where `test` says so, in front of an LSTM: only an x of three dimensions fits."""
    sides = ["squeeze () => (s) { s = Squeeze(x, last) }", "keep () => (k) { k = Identity(x) }"]
    then, otherwise = sides if squeeze_first else sides[::-1]
    return f"""(float[{x}] x) => (y) {{
        shape = Shape(x)
        size = Gather(shape, last)
        {test}
        [choose] chosen = If(asked) <then_branch = {then}, else_branch = {otherwise}>
        {end or f"y = LSTM<hidden_size = {HIDDEN}>(chosen, w, r)"}
    }}"""


CONSTANTS = {
    "last": np.array([-1]),
    "one": np.array([1]),
    "two": np.array([2]),
    "w": RNG.standard_normal((1, 4 * HIDDEN, FEATURES)).astype(np.float32),
    "r": RNG.standard_normal((1, 4 * HIDDEN, HIDDEN)).astype(np.float32),
}
X = f"steps, batch, {FEATURES}, n"
TESTS = {
    "equal": squeezed_if(X, "asked = Equal(size, one)"),
    "less": squeezed_if(X, "asked = Less(size, two)"),
    "at most, cast": squeezed_if(X, "b = LessOrEqual(size, one) asked = Cast<to = 9>(b)"),
    "not greater": squeezed_if(X, "asked = Greater(size, one)", squeeze_first=False),
    "not at least": squeezed_if(X, "asked = GreaterOrEqual(size, two)", squeeze_first=False),
    "not not equal": squeezed_if(X, "e = Equal(size, one) asked = Not(e)", squeeze_first=False),
}


@TARGETS
@pytest.mark.parametrize("name", TESTS)
def test_the_way_that_makes_sense_is_taken_and_required(name: str, target: str):
    model = onnx_model(TESTS[name], CONSTANTS)
    program = fuseline.compile(model, threads=1, target=target)
    assert not program.record.host_ops
    peer = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = RNG.standard_normal((4, 3, FEATURES, 1)).astype(np.float32)
    expected: Any = peer.run(None, {"x": x})[0]
    np.testing.assert_allclose(program.run({"x": x})["y"], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(FuselineError) as error:
        program.run({"x": np.repeat(x, 2, axis=3)})
    assert error.value.code == "E0203" and error.value.node == "choose"


def test_where_both_ways_make_sense_neither_is_required():
    model = onnx_model(squeezed_if("2, n", "asked = Equal(size, one)", end="y = Tanh(chosen)"), CONSTANTS)
    program = fuseline.compile(model, threads=1)
    for size in (1, 3):
        x = RNG.standard_normal((2, size)).astype(np.float32)
        np.testing.assert_allclose(program.run({"x": x})["y"], np.tanh(x[:, 0] if size == 1 else x), rtol=1e-5)


def test_a_way_that_no_requirement_can_say_is_not_taken():
    """The size must differ from 1: both branches stay."""
    end = "y = DepthToSpace<blocksize = 1>(chosen)"
    program = fuseline.compile(onnx_model(squeezed_if("1, 4, 2, n", "asked = Equal(size, one)", end=end), CONSTANTS))
    x = RNG.standard_normal((1, 4, 2, 3)).astype(np.float32)
    np.testing.assert_array_equal(program.run({"x": x})["y"], x)


def test_a_model_without_any_way_is_refused():
    model = onnx_model(squeezed_if("4, 3, 2, 7, 1", "asked = Equal(one, one)"), CONSTANTS)
    with pytest.raises(FuselineError, match="input 0 of LSTM has 4 dimensions, must have 3") as error:
        fuseline.compile(model, threads=1)
    assert error.value.code == "E0107" and error.value.node == "LSTM_4"


@TARGETS
def test_squeezing_a_size_requires_it_to_be_one(target: str):
    model = onnx_model("(float[3, n] x) => (y) { y = Squeeze(x, last) }", CONSTANTS)
    program = fuseline.compile(model, threads=1, target=target)
    x = RNG.standard_normal((3, 1)).astype(np.float32)
    np.testing.assert_array_equal(program.run({"x": x})["y"], x[:, 0])
    with pytest.raises(FuselineError, match="must be equal") as error:
        program.run({"x": np.repeat(x, 2, axis=1)})
    assert error.value.code == "E0203"


def test_squeezing_another_size_is_refused():
    with pytest.raises(FuselineError, match="axis 1 has size 4") as error:
        fuseline.compile(onnx_model("(float[3, 4] x) => (y) { [squeeze] y = Squeeze(x, last) }", CONSTANTS))
    assert error.value.code == "E0107" and error.value.node == "squeeze"


@TARGETS
@pytest.mark.parametrize("batches", [("a", "b"), (3, "b"), ("a", 3)])
def test_first_states_have_the_batch_of_the_input(batches: tuple[Any, Any], target: str):
    text = f"""(float[steps, {batches[0]}, {FEATURES}] x, float[1, {batches[1]}, {HIDDEN}] h) => (y) {{
        [lstm] y = LSTM<hidden_size = {HIDDEN}>(x, w, r, "", "", h)
    }}"""
    model = onnx_model(text, CONSTANTS)
    program = fuseline.compile(model, threads=1, target=target)
    assert not program.record.host_ops
    peer = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {
        "x": RNG.standard_normal((5, 3, FEATURES)).astype(np.float32),
        "h": RNG.standard_normal((1, 3, HIDDEN)).astype(np.float32),
    }
    expected: Any = peer.run(None, feeds)[0]
    np.testing.assert_allclose(program.run(feeds)["y"], expected, rtol=1e-5, atol=1e-6)
    name = "h" if batches[0] == 3 else "x"
    with pytest.raises(FuselineError) as error:
        program.run({**feeds, name: np.concatenate([feeds[name]] * 2, axis=1)})
    assert error.value.code == "E0203"
