"""Windows over images of unknown size: native, and equal to onnxruntime for even and odd sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from _pytest.mark import ParameterSet

import fuseline
from tests.graphs.onnx_text import call, onnx_model

SIZES = ((16, 16), (17, 33), (31, 20), (5, 7))
CHANNELS = 6


def model(
    op_type: str, weights: tuple[tuple[int, ...], ...] = (), opset: int = 21, **attributes: Any
) -> onnx.ModelProto:
    """One node over `[1, 6, h, w]` with random weights of these shapes."""
    rng = np.random.default_rng(len(op_type))
    arrays = [
        rng.standard_normal(shape).astype(np.float32) / max(1, int(np.prod(shape[1:]))) ** 0.5 for shape in weights
    ]
    held = {f"w{i}": array for i, array in enumerate(arrays)}
    node = call(op_type, "x", *held, name="node", **attributes)
    return onnx_model(f"(float[1, {CHANNELS}, h, w] x) => (y) {{ {node} }}", held, opset=opset)


def cases() -> Iterator[ParameterSet]:
    """Every operator with a window, with each way to pad."""
    for mode in ("SAME_UPPER", "SAME_LOWER"):
        for stride, window in ((1, 2), (2, 3), (2, 5)):
            shared: dict[str, Any] = {"auto_pad": mode, "strides": [stride, stride]}
            yield pytest.param(
                model("Conv", ((4, CHANNELS, window, window),), **shared), id=f"Conv-{mode}-{stride}-{window}"
            )
            for pool in ("MaxPool", "AveragePool"):
                yield pytest.param(
                    model(pool, **shared, kernel_shape=[window, window]), id=f"{pool}-{mode}-{stride}-{window}"
                )
    for stride in (1, 3):
        for ceil in (0, 1):
            shared: dict[str, Any] = {
                "pads": [1, 1, 1, 1],
                "strides": [stride, stride],
                "kernel_shape": [3, 3],
                "ceil_mode": ceil,
            }
            yield pytest.param(model("MaxPool", **shared), id=f"MaxPool-{stride}-{ceil}")
            for include in (0, 1):
                yield pytest.param(
                    model("AveragePool", **shared, count_include_pad=include),
                    id=f"AveragePool-{stride}-{ceil}-{include}",
                )
    paddings: list[dict[str, Any]] = [{"pads": [0, 0, 0, 0]}, {"pads": [1, 1, 1, 1]}, {"auto_pad": "SAME_UPPER"}]
    for stride in (1, 2, 3):
        for padding in paddings[1:] if stride == 3 else paddings:
            name = f"ConvTranspose-{stride}-{next(iter(padding.values()))}"
            yield pytest.param(
                model("ConvTranspose", ((CHANNELS, 4, 3, 3),), strides=[stride, stride], **padding), id=name
            )
    yield pytest.param(model("GlobalAveragePool"), id="GlobalAveragePool")
    yield pytest.param(model("InstanceNormalization", ((CHANNELS,), (CHANNELS,))), id="InstanceNormalization")
    yield pytest.param(model("GroupNormalization", ((CHANNELS,), (CHANNELS,)), num_groups=3), id="GroupNormalization")
    yield pytest.param(model("LayerNormalization", ((1,),), axis=2), id="LayerNormalization")


@pytest.mark.parametrize("proto", list(cases()))
def test_one_program_for_all_sizes(proto: onnx.ModelProto):
    program = fuseline.compile(proto, threads=1)
    oracle = fuseline.compile(proto, target="interpreter")
    assert program.stats["host_ops"] == 0
    peer = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(7)
    for size in SIZES:
        x = rng.standard_normal((1, CHANNELS, *size)).astype(np.float32)
        expected: Any = peer.run(None, {"x": x})[0]
        for answer in (program(x), oracle(x)):
            np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "proto",
    [
        pytest.param(
            model("AveragePool", kernel_shape=[2, 2], dilations=[2, 2], pads=[1, 1, 1, 1]), id="dilated average"
        ),
        pytest.param(
            model("ConvTranspose", ((CHANNELS, 4, 3, 3),), strides=[2, 2], output_shape=[40, 40]),
            id="output of given size",
        ),
    ],
)
def test_what_depends_on_the_size_itself_runs_on_the_host(proto: onnx.ModelProto):
    program = fuseline.compile(proto, target="null")
    assert [op.reason.split(":")[0] for op in program.record.host_ops] == ["symbolic-window"]
