"""Scatters, at known and at computed places, and columns of windows without overlap are native; the rest runs on the
host with NumPy's loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.graphs.onnx_text import call, declared, onnx_model
from tests.native import native
from tests.one_node import feeds_of, one_node

Array = NDArray[Any]


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def model(
    op_type: str,
    feeds: dict[str, Array],
    constants: dict[str, Array],
    order: str,
    symbolic: dict[str, list[int | str]],
    **attributes: Any,
):
    node = call(op_type, *order.split(), name="scatter", **attributes)
    return onnx_model(f"({declared(feeds, symbolic)}) => (y) {{ {node} }}", constants)


def check(
    op_type: str, feeds: dict[str, Array], constants: dict[str, Array], order: str, host_ops: int = 0, **options: Any
) -> fuseline.CompiledModel:
    """The node on both targets against onnx's own implementation."""
    proto = model(op_type, feeds, constants, order, options.pop("symbolic", {}), **options)
    reference: Any = ReferenceEvaluator(proto)
    (expected,) = reference.run(None, feeds)
    program = fuseline.compile(proto, threads=1)
    assert program.stats["host_ops"] == host_ops
    for target in (program, fuseline.compile(proto, target="interpreter")):
        np.testing.assert_allclose(target.run(feeds)["y"], expected, rtol=1e-5, atol=1e-5)  # sums in any order
    return program


SCATTER_ND = {
    "single elements": ((5, 4), [[0, 1], [4, -1], [2, 2]]),
    "rows in any order": ((6, 4), [[4], [0], [3]]),
    "one row twice": ((6, 4), [[4], [1], [4]]),
    "one run of rows": ((7, 3), [[2], [3], [4]]),
    "all rows": ((3, 5), [[0], [1], [2]]),
    "a block of two axes": ((4, 3, 5), [[[1, 0], [1, 1]], [[1, 2], [2, 0]]]),
    "nothing": ((4, 3), np.zeros((0, 1))),
}


@pytest.mark.parametrize("name", SCATTER_ND)
def test_scatter_nd(name: str):
    shape, positions = SCATTER_ND[name]
    indices = np.asarray(positions, np.int64)
    updates = floats(*indices.shape[:-1], *shape[indices.shape[-1] :])
    check("ScatterND", {"x": floats(*shape), "u": updates}, {"i": indices}, "x i u")


def test_a_run_of_rows_is_a_concat():
    indices = np.array([[2], [3]], np.int64)
    program = check("ScatterND", {"x": floats(6, 8), "u": floats(2, 8)}, {"i": indices}, "x i u")
    assert program.stats["dispatches"] <= 1


def test_rows_of_unknown_length():
    indices = np.array([[3], [0]], np.int64)
    check(
        "ScatterND",
        {"x": floats(5, 7), "u": floats(2, 7)},
        {"i": indices},
        "x i u",
        symbolic={"x": [5, "n"], "u": [2, "n"]},
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(axis: int):
    indices = (
        RNG.permutation(4)[None, :3].repeat(2, 0).astype(np.int64) - 1
        if axis
        else np.array([[3, -1, 0], [1, 2, 2]], np.int64)
    )
    check("ScatterElements", {"x": floats(4, 4), "u": floats(2, 3)}, {"i": indices}, "x i u", axis=axis)


def test_places_outside_are_refused():
    proto = model("ScatterND", {"x": floats(3, 2), "u": floats(1, 2)}, {"i": np.array([[3]], np.int64)}, "x i u", {})
    with pytest.raises(FuselineError, match="E0107 .scatter.: ScatterND writes outside"):
        fuseline.compile(proto)


REDUCTIONS = pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])


def positions(reduction: str, size: int, *shape: int) -> Array:
    """Random places, negative ones too; several updates for one where they are combined."""
    found = RNG.integers(-size, size, shape)
    if reduction != "none":
        return found
    flat = np.stack([RNG.permutation(size)[: shape[0]] for _ in range(int(np.prod(shape[1:])))], 1).reshape(shape)
    return np.where(found < 0, flat - size, flat)


@REDUCTIONS
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("axis", "shape"), [(0, (4, 3)), (0, (9, 3)), (1, (7, 2)), (0, (3, 2)), (-1, (5, 3))])
def test_elements_at_computed_places(axis: int, shape: tuple[int, int], known: bool, reduction: str):
    """As many beside the axis as there are in the data, and fewer."""
    data = (9, 3)
    if reduction == "none" and shape[axis] > data[axis]:
        pytest.skip("a place would have two updates")
    wide = positions(reduction, data[axis], *(shape if axis == 0 else shape[::-1]))
    indices = wide if axis == 0 else np.ascontiguousarray(wide.T)
    feeds = {"x": floats(*data), "i": indices, "u": floats(*shape)}
    given = {name: feeds.pop(name) for name in ("i",)} if known else {}
    check("ScatterElements", feeds, given, "x i u", axis=axis, reduction=reduction)


@REDUCTIONS
def test_rows_at_computed_places(reduction: str):
    indices = positions(reduction, 7, 5, 1)
    check("ScatterND", {"x": floats(7, 19), "i": indices, "u": floats(5, 19)}, {}, "x i u", reduction=reduction)


@REDUCTIONS
def test_rows_of_two_axes_at_computed_places(reduction: str):
    indices = np.array([[[0, 1], [-1, 3]], [[2, -2], [1, 0]]], np.int64)
    check("ScatterND", {"x": floats(4, 5, 6), "i": indices, "u": floats(2, 2, 6)}, {}, "x i u", reduction=reduction)


@REDUCTIONS
def test_computed_places_in_symbolic_sizes(reduction: str):
    indices, symbolic = positions(reduction, 6, 4, 1), {"x": ["n", 5], "i": ["k", 1], "u": ["k", 5]}
    check(
        "ScatterND",
        {"x": floats(6, 5), "i": indices, "u": floats(4, 5)},
        {},
        "x i u",
        reduction=reduction,
        symbolic=symbolic,
    )
    symbolic = {"x": ["n", "c"], "i": ["k", "c"], "u": ["k", "c"]}
    indices = positions(reduction, 6, 4, 5)
    check(
        "ScatterElements",
        {"x": floats(6, 5), "i": indices, "u": floats(4, 5)},
        {},
        "x i u",
        reduction=reduction,
        symbolic=symbolic,
    )


@pytest.mark.parametrize("reduction", ["add", "max"])
def test_computed_places_outside_are_the_nearest_end(reduction: str):
    x, u = floats(4, 3), floats(2, 3)
    proto = model("ScatterND", {"x": x, "i": np.zeros((2, 1), np.int64), "u": u}, {}, "x i u", {}, reduction=reduction)
    expected = x.copy()
    combine = {"add": np.add, "max": np.maximum}[reduction]
    expected[3], expected[0] = combine(x[3], u[0]), combine(x[0], u[1])
    for target in ("cpu", "interpreter"):
        found = fuseline.compile(proto, threads=1, target=target).run(
            {"x": x, "i": np.array([[99], [-(2**40)]]), "u": u}
        )
        np.testing.assert_allclose(found["y"], expected, rtol=1e-6)


def test_updates_that_do_not_cover_symbolic_sizes_stay_on_the_host():
    feeds = {"x": floats(4, 3), "i": np.array([[0, 2]], np.int64), "u": floats(1, 2)}
    check("ScatterElements", feeds, {}, "x i u", host_ops=1, symbolic={"x": [4, "n"], "i": [1, "m"], "u": [1, "m"]})


def test_a_scatter_is_not_fused():
    """Its kernel needs the dispatch for itself, whatever stands beside it."""
    nodes = 'e = Exp(u)  s = ScatterND<reduction = "add">(x, i, e)  y = ReduceSum(s)'
    proto = onnx_model(f"(float[6, 40] x, int64[9, 1] i, float[9, 40] u) => (y) {{ {nodes} }}")
    program = fuseline.compile(proto, threads=1)
    assert "scatter" in program.stats["families"] and any(item.code == "walk" for item in program.decisions)


COLUMNS = {"image": np.array([6, 8], np.int64), "block": np.array([2, 4], np.int64)}


def test_windows_that_tile_the_image():
    check("Col2Im", {"x": floats(2, 3 * 8, 6)}, COLUMNS, "x image block", strides=[2, 4])


@pytest.mark.parametrize(
    "attributes",
    [
        {"strides": [1, 4]},
        {"strides": [1, 1]},
        {"strides": [2, 4], "pads": [1, 0, 1, 0]},
        {"strides": [2, 3], "pads": [1, 2, 0, 1]},
        {"strides": [3, 5]},
        {"dilations": [2, 1], "strides": [2, 2]},
        {"dilations": [3, 2], "strides": [1, 2], "pads": [0, 3, 2, 0]},
    ],
    ids=str,
)
def test_windows_that_overlap_are_added(attributes: dict[str, list[int]]):
    check("Col2Im", {"x": floats(2, 3 * 8, _windows(attributes))}, COLUMNS, "x image block", host_ops=0, **attributes)


def test_windows_of_many_elements_run_on_the_host():
    large = {"image": np.array([9, 9], np.int64), "block": np.array([7, 7], np.int64)}
    check("Col2Im", {"x": floats(1, 49, 9)}, large, "x image block", host_ops=1, strides=[1, 1])


def _windows(attributes: dict[str, list[int]]) -> int:
    pads, dilations = attributes.get("pads", [0] * 4), attributes.get("dilations", [1, 1])
    found = 1
    for i, (size, block) in enumerate(zip((6, 8), (2, 4), strict=True)):
        span = (block - 1) * dilations[i] + 1
        found *= (size + pads[i] + pads[2 + i] - span) // attributes["strides"][i] + 1
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint16", "int64", "bool"])
def test_the_last_update_of_each_place_stays_in_every_type(dtype: str):
    """Many updates of few places; the same bits as in NumPy, NaN and infinities too."""
    rng = np.random.default_rng(3)
    data, updates = ((rng.standard_normal(shape) * 9).astype(dtype) for shape in ((7, 5), (40, 5)))
    if data.dtype.kind == "f":
        updates.reshape(-1)[::7] = np.resize([np.nan, np.inf, -np.inf, -0.0], updates.reshape(-1)[::7].shape)
    at = rng.integers(-7, 7, (40, 1))
    wanted = data.copy()
    for row, update in zip(at[:, 0], updates, strict=True):
        wanted[row] = update
    model = one_node("ScatterND", [data, at, updates])
    for (found,) in native(model, feeds_of([data, at, updates])):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_booleans_are_combined_and_do_not_wrap_around(reduction: str, target: str):
    """A sum is true where any of them is; every place is written twice or more."""
    rng = np.random.default_rng(16)
    inputs = [
        rng.integers(0, 2, (3, 5)).astype(bool),
        rng.integers(0, 3, (9, 5)),
        rng.integers(0, 2, (9, 5)).astype(bool),
    ]
    model = one_node("ScatterElements", inputs, {"axis": 0, "reduction": reduction})
    wanted = inputs[0].copy()
    combine = {"add": np.logical_or, "mul": np.logical_and, "max": np.logical_or, "min": np.logical_and}[reduction]
    combine.at(wanted, (inputs[1], np.arange(5)[None]), inputs[2])
    (found,) = fuseline.compile(model, threads=1, target=target).run(feeds_of(inputs)).values()
    np.testing.assert_array_equal(found, wanted)
