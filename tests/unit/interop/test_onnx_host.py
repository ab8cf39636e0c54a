"""Host operators: the executor on its own, and through the command table."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

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


# -- which package runs it ---------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    yield
    onnx_host.forget()


FAST, NUMPY = "onnxruntime", "onnx.reference"
BODY = helper.make_graph(
    [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Tanh", ["s"], ["t"])],
    "body",
    [helper.make_tensor_value_info(n, t, s) for n, t, s in (("n", 7, []), ("c", 9, []), ("s", 1, None))],
    [helper.make_tensor_value_info(n, t, s) for n, t, s in (("d", 9, []), ("t", 1, None))],
)


def _body_with(op_type: str) -> onnx.GraphProto:
    body = onnx.GraphProto()
    body.CopyFrom(BODY)
    body.node[1].op_type = op_type
    return body


CHOICES: list[tuple[str, onnx.NodeProto, int]] = [
    (FAST, helper.make_node("MatMul", ["i0", "i1"], ["o0"]), 2),
    (FAST, helper.make_node("ReduceMax", ["i0"], ["o0"]), 1),
    (FAST, helper.make_node("Resize", ["i0", "", "i1"], ["o0"]), 2),
    (NUMPY, helper.make_node("Resize", ["i0", "", "i1"], ["o0"], coordinate_transformation_mode="align_corners"), 2),
    (NUMPY, helper.make_node("Cast", ["i0"], ["o0"], to=6), 1),
    (NUMPY, helper.make_node("SequenceConstruct", ["i0"], ["o0"]), 1),
    (NUMPY, helper.make_node("RandomNormalLike", ["i0"], ["o0"], seed=1.0), 1),
    (
        NUMPY,
        helper.make_node("BatchNormalization", ["i0", "i1", "i2", "i3", "i4"], ["o0", "o1", "o2"], training_mode=1),
        5,
    ),
    (NUMPY, helper.make_node("Swish", ["i0"], ["o0"]), 1),  # of an operator set that it may not have
    (FAST, helper.make_node("Loop", ["", "i0", "i1"], ["o0"], body=BODY), 2),
    (NUMPY, helper.make_node("Loop", ["", "i0", "i1"], ["o0"], body=_body_with("Hardmax")), 2),
]


def _typed(node: onnx.NodeProto, inputs: int) -> bytes:
    model = onnx.load_model_from_string(_model(node, inputs))
    if node.op_type == "Loop":
        model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.BOOL
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("package", "node", "inputs"), CHOICES, ids=[f"{node.op_type}-{i}" for i, (_, node, _) in enumerate(CHOICES)]
)
def test_each_operator_has_its_package(package: str, node: onnx.NodeProto, inputs: int) -> None:
    assert onnx_host.chosen(_typed(node, inputs)) == package


def test_what_onnxruntime_would_lose_stays() -> None:
    """Operands that are not finite go where NaN is kept; all others do not."""
    model = _model(helper.make_node("ReduceMax", ["i0"], ["o0"], keepdims=0), 1)
    for x in (np.array([1, np.nan, 3]), np.array([1, np.inf, 3]), np.array([1, 2, 3])):
        np.testing.assert_array_equal(onnx_host.execute(model, [x.astype(np.float32)])[0], np.max(x).astype(np.float32))


@pytest.mark.parametrize("missing", [False, True], ids=["onnxruntime", "numpy"])
def test_operands_that_no_kernel_takes_are_refused(missing: bool, hide_onnxruntime: Callable[[], None]) -> None:
    """By either package, with a code; the node is named by the runtime, which knows it."""
    if missing:
        hide_onnxruntime()
    for node, count in (("Concat", 2), ("MatMul", 2), ("Gemm", 3)):
        attributes: dict[str, Any] = {"axis": 0} if node == "Concat" else {}
        model = _model(helper.make_node(node, [f"i{i}" for i in range(count)], ["o0"], **attributes), count)
        operands = [np.ones((2, 3 + i), np.float32) for i in range(count)]
        with pytest.raises(FuselineError, match=rf"E0106: onnx.*cannot run {node}"):
            onnx_host.execute(model, operands)


def test_what_turns_out_to_be_lacking_runs_in_numpy() -> None:
    """onnxruntime takes the node and refuses its operands, since it has no kernel for one zero point per channel."""
    node = helper.make_node("ConvInteger", ["i0", "i1", "i2", "i3"], ["o0"])
    values = [helper.make_tensor_value_info(f"i{i}", onnx.TensorProto.UINT8, None) for i in range(4)]
    graph = helper.make_graph([node], "host", values, [onnx.ValueInfoProto(name="o0")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()
    x, w = (
        np.random.default_rng(seed).integers(0, 255, shape, np.uint8)
        for seed, shape in ((0, (1, 1, 3, 3)), (1, (2, 1, 3, 3)))
    )
    points = np.array([3, 200], np.uint8)
    (out,) = onnx_host.execute(model, [x, w, np.array(7, np.uint8), points])
    wanted = ((x.astype(int) - 7) * (w.astype(int) - points.reshape(2, 1, 1, 1))).sum((1, 2, 3))
    assert out.reshape(-1).tolist() == wanted.tolist() and onnx_host.chosen(model) == NUMPY


def test_without_onnxruntime_all_runs_in_numpy(hide_onnxruntime: Callable[[], None]) -> None:
    model, x = (
        _model(helper.make_node("MatMul", ["i0", "i1"], ["o0"]), 2),
        np.random.default_rng(0).standard_normal((5, 5), np.float32),
    )
    assert onnx_host.chosen(model) == FAST
    fast = onnx_host.execute(model, [x, x])[0]
    hide_onnxruntime()
    assert onnx_host.chosen(model) == NUMPY
    np.testing.assert_allclose(onnx_host.execute(model, [x, x])[0], fast, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_nothing_along_a_dimension_stays_with_numpy(axis: int) -> None:
    """onnxruntime ends the process on the distinct rows of nothing."""
    model = _model(helper.make_node("Unique", ["i0"], ["o0"], axis=axis), 1)
    shape = (0, 3) if axis == 0 else (3, 0)
    (out,) = onnx_host.execute(model, [np.empty(shape, np.float32)])
    assert out.size == 0


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integers_without_a_quotient_end_no_process(dtype: str) -> None:
    """By 0, and the lowest by -1: in NumPy, as a native program has them; all other quotients are onnxruntime's."""
    low = np.iinfo(dtype).min
    x, y = np.array([7, low, 5, low], dtype), np.array([0, -1, 2, 1]).astype(dtype)
    for op_type, wanted in (("Div", [7, low // (1 if low else 255), 2, low]), ("Mod", [0, 0, 1, 0])):
        node = helper.make_node(op_type, ["i0", "i1"], ["o0"])
        values = [
            helper.make_tensor_value_info(f"i{i}", helper.np_dtype_to_tensor_dtype(x.dtype), None) for i in range(2)
        ]
        graph = helper.make_graph([node], "host", values, [onnx.ValueInfoProto(name="o0")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
        assert onnx_host.execute(model, [x, y])[0].tolist() == wanted
        if dtype in ("int32", "int64"):
            assert onnx_host.chosen(model) == FAST
