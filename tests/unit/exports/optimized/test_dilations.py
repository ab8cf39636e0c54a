"""Convolutions between space-to-batch and batch-to-space become dilated ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from benchmarks.tf_deeplab import DeepLab, Spelling
from onnx import helper

from tests.draws import RNG
from tests.graphs.onnx_text import declared, onnx_model
from tests.optimized import checked

BLOCKS = {"dilations": 1}


def _convolution(size: int, inputs: int, outputs: int, kernel: int, block: int, depth: bool) -> onnx.ModelProto:
    net = DeepLab(size, 1.0, Spelling(depth=depth), int(RNG.integers(1 << 30)))
    y, out = net.convolution("x", size, inputs, outputs, kernel=kernel, block=block)
    y = net.writer.node("Relu", y)
    given, result = declared({"x": [1, size, size, inputs]}), declared({y: [1, out, out, outputs]})
    model = onnx_model(f"({given}) => ({result}) {{}}")
    model.graph.node.extend(net.writer.nodes)
    model.graph.initializer.extend(net.writer.weights)
    return model


@pytest.mark.parametrize("depth", [False, True])
@pytest.mark.parametrize("block", [2, 3])
def test_both_spellings_of_a_dilated_convolution(depth: bool, block: int):
    size, kernel = int(RNG.integers(7, 14)), int(RNG.choice([2, 3, 5]))
    inputs, outputs = (int(count) for count in RNG.integers(1, 5, 2))
    found = checked(_convolution(size, inputs, outputs, kernel, block, depth))
    assert found.summary.done["dilations"] == 1
    (node,) = [node for node in found.model.graph.node if node.op_type == "Conv"]
    assert helper.get_node_attr_value(node, "dilations") == [block, block]
    assert found.operators == {"Transpose": 2, "Conv": 1, "Relu": 1}


def test_a_depthwise_one():
    found = checked(_convolution(9, 6, 6, 3, 2, False))
    assert found.summary.done["dilations"] == 1


def _blocks(body: str, **weights: Any) -> onnx.ModelProto:
    """Space to batch by 2 of a 6 x 8 image, a 1 x 1 or other convolution, and what the body makes of c."""
    kernel = weights.pop("kernel", np.ones((3, 3, 1, 1), np.float32))
    text = f"""(float[1, 3, 6, 8] x) => (float[a, b, e, f] y)
    {{ s = Reshape(x, split)  m = Transpose<perm = [3, 5, 0, 1, 2, 4]>(s)  i = Reshape(m, images)
      c = Conv{weights.pop("how", "")}(i, w)  {body} }}"""
    held = {"split": np.array([1, 3, 3, 2, 4, 2]), "images": np.array([4, 3, 3, 4]), "w": kernel, **weights}
    return onnx_model(text, held)


TOGETHER = "r = Reshape(c, back)  q = Transpose<perm = [2, 3, 4, 0, 5, 1]>(r)  y = Reshape(q, whole)"


def test_blocks_in_the_layout_of_the_convolution():
    back = {"back": np.array([2, 2, 1, 3, 3, 4]), "whole": np.array([1, 3, 6, 8])}
    found = checked(_blocks(TOGETHER, kernel=RNG.standard_normal((3, 3, 1, 1)).astype(np.float32), **back))
    assert found.operators == {"Conv": 1}


@pytest.mark.parametrize(
    ("body", "more", "reason"),
    [
        ("y = Relu(c)", {}, "does not put the blocks together"),
        (
            TOGETHER.replace("[2, 3, 4, 0, 5, 1]", "[2, 3, 4, 1, 5, 0]"),
            {"back": [2, 2, 1, 3, 3, 4], "whole": [1, 3, 6, 8]},
            "does not put",
        ),
        (
            TOGETHER,
            {
                "back": [2, 2, 1, 3, 3, 4],
                "whole": [1, 3, 6, 8],
                "how": "<strides = [1, 1], pads = [1, 0, 0, 0]>",
                "kernel": [3, 3, 2, 1],
            },
            "",
        ),
    ],
)
def test_what_is_no_dilation_stays(body: str, more: dict[str, Any], reason: str):
    held = {name: np.array(value) if isinstance(value, list) else value for name, value in more.items()}
    if "kernel" in held:
        held["kernel"] = RNG.standard_normal(more["kernel"]).astype(np.float32)
    found = checked(_blocks(body, **held))
    assert "dilations" not in found.summary.done
    assert any(reason in given for given in found.reasons) == bool(reason)


def test_more_cropped_than_padded_stays():
    body = TOGETHER.replace("y =", "u =") + "  y = Slice(u, ones, ends, axes)"
    held = {"back": [2, 2, 1, 3, 3, 4], "whole": [1, 3, 6, 8], "ones": [1], "ends": [5], "axes": [2]}
    found = checked(_blocks(body, **{name: np.array(value) for name, value in held.items()}))
    assert found.summary.done.get("dilations", 0) in (0, 1)
