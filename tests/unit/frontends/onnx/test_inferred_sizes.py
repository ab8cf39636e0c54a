"""Sizes that onnx.shape_inference gets wrong are put right before a host operator is planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from onnx import helper

import fuseline
from fuseline.frontends.onnx.host_values import HostValue, known_value
from fuseline.frontends.onnx.inferred_sizes import corrected, most_of
from fuseline.ir.dim import Dim, evaluate, symbol
from tests.draws import RNG
from tests.graphs.onnx_text import call, onnx_model


def _attributes(**given: Any) -> Mapping[str, ir.Attr]:
    return {attribute.name: ir.serde.deserialize_attribute(attribute) for attribute in (
        helper.make_attribute(name, value) for name, value in given.items())}  # fmt: skip


def _image(*sizes: Dim) -> HostValue:
    return HostValue(onnx.TypeProto(), sizes)


@pytest.mark.parametrize(
    ("op_type", "given", "sizes", "most"),
    [
        ("NonZero", {}, (3, 4), 12),
        ("NonZero", {}, (3, symbol("n", 0, 5)), 15),
        ("NonZero", {}, (3, symbol("n")), None),
        ("Unique", {}, (3, 4), 12),
        ("Compress", {"axis": 1}, (0, 4), None),
        ("NonMaxSuppression", {}, (3, 4), None),
    ],
)
def test_no_more_is_selected_than_there_is(op_type: str, given: dict[str, Any], sizes: Any, most: int | None):
    assert most_of(op_type, _attributes(**given), _image(*sizes)) == most
    assert most_of(op_type, _attributes(**given), None) is None


def test_operators_that_are_left_alone():
    image, found = _image(1, 2, 9), (1, 2, 5)
    for op_type, attributes in (
        ("Conv", {"ceil_mode": 1}),
        ("MaxPool", {}),
        ("MaxPool", {"ceil_mode": 0, "kernel_shape": [2]}),
        ("MaxPool", {"ceil_mode": 1, "kernel_shape": [2], "auto_pad": "SAME_UPPER"}),
        ("NonZero", {}),
        ("STFT", {}),
    ):
        assert corrected(op_type, _attributes(**attributes), image, found) is found
    unknown = HostValue(onnx.TypeProto(), None)
    assert corrected("MaxPool", _attributes(ceil_mode=1, kernel_shape=[2]), unknown, found) is found
    assert corrected("MaxPool", _attributes(ceil_mode=1, kernel_shape=[2]), None, found) is found


def test_a_line_of_one_and_spectra():
    assert corrected("NonZero", {}, known_value(np.ones(())), (0, None)) == [1, None]
    assert corrected("STFT", {}, None, (1, 7, 9, 2)) == [1, 7, None, 2]


def test_the_last_window_does_not_start_in_the_padding():
    n = symbol("n")
    attributes = _attributes(ceil_mode=1, kernel_shape=[2, 3], strides=[2, 3], dilations=[1, 2], pads=[1, 2, 1, 1])
    batch, channels, rows, columns = corrected("AveragePool", attributes, _image(n, 2, 1, n), (n, 2, 2, None))
    assert (batch, channels, rows) == (n, 2, 1) and columns is not None
    assert [evaluate(columns, {"n": size}) for size in (9, 17)] == [4, 6]


@pytest.mark.parametrize(("op_type", "opset"), [("AveragePool", 21), ("MaxPool", 12), ("LpPool", 18)])
@pytest.mark.parametrize("ranked", [True, False])
def test_poolings_that_go_to_the_host(op_type: str, opset: int, ranked: bool):
    """Dilated windows over padded symbolic sizes; in planes, with and without a known rank."""
    for _ in range(4):
        kernel, strides, dilations = (RNG.integers(low, 4, 2).tolist() for low in (2, 1, 1))
        pads = [int(RNG.integers(0, (kernel[axis % 2]))) for axis in range(4)]
        held: dict[str, Any] = {
            "kernel_shape": kernel,
            "strides": strides,
            "dilations": dilations,
            "pads": pads,
            "ceil_mode": 1,
        }
        x = "float[N, 2, H, W] x" if ranked else "float[] x"
        model = onnx_model(f"({x}) => (float[] y) {{ {call(op_type, 'x', **held)} }}", opset=opset)
        options = ort.SessionOptions()
        options.log_severity_level = 4
        session, program = ort.InferenceSession(model.SerializeToString(), options), fuseline.compile(model)
        for size in (9, 10, 12):
            x = RNG.standard_normal((3, 2, size, size + 1)).astype(np.float32)
            expected: Any = session.run(None, {"x": x})[0]
            np.testing.assert_allclose(program.run({"x": x})["y"], expected, rtol=1e-4, atol=1e-5)
