"""What the ONNX reader makes of whole graphs: ops, sizes, provenance, host ops, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import ModuleOp

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.evaluation import evaluate_module
from fuseline.frontends.onnx import read_onnx
from fuseline.interop import onnx_host
from fuseline.ir.context import CompilerContext, new_context
from fuseline.targets.interpreter.host import call_declared
from tests.graphs.onnx_text import onnx_model

onnx_host.install()


def model(text: str, **weights: NDArray[Any]) -> onnx.ModelProto:
    return onnx_model(text, weights, ir_version=10)


def read(proto: onnx.ModelProto, **shapes: Any) -> tuple[ModuleOp, CompilerContext]:
    """The verified module and its context."""
    ctx = new_context()
    module = read_onnx(proto, ctx, shapes=shapes)
    module.verify()
    return module, ctx


def run(proto: onnx.ModelProto, *feeds: NDArray[Any], **shapes: Any) -> list[NDArray[Any]]:
    """The outputs on the interpreter."""
    module, ctx = read(proto, **shapes)
    return evaluate_module(module, feeds, ctx.resources, host_call=call_declared)


def generics(module: ModuleOp) -> list[linalg.ops.GenericOp]:
    return [op for op in module.walk() if isinstance(op, linalg.ops.GenericOp)]


def test_one_element_weights_are_scalars_inside_bodies():
    proto = model("(float[2, 3] x) => (y) { y = Mul(x, w) }", w=np.full((1, 1), 0.5, np.float32))
    module, ctx = read(proto)
    (op,) = generics(module)
    assert len(op.inputs) == 1
    assert not ctx.resources


def test_row_statistics_are_read_without_their_unit_dimension():
    text = "(float[4, 8] x) => (y) { m = ReduceMean(x, axes) y = Sub(x, m) }"
    module, _ = read(model(text, axes=np.array([-1])))
    assert not [op for op in module.walk() if isinstance(op, tensor.ExpandShapeOp)]
    assert str(generics(module)[-1].indexing_maps.data[1].data) == "(d0, d1) -> (d0)"


def test_symbolic_sizes_keep_their_identity_through_shape_arithmetic():
    text = """(float[n, 8] x) => (y) {
        s = Shape(x)
        n = Gather<axis = 0>(s, zero)
        to = Concat<axis = 0>(n, rest)
        r = Reshape(x, to)
        b = Reshape(r, back)
        y = Add(b, x)
    }"""
    proto = model(text, zero=np.array([0]), rest=np.array([2, -1]), back=np.array([0, 8]))
    module, ctx = read(proto)
    assert not ctx.records.host_ops
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    np.testing.assert_allclose(run(proto, x)[0], 2 * x)
    dims = ShapeAnalysis(ctx.symbols).dims(generics(module)[-1].results[0])
    assert str(dims[0]) == "n"


def test_every_node_is_present_or_recorded_as_eliminated():
    text = """(float[2, 3] x) => (y, t) {
        [shape] s = Shape(x)
        [unsqueeze] u = Unsqueeze(x, axes)
        [relu] y = Relu(u)
        [identity] t = Identity(s)
    }"""
    _, ctx = read(model(text, axes=np.array([0])))
    assert ctx.records.source_nodes == ["shape", "unsqueeze", "relu", "identity"]
    assert ctx.records.eliminated.keys() >= {"unsqueeze", "identity"}
    assert set(ctx.records.eliminated.values()) == {"read-onnx"}


def test_all_unsupported_things_are_listed_at_once():
    text = "(float[2] x) => (a, c) { [first] a = NoSuchOp(x) [fine] b = Relu(x) [second] c = NoSuchOpEither(b) }"
    with pytest.raises(FuselineError) as caught:
        read(model(text))
    assert caught.value.code == "E0103"
    assert "first" in str(caught.value) and "second" in str(caught.value) and "fine" not in caught.value.message


def test_string_inputs_are_held_on_the_host():
    proto = model("(string[2] x) => (y) { [same] y = Identity(x) }")
    assert [(h.node, h.reason) for h in read(proto)[1].records.host_ops] == [
        ("same", "host-value: input 0 is tensor(string)")
    ]
    assert run(proto, np.array(["a", "b"], object))[0].tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("shapes", "wrong"),
    [({"nobody": 3}, "nobody"), ({"x": (2, 3, 4)}, "x"), ({"x": (2, 9)}, "x"), ({"n": (5, 2)}, "n"), ({"n": -1}, "n")],
)
def test_a_shape_option_that_does_not_fit_is_refused(shapes: dict[str, Any], wrong: str):
    proto = model("(float[n, 8] x) => (y) { y = Relu(x) }")
    with pytest.raises(FuselineError) as caught:
        read(proto, **shapes)
    assert (caught.value.code, caught.value.node) == ("E0108", wrong)


def test_shape_options_specialise_and_bound():
    proto = model("(float[n, 8] x) => (y) { y = Relu(x) }")
    module, _ = read(proto, x=(3, 8))
    assert "tensor<3x8xf32>" in str(module)
    _, ctx = read(proto, n=(1, 512))
    from fuseline.ir.dim import upper_bound

    assert upper_bound(ctx.symbols["n"]) == 512


def test_elements_that_do_not_fit_a_reshape_are_refused():
    proto = model("(float[2, 3] x) => (y) { [bad] y = Reshape(x, to) }", to=np.array([4, 2]))
    with pytest.raises(FuselineError) as caught:
        read(proto)
    assert (caught.value.code, caught.value.node) == ("E0107", "bad")


def test_a_host_op_whose_size_depends_on_the_data_feeds_native_ones():
    proto = model("(float[6] x) => (y) { [where] i = NonZero(x) f = Cast<to = 1>(i) y = Exp(f) }")
    x = np.array([0, 1, 0, 2, 3, 0], np.float32)
    np.testing.assert_allclose(run(proto, x)[0], np.exp([[1.0, 3.0, 4.0]]), rtol=1e-6)


EITHER = "y = If(c) <then_branch = r () => (b) { b = Relu(x) }, else_branch = n () => (b) { b = Neg(x) }>"


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_that_is_known_is_inlined(taken: bool):
    proto = model(f"(float[3] x) => (y) {{ {EITHER} }}", c=np.array(taken))
    x = np.array([-1, 0, 2], np.float32)
    assert len(generics(read(proto)[0])) == 1
    np.testing.assert_array_equal(run(proto, x)[0], np.maximum(x, 0) if taken else -x)


@pytest.mark.parametrize("taken", [True, False])
def test_both_branches_are_computed_where_the_condition_is_fed(taken: bool):
    proto = model(f"(float[3] x, bool c) => (y) {{ {EITHER} }}")
    x = np.array([-1, 0, 2], np.float32)
    assert not read(proto)[1].records.host_ops
    np.testing.assert_array_equal(run(proto, x, np.array(taken))[0], np.maximum(x, 0) if taken else -x)


def test_a_loop_of_known_length_is_unrolled_and_one_of_unknown_length_runs_on_the_host():
    loop = """y = Loop(m, "", x) <body = body (int64 i, bool on, float[3] s) => (bool go, float[3] t) {
        t = Add(s, x)
        go = Identity(on)
    }>"""
    x = np.array([1, 2, 3], np.float32)
    fixed = model(f"(float[3] x) => (y) {{ {loop} }}", m=np.array(3))
    assert not read(fixed)[1].records.host_ops
    np.testing.assert_array_equal(run(fixed, x)[0], 4 * x)
    free = model(f"(float[3] x, int64 m) => (y) {{ {loop} }}")
    assert [h.op_type for h in read(free)[1].records.host_ops] == ["Loop", "Add", "Identity"]
    np.testing.assert_array_equal(run(free, x, np.array(2))[0], 3 * x)


def _backwards(first_reads: str) -> onnx.ModelProto:
    return model(f"(float[3] x) => (y) {{ [last] y = Exp({first_reads}) [first] h = Neg(x) }}")


def test_nodes_may_stand_before_what_they_read():
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(run(_backwards("h"), x)[0], np.exp(-x), rtol=1e-6)


def test_a_cycle_of_nodes_is_refused():
    with pytest.raises(FuselineError, match="cycle") as raised:
        read(_backwards("y"))
    assert raised.value.code == "E0105"
