"""Quantize and dequantize nodes that stayed: one small model for each reason, and nothing where all is native."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.report.explain import explain_model, explain_node
from fuseline.report.records import CompileRecord
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

PRODUCT = "{ [dq] d = DequantizeLinear(x, s, z) [dw] v = DequantizeLinear(u, s, z) [mm] y = MatMul(d, v) }"
CONVOLUTION = "{{ [dq] d = DequantizeLinear(x, s, z) [dw] v = DequantizeLinear(u, s, z) [c] y = Conv<group={}>(d, v) }}"
ALONG_THE_SUM = PRODUCT.replace("DequantizeLinear(u, s, z)", "DequantizeLinear<axis=0>(u, t, a)")
WIDE = PRODUCT.replace("DequantizeLinear(x, s, z)", "DequantizeLinear(x, s)")
PARAMETERS: dict[str, Any] = {"s": np.float32(0.1), "z": np.int8(0)}
ALONG = {"t": np.linspace(0.1, 0.2, 6).astype(np.float32), "a": np.zeros(6, np.int8)}

CASES = {
    "qdq-no-consumer": ("(int8[5, 6] x) => (y) { [dq] y = DequantizeLinear(x, s, z) }", {}, {"dq"}, set[str]()),
    "qdq-axis": (
        "(int8[5, 6] x, int8[6, 4] u) => (y) " + ALONG_THE_SUM,
        ALONG,
        {"dq", "dw"},
        {"mm"},
    ),
    "qdq-groups": ("(int8[1, 6, 8, 8] x, int8[6, 2, 3, 3] u) => (y) " + CONVOLUTION.format(3), {}, {"dq", "dw"}, {"c"}),
    "qdq-one-side": (
        "(int8[5, 6] x, float[6, 4] u) => (y) { [dq] d = DequantizeLinear(x, s, z) [mm] y = MatMul(d, u) }",
        {},
        {"dq"},
        {"mm"},
    ),
    "qdq-overflow": ("(int8[5, n] x, int8[n, 4] u) => (y) " + PRODUCT, {}, {"dq", "dw"}, {"mm"}),
    "qdq-type": (
        "(int16[5, 6] x, int8[6, 4] u) => (y) " + WIDE,
        {},
        {"dq"},
        {"mm"},
    ),
}


def _record(text: str, **constants: Any) -> CompileRecord:
    model = onnx_model(text, **{**PARAMETERS, **constants})
    return fuseline.compile(model, target="null", cache=False).record


@pytest.mark.parametrize("stored", [np.int16, np.uint16])
@pytest.mark.parametrize("moved", ["", "t = Transpose<perm=[1, 0]>(d)  e = Transpose<perm=[1, 0]>(t)"])
def test_a_program_without_a_tensor_of_8_bits_says_what_runs_in_float(stored: type, moved: str):
    record = _record(
        f"(float[5, 6] x, float[6, 4] u) => (y) {{ [q] w = QuantizeLinear(x, s, k)"
        f" [dq] d = DequantizeLinear(w, s, k) {moved} [mm] m = MatMul({'e' if moved else 'd'}, u)"
        f" [q2] r = QuantizeLinear(m, s, k) y = DequantizeLinear(r, s, k) }}",
        k=np.array(3, stored),
    )
    assert [(one.code, one.nodes, one.readers) for one in record.quantization] == [("qdq-type", ("dq",), ("mm",))]


@pytest.mark.parametrize("stored", [np.int16, np.uint16])
def test_wide_activations_beside_constant_weights_of_8_bits_are_told(stored: type):
    rows, steps, columns = (int(RNG.integers(2, 20)) for _ in range(3))
    record = _record(
        f"(float[{rows}, {steps}] x) => (y) {{ [q] w = QuantizeLinear(x, s, k) [dq] d = DequantizeLinear(w, s, k)"
        " [dw] v = DequantizeLinear(u, s, z) [mm] y = MatMul(d, v) }",
        k=np.array(3, stored),
        u=RNG.integers(-99, 99, (steps, columns)).astype(np.int8),
    )
    assert [(one.code, one.nodes, one.readers) for one in record.quantization] == [("qdq-type", ("dq",), ("mm",))]


def test_what_the_host_dequantises_names_the_product_behind_it():
    columns = int(RNG.integers(1, 9))
    body = "{ [dq] d = DequantizeLinear(x, s) [mm] y = MatMul(d, u) }"
    model = onnx_model(f"(float8e4m3fn[5, 6] x, float[6, {columns}] u) => (y) {body}", s=np.float32(0.1), opset=21)
    record = fuseline.compile(model, target="null", cache=False).record
    assert [(one.code, one.nodes, one.readers) for one in record.quantization] == [("qdq-host", ("dq",), ("mm",))]


@pytest.mark.parametrize("code", CASES)
def test_a_reason_names_the_nodes_and_what_runs_in_float(code: str):
    text, constants, nodes, readers = CASES[code]
    record = _record(text, **constants)
    (found,) = (one for one in record.quantization if one.code == code)
    assert (set(found.nodes), set(found.readers)) == (nodes, readers) and found.detail
    assert record.statistics["quantization"][code] == 1
    lines = "\n".join(explain_model(record).lines)
    assert f"  {code} " in lines
    assert any(code in line for line in explain_node(record, "dq").lines)


@pytest.mark.parametrize(
    "text",
    [
        "(int8[5, 6] x, int8[6, 4] u) => (y) " + PRODUCT,
        "(int8[1, 3, 9, 7] x, int8[5, 3, 3, 3] u) => (y) " + CONVOLUTION.format(1),
        "(float[5, 6] x) => (y) { e = Exp(x) q = QuantizeLinear(e, s, z) d = DequantizeLinear(q, s, z) y = Abs(d) }",
        "(float[5, 6] x) => (y) { e = Exp(x) y = Abs(e) }",
    ],
    ids=["product", "convolution", "elementwise", "none"],
)
def test_what_is_native_is_not_reported(text: str):
    record = _record(text)
    assert record.quantization == [] and record.statistics["quantization"] == {}


def test_the_image_of_a_depthwise_window_is_centred_where_it_is_staged():
    """As its filter is: nothing stays in a dispatch of its own."""
    record = _record("(int8[1, 6, 8, 8] x, int8[6, 1, 3, 3] u) => (y) " + CONVOLUTION.format(6))
    assert record.quantization == []


def test_a_chain_of_quantised_layers_is_native():
    text = """(int8[5, 6] x, int8[6, 7] u, int8[7, 4] w) => (y) {
        d = DequantizeLinear(x, s, z) v = DequantizeLinear(u, s, z) a = MatMul(d, v) b = Relu(a)
        q = QuantizeLinear(b, s, z) e = DequantizeLinear(q, s, z) k = DequantizeLinear(w, s, z)
        c = MatMul(e, k) y = QuantizeLinear(c, s, z) }"""
    assert _record(text).quantization == []
