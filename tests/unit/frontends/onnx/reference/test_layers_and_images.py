"""Recurrent layers and images between their elements by the reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.one_node import Value
from tests.unit.frontends.onnx.reference.evaluations import F32, RNG, agree, normal, run

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@pytest.mark.parametrize("op_type", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_recurrent_layers(op_type: str, direction: str) -> None:
    count, gates = 2 if direction == "bidirectional" else 1, GATES[op_type]
    inputs: list[Value] = [normal(4, 3, 5), normal(count, gates * 6, 5), normal(count, gates * 6, 6)]
    inputs += [normal(count, 2 * gates * 6), np.array([4, 2, 3], np.int32), normal(count, 3, 6)]
    inputs += [normal(count, 3, 6), normal(count, 18)] if op_type == "LSTM" else []
    outputs = 3 if op_type == "LSTM" else 2
    more: dict[str, Any] = {"hidden_size": 6, "direction": direction}
    more |= {"clip": 0.8} if op_type != "LSTM" else {}  # onnxruntime does not clip what its last activation reads
    agree(op_type, inputs, more, outputs=outputs, opset=14)
    if op_type == "GRU":
        agree(op_type, inputs, {**more, "linear_before_reset": 1}, outputs=outputs, opset=14)
    if op_type == "RNN":
        parameters: dict[str, Any] = {"activations": ["HardSigmoid"] * count, "activation_alpha": [0.3] * count}
        parameters["activation_beta"] = [0.4] * count
        agree(op_type, inputs, {**more, **parameters}, outputs=outputs, opset=14)


def test_coupled_gates_and_batches_that_come_first() -> None:
    x, w, r = normal(3, 4, 5), normal(1, 24, 5), normal(1, 24, 6)
    time = run("LSTM", [x, w, r], {"hidden_size": 6, "input_forget": 1}, outputs=3, opset=14)
    batch = run(
        "LSTM", [np.swapaxes(x, 0, 1), w, r], {"hidden_size": 6, "input_forget": 1, "layout": 1}, outputs=3, opset=14
    )
    np.testing.assert_allclose(batch[0], np.moveaxis(time[0], 2, 0), rtol=1e-5)
    np.testing.assert_allclose(batch[1], np.swapaxes(time[1], 0, 1), rtol=1e-5)
    h, c = np.zeros((4, 6)), np.zeros((4, 6))
    for step in x.astype(np.float64):
        i, o, _, g = np.split(step @ w[0].T + h @ r[0].T, 4, axis=1)
        taken = 1 / (1 + np.exp(-i))
        c = (1 - taken) * c + taken * np.tanh(g)
        h = np.tanh(c) / (1 + np.exp(-o))
    np.testing.assert_allclose(time[1][0], h, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("positions", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
def test_images_resized(mode: str, positions: str) -> None:
    x, scales = normal(1, 2, 5, 6), np.array([1, 1, 1.6, 0.5], F32)
    attributes = {"mode": mode, "coordinate_transformation_mode": positions}
    asymmetric = positions == "asymmetric"
    if asymmetric:  # places half between two elements, where floats may lie on either side
        attributes["nearest_mode"] = "floor"
    agree("Resize", [x, None, scales], attributes, opset=18)
    agree("Resize", [x, None, None, np.array([1, 2, 7, 5 if asymmetric else 4])], attributes, opset=18)
    if mode == "cubic":
        agree("Resize", [x, None, scales], {**attributes, "exclude_outside": 1, "cubic_coeff_a": -0.5}, opset=18)
    if mode == "nearest" and positions != "align_corners":
        for rounding in ("floor", "ceil") if asymmetric else ("floor", "ceil", "round_prefer_ceil"):
            agree("Resize", [x, None, scales], {**attributes, "nearest_mode": rounding}, opset=18)


def test_images_resized_by_older_models_and_cropped() -> None:
    x, scales = normal(1, 1, 4, 6), np.array([1, 1, 2, 0.5], F32)
    agree("Resize", [x, scales], {"mode": "nearest"}, opset=10)
    agree("Upsample", [x, np.array([1, 1, 2, 3], F32)], {"mode": "linear"}, opset=9)
    roi = np.array([0, 0, 0.2, 0.3, 1, 1, 0.9, 1.2], F32)
    crop = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0}
    agree("Resize", [x, roi, None, np.array([1, 1, 5, 4])], crop, opset=18)
    (kept,) = run(
        "Resize",
        [x, None, None, np.array([8, 4])],
        {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"},
        opset=18,
    )
    assert kept.shape == (1, 1, 3, 4)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_images_sampled(mode: str, padding: str, align: int) -> None:
    x, grid = normal(2, 3, 4, 5), RNG.uniform(-1.4, 1.4, (2, 3, 2, 2)).astype(F32)
    agree(
        "GridSample",
        [x, grid],
        {"mode": mode, "padding_mode": padding, "align_corners": align},
        opset=20,
        tolerance=1e-3,
    )


@pytest.mark.parametrize("align", [0, 1])
def test_grids(align: int) -> None:
    agree("AffineGrid", [normal(2, 2, 3), np.array([2, 1, 3, 4])], {"align_corners": align}, opset=20)
    agree("AffineGrid", [normal(2, 3, 4), np.array([2, 1, 3, 2, 2])], {"align_corners": align}, opset=20)
