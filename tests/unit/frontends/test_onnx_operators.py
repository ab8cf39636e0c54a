"""Operators whose options the official node tests do not cover, natively, against onnxruntime or NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import helper

import fuseline
from fuseline.errors import FuselineError
from fuseline.evaluation import evaluate_module
from fuseline.frontends.onnx import read_onnx
from fuseline.frontends.onnx.tensors import NoNativeLowering
from fuseline.interop import onnx_host
from fuseline.ir.context import new_context
from fuseline.ir.dim import upper_bound
from fuseline.targets.interpreter.host import call_declared
from tests.graphs.onnx_text import call, declared, onnx_model

Array = NDArray[Any]
onnx_host.install()


def one_node(
    op_type: str,
    inputs: dict[str, Array],
    constants: Mapping[str, Any],
    order: tuple[str, ...],
    outputs: int = 1,
    shapes: dict[str, tuple[int | str, ...]] | None = None,
    opset: int = 21,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model with one node; `order` names its inputs ("" for one left out), `shapes` declares symbolic input sizes."""
    results = [f"y{i}" for i in range(outputs)]
    node = call(op_type, *order, results=results, **attributes)
    text = f"({declared(inputs, shapes)}) => ({', '.join(results)}) {{ {node} }}"
    return onnx_model(text, constants, opset=opset, ir_version=10)


def run(model: onnx.ModelProto, *feeds: Array) -> list[Array]:
    """The outputs on the interpreter; no host op may be left."""
    ctx = new_context()
    module = read_onnx(model, ctx)
    module.verify()
    assert not ctx.records.host_ops, ctx.records.host_ops
    return evaluate_module(module, list(feeds), ctx.resources)


def on_the_host(model: onnx.ModelProto, *feeds: Array) -> list[Array]:
    """The outputs on the interpreter; the node must be a host op."""
    ctx = new_context()
    module = read_onnx(model, ctx)
    assert len(ctx.records.host_ops) == 1
    return evaluate_module(module, list(feeds), ctx.resources, host_call=call_declared)


def agree_on_the_host(model: onnx.ModelProto, feeds: dict[str, Array]) -> None:
    """Compare a host op with onnxruntime."""
    wanted: list[Array] = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, feeds
    )  # pyright: ignore
    for found, expected in zip(on_the_host(model, *feeds.values()), wanted, strict=True):
        np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-4, atol=1e-5)


def agree(model: onnx.ModelProto, feeds: dict[str, Array], rtol: float = 1e-5) -> None:
    """Compare with onnxruntime."""
    wanted: list[Array] = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, feeds
    )  # pyright: ignore
    for found, expected in zip(run(model, *feeds.values()), wanted, strict=True):
        np.testing.assert_allclose(found, np.asarray(expected), rtol=rtol, atol=1e-5)


def random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# -- Slice -------------------------------------------------------------------------------------------------------------

FAR = 2**63 - 1
BOUNDS = [
    (-3, FAR, 1),
    (0, 5, 1),
    (2, -1, 1),
    (-100, 100, 1),
    (1, 4, 2),
    (-1, -FAR, -1),
    (-2, 0, -2),
    (4, -100, -3),
    (3, 3, 1),
    (5, 2, 1),
]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("symbolic", [False, True])
def test_slices_take_what_numpy_takes(bounds: tuple[int, int, int], size: int, symbolic: bool):
    start, end, step = bounds
    x = random(size, 2, size)
    constants = {
        name: np.array([v], np.int64) for name, v in (("starts", start), ("ends", end), ("axes", 1), ("steps", step))
    }
    model = one_node("Slice", {"x": x}, constants, ("x", *constants), shapes={"x": (2, "n")} if symbolic else None)
    np.testing.assert_array_equal(run(model, x)[0], x[:, start:end:step])


def test_a_slice_without_a_step_forward_is_refused():
    constants = {name: np.array([v], np.int64) for name, v in (("starts", 0), ("ends", 2), ("axes", 0), ("steps", 0))}
    with pytest.raises(FuselineError, match="E0107"):
        run(one_node("Slice", {"x": random(0, 4)}, constants, ("x", *constants)), random(0, 4))


def test_a_table_read_up_to_a_length_bounds_the_length():
    """Positions of a sequence: as many rows as there are tokens, and no more tokens than there are rows."""
    table, x = random(3, 6, 2), random(4, 4, 2)
    nodes = "n = Shape<end = 1>(x)  rows = Slice(table, zero, n)  y = Add(x, rows)"
    model = onnx_model(f"(float[n, 2] x) => (y) {{ {nodes} }}", opset=21, table=table, zero=[0])
    np.testing.assert_allclose(run(model, x)[0], x + table[:4], rtol=1e-6)
    ctx = new_context()
    read_onnx(model, ctx)
    assert upper_bound(ctx.symbols["n"]) == 6


# -- Pad ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_pads_repeat_the_tensor_itself(mode: str, symbolic: bool):
    x = random(1, 2, 6)
    pads = {"pads": np.array([0, 2, 0, 3] if symbolic else [0, 2, 1, 3])}
    model = one_node("Pad", {"x": x}, pads, ("x", "pads"), shapes={"x": (2, "n")} if symbolic else None, mode=mode)
    ctx = new_context()
    module = read_onnx(model, ctx, shapes={"n": (4, 64)} if symbolic else None)
    assert not ctx.records.host_ops
    found = evaluate_module(module, [x], ctx.resources)[0]
    wanted = np.pad(x, [(0, 0 if symbolic else 1), (2, 3)], mode=mode)  # pyright: ignore[reportArgumentType, reportCallIssue]
    np.testing.assert_array_equal(found, wanted)


def test_negative_pads_cut():
    x = random(2, 5, 4)
    model = one_node("Pad", {"x": x}, {"pads": np.array([-1, 2, -2, -1])}, ("x", "pads"))
    np.testing.assert_array_equal(run(model, x)[0], np.pad(x[1:-2, :-1], [(0, 0), (2, 0)]))


# -- Resize ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
@pytest.mark.parametrize("scales", [(1.0, 1.0, 2.0, 3.0), (1.0, 1.0, 0.6, 1.5)])
def test_resizing_agrees_with_onnxruntime(mode: str, coordinates: str, scales: tuple[float, ...]):
    """With whole output sizes: where they are rounded, onnxruntime's align_corners is not the standard's."""
    x = random(3, 1, 2, 5, 6)
    constants = {"scales": np.array(scales, np.float32)}
    model = one_node(
        "Resize",
        {"x": x},
        constants,
        ("x", "", "scales"),
        mode=mode,
        coordinate_transformation_mode=coordinates,
        opset=19,
    )
    agree(model, {"x": x}, rtol=1e-4)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialiased_shrinking_agrees_with_onnxruntime(mode: str):
    x = random(4, 1, 1, 9, 12)
    constants = {"sizes": np.array([1, 1, 4, 5], np.int64)}
    agree(
        one_node("Resize", {"x": x}, constants, ("x", "", "", "sizes"), mode=mode, antialias=1, opset=19),
        {"x": x},
        rtol=1e-4,
    )


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude", [0, 1])
def test_an_only_element_is_repeated(mode: str, exclude: int):
    """Beside an axis that is interpolated; the repetition is a broadcast, which its reader takes in."""
    x = random(8, 1, 3, 1, 4)
    constants = {"sizes": np.array([1, 3, 5, 9], np.int64)}
    model = one_node(
        "Resize",
        {"x": x},
        constants,
        ("x", "", "", "sizes"),
        mode=mode,
        exclude_outside=exclude if mode == "cubic" else 0,
        opset=19,
    )
    agree(model, {"x": x}, rtol=1e-4)
    pooled = random(9, 1, 3, 1, 1)
    constants = {"sizes": np.array([1, 3, 5, 9], np.int64)}
    model = one_node("Resize", {"x": pooled}, constants, ("x", "", "", "sizes"), mode=mode, opset=19)
    np.testing.assert_array_equal(run(model, pooled)[0], np.broadcast_to(pooled, (1, 3, 5, 9)))


def test_whole_factors_enlarge_symbolic_sizes():
    x = random(5, 1, 2, 3, 4)
    constants = {"scales": np.array([1, 1, 2, 3], np.float32)}
    model = one_node("Resize", {"x": x}, constants, ("x", "", "scales"), shapes={"x": (1, 2, "h", "w")}, mode="nearest")
    np.testing.assert_array_equal(run(model, x)[0], x.repeat(2, 2).repeat(3, 3))


def test_an_unknown_resize_mode_is_refused():
    x = random(6, 1, 1, 2, 2)
    with pytest.raises(FuselineError, match="E0105"):
        run(
            one_node(
                "Resize", {"x": x}, {"scales": np.array([1, 1, 2, 2], np.float32)}, ("x", "", "scales"), mode="sinc"
            ),
            x,
        )


# -- recurrent layers --------------------------------------------------------------------------------------------------

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, FEATURES, HIDDEN = 4, 3, 5, 2


def layer(
    op_type: str, directions: int, lengths: list[int] | None, initial: bool, **attributes: Any
) -> tuple[onnx.ModelProto, Array]:
    """A layer with random weights and the input to feed it."""
    rows = GATES[op_type] * HIDDEN
    constants = {
        "w": random(1, directions, rows, FEATURES),
        "r": random(2, directions, rows, HIDDEN),
        "b": random(3, directions, 2 * rows),
    }
    order = ["x", "w", "r", "b", ""]
    if lengths is not None:
        constants["lengths"] = np.array(lengths, np.int32)
        order[4] = "lengths"
    states = ["h", "c"] if op_type == "LSTM" else ["h"]
    if initial:
        constants |= {name: random(4 + i, directions, BATCH, HIDDEN) for i, name in enumerate(states)}
        order += states
    if op_type == "LSTM" and initial:
        constants["p"] = random(7, directions, 3 * HIDDEN)
        order.append("p")
    x = random(8, STEPS, BATCH, FEATURES)
    direction = "bidirectional" if directions == 2 else attributes.pop("direction", "forward")
    outputs = 1 + len(states)
    model = one_node(
        op_type,
        {"x": x},
        constants,
        tuple(order),
        outputs,
        hidden_size=HIDDEN,
        direction=direction,
        opset=20,
        **attributes,
    )
    return model, x


@pytest.mark.parametrize("op_type", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("lengths", [None, [4, 2, 1]])
def test_layers_agree_with_onnxruntime(op_type: str, directions: int, lengths: list[int] | None):
    model, x = layer(op_type, directions, lengths, initial=True)
    agree(model, {"x": x})


@pytest.mark.parametrize("op_type", ["LSTM", "GRU", "RNN"])
def test_activations_and_clip_are_kept(op_type: str):
    chosen = {"LSTM": ["Sigmoid", "Relu", "Tanh"], "GRU": ["Sigmoid", "Relu"], "RNN": ["Relu"]}[op_type]
    model, x = layer(op_type, 1, None, initial=False, activations=chosen, clip=0.5)
    agree(model, {"x": x})


def test_the_reset_gate_may_act_after_the_product():
    model, x = layer("GRU", 2, [3, 4, 2], initial=True, linear_before_reset=1)
    agree(model, {"x": x})


@pytest.mark.parametrize("op_type", ["LSTM", "GRU", "RNN"])
def test_the_batch_may_come_first(op_type: str):
    plain, x = layer(op_type, 1, None, initial=False, direction="reverse")
    swapped, _ = layer(op_type, 1, None, initial=False, direction="reverse", layout=1)
    swapped.graph.input[0].CopyFrom(
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (BATCH, STEPS, FEATURES))
    )
    every, *last = run(plain, x)
    other, *others = run(swapped, np.ascontiguousarray(x.swapaxes(0, 1)))
    np.testing.assert_allclose(other, every.transpose(2, 0, 1, 3), rtol=1e-6)
    for found, wanted in zip(others, last, strict=True):
        np.testing.assert_allclose(found, wanted.transpose(1, 0, 2), rtol=1e-6)


OTHER_ACTIVATIONS: list[tuple[str, dict[str, Any]]] = [
    ("Softsign", {}),
    ("Softplus", {}),
    ("Affine", {"activation_alpha": [0.5], "activation_beta": [0.1]}),
    ("LeakyRelu", {"activation_alpha": [0.2]}),
    ("ThresholdedRelu", {"activation_alpha": [0.1]}),
    ("ScaledTanh", {"activation_alpha": [0.7], "activation_beta": [1.3]}),
    ("HardSigmoid", {"activation_alpha": [0.3], "activation_beta": [0.4]}),
    ("Elu", {"activation_alpha": [0.6]}),
]


@pytest.mark.parametrize(("name", "parameters"), OTHER_ACTIVATIONS)
def test_other_activations_run_on_the_host(name: str, parameters: dict[str, Any]):
    model, x = layer("RNN", 1, [4, 2, 1], initial=True, activations=[name], **parameters)
    agree_on_the_host(model, {"x": x})


@pytest.fixture
def nothing_native(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes the native form of recurrent layers refuse everything."""

    def refuse(*arguments: object) -> NoReturn:
        raise NoNativeLowering("test")

    return lambda: monkeypatch.setattr("fuseline.frontends.onnx.ops.recurrent_layer._activations", refuse)


@pytest.mark.parametrize("op_type", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("clip", [0.0, 0.4])
def test_the_host_agrees_with_the_native_form(
    op_type: str, directions: int, clip: float, nothing_native: Callable[[], None]
):
    """Not with onnxruntime, which does not clip what the last activation of an LSTM sees."""
    model, x = layer(op_type, directions, [3, 4, 2], initial=True, **({"clip": clip} if clip else {}))
    wanted = run(model, x)
    nothing_native()
    for found, expected in zip(on_the_host(model, x), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("after", [0, 1])
def test_the_host_knows_both_kinds_of_reset_gate(after: int, nothing_native: Callable[[], None]):
    model, x = layer("GRU", 1, None, initial=False, linear_before_reset=after, direction="reverse")
    nothing_native()
    agree_on_the_host(model, {"x": x})


def test_a_coupled_forget_gate_runs_on_the_host():
    model, x = layer("LSTM", 1, None, initial=False, input_forget=1)
    agree_on_the_host(model, {"x": x})


@pytest.mark.parametrize("op_type", ["LSTM", "GRU", "RNN"])
def test_the_batch_may_come_first_on_the_host(op_type: str, nothing_native: Callable[[], None]):
    swapped, x = layer(op_type, 2, [3, 4, 2], initial=False, layout=1)
    swapped.graph.input[0].CopyFrom(
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (BATCH, STEPS, FEATURES))
    )
    plain, _ = layer(op_type, 2, [3, 4, 2], initial=False)
    every, *last = run(plain, x)
    nothing_native()
    other, *others = on_the_host(swapped, np.ascontiguousarray(x.swapaxes(0, 1)))
    np.testing.assert_allclose(other, every.transpose(2, 0, 1, 3), rtol=1e-5, atol=1e-6)
    for found, wanted in zip(others, last, strict=True):
        np.testing.assert_allclose(found, wanted.transpose(1, 0, 2), rtol=1e-5, atol=1e-6)


# -- quantised tensors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_blocks_have_their_own_scales(axis: int):
    x = random(9, 4, 6) * 20
    at = axis % 2
    shape = tuple(size // 2 if i == at else size for i, size in enumerate(x.shape))
    scale = (np.abs(random(10, *shape)) + 0.1).astype(np.float32)
    zero = np.random.default_rng(11).integers(-20, 20, shape, np.int8)
    constants = {"scale": scale, "zero": zero}
    found = run(one_node("QuantizeLinear", {"x": x}, constants, ("x", "scale", "zero"), axis=axis, block_size=2), x)[0]
    wide = scale.repeat(2, at), zero.repeat(2, at)
    wanted = np.clip(np.rint(x / wide[0]) + wide[1], -128, 127).astype(np.int8)
    np.testing.assert_array_equal(found, wanted)
    back = run(
        one_node("DequantizeLinear", {"q": wanted}, constants, ("q", "scale", "zero"), axis=axis, block_size=2), wanted
    )[0]
    np.testing.assert_allclose(back, (wanted.astype(np.float32) - wide[1]) * wide[0], rtol=1e-6)


def test_ties_go_to_even_and_values_saturate():
    x = np.array([-300.0, -1.5, -0.5, 0.5, 1.5, 2.5, 300.0], np.float32)
    constants = {"scale": np.array(1, np.float32), "zero": np.array(128, np.uint8)}
    found = run(one_node("QuantizeLinear", {"x": x}, constants, ("x", "scale", "zero")), x)[0]
    assert found.view(np.uint8).tolist() == [0, 126, 128, 128, 130, 130, 255]


def test_halves_keep_large_zero_points():
    x = np.array([-3.0, 0.0, 5.0], np.float16)
    constants = {"scale": np.array(1, np.float16), "zero": np.array(32769, np.uint16)}
    found = run(one_node("QuantizeLinear", {"x": x}, constants, ("x", "scale", "zero")), x)[0]
    assert found.view(np.uint16).tolist() == [32766, 32769, 32774]


# -- LRN ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.25, 0.5, 0.75, 0.6, 1.0])
@pytest.mark.parametrize(("bias", "alpha"), [(1.0, 0.3), (2.0, 0.0), (-0.5, 4.0)])
def test_local_response_normalisation(beta: float, bias: float, alpha: float):
    """By square roots where that is the power; a base that may be negative stays a power, which is NaN."""
    x = 3 * random(5, 2, 7, 3, 4)
    squares = np.pad(x.astype(np.float64) ** 2, [(0, 0), (1, 2), (0, 0), (0, 0)])
    base = bias + alpha / 4 * sum(squares[:, i : i + 7] for i in range(4))
    with np.errstate(invalid="ignore"):
        expected = x / base**beta
    (found,) = run(one_node("LRN", {"x": x}, {}, ("x",), size=4, beta=beta, bias=bias, alpha=alpha), x)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


# -- Einsum, MeanVarianceNormalization ---------------------------------------------------------------------------------


@pytest.mark.parametrize("equation", ["ii->i", "bii->bi", "bibj,bjk->bik", "...ii->...", "ijji->ij", "ii,ij->j"])
def test_a_letter_twice_in_an_operand_is_its_diagonal(equation: str):
    sizes = {"i": 4, "j": 3, "b": 2, "k": 5}
    terms = [term.replace("...", "bk") for term in equation.split("->")[0].split(",")]
    feeds = {f"x{n}": random(n + 3, *(sizes[letter] for letter in term)) for n, term in enumerate(terms)}
    model = one_node("Einsum", feeds, {}, tuple(feeds), equation=equation)
    np.testing.assert_allclose(
        run(model, *feeds.values())[0], np.einsum(equation, *feeds.values()), rtol=1e-5, atol=1e-6
    )


def test_diagonals_of_symbolic_sizes():
    x = random(5, 2, 4, 4)
    model = one_node("Einsum", {"x": x}, {}, ("x",), shapes={"x": (2, "n", "n")}, equation="bii->bi")
    np.testing.assert_array_equal(run(model, x)[0], np.einsum("bii->bi", x))


@pytest.mark.parametrize("axes", [None, [-1], [0, 2]])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_mean_variance_normalization(dtype: str, axes: list[int] | None):
    x = (random(8, 3, 4, 5, 6) * 2 + 1).astype(dtype)
    options: dict[str, Any] = {} if axes is None else {"axes": axes}
    model = one_node("MeanVarianceNormalization", {"x": x}, {}, ("x",), **options)
    along, wide = tuple(axes or (0, 2, 3)), x.astype(np.float64)
    expected = (wide - wide.mean(along, keepdims=True)) / wide.std(along, keepdims=True)
    for target in ("cpu", "interpreter"):
        found = fuseline.compile(model, threads=1, target=target).run({"x": x})["y0"]
        assert found.dtype == dtype
        np.testing.assert_allclose(
            found,
            expected,
            rtol=4e-3 if dtype == "float16" else 1e-5 if dtype == "float32" else 1e-8,
            atol=2e-3 if dtype == "float16" else 1e-6,
        )


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_an_integer_scale_divides_as_a_real_number(target: str):
    x = np.random.default_rng(4).integers(-90, 90, (5, 7)).astype(np.int32)
    model = one_node(
        "QuantizeLinear",
        {"x": x},
        {"scale": np.array(4, np.int32)},
        ("x", "scale"),
        opset=23,
        output_dtype=onnx.TensorProto.INT8,
    )
    np.testing.assert_array_equal(
        fuseline.compile(model, threads=1, target=target).run({"x": x})["y0"], np.rint(x / 4).astype(np.int8)
    )
