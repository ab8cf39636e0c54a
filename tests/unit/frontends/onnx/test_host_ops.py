"""Calls that run on the host: how they are declared, counted and taken back; and counted loops as functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import CallOp, FuncOp

from fuseline.frontends.onnx.emission import elementwise
from fuseline.frontends.onnx.host_models import EMBEDDED_ELEMENTS, HostNode, embedded, evaluate, host_model
from fuseline.frontends.onnx.host_ops import border_attributes, boxed_inputs
from fuseline.frontends.onnx.host_values import HostValue, Value, known_value
from fuseline.frontends.onnx.loops import CountedLoop, Rows, Stack, StackRow, StepInputs, StepResult
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.scalars import add
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known
from fuseline.ir.dim import symbol
from tests.graphs.custom_lowering import computed, read_with
from tests.graphs.onnx_text import onnx_model

F32 = np.dtype(np.float32)


def host_node(op_type: str, *inputs: Value, **attributes: Any) -> HostNode:
    """A node outside of any model."""
    names = [f"x{i}" for i in range(len(inputs))]
    source = ir.from_proto(helper.make_node(op_type, names, ["y"], **attributes))
    return HostNode(source, "the node", inputs, source.attributes, "", {"": 18}, {}, {})


def test_a_call_and_its_record() -> None:
    text = "(float[n, 3] x) => (y) { [mine] y = NonZero(x) }"
    module, ctx = read_with(text, lambda node: node[0])
    (record,) = ctx.records.host_ops
    assert (record.node, record.op_type, record.reason) == (
        "mine",
        "NonZero",
        "no-lowering: NonZero has no native lowering",
    )
    declared = next(op for op in module.ops if isinstance(op, FuncOp) and op.is_declaration)
    assert declared.sym_name.data == "host.NonZero.0"
    assert declared.attributes["fuseline.host_op"] == StringAttr("NonZero")
    (call,) = (op for op in module.walk() if isinstance(op, CallOp))
    assert call.callee.string_value() == "host.NonZero.0"
    assert str(call.res[0].type) == "tensor<2x?xi64>"
    dims = call.attributes["fuseline.dims"]
    assert isinstance(dims, ArrayAttr) and str(dims.data[0]) == '["2", "y_1"]'
    x = np.random.default_rng().integers(0, 2, (4, 3)).astype(np.float32)
    np.testing.assert_array_equal(computed(text, lambda node: node[0], x)[0], np.nonzero(x))


def test_what_is_known_is_computed_at_once() -> None:
    text = "(float[2] x) => (y, z) { y = Identity(x) z = NonZero(w) }"
    _, ctx = read_with(text, lambda node: node[0], w=np.array([0.0, 1, 0, 2], np.float32))
    assert not ctx.records.host_ops


def test_constants_that_the_host_holds() -> None:
    text = "(string[2] x) => (y) { y = StringConcat(x, w) }"
    words = np.array(["a", "b"], object)
    model = onnx_model(text, {"w": np.array(["c", "d"], object)}, opset=20)
    found = computed(model, lambda node: node[0], words)[0]
    assert found.tolist() == ["ac", "bd"]


def test_one_node_as_a_model() -> None:
    n = symbol("n")
    free = Tensor(F32, (n, n, 3))
    node = host_node("Concat", free, known(np.ones((2, 2, 3), np.float32)), axis=0)
    model = host_model(node)
    assert [value.name for value in model.proto.graph.input] == ["@i0"] and model.operands == [free]
    assert [tensor.name for tensor in model.proto.graph.initializer] == ["@i1"]
    sizes = [dim.dim_param or dim.dim_value for dim in model.proto.graph.input[0].type.tensor_type.shape.dim]
    assert sizes == ["size0", "size0", 3] and model.sizes == {"size0": n}
    assert list(model.proto.graph.node[0].input) == ["@i0", "@i1"] and list(model.proto.graph.node[0].output) == ["@o0"]


def test_what_stands_in_the_model() -> None:
    small, large = np.zeros(EMBEDDED_ELEMENTS), np.zeros(EMBEDDED_ELEMENTS + 1)
    assert embedded(known(small)) is small and embedded(known(large)) is None
    texts = np.full(EMBEDDED_ELEMENTS + 1, "a", object)
    assert embedded(known_value(texts)) is texts
    assert embedded(Tensor(F32, (2,))) is None


def test_what_can_be_evaluated() -> None:
    x = np.array([3.0, -1, 2], np.float32)
    found = evaluate(host_node("Neg", known(x)))
    assert found is not None
    np.testing.assert_array_equal(found[0], -x)
    assert evaluate(host_node("Neg", Tensor(F32, (3,)))) is None
    assert evaluate(host_node("RandomNormalLike", known(x))) is None
    assert evaluate(host_node("NoSuch", known(x))) is None


def test_why_a_node_with_boxed_inputs_is_not_native() -> None:
    boxed = known_value(np.array(["a"], object))
    assert str(boxed_inputs(host_node("Identity", boxed))) == "host-value: input 0 is tensor(string)"
    said = border_attributes(HostValue(boxed.type, (symbol("n"), 2)), "mine")
    assert {key: str(value) for key, value in said.items()} == {
        "fuseline.name": '"mine"',
        "fuseline.type": '"tensor(string)"',
        "fuseline.dtype": '"object"',
        "fuseline.dims": '["n", "2"]',
    }


# -- loops -------------------------------------------------------------------------------------------------------------


def _sum(node: OnnxNode, x: Tensor, y: Tensor) -> Tensor:
    return elementwise(node, [x, y], F32, lambda b, p, q: add(b, F32, p, q))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("sizes", ["4, 3", "n, 3", "4, m"])
def test_a_loop_over_rows(backwards: bool, sizes: str) -> None:
    """Running sums of rows, from either end, with a constant and another tensor added each time."""

    def lowering(node: OnnxNode) -> list[Tensor]:
        x, start, more = node.present()

        def step(inner: OnnxNode, inputs: StepInputs) -> list[StepResult]:
            (row,), (whole, constant), (state,) = inputs.rows, inputs.wholes, inputs.states
            assert constant.is_constant
            total = _sum(inner, _sum(inner, _sum(inner, state, row), whole), constant)
            return [StepResult(total, state=0, row=StackRow(0, backwards=backwards))]

        loop = CountedLoop(
            x.dims[0],
            [Rows(x, backwards)],
            [more, known(np.full(1, 0.5, np.float32))],
            [start],
            [Stack(x.dims[1:], F32)],
        )
        stacks, states = loop.emit(node, step)
        return [*stacks, *states]

    width = sizes.split(", ")[1]
    inputs = f"float[{sizes}] x, float[{width}] s, float[{width}] w"
    text = f"({inputs}) => (r, t) {{ r, t = test.Op (x, s, w) }}"
    rng = np.random.default_rng()
    x, s, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (3,), (3,)))
    module, ctx = read_with(text, lowering)
    assert not ctx.records.host_ops
    names = [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)]
    assert names == ["main", "step.Op.0", "loop.Op.0"]
    rows, state = computed(text, lowering, x, s, w)
    sums = s + (x[::-1] if backwards else x).cumsum(0) + (w + 0.5) * np.arange(1, 5)[:, None]
    np.testing.assert_allclose(rows, sums[::-1] if backwards else sums, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state, sums[-1], rtol=1e-4, atol=1e-5)


def test_states_that_change_their_shape() -> None:
    def lowering(node: OnnxNode) -> Tensor:
        x = node[0]
        loop = CountedLoop(4, [Rows(x)], [], [known(np.zeros(1, np.float32))], [])
        return loop.emit(node, lambda inner, inputs: [StepResult(inputs.rows[0], state=0)])[1][0]

    with pytest.raises(NoNativeLowering, match="changing-state") as caught:
        _native(lowering)
    assert caught.value.reason == "changing-state"


def test_a_loop_that_may_be_none() -> None:
    def lowering(node: OnnxNode) -> Tensor:
        loop = CountedLoop(node[0].dims[0], [Rows(node[0])], [], [], [Stack((3,), F32)])
        return loop.emit(node, lambda inner, inputs: [StepResult(inputs.rows[0], row=StackRow(0))])[0][0]

    with pytest.raises(NoNativeLowering, match="empty-loop: n iterations may be none"):
        _native(lowering, shapes={"n": (0, 5)})


def _native(lowering: Any, shapes: Any = None) -> None:
    """Read with a lowering whose refusal goes on to the test."""
    refusals: list[NoNativeLowering] = []

    def noting(node: OnnxNode) -> Any:
        try:
            return lowering(node)
        except NoNativeLowering as error:
            refusals.append(error)
            return node[0]

    read_with("(float[n, 3] x) => (y) { y = test.Op (x) }", noting, shapes=shapes)
    raise refusals[0]
