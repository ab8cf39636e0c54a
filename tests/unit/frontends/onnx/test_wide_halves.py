"""Operators on halves are computed in f32 and rounded once, under every `--numerics` and on every executor."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest

import fuseline
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.tensors import Tensor, known
from fuseline.frontends.onnx.wide_halves import as_sequence, rounded, with_wide_inputs
from fuseline.ir.context import new_context
from tests.graphs.onnx_text import onnx_model
from tests.one_node import feeds_of, one_node

HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
SMALL, LARGE = 2.0**-9, 2.0**5
"""Scales at which squares and cubes of halves underflow and overflow."""

IMAGE, ROWS = (2, 6, 5, 4), (5, 7)

CALLS: dict[str, tuple[str, dict[str, Any], list[tuple[int, ...]], float, int]] = {
    "LpPool of cubes": ("LpPool", {"p": 3, "kernel_shape": [2, 1]}, [IMAGE], SMALL, 18),
    "LpPool of large squares": ("LpPool", {"p": 2, "kernel_shape": [3, 2]}, [IMAGE], 16 * LARGE, 18),
    "GlobalLpPool": ("GlobalLpPool", {"p": 3}, [IMAGE], SMALL, 18),
    "AveragePool": ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, [IMAGE], 256 * LARGE, 18),
    "LpNormalization": ("LpNormalization", {"axis": 1}, [ROWS], SMALL, 18),
    "ReduceL2": ("ReduceL2", {"axes": [1]}, [ROWS], 16 * LARGE, 13),
    "ReduceSumSquare": ("ReduceSumSquare", {"axes": [1]}, [ROWS], 0.1, 13),
    "ReduceLogSumExp": ("ReduceLogSumExp", {"axes": [1]}, [ROWS], LARGE, 13),
    "LogSoftmax": ("LogSoftmax", {}, [ROWS], 1.0, 13),
    "GroupNormalization": ("GroupNormalization", {"num_groups": 2, "epsilon": 1e-9}, [IMAGE, (6,), (6,)], 0.1, 21),
    "InstanceNormalization": ("InstanceNormalization", {"epsilon": 1e-9}, [IMAGE, (6,), (6,)], LARGE, 18),
    "BatchNormalization": ("BatchNormalization", {}, [IMAGE, (6,), (6,), (6,), (6,)], 1.0, 15),
    "LayerNormalization": ("LayerNormalization", {}, [ROWS, (7,), (7,)], SMALL, 17),
    "LRN": ("LRN", {"size": 3, "alpha": 3.0, "beta": 0.6}, [IMAGE], SMALL, 18),
    "Conv and its bias": ("Conv", {}, [IMAGE, (4, 6, 2, 3), (4,)], 1.0, 18),
    "ConvTranspose and its bias": ("ConvTranspose", {"strides": [2, 2]}, [IMAGE, (6, 4, 3, 3), (4,)], 1.0, 18),
    "Gemm": ("Gemm", {"alpha": 1e-3, "beta": 0.7}, [(5, 6), (6, 3), (3,)], 16.0, 18),
    "Sum": ("Sum", {}, [ROWS] * 4, 1.0, 18),
    "Mean": ("Mean", {}, [ROWS] * 4, LARGE, 18),
    "Elu": ("Elu", {}, [ROWS], SMALL, 18),
    "Selu": ("Selu", {}, [ROWS], SMALL, 18),
    "Celu": ("Celu", {"alpha": 0.3}, [ROWS], SMALL, 18),
    "Gelu": ("Gelu", {"approximate": "tanh"}, [ROWS], 1.0, 20),
    "Mish": ("Mish", {}, [ROWS], 1.0, 18),
    "Softplus": ("Softplus", {}, [ROWS], 1.0, 18),
    "HardSwish": ("HardSwish", {}, [ROWS], 1.0, 18),
    "Swish": ("Swish", {"alpha": 0.7}, [ROWS], 1.0, 24),
    "Resize": ("Resize", {"mode": "cubic"}, [(1, 2, 5, 4)], 1.0, 18),
    "GRU": ("GRU", {"hidden_size": 3}, [(6, 2, 4), (1, 9, 4), (1, 9, 3)], 1.0, 14),
}
"""Operator, attributes, shapes, scale of the first input, operator set."""


def _inputs(name: str, dtype: np.dtype[Any]) -> list[Any]:
    op_type, _, shapes, scale, _ = CALLS[name]
    rng = np.random.default_rng()
    drawn = [rng.standard_normal(shape) for shape in shapes]
    if op_type == "BatchNormalization":
        drawn[-1] = 0.01 + np.abs(drawn[-1])
    given: list[Any] = [(x * (1 if i else scale)).astype(dtype) for i, x in enumerate(drawn)]
    return [*given, None, np.array([1, 1, 1.7, 2.3], np.float32)] if op_type == "Resize" else given


def _answer(name: str, inputs: list[Any], **options: Any) -> Any:
    op_type, attributes, _, _, opset = CALLS[name]
    constants = [
        position
        for position, value in enumerate(inputs)
        if value is not None and value.dtype == np.float32 and position > 1
    ]
    model = one_node(op_type, inputs, attributes, opset=opset, constants=constants)
    program = fuseline.compile(model, threads=1, **options)
    assert not program.record.host_ops
    return next(iter(program.run(feeds_of(inputs, constants)).values()))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", CALLS)
def test_an_operator_rounds_once(name: str, dtype: str) -> None:
    """Nothing but the rounding of the result, and that of f32 on the way, lies between this and the same in f64."""
    inputs = _inputs(name, HALVES[dtype])
    wide = [x if x is None or x.dtype == np.float32 else x.astype(np.float32) for x in inputs]
    wanted = _answer(name, wide, target="interpreter").astype(np.float64)
    step = float(ml_dtypes.finfo(HALVES[dtype]).eps)
    smallest = float(ml_dtypes.finfo(HALVES[dtype]).smallest_subnormal)
    near = 0.51 * step * np.abs(wanted) + smallest + 1e-4 * np.abs(wanted).max()
    for numerics, target in (("strict", "cpu"), ("strict", "interpreter"), ("default", "cpu")):
        found = _answer(name, inputs, numerics=numerics, target=target)
        assert found.dtype == HALVES[dtype]
        difference = np.abs(found.astype(np.float64) - wanted)
        assert (difference <= near).all(), (numerics, target, difference.max())


def _node(text: str, *inputs: Tensor | None, opset: int = 18) -> OnnxNode:
    source = next(iter(ir.from_proto(onnx_model(text)).graph))
    return OnnxNode(None, Program(new_context()), source, "node", list(inputs), source.attributes, opset)  # pyright: ignore[reportArgumentType]


def test_halves_become_wide_and_all_else_stays() -> None:
    half = known(np.array([0.1, -65504.0, 6e-8], np.float16), name="weight")
    single, whole = known(np.array([0.1], np.float32)), known(np.array([3]))
    node = _node("(float16[3] a, float16[3] b) => (y) { y = Sum(a, b) }", half, None, single, whole)
    first, *others = with_wide_inputs(node).inputs
    assert first is not None and first.name == "weight" and first.dtype == np.float32
    np.testing.assert_array_equal(first.numbers(), half.numbers().astype(np.float32))
    assert others == [None, single, whole]
    assert node.inputs[0] is half


def test_a_node_without_halves_is_left_as_it_is() -> None:
    node = _node("(float[3] a) => (y) { y = Relu(a) }", known(np.ones(3, np.float32)))
    outputs = [known(np.ones(3, np.float32))]
    assert with_wide_inputs(node) is node and rounded(node, "", outputs) is outputs


@pytest.mark.parametrize(
    ("call", "domain", "kinds", "found", "wanted"),
    [
        ("Relu(a)", "", ["float16"], "float32", "float16"),
        ("Relu(a)", "", ["bfloat16"], "float32", "bfloat16"),
        ("Cast <to = 1> (a)", "", ["float16"], "float32", "float32"),  # a type variable of its own
        ("Shape(a)", "", ["float16"], "int64", "int64"),
        ("Mine(a, b)", "nowhere", ["float16", "float32"], "float32", "float16"),
        ("Mine(a, b)", "nowhere", ["float32", "float16"], "float32", "float32"),
        ("Mine(a, b)", "nowhere", ["int64", "float16"], "float32", "float16"),
    ],
)
def test_an_output_is_rounded_to_the_type_that_the_standard_gives_it(
    call: str, domain: str, kinds: list[str], found: str, wanted: str
) -> None:
    types = {**HALVES, "float32": np.dtype(np.float32), "int64": np.dtype(np.int64)}
    inputs = [known(np.ones(3, types[kind])) for kind in kinds]
    node = _node(f"(float16[3] a, float16[3] b) => (y) {{ y = {call} }}", *inputs)
    (out,) = rounded(node, domain, [known(np.ones(3, types[found]))])
    assert isinstance(out, Tensor) and out.dtype == types[wanted]


def test_a_single_output_and_several_are_sequences() -> None:
    one = known(np.ones(3, np.float32))
    several = [one, None]
    assert as_sequence(one) == [one] and as_sequence(several) is several


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"])
def test_what_the_host_computes_inside_of_a_body_is_a_half_in_the_end(op_type: str) -> None:
    """The operator's body computes in f32, and axes that are fed take its sum to the host."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18]>'
        f"g (float16[5, 2] x, int64[k] axes) => (y) {{ y = {op_type}<keepdims = 0>(x, axes) }}"
    )
    x = np.random.default_rng().uniform(0.5, 1.5, (5, 2)).astype(np.float16)
    wide = {"ReduceL1": x, "ReduceSumSquare": x * 1.0 * x, "ReduceLogSum": x, "ReduceLogSumExp": np.exp(x)}[op_type]
    for axes in ([0], [1], [0, -1]):
        total = wide.astype(np.float64).sum(tuple(axes))
        wanted = np.log(total) if "Log" in op_type else total
        (found,) = fuseline.compile(model, cache=False).run({"x": x, "axes": np.array(axes)}).values()
        assert found.dtype == np.float16
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("asked", [["y", "state"], ["y"], ["state"]])
def test_an_output_whose_type_no_input_says_has_the_declared_one(asked: list[str]) -> None:
    """The state that LinearAttention answers, where none is given."""
    types = {"y": "float16[2, 3, 8] y", "state": "float16[2, 2, 2, 2] state"}
    model = onnx.parser.parse_model(
        '<ir_version: 13, opset_import: ["": 27]>'
        "g (float16[2, 3, 8] q, float16[2, 3, 4] k, float16[2, 3, 4] v, float16[2, 3, 4] d, float16[2, 3, 2] b)"
        f" => ({', '.join(types[name] for name in asked)})"
        f' {{ y, state = LinearAttention<kv_num_heads = 2, q_num_heads = 4>(q, k, v, "", d, b) }}'
    )
    rng = np.random.default_rng()
    feeds = {i.name: rng.uniform(-1, 0, [d.dim_value for d in i.type.tensor_type.shape.dim]) for i in model.graph.input}
    answers = fuseline.compile(model, cache=False).run({name: a.astype(np.float16) for name, a in feeds.items()})
    assert {name: a.dtype.name for name, a in answers.items()} == dict.fromkeys(asked, "float16")
    assert all(np.isfinite(a.astype(np.float32)).all() and np.any(a) for a in answers.values())
