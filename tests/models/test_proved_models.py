"""Models whose kernels are proved to stay inside of their memory, on one thread and on two: blocks of rows, pixels and
channels of which the last is shorter."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.targets.cpu.kernel_ir import check_bounds
from tests.graphs.onnx_builder import FLOAT, Builder
from tests.proved import ProvedProgram

from .skeletons import filled, inputs_of

THREADS = (1, 2)


def hidden_layer() -> onnx.ModelProto:
    """Two products and a residual, of an odd number of rows."""
    b = Builder(5)
    hidden = b.node("Relu", b.node("MatMul", "x", b.weight(48, 64, scale=0.2)))
    y = b.node("Add", b.node("MatMul", hidden, b.weight(64, 48, scale=0.2)), "x")
    return b.model({"x": (FLOAT, [197, 48])}, {y: [197, 48]})


def squeeze_and_expand() -> onnx.ModelProto:
    """Two 1x1 convolutions of an odd image."""
    b = Builder(6)
    squeezed = b.node("Relu", b.node("Conv", "x", b.weight(16, 64, 1, 1, scale=0.2), b.weight(16)))
    y = b.node("Relu", b.node("Conv", squeezed, b.weight(64, 16, 1, 1, scale=0.3), b.weight(64)))
    return b.model({"x": (FLOAT, [1, 64, 27, 27])}, {y: [1, 64, 27, 27]})


def inverted_bottleneck() -> onnx.ModelProto:
    """A 1x1 convolution and one along each of its channels, which are no whole number of blocks."""
    b = Builder(7)
    wide = b.node("Relu", b.node("Conv", "x", b.weight(200, 40, 1, 1, scale=0.2), b.weight(200)))
    image = b.node("Conv", wide, b.weight(200, 1, 3, 3, scale=0.3), b.weight(200), group=200, pads=[1] * 4)
    y = b.node("Relu", image)
    return b.model({"x": (FLOAT, [1, 40, 17, 17])}, {y: [1, 200, 17, 17]})


MODELS = {model.__name__: model for model in (hidden_layer, squeeze_and_expand, inverted_bottleneck)}


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", MODELS)
def test_no_kernel_leaves_its_memory(name: str, threads: int):
    model = MODELS[name]()
    feeds = _feeds(model)
    (found,) = ProvedProgram(model, threads=threads).run(feeds)
    (expected,) = fuseline.compile(model, target="interpreter").run(feeds).values()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_two_threads_need_cases():
    """What is shown of all blocks at once is not enough for one of these models, whatever vectors the machine has, so
    that they do hold the proofs to it; blocks of channels are of one length."""
    assert any(_needs_cases(MODELS[name]()) for name in ("hidden_layer", "squeeze_and_expand"))


def _needs_cases(model: onnx.ModelProto) -> bool:
    program = ProvedProgram(model, threads=2)
    with mock.patch.object(check_bounds, "is_shown", lambda *_: False):
        try:
            program.run(_feeds(model))
        except AssertionError:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", ["squeezenet1_1", "vit_tiny", "deeplabv3_mobilenet_v3_large", "resnet50"])
def test_no_kernel_of_a_public_model_does(name: str, threads: int):
    path = filled(name)
    assert ProvedProgram(path, threads=threads).run(inputs_of(path))


def _feeds(model: onnx.ModelProto) -> dict[str, Any]:
    (given,) = model.graph.input
    shape = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
    return {"x": np.random.default_rng(3).standard_normal(shape).astype(np.float32)}
