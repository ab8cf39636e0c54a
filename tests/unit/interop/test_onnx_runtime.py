"""One-node models in onnxruntime: what it takes, what it does not, and why."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from fuseline.errors import FuselineError
from fuseline.interop.onnx_runtime import NotInstalled, NotTaken, OrtOperator
from tests.draws import RNG
from tests.one_node import one_node

pytest.importorskip("onnxruntime")


def test_an_operator_on_its_operands() -> None:
    x, y = RNG.standard_normal((3, 4)), RNG.standard_normal(4)
    model = one_node("Sub", [x, y])
    model.ir_version = 99  # newer than onnxruntime knows; it stays as it is
    operator = OrtOperator(model)
    np.testing.assert_array_equal(operator.run([x, y])[0], x - y)
    np.testing.assert_array_equal(operator.run([x + 1, y])[0], x + 1 - y)
    assert model.ir_version == 99


def test_scalars_of_numpy_are_fed_as_arrays() -> None:
    operator = OrtOperator(one_node("Neg", [np.array(2.5, np.float32)]))
    assert operator.run([np.float32(2.5)])[0] == -2.5


def test_sequences() -> None:
    parts = [RNG.standard_normal((2, 3)).astype(np.float32) for _ in range(3)]
    operator = OrtOperator(one_node("ConcatFromSequence", [parts], {"axis": 0}, opset=11))
    np.testing.assert_array_equal(operator.run([parts])[0], np.concatenate(parts))


def _optional() -> onnx.ModelProto:
    model = one_node("OptionalGetElement", [np.zeros(2, np.float32)])
    inner = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    model.graph.input[0].type.CopyFrom(helper.make_optional_type_proto(inner))
    return model


SMALL = np.zeros(2, ml_dtypes.bfloat16)
EIGHTH = np.zeros(2, ml_dtypes.float8_e4m3fn)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (_optional(), "an operand is optional_type"),
        (one_node("Neg", [SMALL]), "elements that NumPy does not know"),
        (one_node("Identity", [EIGHTH], opset=19), "elements that NumPy does not know"),
        (one_node("Identity", [SMALL], constants=(0,)), "elements that NumPy does not know"),
        (one_node("NoSuch", [np.zeros(2, np.float32)]), "NoSuch"),
        (one_node("Relu", [np.zeros(2, np.float32)], opset=999), "999"),
    ],
)
def test_models_that_are_not_taken(model: onnx.ModelProto, words: str) -> None:
    with pytest.raises(NotTaken, match=words) as caught:
        OrtOperator(model)
    assert not isinstance(caught.value, NotInstalled)
    assert "onnxruntime_src" not in str(caught.value) and "[ONNXRuntimeError]" not in str(caught.value)


def test_an_input_of_no_type() -> None:
    model = one_node("Identity", [np.zeros(2, np.float32)])
    model.graph.input[0].ClearField("type")
    with pytest.raises(NotTaken, match="an operand is of unknown type"):
        OrtOperator(model)


def test_operands_that_no_kernel_can_take() -> None:
    x, indices = np.zeros((3, 2), np.float32), np.array([5])
    with pytest.raises(FuselineError, match="onnxruntime cannot run Gather: ") as caught:
        OrtOperator(one_node("Gather", [x, indices])).run([x, indices])
    assert caught.value.code == "E0106"
    assert ".cc:" not in caught.value.message


def test_what_turns_out_to_be_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = OrtOperator(one_node("Neg", [np.zeros(2, np.float32)]))

    class NotImplemented(Exception):
        pass

    for error in (NotImplemented("any"), RuntimeError("[ONNXRuntimeError] : 9 : FAIL : this is not supported yet")):

        def run(*_: Any, error: Exception = error) -> Any:
            raise error

        monkeypatch.setattr(operator, "_session", type("Session", (), {"run": run})())
        with pytest.raises(NotTaken) as caught:
            operator.run([np.zeros(2, np.float32)])
        assert str(caught.value) in ("any", "this is not supported yet")


def test_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime.capi.onnxruntime_inference_collection", None)
    with pytest.raises(NotInstalled, match="not installed"):
        OrtOperator(one_node("Neg", [np.zeros(2, np.float32)]))
