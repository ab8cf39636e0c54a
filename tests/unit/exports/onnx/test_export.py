"""Models written with a function for each dispatch: valid, equal in onnxruntime, and the same again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.frontends.onnx.dispatch_functions import DOMAIN
from tests.draws import RNG
from tests.fused import checked
from tests.graphs.onnx_text import onnx_model


def _normal(*sizes: int, dtype: Any = np.float32) -> Any:
    return RNG.standard_normal(sizes).astype(dtype)


def _calls(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node if node.domain == DOMAIN]


def test_each_dispatch_is_a_function(tmp_path: Path):
    rows, inner, columns = (int(size) for size in RNG.integers(3, 9, 3))
    model = onnx_model(
        f"(float[{rows}, {inner}] x) => (float[{rows}, {columns}] y)"
        "{ t = MatMul(x, w)  u = Relu(t)  y = Softmax(u) }",
        w=_normal(inner, columns),
    )
    found = checked(model, {"x": _normal(rows, inner)}, tmp_path)
    assert found.same_plan and found.same_export and found.equal
    fused = onnx.load(tmp_path / "fused.onnx")
    assert len(fused.functions) == found.summary.functions == found.summary.dispatches
    assert _calls(fused) == [function.name for function in fused.functions]


def test_what_is_said_of_a_function(tmp_path: Path):
    model = onnx_model(
        "(float[4, 8] x) => (float[4, 6] y) { [one] t = MatMul(x, w)  [two] y = Relu(t) }", w=_normal(8, 6)
    )
    fused = fuseline.fuse(model, threads=2).to_proto()
    (function,) = fused.functions
    about = {entry.key: entry.value for entry in function.metadata_props}
    assert function.name == "contraction_MatMul_Relu_000"
    assert about["fuseline.nodes"] == '["one", "two"]'
    assert about["fuseline.dispatches"] == '["000_contraction_4x6_f32"]'
    assert "one -> two" in about["fuseline.reasons"] and "elementwise-epilogue" in about["fuseline.reasons"]
    said = {entry.key: entry.value for entry in fused.metadata_props}
    assert said["fuseline.plan"] == fuseline.fuse(model, threads=2).summary.plan


def test_the_model_that_is_given_stays_as_it_is():
    model = onnx_model("(float[4, 8] x) => (float[4, 8] y) { t = Exp(x)  y = Relu(t) }")
    before = model.SerializeToString()
    fuseline.fuse(model)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("name", ["m.fuse", "m.mlir"])
def test_what_is_no_onnx_model_is_refused(name: str, tmp_path: Path):
    (tmp_path / name).write_bytes(b"module {}")
    with pytest.raises(fuseline.FuselineError) as problem:
        fuseline.fuse(tmp_path / name)
    assert problem.value.code == "E0501"


@pytest.mark.parametrize("as_bytes", [True, False])
def test_a_model_in_memory_is_that_of_its_file(as_bytes: bool, tmp_path: Path):
    model = onnx_model("(float[4, 80] x) => (float[4, 90] y) { t = MatMul(x, w)  y = Relu(t) }", w=_normal(80, 90))
    onnx.save(model, tmp_path / "m.onnx")
    fuseline.fuse(tmp_path / "m.onnx").save(tmp_path / "one.onnx")
    fused = fuseline.fuse(model.SerializeToString() if as_bytes else model)
    fused.save(tmp_path / "two.onnx")
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes() == fused.to_bytes()
    assert fused.to_proto() == onnx.load(tmp_path / "two.onnx")


def test_calls_have_names_of_their_own(tmp_path: Path):
    """A node may be called as a dispatch is; onnxruntime refuses two of one name."""
    model = onnx_model(
        "(float[4] x, string[4] s) => (float[4] y, string[4] t) { t = StringConcat(s, s)  y = Exp(x) }", opset=20
    )
    model.graph.node[0].name = "000_elementwise_4_f32"
    found = checked(model, {"x": _normal(4), "s": np.array(list("abcd"), object)}, tmp_path)
    assert found.equal and found.same_export


def test_own_names_come_before_made_ones():
    model = onnx_model("(float[4] x) => (float[4] y, float[4] z) { y = Exp(x)  [Exp_0] z = Neg(x) }", opset=20)
    names = [node.name for function in fuseline.fuse(model).to_proto().functions for node in function.node]
    assert sorted(names) == ["Exp_0", "Exp_0_1"]


@pytest.mark.parametrize(
    ("opset", "body", "code"),
    [
        (13, "b = ReduceMean<axes = [1]>(a)", "E0106"),
        (11, "b = Squeeze<axes = [0]>(a)", "E0106"),
        (18, "c = Exp(a)  b = own.f(c)", "E0105"),
        (13, "b = Add(a, a)", None),
    ],
)
def test_functions_that_onnxruntime_cannot_inline(opset: int, body: str, code: str | None):
    model = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float[1, 8] x) => (float[n, m] y) {{ y = own.f(x) }}
        <domain: "own", opset_import: ["" : {opset}, "own" : 1]> f (a) => (b) {{ {body} }}""")
    if code is None:
        assert fuseline.fuse(model).summary.functions == 1
        return
    with pytest.raises(fuseline.FuselineError) as problem:
        fuseline.fuse(model)
    assert problem.value.code == code and "f" in str(problem.value.node)
