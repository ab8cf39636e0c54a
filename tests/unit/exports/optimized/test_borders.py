"""What stays as it is: symbolic sizes, subgraphs, functions, other domains, shared weights, weights beside a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

import fuseline
from fuseline.exports.optimized import result
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.optimized import checked, compare, drawn, outputs


def _normal(*sizes: int) -> Any:
    return RNG.standard_normal(sizes).astype(np.float32)


def test_a_shared_filter_is_folded_for_the_one_that_asks():
    text = """(float[1, 3, 6, 6] x) => (float[1, 4, 6, 6] y, float[1, 4, 6, 6] z)
    { a = Conv(x, w)  y = Mul(a, k)  z = Conv(x, w) }"""
    found = checked(onnx_model(text, w=_normal(4, 3, 1, 1), k=_normal(4, 1, 1)))
    assert found.operators == {"Conv": 2} and len(found.model.graph.initializer) == 3


def test_a_filter_that_is_an_output_keeps_its_value():
    text = "(float[1, 3, 6, 6] x) => (float[1, 4, 6, 6] y, float[4, 3, 1, 1] w) { a = Conv(x, w)  y = Mul(a, k) }"
    assert checked(onnx_model(text, w=_normal(4, 3, 1, 1), k=_normal(4, 1, 1)), interpreted=False).operators == {
        "Conv": 1
    }


def test_an_intermediate_that_is_an_output_is_not_folded_away():
    text = "(float[1, 3, 6, 6] x) => (float[1, 4, 6, 6] a, float[1, 4, 6, 6] y) { a = Conv(x, w)  y = Mul(a, k) }"
    assert checked(onnx_model(text, w=_normal(4, 3, 1, 1), k=_normal(4, 1, 1))).operators == {"Conv": 1, "Mul": 1}


def test_branches_and_loops_stay_with_what_they_capture():
    text = """(float[1, 3, 5, 5] x, bool b) => (float[1, 5, 5, 3] y, float[1, 5, 5, 3] z)
    { t = Transpose<perm = [0, 2, 3, 1]>(x)  r = Identity(t)
      y = If(b) <then_branch = f () => (p) { p = Abs(r) }, else_branch = g () => (q) { q = Add(r, k) }>
      z = Loop(n, "", r) <body = h (int64 i, bool c, float[1, 5, 5, 3] v) => (bool d, float[1, 5, 5, 3] u)
          { d = Identity(c)  u = Add(v, k) }> }"""
    model = onnx_model(text, k=_normal(3), n=np.array(3))
    for flag in (False, True):
        found = checked(model, {"x": _normal(1, 3, 5, 5), "b": np.array(flag)}, interpreted=False)
    assert found.operators == {"Transpose": 1, "If": 1, "Loop": 1}


def test_functions_of_the_model_stay():
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float[1, 3, 5, 5] x) => (float[1, 3, 5, 5] y)
        { t = Transpose<perm = [0, 2, 3, 1]>(x)  u = own.twice(t)  y = Transpose<perm = [0, 3, 1, 2]>(u) }
        <domain: "own", opset_import: ["" : 18]> twice (a) => (b) { b = Add(a, a) }"""
    )
    found = checked(model)
    assert found.operators == {"Transpose": 2, "twice": 1} and len(found.model.functions) == 1


def test_operators_of_other_domains_stay():
    text = "(float[2, 8] x) => (float[2, 8] y) { a = Identity(x)  b = com.microsoft.FastGelu(a)  y = Identity(b) }"
    assert checked(onnx_model(text), interpreted=False).operators == {"FastGelu": 1}


def test_optional_operands_and_sequences_stay():
    text = """(float[2, 6] x) => (float[2, 6] y)
    { s = SplitToSequence<axis = 1>(x, three)  i = Identity(s)  a = SequenceAt(i, zero)  b = SequenceAt(i, one)
      y = Concat<axis = 1>(a, b) }"""
    checked(onnx_model(text, three=np.array(3), zero=np.array(0), one=np.array(1)), interpreted=False)


@pytest.mark.parametrize("kind", ["float16", "double", "int32"])
def test_other_types(kind: str):
    text = f"""({kind}[1, 4, 6, 5] x) => ({kind}[1, 4, 6, 5] y)
    {{ t = Transpose<perm = [0, 2, 3, 1]>(x)  m = Mul(t, k)  n = Max(m, low)  o = Min(n, high)
       y = Transpose<perm = [0, 3, 1, 2]>(o) }}"""
    held = {"k": RNG.integers(1, 5, 4), "low": np.array(0), "high": np.array(6)}
    dtype = {"float16": np.float16, "double": np.float64, "int32": np.int32}[kind]
    found = checked(onnx_model(text, {name: array.astype(dtype) for name, array in held.items()}), interpreted=False)
    assert not found.operators["Transpose"]


def test_symbolic_sizes_of_everything():
    text = """(float[n, c, h, w] x) => (float[n, s] y)
    { p = Pad(x, amounts)  d = Shape(p)  b = Slice(d, zero, one)  e = Concat<axis = 0>(b, minus)  y = Reshape(p, e) }"""
    held = {"amounts": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "zero": np.array([0]), "one": np.array([1])}
    checked(onnx_model(text, {**held, "minus": np.array([-1])}), {"x": _normal(2, 3, 4, 5)})


def test_quantized_networks_keep_their_pairs():
    text = """(float[1, 3, 6, 6] x) => (float[1, 4, 4, 4] y)
    { q = QuantizeLinear(x, s, z)  f = DequantizeLinear(q, s, z)  v = DequantizeLinear(w, k, o)  c = Conv(f, v)
      r = Relu(c)  p = QuantizeLinear(r, s, z)  y = DequantizeLinear(p, s, z) }"""
    held: dict[str, Any] = {"s": np.float32(0.05), "z": np.uint8(120), "o": np.zeros(4, np.int8)}
    held |= {"w": RNG.integers(-100, 100, (4, 3, 3, 3)).astype(np.int8), "k": np.abs(_normal(4)) / 50 + 0.001}
    model = onnx_model(text.replace("DequantizeLinear(w,", "DequantizeLinear<axis = 0>(w,"), held)
    assert checked(model, interpreted=False).summary.done.total() == 0


def test_weights_that_are_too_large_for_one_file_lie_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model = onnx_model("(float[2, 30] x) => (float[2, 40] y) { t = MatMul(x, w)  y = Identity(t) }", w=_normal(30, 40))
    monkeypatch.setattr(result, "MOST_BYTES", 1000)
    files = fuseline.optimize(model).save(tmp_path / "o.onnx")
    assert [Path(file).name for file in files] == ["o.onnx", "o.onnx.data"] and len(list(tmp_path.iterdir())) == 2
    feeds = drawn(model)
    compare(outputs(model, feeds), outputs(onnx.load(tmp_path / "o.onnx"), feeds))
    again = fuseline.optimize(tmp_path / "o.onnx")
    assert again.external and not again.summary.done
    compare(outputs(model, feeds), outputs(again.to_proto(), feeds))


def test_external_weights_of_a_constant_node(tmp_path: Path):
    node = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(_normal(30, 40), "w"))
    model = onnx_model("(float[2, 30] x) => (float[2, 40] y) { y = MatMul(x, w) }")
    model.graph.node.insert(0, node)
    kept = onnx.ModelProto()
    kept.CopyFrom(model)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, convert_attribute=True, size_threshold=1)
    feeds = drawn(kept)
    compare(outputs(kept, feeds), outputs(fuseline.optimize(tmp_path / "m.onnx").to_proto(), feeds))


@pytest.mark.parametrize("content", [b"", b"no model"])
def test_what_cannot_be_read_is_refused(content: bytes, tmp_path: Path):
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(fuseline.FuselineError) as problem:
        fuseline.optimize(tmp_path / "m.onnx")
    assert problem.value.code in ("E0101", "E0102")
