"""Recurrent layers, quantised operators, loops and branches; and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.ops import (
    control,
    quantization,
    quantized_recurrent,
    recurrent,
    recurrent_layer,
    recurrent_sizes,
    recurrent_slices,
)
from fuseline.frontends.onnx.tensors import Tensor, known
from tests.graphs.custom_lowering import computed, read_with
from tests.one_node import Value, by_onnxruntime, feeds_of, one_node
from tests.unit.frontends.onnx.ops.lowerings import F32, RNG, agree, error, ints, normal, operators_of, refusal

SYMBOLS = pytest.mark.parametrize("free", [(), (0,)])


def test_what_is_lowered_here() -> None:
    assert operators_of(recurrent) == {"GRU", "LSTM", "RNN"}
    assert operators_of(quantized_recurrent) == {"DynamicQuantizeLSTM"}
    assert operators_of(control) == {"If", "Loop", "Scan"}
    assert operators_of(quantization) == set(
        "ConvInteger DequantizeLinear DynamicQuantizeLinear MatMulInteger QLinearConv QLinearMatMul "
        "QuantizeLinear".split()
    )
    assert not operators_of(recurrent_layer) | operators_of(recurrent_slices) | operators_of(recurrent_sizes)


# -- recurrent layers --------------------------------------------------------------------------------------------------

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _layer(op_type: str, count: int = 1) -> list[Value]:
    """Steps 3, batch 2, features 4, states of 5; all inputs but lengths and peepholes."""
    gates = GATES[op_type]
    inputs: list[Value] = [normal(3, 2, 4), normal(count, gates * 5, 4), normal(count, gates * 5, 5)]
    inputs += [normal(count, 2 * gates * 5), None, normal(count, 2, 5)]
    return inputs + ([normal(count, 2, 5)] if op_type == "LSTM" else [])


@pytest.mark.parametrize("op_type", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_layers(op_type: str, direction: str) -> None:
    count, outputs = 2 if direction == "bidirectional" else 1, 3 if op_type == "LSTM" else 2
    attributes: dict[str, Any] = {"hidden_size": 5, "direction": direction}
    inputs = _layer(op_type, count)
    agree(op_type, inputs, attributes, outputs=outputs, opset=14, rtol=1e-4, constants=(1, 2, 3))
    agree(op_type, inputs[:3], attributes, outputs=outputs, opset=14, rtol=1e-4)
    lengths = [*inputs[:4], np.array([3, 1], np.int32), *inputs[5:]]
    agree(op_type, lengths, attributes, outputs=outputs, opset=14, rtol=1e-4, constants=(1, 2, 3))
    if op_type == "GRU":
        agree(op_type, inputs, {**attributes, "linear_before_reset": 1}, outputs=outputs, opset=14, rtol=1e-4)
    if op_type == "LSTM":
        sights = [*inputs, normal(count, 15)]
        agree(op_type, sights, attributes, outputs=outputs, opset=14, rtol=1e-4, constants=(1, 2, 3, 7))


@pytest.mark.parametrize("activation", ["Relu", "Sigmoid", "Tanh"])
def test_activations(activation: str) -> None:
    agree("RNN", _layer("RNN"), {"hidden_size": 5, "activations": [activation]}, outputs=2, opset=14, rtol=1e-4)
    clipped = {"hidden_size": 5, "activations": [activation], "clip": 0.6}
    agree("RNN", _layer("RNN"), clipped, outputs=2, opset=14, rtol=1e-4)


@pytest.mark.parametrize("activation", ["LeakyRelu", "HardSigmoid", "Softsign", "Elu"])
def test_activations_that_run_on_the_host(activation: str) -> None:
    reason = refusal("RNN", _layer("RNN"), {"hidden_size": 5, "activations": [activation]}, outputs=2, opset=14)
    assert reason == f"activation: activation {activation.capitalize()}"


def test_layers_that_are_refused() -> None:
    inputs = _layer("LSTM")
    coupled = refusal("LSTM", inputs, {"hidden_size": 5, "input_forget": 1}, outputs=3, opset=14)
    assert coupled == "activation: input_forget or a missing activation"
    error("E0107", "hidden_size is 6, R has states of 5", "LSTM", inputs, {"hidden_size": 6}, opset=14)
    flat = [normal(3, 4), *inputs[1:]]
    error("E0107", "input 0 of LSTM has 2 dimensions, must have 3", "LSTM", flat, {"hidden_size": 5}, opset=14)
    names = {1: "W", 2: "R", 3: "B", 5: "initial_h", 6: "initial_c"}
    for position, name in names.items():
        if position == 2:
            continue
        given = inputs[position]
        assert isinstance(given, np.ndarray)
        wrong = [*inputs]
        wrong[position] = np.concatenate([given, given], axis=1)
        error("E0107", f"{name} has sizes", "LSTM", wrong, {"hidden_size": 5}, opset=14)


def test_pieces_of_a_layer() -> None:
    """Of constants at once, of others by ops; and both give the same."""
    x = normal(4, 6)

    def lowering(node: Any) -> list[Tensor]:
        fed, held = node[0], known(x)
        assert recurrent_slices.section(node, held, 1, 2, 3).is_constant
        assert recurrent_slices.concat(node, [held, held], 0).is_constant
        assert recurrent_slices.total(node, held, held).is_constant
        assert recurrent_slices.concat(node, [fed], 0) is fed
        both = [recurrent_slices.concat(node, list(recurrent_slices.gates_of(node, t, 1, 2)), 0) for t in (fed, held)]
        more = [recurrent_slices.total(node, fed, held), recurrent_slices.entry(node, fed, 2)]
        return [*both, *more, recurrent_slices.times(node, fed, held)]

    text = "(float[4, 6] x) => (a, b, c, d, e) { a, b, c, d, e = test.Op (x) }"
    found = computed(text, lowering, x)
    wanted = np.concatenate([x[:, :2], x[:, 2:4], x[:, 4:]])
    for one, expected in zip(found, [wanted, wanted, 2 * x, x[2], x @ x.T], strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)


def test_weights_in_bytes() -> None:
    """Near to a layer of the weights that they stand for."""
    w, r = (ints(-100, 100, 1, size, 20, dtype=np.int8) for size in (4, 5))
    x, bias, scale = normal(3, 2, 4), normal(1, 40), np.array([0.01], F32)
    real = [(part.astype(F32) * scale).transpose(0, 2, 1) for part in (w, r)]
    zero = np.zeros(1, np.int8)
    inputs: list[Value] = [x, w, r, bias, None, None, None, None, scale, zero, scale, zero]
    plain: list[Value] = [x, *real, bias]
    wanted = by_onnxruntime(one_node("LSTM", plain, {"hidden_size": 5}, outputs=3, opset=14), feeds_of(plain))
    more: dict[str, Any] = {"domain": "com.microsoft", "opset": 1, "outputs": 3, "constants": (1, 2, 3, 8, 9, 10, 11)}
    agree("DynamicQuantizeLSTM", inputs, {"hidden_size": 5}, wanted=wanted, rtol=1e-4, **more)


# -- quantised operators -----------------------------------------------------------------------------------------------


def _bytes(*shape: int, dtype: Any = np.uint8) -> Any:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@SYMBOLS
def test_numbers_in_bytes(dtype: Any, free: Sequence[int]) -> None:
    x, zero = (40 * normal(3, 4)).astype(F32), np.array(9, dtype)
    for scale, shift, attributes in (
        (np.array(0.5, F32), zero, {}),
        (np.array([0.5, 1, 2, 4], F32), np.full(4, 9, dtype), {"axis": 1}),
    ):
        agree("QuantizeLinear", [x, scale, shift], attributes, constants=(1, 2), free=free, opset=13)
        agree(
            "DequantizeLinear",
            [_bytes(3, 4, dtype=dtype), scale, shift],
            attributes,
            constants=(1, 2),
            free=free,
            opset=13,
        )
    blocks = [x, np.array([[1, 2], [0.5, 4], [2, 1]], F32)]
    wanted = np.clip(np.rint(x / np.repeat(blocks[1], 2, 1)), 0, 255).astype(np.uint8)
    agree("QuantizeLinear", blocks, {"axis": 1, "block_size": 2}, wanted=[wanted], opset=21)


def test_numbers_in_bytes_that_are_refused() -> None:
    x = normal(3, 4)
    three = [x, np.ones((3, 2), F32)]
    assert refusal("QuantizeLinear", three, {"axis": 1, "block_size": 3}, opset=21).startswith("blocked-quantization")
    error(
        "E0107",
        "a parameter of size",
        "QuantizeLinear",
        [x, np.ones((3, 3), F32)],
        {"axis": 1, "block_size": 2},
        opset=21,
    )


def test_products_in_bytes() -> None:
    """Signed ones of 7 bits: onnxruntime saturates sums of two products without an instruction for them."""
    a, b = _bytes(3, 4), _bytes(4, 5, dtype=np.int8) // 2
    agree("MatMulInteger", [a, b, np.array(7, np.uint8), np.array(-3, np.int8)])
    agree("MatMulInteger", [a, b], wanted=[a.astype(np.int32) @ b.astype(np.int32)], free=(0,))
    rows = [_bytes(3, dtype=np.uint8), _bytes(5, dtype=np.int8)]
    wanted = (a.astype(np.int32) - rows[0][:, None]) @ (b.astype(np.int32) - rows[1])
    agree("MatMulInteger", [a, b, *rows], wanted=[wanted])
    scale, zero = np.array(0.02, F32), np.array(100, np.uint8)
    c = _bytes(4, 5)
    real = (a.astype(float) - 100) * 0.02 @ ((c.astype(float) - 100) * 0.02)
    out = np.clip(np.rint(real / np.float32(0.7)) + 100, 0, 255).astype(np.uint8)
    inputs = [a, scale, zero, c, scale, zero, np.array(0.7, F32), zero]
    agree("QLinearMatMul", inputs, wanted=[out], constants=(1, 2, 4, 5, 6, 7), atol=1.0)


def test_convolutions_in_bytes() -> None:
    x, w = _bytes(2, 3, 6, 5), _bytes(4, 3, 3, 2)
    zero = np.array(120, np.uint8)
    agree("ConvInteger", [x, w, zero, zero], {"pads": [1, 0, 1, 1], "strides": [2, 1]})
    scale, bias = np.array(0.05, F32), ints(-900, 900, 4, dtype=np.int32)
    inputs = [x, scale, zero, w, scale, zero, np.array(2.0, F32), zero, bias]
    agree("QLinearConv", inputs, {"pads": [1, 1, 0, 0]}, constants=range(1, 9), atol=1.0)


def test_a_range_in_bytes() -> None:
    x = (RNG.uniform(-1, 3, (3, 4))).astype(F32)
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32((high - low) / 255)
    zero = np.uint8(np.clip(np.rint(-low / scale), 0, 255))
    wanted = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8)
    agree("DynamicQuantizeLinear", [x], wanted=[wanted, scale, zero], outputs=3, atol=1.0)


# -- branches and loops ------------------------------------------------------------------------------------------------

EITHER = "y = If(c) <then_branch = r () => (b) { b = Exp(x) }, else_branch = n () => (b) { b = Neg(x) }>"


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("known_first", [True, False])
def test_branches(taken: bool, known_first: bool) -> None:
    x = normal(3)
    text = f"(float[3] x{'' if known_first else ', bool c'}) => (y) {{ {EITHER} }}"
    feeds = [x] if known_first else [x, np.array(taken)]
    weights = {"c": np.array(taken)} if known_first else {}
    found = computed(text, lambda node: node[0], *feeds, **weights)[0]
    np.testing.assert_allclose(found, np.exp(x) if taken else -x, rtol=1e-5)
    module, ctx = read_with(text, lambda node: node[0], **weights)
    assert not ctx.records.host_ops
    assert str(module).count("arith.select") == (0 if known_first else 1)


BODY = "body (int64 i, bool on, float[3] s) => (bool go, float[3] t, float[3] row) {{ {} }}"
STEP = "f = Cast<to = 1>(i) u = Add(s, x) t = Add(u, f) row = Mul(t, x) go = Identity(on)"


def _loop(count: Any, step: str = STEP, **more: Any) -> tuple[str, dict[str, Any]]:
    text = f'(float[3] x) => (y, rows) {{ y, rows = Loop(m, "", x) <body = {BODY.format(step)}> }}'
    return text, {"m": np.array(count), **more}


@pytest.mark.parametrize("count", [1, 2, 5])
def test_loops_of_known_length(count: int) -> None:
    x = normal(3)
    text, weights = _loop(count)
    last, rows = computed(text, lambda node: node[0], x, **weights)
    state, wanted = x, []
    for trip in range(count):
        state = state + x + np.float32(trip)
        wanted.append(state * x)
    np.testing.assert_allclose(last, state, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(rows, np.stack(wanted), rtol=1e-4, atol=1e-5)
    assert not read_with(text, lambda node: node[0], **weights)[1].records.host_ops


@pytest.mark.parametrize(
    ("count", "step", "words"),
    [
        (9000, STEP, "long-loop: 9000 trips"),
        (0, STEP, "runtime-loop: scan outputs differ in shape or are none"),
        (
            3,
            STEP.replace("go = Identity(on)", "z = ReduceSum<keepdims = 0>(s) go = Cast<to = 9>(z)"),
            "the condition is computed",
        ),
    ],
)
def test_loops_that_are_refused(count: int, step: str, words: str) -> None:
    text, weights = _loop(count, step)
    record = read_with(text, lambda node: node[0], **weights)[1].records.host_ops
    assert record[0].op_type == "Loop" and words in record[0].reason


SCAN = """y, rows = Scan<num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] t, float[2] r) {
    t = Add(s, e)
    r = Mul(t, s)
}>(z, x)"""


def test_scans_of_known_length() -> None:
    x, z = normal(4, 2), normal(2)
    text = f"(float[2] z, float[4, 2] x) => (y, rows) {{ {SCAN} }}"
    last, rows = computed(text, lambda node: node[0], z, x)
    states = np.concatenate([z[None], z + x.cumsum(0)])
    np.testing.assert_allclose(last, states[-1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(rows, states[1:] * states[:-1], rtol=1e-4, atol=1e-5)
    assert not read_with(text, lambda node: node[0])[1].records.host_ops


def test_branches_of_other_counts() -> None:
    two = EITHER.replace("(b) { b = Exp(x) }", "(b, d) { b = Exp(x) d = Neg(x) }")
    with pytest.raises(FuselineError, match="E0105 .*: branches of 2 and 1 outputs for a node of 1"):
        read_with(f"(float[3] x, bool c) => (y) {{ {two} }}", lambda node: node[0])
