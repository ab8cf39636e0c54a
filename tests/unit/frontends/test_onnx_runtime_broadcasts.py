"""Broadcasts of which only the run tells whether a size is 1 and repeats: native, with onnxruntime's result for every
size that is legal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.onnx import read_onnx
from fuseline.ir.context import new_context
from tests.draws import RNG
from tests.graphs.onnx_text import declared, onnx_model

ort = pytest.importorskip("onnxruntime")

Array = NDArray[Any]
Sizes = Sequence[int]


def model(nodes: str, inputs: dict[str, Sequence[int | str]], **weights: Array) -> onnx.ModelProto:
    return onnx_model(f"({declared(inputs)}) => (z) {{ {nodes} }}", weights)


def floats(*sizes: int) -> Array:
    return RNG.standard_normal(sizes).astype(np.float32)


ADD = "[add] z = Add(x, y)"
CLIPPED = (
    "sizes = Shape(x)  "
    "ends = Min(sizes, most)  "
    "part = Slice(table, zeros, ends)  "
    "whole = Expand(part, sizes)  "
    "z = Add(whole, x)"
)
CASES: dict[str, tuple[onnx.ModelProto, list[tuple[Sizes, ...]]]] = {
    "rows": (
        model(ADD, {"x": ["a", 4], "y": ["b", 4]}),
        [((5, 4), (5, 4)), ((1, 4), (5, 4)), ((5, 4), (1, 4)), ((1, 4), (1, 4))],
    ),
    "nothing": (model(ADD, {"x": ["a", 4], "y": ["b", 4]}), [((0, 4), (0, 4)), ((0, 4), (1, 4)), ((1, 4), (0, 4))]),
    "other ranks": (model(ADD, {"x": ["a"], "y": ["b", "c"]}), [((7,), (3, 7)), ((1,), (3, 7)), ((7,), (1, 1))]),
    "a constant": (model("z = Mul(x, w)", {"x": ["n", 6]}, w=floats(5, 6)), [((5, 6),), ((1, 6),)]),
    "a chain": (
        model(
            "t = Mul(x, y)  z = Add(t, v)",
            {"x": ["a", 7], "y": ["b", "c"], "v": ["d"]},
        ),
        [((5, 7), (1, 7), (1,)), ((1, 7), (5, 1), (7,)), ((3, 7), (3, 1), (1,))],
    ),
    "products": (
        model("z = MatMul(x, y)", {"x": ["a", 3, 4], "y": ["b", 4, 5]}),
        [((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((2, 3, 4), (1, 4, 5))],
    ),
    "sums of products": (
        model('z = Einsum<equation = "bij,bjk->bik">(x, y)', {"x": ["a", "m", "m"], "y": [7, 3, 3]}),
        [((7, 3, 3), (7, 3, 3)), ((1, 3, 3), (7, 3, 3)), ((7, 1, 1), (7, 3, 3))],
    ),
    "sums over a size of two names": (
        model('z = Einsum<equation = "bij,bjk->ik">(x, y)', {"x": ["a", 4, "j"], "y": ["c", "k", 5]}),
        [
            ((2, 4, 3), (2, 3, 5)),
            ((1, 4, 3), (2, 3, 5)),
            ((2, 4, 1), (1, 3, 5)),
            ((2, 4, 3), (2, 1, 5)),
            ((1, 4, 1), (1, 1, 5)),
        ],
    ),
    "a mask": (
        model(
            "t = Add(x, y)  z = Softmax<axis = -1>(t)",
            {"x": ["a", 3, "s"], "y": ["b", 1, "t"]},
        ),
        [((2, 3, 4), (1, 1, 4)), ((2, 3, 4), (2, 1, 1)), ((1, 3, 1), (2, 1, 4))],
    ),
    "expand": (
        model("s = Shape(y)  z = Expand(x, s)", {"x": ["a", 4], "y": ["b", 4]}),
        [((5, 4), (5, 4)), ((1, 4), (5, 4)), ((5, 4), (1, 4))],
    ),
    "at most one of the same symbol": (
        model(CLIPPED, {"x": ["a", "b"]}, table=floats(1, 64), zeros=np.array([0, 0]), most=np.array([1, 99])),
        [((5, 6),), ((1, 6),), ((2, 9),)],
    ),
}


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", CASES)
def test_every_legal_size_gives_onnxruntimes_result(name: str, target: str):
    proto, cases = CASES[name]
    reference = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    program = fuseline.compile(proto, target=target, threads=1)
    assert program.stats["host_ops"] == 0
    for sizes in cases:
        feeds = {value.name: floats(*size) for value, size in zip(proto.graph.input, sizes, strict=True)}
        expected, found = reference.run(None, feeds)[0], program.run(feeds)["z"]
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (0, 2), (2, 0)])
def test_sizes_that_do_not_broadcast_are_refused(sizes: tuple[int, int], target: str):
    program = fuseline.compile(CASES["rows"][0], target=target, threads=1)
    with pytest.raises(FuselineError, match="E0203 .add.: sizes . and . must be equal"):
        program.run({"x": floats(sizes[0], 4), "y": floats(sizes[1], 4)})


@pytest.mark.parametrize(("other", "computed"), [("a", 0), ("b", 2)])
def test_only_what_may_differ_is_read_at_computed_places(other: str, computed: int):
    module = read_onnx(model(ADD, {"x": ["a", 4], "y": [other, 4]}), new_context())
    assert str(module).count("tensor.extract") == computed


@pytest.mark.parametrize("zeros", [1, 6])
def test_one_zero_point_or_one_for_each_column(zeros: int):
    nodes = 'y = MatMulInteger(a, b, "", zero)  z = Cast<to = 1>(y)'
    proto = onnx_model(f"(uint8[m, 5] a, uint8[5, 6] b, uint8[C] zero) => (z) {{ {nodes} }}")
    feeds = {
        name: RNG.integers(0, 255, sizes).astype(np.uint8)
        for name, sizes in (("a", (3, 5)), ("b", (5, 6)), ("zero", (zeros,)))
    }
    expected = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    np.testing.assert_array_equal(fuseline.compile(proto, threads=1).run(feeds)["z"], expected)
