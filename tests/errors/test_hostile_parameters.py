"""Parameters of operators (sizes, counts, axes, scales, roots of trees) with values that make no sense, in the model
and given at run time, beside data of known and of symbolic sizes: onnxruntime's answer where it has one, else a coded
error; never memory that there is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import fuseline
from fuseline.errors import FuselineError
from tests.errors.test_hostile_indices import LEAST, MOST, WILD, Array, Case, answer, floats, numbers
from tests.one_node import by_onnxruntime, feeds_of, one_node
from tests.proved import ProvedProgram

X45 = floats(4, 5)
IMAGE = floats(1, 1, 5, 4)
NAN, INF = float("nan"), float("inf")


def numbers_f32(*values: float) -> Array:
    return np.array(values, np.float32)


def scalars(*values: float, dtype: Any = np.int64) -> list[Array | None]:
    return [np.array(value, dtype) for value in values]


PARAMETERS: dict[str, Case] = {
    **{f"Tile {r}": Case("Tile", [X45, numbers(*r)]) for r in ((2, 0), (-1, 2), (2**40, 2**40), (MOST, 1), (2,))},
    **{
        f"Expand {s}": Case("Expand", [X45, numbers(*s)])
        for s in ((0, 5), (-1, 5), (2, 4, 5), (MOST, 4, 5), (2**31, 2**31, 4, 5))
    },
    **{
        f"Range {a}": Case("Range", scalars(*a))
        for a in ((0, 10, 0), (0, MOST, 1), (5, LEAST, -(2**62)), (MOST, LEAST, LEAST))
    },
    **{
        f"Range of {a}": Case("Range", scalars(*a, dtype=np.float32))
        for a in ((0, INF, 1), (NAN, 3, 1), (0, 3, NAN), (0, 1, INF), (0, 1e30, 1))
    },
    **{f"TopK {k}": Case("TopK", [X45, numbers(k)], options={"outputs": 2}) for k in (9, 0, -1, MOST, LEAST)},
    **{
        f"Split {s}": Case("Split", [X45, numbers(*s)], {"axis": 1}, {"outputs": 2})
        for s in ((5, -1), (3, 3), (MOST, LEAST + 1))
    },
    **{f"CumSum {axis}": Case("CumSum", [X45, np.array(axis)]) for axis in (-1, 2, MOST, LEAST)},
    **{
        f"ConstantOfShape {s}": Case("ConstantOfShape", [numbers(*s)])
        for s in ((0, 4), (-1, 4), (MOST, 2), (2**32, 2**32), (2**40,))
    },
    **{
        f"Reshape {s}": Case("Reshape", [X45, numbers(*s)])
        for s in ((-1, -1), (MOST, -1), (2**32, 2**32), (-2, 10), (0, 0))
    },
    **{f"OneHot {d}": Case("OneHot", [WILD, np.array(d), floats(2)]) for d in (0, -1, LEAST, 2**40)},
    **{
        f"Resize by {s}": Case("Resize", [IMAGE, None, numbers_f32(1, 1, *s)], {"mode": "linear"})
        for s in ((0, 1), (-1, 1), (1e30, 1), (NAN, 1), (INF, 1), (1e-9, 2))
    },
    **{
        f"Resize to {s}": Case("Resize", [IMAGE, None, None, numbers(1, 1, *s)])
        for s in ((0, 3), (-1, 3), (MOST, 3), (7, 9))
    },
    **{
        f"Pad {mode} by {p}": Case("Pad", [X45, numbers(*p)], {"mode": mode}, {"opset": 19})
        for mode in ("constant", "reflect", "edge", "wrap")
        for p in ((40, 0, 0, 40), (LEAST, 0, 0, 0), (2**40, 0, 0, 0))
    },
    **{f"CenterCropPad {s}": Case("CenterCropPad", [X45, numbers(*s)]) for s in ((0, 3), (-1, 3), (MOST, 2), (2,))},
    **{
        f"Col2Im {s}": Case("Col2Im", [floats(1, 5, 5), numbers(*s), numbers(1, 5)])
        for s in ((5, 5), (0, 5), (-5, 5), (MOST, 5))
    },
    **{
        f"AffineGrid {s}": Case("AffineGrid", [floats(2, 2, 3), numbers(*s)], {}, {"opset": 20})
        for s in ((2, 3, 0, 5), (2, 3, -4, 5), (2, 3, MOST, 5))
    },
    **{
        f"DFT of {n}": Case("DFT", [floats(1, 16, 1), np.array(n)], {"axis": 1}, {"opset": 17})
        for n in (20, 0, -1, MOST)
    },
    "STFT in long steps": Case("STFT", [floats(1, 16, 1), np.array(MOST), None, np.array(8)]),
    "STFT with a window": Case("STFT", [floats(1, 16, 1), np.array(4), floats(8), np.array(8)]),
    **{
        f"MelWeightMatrix {a}": Case("MelWeightMatrix", [*scalars(*a[:3]), *scalars(*a[3:], dtype=np.float32)])
        for a in ((0, 16, 8000, 0, 4000), (-1, 16, 8000, 0, 4000), (8, 16, 0, 0, 4000), (8, 16, 8000, NAN, 4000))
    },
}
"""What stands behind the first input (before it, too, where all inputs are numbers) is a parameter."""

NUMBERS_ONLY = ("Range", "ConstantOfShape", "MelWeightMatrix")


def agrees(model: onnx.ModelProto, feeds: dict[str, Any]) -> None:
    """Native code, proved to stay inside, answers as onnxruntime does, or it and the interpreter refuse with one code
    what onnxruntime refuses."""
    native = answer(lambda: ProvedProgram(model).run(feeds))
    reference = answer(lambda: list(fuseline.compile(model, target="interpreter").run(feeds).values()))
    try:
        expected = by_onnxruntime(model, feeds)
    except Exception:  # noqa: BLE001 - pybind's exceptions have no public base class
        expected = None
    if isinstance(native, str):
        assert native == reference and native != "E0901" and expected is None
        return
    for ours, theirs in zip(native, native if expected is None else expected, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("given", ["in the model", "at run time", "beside symbols"])
@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_that_make_no_sense(name: str, given: str):
    case = PARAMETERS[name]
    first = 0 if case.op_type in NUMBERS_ONLY else 1
    held = range(first, len(case.inputs)) if given == "in the model" else ()
    model = one_node(case.op_type, case.inputs, case.attributes, constants=held, **case.options)
    if given == "beside symbols" and first:
        for axis, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
            dim.dim_param = f"size{axis}"
    agrees(model, feeds_of(case.inputs, held))


@pytest.mark.parametrize("op_type", ["DequantizeLinear", "QuantizeLinear"])
@pytest.mark.parametrize(("scales", "block"), [((4, 1), 3), ((1, 2), 3), ((4, 2), -3), ((4, 2), 0)])
def test_scales_for_other_blocks_than_there_are(op_type: str, scales: tuple[int, ...], block: int):
    x = floats(4, 6) if op_type == "QuantizeLinear" else np.random.default_rng().integers(0, 9, (4, 6)).astype(np.uint8)
    inputs = [x, abs(floats(*scales)) + 1]
    model = one_node(op_type, inputs, {"axis": 1, "block_size": block}, opset=21)
    for target in ("cpu", "interpreter"):
        found = answer(
            lambda target=target: list(fuseline.compile(model, target=target).run(feeds_of(inputs)).values())
        )
        assert isinstance(found, str) and found != "E0901"


BLOCKS: dict[str, Any] = {"K": 32, "N": 6, "bits": 4, "block_size": 16}


@pytest.mark.parametrize(
    ("name", "value"),
    [("K", 0), ("K", -1), ("K", 2**40), ("N", 7), ("N", 0), ("N", -3), ("block_size", 15), ("block_size", 2**40)],
)
def test_weights_in_blocks_that_do_not_fit(name: str, value: int):
    weights = np.random.default_rng().integers(0, 256, (6, 2, 8)).astype(np.uint8)
    inputs = [floats(3, 32), weights, floats(12)]
    model = one_node("MatMulNBits", inputs, {**BLOCKS, name: value}, domain="com.microsoft", opset=1, constants=(1, 2))
    with pytest.raises(FuselineError) as error:
        fuseline.compile(model)
    assert error.value.code == "E0107" and error.value.node


TREE: dict[str, Any] = {
    "aggregate_function": 1,
    "leaf_targetids": [0, 0],
    "leaf_weights": helper.make_tensor("w", onnx.TensorProto.FLOAT, (2,), [1.0, 2.0]),
    "n_targets": 1,
    "nodes_falseleafs": [1],
    "nodes_falsenodeids": [1],
    "nodes_featureids": [0],
    "nodes_modes": helper.make_tensor("m", onnx.TensorProto.UINT8, (1,), [0]),
    "nodes_splits": helper.make_tensor("s", onnx.TensorProto.FLOAT, (1,), [0.5]),
    "nodes_trueleafs": [1],
    "nodes_truenodeids": [0],
    "post_transform": 0,
    "tree_roots": [0],
}
BROKEN: dict[str, dict[str, Any]] = {
    "none": {},
    "root behind": {"tree_roots": [9]},
    "root before": {"tree_roots": [-1]},
    "leaf behind": {"nodes_falsenodeids": [9]},
    "leaf before": {"nodes_falsenodeids": [-1]},
    "feature behind": {"nodes_featureids": [9]},
    "feature of many bits": {"nodes_featureids": [MOST]},
    "cycle": {"nodes_trueleafs": [0]},
    "mode": {"nodes_modes": helper.make_tensor("m", onnx.TensorProto.UINT8, (1,), [99])},
    "aggregate": {"aggregate_function": 9},
    "transform": {"post_transform": 9},
}


@pytest.mark.parametrize("name", BROKEN)
def test_trees_that_lead_nowhere(name: str):
    rows = np.array([[NAN, INF], [-INF, 0.5], [1, 0.4999]], np.float32)
    model = one_node("TreeEnsemble", [rows], {**TREE, **BROKEN[name]}, domain="ai.onnx.ml", opset=5)
    found = [
        answer(lambda target=target: list(fuseline.compile(model, target=target).run({"i0": rows}).values()))
        for target in ("cpu", "interpreter")
    ]
    if name == "none":
        np.testing.assert_array_equal(found[0][0], [[2], [1], [2]])
    else:
        assert found[0] == found[1] and found[0] != "E0901" and isinstance(found[0], str)
