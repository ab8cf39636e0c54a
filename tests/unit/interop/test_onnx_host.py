"""Host operators: the executor on its own, and through the command table."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import onnx
import pytest
from onnx import helper

from fuseline.errors import FuselineError
from fuseline.interop import onnx_host
from fuseline.runtime import host


def _model(node: onnx.NodeProto, inputs: int) -> bytes:
    values = [helper.make_tensor_value_info(f"i{i}", onnx.TensorProto.FLOAT, None) for i in range(inputs)]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "host", values, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()


def test_several_outputs_in_order() -> None:
    model = _model(helper.make_node("TopK", ["i0", "i1"], ["o0", "o1"]), 2)
    values, indices = onnx_host.execute(model, [np.array([3, 9, 5], np.float32), np.array([2], np.int64)])
    assert (values.tolist(), indices.tolist()) == ([9, 5], [1, 2])


def test_an_input_left_out() -> None:
    model = _model(helper.make_node("Clip", ["i0", "", "i1"], ["o0"]), 2)
    (out,) = onnx_host.execute(model, [np.array([-5, 7], np.float32), np.array(2, np.float32)])
    assert out.tolist() == [-5, 2]


def test_it_is_installed_with_the_api() -> None:
    importlib.import_module("fuseline.api")
    assert host.executor("onnx") is onnx_host.execute


def test_a_failing_operator_is_named() -> None:
    model = _model(helper.make_node("MatMul", ["i0", "i1"], ["o0"], name="proj"), 2)
    with pytest.raises(FuselineError, match=r"E0106 \[proj\].*MatMul"):
        onnx_host.execute(model, [np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)])


def test_without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(FuselineError, match="E0503"):
        onnx_host.execute(_model(helper.make_node("Relu", ["i0"], ["never seen before"]), 1), [np.ones(1, np.float32)])


def test_a_package_that_an_operator_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIL", "PIL.Image"):
        monkeypatch.setitem(sys.modules, name, None)
    model = _model(helper.make_node("ImageDecoder", ["i0"], ["o0"]), 1)
    proto = onnx.load_model_from_string(model)
    proto.opset_import[0].version = 20
    with pytest.raises(FuselineError, match=r"E0503: ImageDecoder: .*Pillow"):
        onnx_host.execute(proto.SerializeToString(), [np.zeros(4, np.uint8)])
