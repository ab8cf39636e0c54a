"""Models of each kind, written with a function for each dispatch: valid, equal in onnxruntime, and the same again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from fuseline import fuse
from fuseline.frontends.onnx.dispatch_functions import DOMAIN
from tests.draws import RNG
from tests.fused import Checked, checked
from tests.graphs.onnx_text import onnx_model


def _normal(*sizes: int, dtype: Any = np.float32) -> Any:
    return RNG.standard_normal(sizes).astype(dtype)


def _right(model: onnx.ModelProto | Path, feeds: Mapping[str, Any], folder: Path, **options: Any) -> Checked:
    found = checked(model, feeds, folder, **options)
    assert found.equal and found.same_plan and found.same_export, found
    return found


def _main(folder: Path) -> list[str]:
    """The operators of the main graph, those of functions as `call`."""
    model = onnx.load(folder / "fused.onnx", load_external_data=False)
    return ["call" if node.domain == DOMAIN else node.op_type for node in model.graph.node]


def test_a_node_that_several_dispatches_compute_is_in_each(tmp_path: Path):
    model = onnx_model(
        "(float[64, 96] x) => (float[96, 80] y, float[96, 72] z)"
        "{ t = Transpose<perm = [1, 0]>(x)  y = MatMul(t, a)  u = MatMul(t, b)  s = ReduceMax<keepdims = 1>(u)"
        "  z = Div(u, s) }",
        a=_normal(64, 80),
        b=_normal(64, 72),
        opset=13,
    )
    found = _right(model, {"x": _normal(64, 96)}, tmp_path)
    assert found.summary.functions == found.summary.dispatches


def test_quantized_weights_and_values(tmp_path: Path):
    columns, rows = (int(size) for size in RNG.integers(8, 40, 2))
    scale, zero = np.float32(0.02), np.uint8(120)
    model = onnx_model(
        f"(float[{rows}, 32] x) => (float[{rows}, {columns}] y, float[{rows}, {columns}] z)"
        "{ q = QuantizeLinear(x, s, z0)  d = DequantizeLinear(q, s, z0)  v = DequantizeLinear(w, s, i0)"
        "  t = MatMul(d, v)  u = Relu(t)  p = QuantizeLinear(u, s, z0)  y = DequantizeLinear(p, s, z0)"
        "  e = Exp(y)  m = ReduceMean<keepdims = 1>(e)  z = Sub(y, m) }",
        s=scale,
        z0=zero,
        i0=np.int8(0),
        w=RNG.integers(-127, 127, (32, columns)).astype(np.int8),
        opset=13,
    )
    _right(model, {"x": _normal(rows, 32)}, tmp_path)


def test_halves(tmp_path: Path):
    model = onnx_model(
        "(float16[1, 8, 12, 12] x) => (float16[1, 10, 6, 6] y)"
        "{ t = Conv<pads = [1, 1, 1, 1]>(x, w)  u = Relu(t)  y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(u) }",
        w=_normal(10, 8, 3, 3, dtype=np.float16),
    )
    _right(model, {"x": _normal(1, 8, 12, 12, dtype=np.float16)}, tmp_path)


def test_a_bias_in_another_dispatch_than_its_convolution(tmp_path: Path):
    """The sum of two convolutions is in the second one's dispatch, with the first one's bias."""
    size = int(RNG.integers(10, 20))
    model = onnx_model(
        f"(float[1, 16, {size}, {size}] x) => (float[1, 24, {size}, {size}] y)"
        "{ a = Conv(x, w, b)  c = Conv<pads = [1, 1, 1, 1]>(x, v, d)  t = Add(a, c)  y = Relu(t) }",
        w=_normal(24, 16, 1, 1),
        v=_normal(24, 16, 3, 3),
        b=_normal(24),
        d=_normal(24),
    )
    found = _right(model, {"x": _normal(1, 16, size, size)}, tmp_path)
    assert found.summary.functions == found.summary.dispatches and not found.summary.shared


def test_a_node_without_a_body_in_two_dispatches_is_one_function(tmp_path: Path):
    model = onnx_model(
        "(float[6, 1, 5] x) => (float[6, 1, 4] y)"
        "{ a, h, c = LSTM<hidden_size = 4>(x, w, r)  t = Squeeze(a, k)  y = Exp(t) }",
        w=_normal(1, 16, 5),
        r=_normal(1, 16, 4),
        k=np.array([1]),
    )
    found = _right(model, {"x": _normal(6, 1, 5)}, tmp_path)
    assert found.summary.shared


def test_several_results_and_one_that_is_left_out(tmp_path: Path):
    model = onnx_model(
        "(float[5, 1, 40] x) => (float[5, 1, 3] values, int64[5, 1, 3] places, float[5, 1, 12] b, float[1, 1, 4] h)"
        "{ values, places = TopK<axis = 2>(x, k)  a, m, b0 = Split<axis = 2>(x, parts)  b = Relu(b0)"
        '  "", h = GRU<hidden_size = 4>(a, w, r) }',
        k=np.array([3]),
        parts=np.array([8, 20, 12]),
        w=_normal(1, 12, 8),
        r=_normal(1, 12, 4),
    )
    _right(model, {"x": _normal(5, 1, 40)}, tmp_path)


@pytest.mark.parametrize("count", [1, 3])
def test_a_loop_reads_what_a_function_makes(count: int, tmp_path: Path):
    model = onnx_model(
        "(float[4, 8] x, int64 n) => (float[4, 6] y)"
        "{ t = MatMul(x, w)  k = Exp(t)  z = Loop<body = g (int64 i, bool more, float[4, 6] state) =>"
        " (bool still, float[4, 6] next) { still = Identity(more)  s = Add(state, k)  next = Tanh(s) }>(n, yes, t)"
        "  y = Relu(z) }",
        w=_normal(8, 6),
        yes=np.array(True),
    )
    _right(model, {"x": _normal(4, 8), "n": np.array(count)}, tmp_path)
    assert "Loop" in _main(tmp_path)


def test_branches_stay_whole(tmp_path: Path):
    model = onnx_model(
        "(float[4, 8] x, bool c) => (float[4, 6] y)"
        "{ t = MatMul(x, w)  e = Exp(t)  z = If<then_branch = g () => (float[4, 6] a) { a = Mul(e, t) },"
        " else_branch = h () => (float[4, 6] b) { u = Add(e, e)  b = Neg(u) }>(c)  y = Sigmoid(z) }",
        w=_normal(8, 6),
    )
    for choice in (True, False):
        _right(model, {"x": _normal(4, 8), "c": np.array(choice)}, tmp_path)


def test_branches_that_the_host_chooses_stay_in_the_main_graph(tmp_path: Path):
    model = onnx_model(
        "(float[4, 8] x, bool c) => (float[n] y)"
        "{ t = MatMul(x, w)  e = Exp(t)  z = If<then_branch = g () => (float[k] a) { a = Reshape(e, all) },"
        " else_branch = h () => (float[m] b) { u = ReduceSum<keepdims = 0>(e, one)  b = Neg(u) }>(c)  y = Sigmoid(z) }",
        w=_normal(8, 6),
        all=np.array([-1]),
        one=np.array([1]),
    )
    for choice in (True, False):
        _right(model, {"x": _normal(4, 8), "c": np.array(choice)}, tmp_path)
    assert "If" in _main(tmp_path)


def test_branches_between_two_ops_of_a_dispatch(tmp_path: Path):
    """A branch that is known while reading becomes part of the dispatch around it, and of its function."""
    model = onnx_model(
        "(float[4, 8] x) => (float[4, 8] y)"
        "{ t = Exp(x)  z = If<then_branch = g () => (float[4, 8] a) { a = Mul(t, x) },"
        " else_branch = h () => (float[4, 8] b) { b = Neg(t) }>(c)  y = Relu(z) }",
        c=np.array(True),
    )
    _right(model, {"x": _normal(4, 8)}, tmp_path)


def test_symbolic_sizes(tmp_path: Path):
    model = onnx_model(
        "(float[n, 8] x) => (float[m] y)"
        "{ t = MatMul(x, w)  s = Shape(t)  r = ReduceProd<keepdims = 1>(s)  u = Relu(t)  y = Reshape(u, r) }",
        w=_normal(8, 6),
    )
    for rows in RNG.integers(1, 30, 2):
        _right(model, {"x": _normal(int(rows), 8)}, tmp_path)
    found = _right(model, {"x": _normal(9, 8)}, tmp_path, shapes={"n": 9})
    assert found.summary.dispatches


def test_constants_are_where_they_are_read(tmp_path: Path):
    model = onnx_model(
        "(float[4, 600] x) => (float[4, 600] y, float[4, 600] z)"
        "{ c = Constant<value = float[1] {2.5}>()  t = Mul(x, c)  s = Softmax(t)  y = Add(s, c)  r = ReduceMax(x)"
        "  v = Mul(r, c)  u = CumSum(x, one)  z = Add(u, v) }",
        one=np.array(1),
    )
    _right(model, {"x": _normal(4, 600)}, tmp_path)
    assert set(_main(tmp_path)) == {"call"}


def test_views_between_two_dispatches(tmp_path: Path):
    model = onnx_model(
        "(float[4, 6, 8] x) => (float[24, 8] y, float[4, 48] z)"
        "{ t = Softmax(x)  y = Reshape(t, a)  u = Reshape(t, b)  z = Softmax(u) }",
        a=np.array([24, 8]),
        b=np.array([4, 48]),
    )
    _right(model, {"x": _normal(4, 6, 8)}, tmp_path)


def test_operators_of_onnxruntime(tmp_path: Path):
    model = onnx_model(
        "(float[1, 6, 16] x) => (float[1, 6, 16] y)"
        "{ t = com.microsoft.SkipLayerNormalization(x, x, g, b)  u = com.microsoft.Gelu(t)"
        "  y = com.microsoft.FusedMatMul<transB = 1>(u, w) }",
        g=_normal(16),
        b=_normal(16),
        w=_normal(16, 16),
    )
    _right(model, {"x": _normal(1, 6, 16)}, tmp_path)


def test_operators_that_are_read_as_several(tmp_path: Path):
    scale, zero = np.float32(0.05), np.uint8(128)
    model = onnx_model(
        "(uint8[3, 16] x) => (uint8[3, 16] y)"
        "{ t = com.microsoft.QLinearAdd(x, s, z, x, s, z, s, z)  y = com.microsoft.QLinearSigmoid(t, s, z, s, z) }",
        s=scale,
        z=zero,
    )
    found = _right(model, {"x": RNG.integers(0, 255, (3, 16)).astype(np.uint8)}, tmp_path)
    assert found.summary.in_functions == 2


def test_texts_run_on_the_host(tmp_path: Path):
    model = onnx_model(
        "(string[4] x, float[4, 8] v) => (string[4] y, float[4, 8] z)"
        "{ y = StringConcat(x, x)  t = Exp(v)  z = Relu(t) }",
        opset=20,
    )
    feeds = {"x": np.array(["a", "b", "c", "D"], object), "v": _normal(4, 8)}
    found = _right(model, feeds, tmp_path)
    assert found.summary.host == 1 and sorted(_main(tmp_path)) == ["StringConcat", "call"]


def _with_function(body: str, calls: str, sizes: str = "[4, 8]", **weights: Any) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f"""
        <ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float{sizes} x) => (float{sizes} y) {{ {calls} }}
        {body}""")
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


def test_functions_of_the_model_that_are_one_dispatch_stay(tmp_path: Path):
    body = """<domain: "own", opset_import: ["" : 18]> act <alpha> (a) => (b)
              { c = LeakyRelu<alpha: float = @alpha>(a)  b = Exp(c) }"""
    model = _with_function(body, "y = own.act<alpha = 0.25>(x)")
    _right(model, {"x": _normal(4, 8)}, tmp_path)
    fused = onnx.load(tmp_path / "fused.onnx")
    assert sorted(one.domain for one in fused.functions) == [DOMAIN, "own"]


def test_functions_of_the_model_in_several_dispatches_are_taken_apart(tmp_path: Path):
    body = """<domain: "own", opset_import: ["" : 18, "own" : 1]> layer (a, v) => (b)
              { t = MatMul(a, v)  u = own.norm(t)  s = MatMul(u, v)  b = own.norm(s) }
              <domain: "own", opset_import: ["" : 18]> norm (a) => (b)
              { m = ReduceMean<keepdims = 1, noop_with_empty_axes = 0>(a)  b = Sub(a, m) }"""
    calls = "[one] t = own.layer(x, w)  [two] y = own.layer(t, w)"
    model = _with_function(body, calls, "[256, 320]", w=_normal(320, 320))
    found = _right(model, {"x": _normal(256, 320)}, tmp_path)
    assert {"one", "two"} <= set(found.summary.expanded)
    assert "layer" not in {one.name for one in onnx.load(tmp_path / "fused.onnx").functions}
    assert found.summary.functions == found.summary.dispatches


def test_names_that_several_nodes_have(tmp_path: Path):
    model = onnx_model(
        "(float[4, 8] x) => (float[4, 8] y) { [n] t = MatMul(x, w)  [n] u = Softmax(t)  [n] y = MatMul(u, w) }",
        w=_normal(8, 8),
    )
    fuse(model).save(tmp_path / "unique.onnx")  # onnxruntime refuses the model itself
    _right(tmp_path / "unique.onnx", {"x": _normal(4, 8)}, tmp_path)


def test_names_with_any_letters(tmp_path: Path):
    nodes = '["/one/"] "a/b:0" = MatMul("in put", "w:0")  ["two::"] "ä ö" = Softmax("a/b:0")  "0" = Relu("ä ö")'
    weights = {"w:0": _normal(8, 8)}
    model = onnx_model(f'(float[4, 8] "in put") => (float[4, 8] "0") {{ {nodes} }}', weights, opset=17)
    _right(model, {"in put": _normal(4, 8)}, tmp_path)


def test_old_models_whose_weights_are_inputs(tmp_path: Path):
    model = onnx_model(
        "(float[4, 8] x, float[8, 6] w) => (float[4, 6] y) { t = MatMul(x, w)  y = Relu(t) }",
        opset=9,
        ir_version=3,
        w=_normal(8, 6),
    )
    _right(model, {"x": _normal(4, 8)}, tmp_path)


def test_sparse_weights(tmp_path: Path):
    model = onnx_model("(float[4, 8] x) => (float[4, 6] y) { t = MatMul(x, w)  y = Relu(t) }")
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(numpy_helper.from_array(_normal(5), "w"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([1, 7, 20, 33, 47]), "w_indices"))
    sparse.dims.extend([8, 6])
    _right(model, {"x": _normal(4, 8)}, tmp_path)


def test_nodes_in_any_order(tmp_path: Path):
    model = onnx_model(
        "(float[4, 8] x) => (float[4, 8] y) { t = MatMul(x, w)  u = Softmax(t)  y = MatMul(u, w) }", w=_normal(8, 8)
    )
    nodes = list(model.graph.node)
    backwards = onnx.ModelProto()
    backwards.CopyFrom(model)
    del backwards.graph.node[:]
    backwards.graph.node.extend(reversed(nodes))
    fuse(backwards).save(tmp_path / "a.onnx")
    _right(tmp_path / "a.onnx", {"x": _normal(4, 8)}, tmp_path)


def test_a_model_of_nothing_but_borders(tmp_path: Path):
    model = onnx_model("(float[4, 8] x) => (float[4, 8] y) { y = Identity(x) }")
    found = _right(model, {"x": _normal(4, 8)}, tmp_path)
    assert found.summary.functions == 0


def test_other_targets_and_levels(tmp_path: Path):
    model = onnx_model(
        "(float[4, 8] x) => (float[4, 6] y) { t = MatMul(x, w)  u = Exp(t)  y = Relu(u) }", w=_normal(8, 6)
    )
    alone = _right(model, {"x": _normal(4, 8)}, tmp_path, fusion="none", target="null")
    assert alone.summary.functions == 3


def test_training_information_and_notes_stay(tmp_path: Path):
    model = onnx_model("(float[4, 8] x) => (float[4, 6] y) { [n] t = MatMul(x, w)  y = Relu(t) }", w=_normal(8, 6))
    training = model.training_info.add()
    training.algorithm.CopyFrom(onnx.parser.parse_graph("step () => (float[8, 6] next) { next = Identity(w) }"))
    training.update_binding.add(key="w", value="next")
    helper.set_model_props(model, {"author": "me", "fuseline.plan": "of another export"})
    model.graph.node[0].metadata_props.add(key="seen", value="yes")
    _right(model, {"x": _normal(4, 8)}, tmp_path)
    fused = onnx.load(tmp_path / "fused.onnx")
    assert fused.training_info[0] == training
    said = [(entry.key, entry.value) for entry in fused.metadata_props]
    assert ("author", "me") in said and len(said) == len(dict(said))
    assert ("seen", "yes") in [(e.key, e.value) for f in fused.functions for n in f.node for e in n.metadata_props]


def test_constants_that_stand_twice(tmp_path: Path):
    model = onnx_model(
        "(float[4] x) => (float[4] y)"
        "{ c = Constant<value = float[1] {2.0}>()  t = Mul(x, c)"
        "  c = Constant<value = float[1] {2.0}>()  y = Add(t, c) }"
    )
    fuse(model).save(tmp_path / "once.onnx")  # the checker refuses the model itself
    _right(tmp_path / "once.onnx", {"x": _normal(4)}, tmp_path)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_a_node_whose_body_is_of_another_type_stays_in_the_main_graph(kind: Any, tmp_path: Path):
    """onnxruntime refuses it inside of a function; ONNX's checker refuses it anywhere."""
    element = "float" if kind is np.float32 else "float16"
    model = onnx_model(
        f"({element}[2, 3, 4, 5] x) => ({element}[2, 3, 4, 5] y)"
        "{ t = Exp(x)  u = MeanVarianceNormalization<axes = [2, 3]>(t)  y = Relu(u) }"
    )
    fuse(model).save(tmp_path / "fused.onnx")
    assert ("MeanVarianceNormalization" in _main(tmp_path)) == (kind is np.float16)


def test_operators_that_are_read_as_several_are_in_one_function(tmp_path: Path):
    """QGemm is a product and its quantization: what is split of it is never computed twice."""
    rows, columns = 300, 400
    scale, zero = np.float32(0.05), np.uint8(128)
    model = onnx_model(
        f"(uint8[{rows}, 256] x) => (uint8[{rows}, {columns}] y, float[1, {columns}] m)"
        "{ y = com.microsoft.QGemm(x, s, z, w, s, i0, b, s, z)  d = DequantizeLinear(y, s, z)"
        "  m = ReduceMax<axes = [0], keepdims = 1>(d) }",
        s=scale,
        z=zero,
        i0=np.int8(0),
        w=RNG.integers(-127, 127, (256, columns)).astype(np.int8),
        b=RNG.integers(-999, 999, columns).astype(np.int32),
        opset=13,
    )
    found = _right(model, {"x": RNG.integers(0, 255, (rows, 256)).astype(np.uint8)}, tmp_path)
    fused = onnx.load(tmp_path / "fused.onnx")
    assert [node.op_type for one in fused.functions for node in one.node].count("QGemm") == 1, found
