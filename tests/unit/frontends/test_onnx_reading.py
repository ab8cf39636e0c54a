"""What the ONNX reader makes of whole graphs: ops, sizes, provenance, host ops, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import ModuleOp

from fuseline.analysis.evaluation import evaluate_module
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.frontends.onnx import read_onnx
from fuseline.interop import onnx_host
from fuseline.ir.context import CompilerContext, new_context
from fuseline.targets.interpreter.host import call_declared

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Shape = Sequence[int | str | None] | None
onnx_host.install()


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[int, Shape]],
    outputs: Sequence[str],
    weights: dict[str, NDArray[Any]] | None = None,
) -> onnx.ModelProto:
    """A checked-enough model whose outputs have no declared types."""
    infos = [helper.make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in inputs.items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    initializers = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), "g", infos, results, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


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
    proto = model(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        {"x": (FLOAT, (2, 3))},
        ["y"],
        {"w": np.full((1, 1), 0.5, np.float32)},
    )
    module, ctx = read(proto)
    (op,) = generics(module)
    assert len(op.inputs) == 1
    assert not ctx.resources


def test_row_statistics_are_read_without_their_unit_dimension():
    nodes = [helper.make_node("ReduceMean", ["x", "axes"], ["m"]), helper.make_node("Sub", ["x", "m"], ["y"])]
    module, _ = read(model(nodes, {"x": (FLOAT, (4, 8))}, ["y"], {"axes": np.array([-1])}))
    assert not [op for op in module.walk() if isinstance(op, tensor.ExpandShapeOp)]
    assert str(generics(module)[-1].indexing_maps.data[1].data) == "(d0, d1) -> (d0)"


def test_symbolic_sizes_keep_their_identity_through_shape_arithmetic():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
        helper.make_node("Concat", ["n", "rest"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["r"]),
        helper.make_node("Reshape", ["r", "back"], ["b"]),
        helper.make_node("Add", ["b", "x"], ["y"]),
    ]
    weights = {"zero": np.array([0]), "rest": np.array([2, -1]), "back": np.array([0, 8])}
    proto = model(nodes, {"x": (FLOAT, ("n", 8))}, ["y"], weights)
    module, ctx = read(proto)
    assert not ctx.records.host_ops
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    np.testing.assert_allclose(run(proto, x)[0], 2 * x)
    dims = ShapeAnalysis(ctx.symbols).dims(generics(module)[-1].results[0])
    assert str(dims[0]) == "n"


def test_every_node_is_present_or_recorded_as_eliminated():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], name="shape"),
        helper.make_node("Unsqueeze", ["x", "axes"], ["u"], name="unsqueeze"),
        helper.make_node("Relu", ["u"], ["y"], name="relu"),
        helper.make_node("Identity", ["s"], ["t"], name="identity"),
    ]
    _, ctx = read(model(nodes, {"x": (FLOAT, (2, 3))}, ["y", "t"], {"axes": np.array([0])}))
    assert ctx.records.source_nodes == ["shape", "unsqueeze", "relu", "identity"]
    assert ctx.records.eliminated.keys() >= {"unsqueeze", "identity"}
    assert set(ctx.records.eliminated.values()) == {"read-onnx"}


def test_all_unsupported_things_are_listed_at_once():
    nodes = [
        helper.make_node("NoSuchOp", ["x"], ["a"], name="first"),
        helper.make_node("Relu", ["x"], ["b"], name="fine"),
        helper.make_node("NoSuchOpEither", ["b"], ["c"], name="second"),
    ]
    with pytest.raises(FuselineError) as caught:
        read(model(nodes, {"x": (FLOAT, (2,))}, ["a", "c"]))
    assert caught.value.code == "E0103"
    assert "first" in str(caught.value) and "second" in str(caught.value) and "fine" not in caught.value.message


def test_string_inputs_are_held_on_the_host():
    proto = model([helper.make_node("Identity", ["x"], ["y"], name="same")], {"x": (TensorProto.STRING, (2,))}, ["y"])
    assert [(h.node, h.reason) for h in read(proto)[1].records.host_ops] == [
        ("same", "host-value: input 0 is tensor(string)")
    ]
    assert run(proto, np.array(["a", "b"], object))[0].tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("shapes", "wrong"),
    [({"nobody": 3}, "nobody"), ({"x": (2, 3, 4)}, "x"), ({"x": (2, 9)}, "x"), ({"n": (5, 2)}, "n"), ({"n": -1}, "n")],
)
def test_a_shape_option_that_does_not_fit_is_refused(shapes: dict[str, Any], wrong: str):
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, ("n", 8))}, ["y"])
    with pytest.raises(FuselineError) as caught:
        read(proto, **shapes)
    assert (caught.value.code, caught.value.node) == ("E0108", wrong)


def test_shape_options_specialise_and_bound():
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, ("n", 8))}, ["y"])
    module, _ = read(proto, x=(3, 8))
    assert "tensor<3x8xf32>" in str(module)
    _, ctx = read(proto, n=(1, 512))
    from fuseline.ir.dim import upper_bound

    assert upper_bound(ctx.symbols["n"]) == 512


def test_elements_that_do_not_fit_a_reshape_are_refused():
    proto = model(
        [helper.make_node("Reshape", ["x", "to"], ["y"], name="bad")],
        {"x": (FLOAT, (2, 3))},
        ["y"],
        {"to": np.array([4, 2])},
    )
    with pytest.raises(FuselineError) as caught:
        read(proto)
    assert (caught.value.code, caught.value.node) == ("E0107", "bad")


def test_a_host_op_whose_size_depends_on_the_data_feeds_native_ones():
    nodes = [
        helper.make_node("NonZero", ["x"], ["i"], name="where"),
        helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
        helper.make_node("Exp", ["f"], ["y"]),
    ]
    proto = model(nodes, {"x": (FLOAT, (6,))}, ["y"])
    x = np.array([0, 1, 0, 2, 3, 0], np.float32)
    np.testing.assert_allclose(run(proto, x)[0], np.exp([[1.0, 3.0, 4.0]]), rtol=1e-6)


def _branches() -> list[onnx.GraphProto]:
    value = onnx.ValueInfoProto(name="b")
    return [helper.make_graph([helper.make_node(op, ["x"], ["b"])], op, [], [value]) for op in ("Relu", "Neg")]


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_that_is_known_is_inlined(taken: bool):
    then, otherwise = _branches()
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)]
    proto = model(nodes, {"x": (FLOAT, (3,))}, ["y"], {"c": np.array(taken)})
    x = np.array([-1, 0, 2], np.float32)
    assert len(generics(read(proto)[0])) == 1
    np.testing.assert_array_equal(run(proto, x)[0], np.maximum(x, 0) if taken else -x)


@pytest.mark.parametrize("taken", [True, False])
def test_both_branches_are_computed_where_the_condition_is_fed(taken: bool):
    then, otherwise = _branches()
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)]
    proto = model(nodes, {"x": (FLOAT, (3,)), "c": (BOOL, ())}, ["y"])
    x = np.array([-1, 0, 2], np.float32)
    assert not read(proto)[1].records.host_ops
    np.testing.assert_array_equal(run(proto, x, np.array(taken))[0], np.maximum(x, 0) if taken else -x)


def test_a_loop_of_known_length_is_unrolled_and_one_of_unknown_length_runs_on_the_host():
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Identity", ["on"], ["go"])],
        "body",
        [
            helper.make_tensor_value_info(name, dtype, shape)
            for name, dtype, shape in (("i", INT64, ()), ("on", BOOL, ()), ("s", FLOAT, (3,)))
        ],
        [
            helper.make_tensor_value_info(name, dtype, shape)
            for name, dtype, shape in (("go", BOOL, ()), ("t", FLOAT, (3,)))
        ],
    )
    node = helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)
    x = np.array([1, 2, 3], np.float32)
    fixed = model([node], {"x": (FLOAT, (3,))}, ["y"], {"m": np.array(3)})
    assert not read(fixed)[1].records.host_ops
    np.testing.assert_array_equal(run(fixed, x)[0], 4 * x)
    free = model([node], {"x": (FLOAT, (3,)), "m": (INT64, ())}, ["y"])
    assert [h.op_type for h in read(free)[1].records.host_ops] == ["Loop", "Add", "Identity"]
    np.testing.assert_array_equal(run(free, x, np.array(2))[0], 3 * x)


def _backwards(first_reads: str) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Exp", [first_reads], ["y"], name="last"),
        helper.make_node("Neg", ["x"], ["h"], name="first"),
    ]
    return model(nodes, {"x": (FLOAT, (3,))}, ["y"])


def test_nodes_may_stand_before_what_they_read():
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(run(_backwards("h"), x)[0], np.exp(-x), rtol=1e-6)


def test_a_cycle_of_nodes_is_refused():
    with pytest.raises(FuselineError, match="cycle") as raised:
        read(_backwards("y"))
    assert raised.value.code == "E0105"
