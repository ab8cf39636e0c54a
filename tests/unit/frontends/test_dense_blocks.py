"""An input that several concats of a dense block read: each reads it where it lies, so that nothing is turned or
copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model


def dense_block(channels: int, growth: int, size: tuple[int | str, int | str], depth: int) -> onnx.ModelProto:
    """`depth` convolutions, each over the input beside what all before it made."""
    parts, lines, weights = ["x"], list[str](), dict[str, np.ndarray]()
    for i in range(depth):
        width = channels + i * growth
        weights[f"w{i}"] = (RNG.standard_normal((growth, width, 3, 3)) / np.sqrt(9 * width)).astype(np.float32)
        read = "x" if i == 0 else f"k{i}"
        lines += [f"k{i} = Concat<axis = 1>({', '.join(parts)})"] if i else []
        lines += [f"c{i} = Conv<pads = [1, 1, 1, 1]>({read}, w{i})  r{i} = LeakyRelu(c{i})"]
        parts.append(f"r{i}")
    text = f"(float[1, {channels}, {size[0]}, {size[1]}] x) => ({parts[-1]}) {{ {'  '.join(lines)} }}"
    return onnx_model(text, weights)


def check(model: onnx.ModelProto, x: np.ndarray, threads: int) -> dict[str, Any]:
    """Against onnxruntime; the statistics."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted: Any = session.run(None, {"x": x})[0]
    program = fuseline.compile(model, threads=threads)
    (found,) = program.run({"x": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
    return program.stats


@pytest.mark.parametrize(("threads", "depth"), [(1, 2), (2, 3), (3, 4)])
def test_the_input_of_a_dense_block_is_read_where_it_lies(threads: int, depth: int):
    height, width, channels = (int(RNG.integers(low, high)) for low, high in ((5, 24), (5, 24), (1, 12)))
    model = dense_block(channels, 8, (height, width), depth)
    stats = check(model, RNG.standard_normal((1, channels, height, width)).astype(np.float32), threads)
    assert stats["standalone_transposes"] == stats["copies"] == 0
    assert stats["dispatches"] == depth


def test_images_of_any_size():
    model = dense_block(3, 8, ("h", "w"), 3)
    for _ in range(3):
        shape = (1, 3, int(RNG.integers(3, 30)), int(RNG.integers(3, 30)))
        check(model, RNG.standard_normal(shape).astype(np.float32), 2)


def test_what_a_concat_turns_is_told_as_its_own():
    """The input is turned for the sake of the concats, not of the convolution whose result lies as they want it."""
    model = dense_block(4, 8, (64, 64), 3)
    for node in model.graph.node:
        node.name = node.output[0]
    program = fuseline.compile(model, target="null", fusion="none")
    turned = [m.nodes for d in program.record.dispatches for m in d.members if m.kind == "transpose"]
    assert turned and all(set(nodes) <= {"k1", "k2"} for nodes in turned)
