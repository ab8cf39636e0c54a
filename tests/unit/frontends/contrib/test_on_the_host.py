"""Operators of onnxruntime's own domain without a lowering: counted host ops where it is installed, coded errors where
not."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from onnx import TensorProto, helper

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.onnx import foreign_operators
from fuseline.interop import onnx_host
from fuseline.runtime.host_calls import packages
from tests.unit.frontends.contrib.calls import agree, ints, normal, one_call, ort

READ_ONLY_NAMES = ("onnxruntime.capi.onnxruntime_pybind11_state", "onnxruntime.capi.onnxruntime_inference_collection")


def _hide_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in READ_ONLY_NAMES:
        monkeypatch.setitem(sys.modules, name, None)
    foreign_operators.known_operators.cache_clear()
    onnx_host.forget()


@pytest.fixture(autouse=True)
def _choose_anew():
    yield
    foreign_operators.known_operators.cache_clear()
    onnx_host.forget()


def test_they_run_there_and_are_counted():
    agree("Inverse", [normal(2, 3, 3)], host=1)
    agree("MurmurHash3", [ints(9, 3)], seed=3, host=1)
    agree("Unique", [ints(3, 9).astype(np.float32)], asked=(0, 1, 2), host=1)


def test_free_sizes_are_those_that_onnxruntime_infers():
    agree("Inverse", [normal(5, 4, 4)], free=(5,), host=1)


def test_outputs_that_are_not_asked_for_are_not_computed():
    """The kernel takes a call without present keys for cross attention, and refuses one with them here."""
    one, beams = np.ones(1, np.int32), np.zeros((1, 1, 1), np.int32)
    inputs = [
        normal(1, 1, 8),
        normal(1, 2, 10, 4),
        normal(1, 2, 10, 4),
        None,
        None,
        None,
        None,
        one,
        one,
        beams,
        normal(24),
    ]
    proto = one_call("DecoderMaskedMultiHeadAttention", inputs, asked=(0, 3), num_heads=2, output_qk=1)
    proto.graph.output[1].type.CopyFrom(
        helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    )  # which onnxruntime does not infer
    feeds = {f"i{position}": array for position, array in enumerate(inputs) if array is not None}
    program = fuseline.compile(proto, target="interpreter")
    expected = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    for found, wanted in zip(program.run(feeds).values(), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_the_package_that_runs_them_is_named():
    program = fuseline.compile(one_call("Inverse", [normal(2, 3, 3)]), threads=1)
    assert packages(program.session.artifact.program) == {"node": "onnxruntime"}


def test_what_only_other_processors_have_is_refused():
    with pytest.raises(FuselineError, match="onnxruntime does not run BiasDropout") as raised:
        fuseline.compile(one_call("BiasDropout", [normal(2, 3), normal(3), normal(2, 3)]), target="interpreter")
    assert (raised.value.code, raised.value.node) == ("E0103", "node")


def test_what_nobody_knows_is_refused():
    with pytest.raises(FuselineError, match="com.microsoft.Nobody is unknown") as raised:
        fuseline.compile(one_call("Nobody", [normal(2, 3)]), target="interpreter")
    assert (raised.value.code, raised.value.node) == ("E0103", "node")


def test_without_onnxruntime_the_model_is_refused(monkeypatch: pytest.MonkeyPatch):
    _hide_onnxruntime(monkeypatch)
    with pytest.raises(FuselineError, match="onnxruntime") as raised:
        fuseline.compile(one_call("Inverse", [normal(2, 3, 3)]), target="interpreter")
    assert (raised.value.code, raised.value.node) == ("E0503", "node")


def test_without_onnxruntime_a_program_says_so_when_it_runs(monkeypatch: pytest.MonkeyPatch):
    x = normal(2, 3, 3)
    program = fuseline.compile(one_call("Inverse", [x]), threads=1)
    _hide_onnxruntime(monkeypatch)
    with pytest.raises(FuselineError, match="onnxruntime") as raised:
        program.run({"i0": x})
    assert (raised.value.code, raised.value.node) == ("E0503", "node")


def test_native_ones_need_no_onnxruntime(monkeypatch: pytest.MonkeyPatch):
    _hide_onnxruntime(monkeypatch)
    x = normal(2, 3, 4)
    program = fuseline.compile(one_call("FusedMatMul", [x, x], transB=1), target="interpreter")
    np.testing.assert_allclose(program.run({"i0": x, "i1": x})["o0"], x @ x.transpose(0, 2, 1), rtol=1e-5, atol=1e-5)
