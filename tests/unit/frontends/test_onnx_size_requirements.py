"""Sizes that an operator needs to be large enough are refused when they are fed, and only there."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.graphs.onnx_text import onnx_model

from .test_onnx_operators import Array, one_node, random

WIDTHS = {"edge": 0, "reflect": 6, "wrap": 5}
PADS = np.array([0, 5, 0, 3], np.int64)


def padded(mode: str) -> onnx.ModelProto:
    return one_node("Pad", {"x": random(1, 2, 9)}, {"pads": PADS}, ("x", "pads"), shapes={"x": (2, "n")}, mode=mode)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("mode", WIDTHS)
def test_borders_of_any_size_that_they_fit(mode: str, target: str):
    program = fuseline.compile(padded(mode), threads=1, target=target)
    assert not program.record.host_ops
    for size in (max(WIDTHS[mode], 1), 7, 40):
        x = random(size, 2, size)
        np.testing.assert_array_equal(program.run({"x": x})["y0"], np.pad(x, ((0, 0), (5, 3)), mode=mode))  # pyright: ignore[reportArgumentType, reportCallIssue]


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("mode", ["reflect", "wrap"])
def test_smaller_ones_are_refused(mode: str, target: str):
    program = fuseline.compile(padded(mode), threads=1, target=target)
    with pytest.raises(FuselineError, match=f"size {WIDTHS[mode] - 1} must be at least {WIDTHS[mode]}") as error:
        program.run({"x": random(0, 2, WIDTHS[mode] - 1)})
    assert error.value.code == "E0203" and error.value.node


def branched() -> onnx.ModelProto:
    """The row reflected if asked to, else doubled."""
    text = """(float[2, n] x, bool asked) => (y) {
        y = If(asked) <then_branch = then () => (t) { p = Pad<mode = "reflect">(x, pads) t = Slice(p, five, end, one) },
                       else_branch = otherwise () => (e) { e = Add(x, x) }>
    }"""
    numbers = {"five": np.array([5]), "end": np.array([-3]), "one": np.array([1])}
    return onnx_model(text, numbers, opset=21, ir_version=10, pads=PADS)


def feeds(size: int, asked: bool) -> dict[str, Array]:
    return {"x": random(size, 2, size), "asked": np.array(asked)}


def test_a_branch_that_is_not_taken_refuses_nothing():
    program = fuseline.compile(branched(), threads=1)
    small, large = feeds(3, False), feeds(9, True)
    np.testing.assert_array_equal(program.run(small)["y"], small["x"] * 2)
    np.testing.assert_array_equal(program.run(large)["y"], large["x"])
    with pytest.raises(FuselineError, match="at least 6"):
        program.run(feeds(3, True))
