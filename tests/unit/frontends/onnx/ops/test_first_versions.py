"""Operators as sets before 7 have them, against NumPy or against the same call of version 7; GroupNormalization as it
first was."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.onnx.ops import first_versions
from tests.draws import RNG
from tests.one_node import feeds_of, one_node
from tests.unit.frontends.onnx.ops.lowerings import operators_of

ARITHMETIC: dict[str, Any] = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power}
COMPARISONS: dict[str, Any] = {"Equal": np.equal, "Less": np.less, "Greater": np.greater}
LOGIC: dict[str, Any] = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}


def ran(proto: onnx.ModelProto, feeds: dict[str, Any]) -> Any:
    """The first output of a program without host operators, which the interpreter computes as well."""
    programs = [fuseline.compile(proto, target=target, threads=1) for target in ("cpu", "interpreter")]
    assert all(program.stats["host_ops"] == 0 for program in programs)
    native, evaluated = (program.run(feeds)["o0"] for program in programs)
    assert native.dtype == evaluated.dtype
    np.testing.assert_allclose(native, evaluated, rtol=1e-4, atol=1e-5)
    return native


def node(op_type: str, inputs: list[Any], attributes: dict[str, Any], opset: int, **more: Any) -> Any:
    """What a call answers."""
    return ran(one_node(op_type, inputs, attributes, opset=opset, **more), feeds_of(inputs, more.get("constants", ())))


def _drawn(op_type: str, shape: tuple[int, ...]) -> Any:
    if op_type in LOGIC:
        return RNG.random(shape) < 0.5
    if op_type == "Equal":
        return RNG.integers(0, 3, shape)
    return RNG.uniform(0.5, 2, shape).astype(np.float32)


def test_every_operator_is_tested_here():
    tested = {*ARITHMETIC, *COMPARISONS, *LOGIC, "PRelu", "BatchNormalization", "Upsample", "Reshape", "Tile", "Cast"}
    assert operators_of(first_versions) == tested


@pytest.mark.parametrize("op_type", [*ARITHMETIC, *COMPARISONS, *LOGIC])
@pytest.mark.parametrize("opset", [1, 6])
def test_an_operand_begins_at_an_axis(op_type: str, opset: int):
    rank = int(RNG.integers(2, 5))
    shape = tuple(int(size) for size in RNG.integers(2, 5, rank))
    count = int(RNG.integers(1, rank + 1))
    axis = int(RNG.integers(0, rank - count + 1))
    x, y = _drawn(op_type, shape), _drawn(op_type, shape[axis : axis + count])
    if op_type == "Equal":
        x, y = x.astype(np.int32), y.astype(np.int32)
    given = {"consumed_inputs": [0, 0]} if opset == 1 and op_type in ("Add", "Sub", "Mul", "Div") else {}
    wanted = (ARITHMETIC | COMPARISONS | LOGIC)[op_type](x, y.reshape(*y.shape, *[1] * (rank - axis - count)))
    found = node(op_type, [x, y], {"broadcast": 1, "axis": axis, **given}, opset)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("op_type", [*ARITHMETIC, *COMPARISONS, *LOGIC])
def test_an_operand_ends_where_the_other_ends(op_type: str):
    x, y = _drawn(op_type, (2, 3, 4)), _drawn(op_type, (3, 4))
    wanted = (ARITHMETIC | COMPARISONS | LOGIC)[op_type]
    np.testing.assert_allclose(node(op_type, [x, y], {"broadcast": 1}, 6), wanted(x, y), rtol=1e-5)
    np.testing.assert_allclose(node(op_type, [x, x], {}, 6), wanted(x, x), rtol=1e-5)


def test_an_operand_that_is_too_long():
    x, y = _drawn("Add", (2, 3, 4)), _drawn("Add", (4, 2))
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(one_node("Add", [x, y], {"broadcast": 1, "axis": 2}, opset=6))
    assert caught.value.code == "E0107"


@pytest.mark.parametrize("slopes", [1, 3])
@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize("rank", [2, 4])
def test_slopes_of_channels(slopes: int, opset: int, rank: int):
    x = RNG.standard_normal((2, 3, 4, 5)[:rank]).astype(np.float32)
    slope = RNG.standard_normal(slopes).astype(np.float32)
    below = slope.reshape(slopes, *[1] * (rank - 2)) * x
    np.testing.assert_allclose(node("PRelu", [x, slope], {}, opset), np.where(x < 0, below, x), rtol=1e-5)


@pytest.mark.parametrize("opset", [1, 6])
def test_a_batch_norm_of_inference(opset: int):
    x = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    parameters = [RNG.uniform(0.5, 2, 3).astype(np.float32) for _ in range(4)]
    given: dict[str, Any] = {"epsilon": 0.01} | ({"consumed_inputs": [0] * 5} if opset == 1 else {})
    wanted = node("BatchNormalization", [x, *parameters], {"epsilon": 0.01}, 9)
    found = node("BatchNormalization", [x, *parameters], {"is_test": 1, **given}, opset)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    trained = one_node("BatchNormalization", [x, *parameters], given, opset=opset)
    assert fuseline.compile(trained, target="null").stats["host_ops"] == 1


@pytest.mark.parametrize(("old", "new"), [("nearest", "nearest"), ("bilinear", "linear")])
def test_scales_of_height_and_width(old: str, new: str):
    x = RNG.standard_normal((1, 2, 3, 4)).astype(np.float32)
    height, width = (float(RNG.choice([1.0, 1.5, 2.0, 3.0])) for _ in range(2))
    found = node("Upsample", [x], {"height_scale": height, "width_scale": width, "mode": old}, 1)
    wanted = node("Upsample", [x], {"scales": [1.0, 1.0, height, width], "mode": new}, 7)
    np.testing.assert_array_equal(found, wanted)


def test_shapes_tiles_and_types():
    x = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    np.testing.assert_array_equal(node("Reshape", [x], {"shape": [0, -1, 2]}, 1), x.reshape(2, -1, 2))
    tiles, axis = np.array(3, np.float32), np.array(1, np.float32)
    np.testing.assert_array_equal(node("Tile", [x, tiles, axis], {}, 1, constants=(1, 2)), np.tile(x, (1, 3, 1)))
    np.testing.assert_array_equal(node("Cast", [x], {"to": "INT32"}, 1), x.astype(np.int32))


def test_a_type_that_there_is_not():
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    with pytest.raises(FuselineError) as raised:
        fuseline.compile(one_node("Cast", [x], {"to": "QUARTER"}, opset=5))
    assert raised.value.code == "E0105" and "QUARTER" in raised.value.message and raised.value.node


@pytest.mark.parametrize("axis", [-2, 0, 1, 2, 7])
def test_tiles_along_an_axis(axis: int):
    """One that there is not is left to the host, which says so."""
    x, count = RNG.standard_normal((2, 3)).astype(np.float32), int(RNG.integers(2, 5))
    given = [x, np.array(count, np.float32), np.array(axis, np.float32)]
    program = fuseline.compile(one_node("Tile", given, {}, opset=5, constants=[1, 2]))
    assert [one.reason.split(":")[0] for one in program.record.host_ops] == ["axis-out-of-range"] * (axis > 1)
    if axis < 2:
        wanted = np.repeat(x[None], count, 0).reshape(-1, 3) if axis != 1 else np.tile(x, (1, count))
        np.testing.assert_array_equal(program.run({"i0": x})["o0"], wanted)


@pytest.mark.parametrize("opset", [1, 6])
def test_lists_and_limits(opset: int):
    arrays = [RNG.standard_normal((3, 4)).astype(np.float32) for _ in range(3)]
    given = {"consumed_inputs": [0, 0, 0]} if opset == 1 else {}
    folds = {"Sum": np.sum, "Max": np.max, "Min": np.min, "Mean": np.mean}
    for op_type, fold in folds.items():
        np.testing.assert_allclose(node(op_type, arrays, given, opset), fold(arrays, axis=0), rtol=1e-5, atol=1e-6)
    wanted = np.clip(arrays[0], -0.5, 0.25)
    np.testing.assert_array_equal(node("Clip", arrays[:1], {"min": -0.5, "max": 0.25}, opset), wanted)


@pytest.mark.parametrize("opset", [1, 6])
def test_a_product_with_a_row_added(opset: int):
    a, b, c = (RNG.standard_normal(shape).astype(np.float32) for shape in ((5, 3), (4, 5), (4,)))
    found = node("Gemm", [a, b, c], {"transA": 1, "transB": 1, "alpha": 0.5, "broadcast": 1}, opset)
    np.testing.assert_allclose(found, 0.5 * (a.T @ b.T) + c, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("op_type", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("opset", [1, 6])
def test_recurrent_layers(op_type: str, gates: int, opset: int):
    steps, hidden, size = 3, 2, 4
    shapes = ((steps, 1, size), (1, gates * hidden, size), (1, gates * hidden, hidden))
    inputs = [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]
    found = node(op_type, inputs, {"hidden_size": hidden, "output_sequence": 1}, opset, outputs=2)
    np.testing.assert_allclose(found, node(op_type, inputs, {"hidden_size": hidden}, 14), rtol=1e-5)


@pytest.mark.parametrize(("op_type", "more"), [("LpPool", {"kernel_shape": [2, 2]}), ("GlobalLpPool", {})])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_an_order_of_a_norm_may_be_a_float(op_type: str, more: dict[str, Any], order: int):
    x = RNG.standard_normal((1, 2, 4, 5)).astype(np.float32)
    found = node(op_type, [x], {"p": float(order), **more}, 1)
    np.testing.assert_allclose(found, node(op_type, [x], {"p": order, **more}, 2), rtol=1e-5)
    proto = one_node(op_type, [x], {"p": 2.5, **more}, opset=1)
    assert fuseline.compile(proto, target="null").stats["host_ops"] == 1


@pytest.mark.parametrize("opset", [18, 19, 20])
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_a_scale_for_each_group(opset: int, groups: int):
    sizes = [int(size) for size in RNG.integers(1, 6, RNG.integers(1, 4))]
    x = RNG.standard_normal((2, 6, *sizes)).astype(np.float32)
    scale, bias = (RNG.standard_normal(groups).astype(np.float32) for _ in range(2))
    proto = one_node("GroupNormalization", [x, scale, bias], {"num_groups": groups, "epsilon": 0.01}, opset=opset)
    wanted: Any = ReferenceEvaluator(proto).run(None, feeds_of([x, scale, bias]))[0]  # pyright: ignore
    found = ran(proto, feeds_of([x, scale, bias]))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    rows = x.reshape(2, groups, -1).astype(np.float64)
    normed = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 0.01)
    scaled = (normed * scale[:, None] + bias[:, None]).reshape(x.shape)
    np.testing.assert_allclose(found, scaled, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("opset", [18, 21])
def test_a_scale_for_each_channel(opset: int):
    x, scale, bias = (RNG.standard_normal(shape).astype(np.float32) for shape in ((2, 6, 3, 2), (6,), (6,)))
    answers = [node("GroupNormalization", [x, scale, bias], {"num_groups": 2}, version) for version in (opset, 21)]
    np.testing.assert_array_equal(*answers)


def test_a_group_norm_without_groups():
    x, scale = np.ones((2, 6, 3), np.float32), np.ones(2, np.float32)
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(one_node("GroupNormalization", [x, scale, scale], {}, opset=18))
    assert caught.value.code == "E0105" and "num_groups" in caught.value.message
