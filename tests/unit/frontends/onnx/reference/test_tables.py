"""What replaces operators of ONNX's reference evaluator; element types and rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference import (
    OURS,
    additions,
    corrections,
    elementwise,
    fourier,
    halves,
    labels,
    movement,
    normalization,
    recurrent,
    resize,
    sampling,
    vectorised,
)
from tests.unit.frontends.onnx.reference.evaluations import F16, F32, RNG, agree, normal, run

TABLES: list[tuple[Sequence[type[OpRun]], str]] = [
    (additions.ADDITIONS, "CastMap CategoryMapper GlobalLpPool MaxRoiPool Multinomial StringNormalizer ZipMap"),
    (corrections.CORRECTIONS, "Identity If Loop Optional Scan"),
    (fourier.FOURIER, "DFT"),
    (halves.HALVES, "ReduceL1 ReduceL2 ReduceMean ReduceProd ReduceSum"),
    (labels.LABELS, "LabelEncoder"),
    (normalization.NORMALIZATION, "BatchNormalization"),
    (recurrent.RECURRENT, "GRU LSTM RNN"),
    (resize.RESIZE, "Resize Upsample"),
    (sampling.SAMPLING, "AffineGrid GridSample"),
    (vectorised.VECTORISED, "Col2Im ScatterElements ScatterND"),
]


@pytest.mark.parametrize(("table", "names"), TABLES)
def test_each_table_is_used(table: Sequence[type[OpRun]], names: str) -> None:
    assert sorted(each.__name__ for each in table) == names.split()
    assert set(table) <= set(OURS)
    assert set(elementwise.ELEMENTWISE) | set(movement.MOVEMENT) <= set(OURS)


def test_numbers_as_texts_and_back() -> None:
    x = np.array([1.5, -0.25, 1e10, np.inf, -np.inf, np.nan, 1 / 3], F32)
    wanted = np.array(["1.5", "-0.25", "1e+10", "INF", "-INF", "NaN", "0.33333334"], object)
    agree("Cast", [x], {"to": 8}, wanted=[wanted])
    agree("CastLike", [x, np.array(["a"], object)], wanted=[wanted], opset=19)
    agree("Cast", [np.array([True, False])], {"to": 8}, wanted=[np.array(["1", "0"], object)])
    texts = np.array(["1.5", "-3", "INF", "7"], object)
    agree("Cast", [texts], {"to": 1}, wanted=[np.array([1.5, -3, np.inf, 7], F32)])
    agree("CastLike", [texts[1::2], np.zeros(1, np.int64)], wanted=[np.array([-3, 7])], opset=19)
    agree("Cast", [x[:3]], {"to": 7}, wanted=[x[:3].astype(np.int64)])


@pytest.mark.parametrize("opset", [10, 13, 21])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantised_numbers(opset: int, dtype: Any) -> None:
    x, zero = (30 * normal(3, 4)).astype(F32), np.array(7, dtype)
    x[0, :3] = [1e9, -1e9, np.nan]
    step = np.array(0.5, F32)
    ends = np.iinfo(dtype)
    wanted = np.clip(np.rint(np.nan_to_num(x, nan=-1e9) / step) + 7, ends.min, ends.max).astype(dtype)
    agree("QuantizeLinear", [x, step, zero], wanted=[wanted], opset=opset)
    agree("DequantizeLinear", [wanted, step, zero], wanted=[(wanted.astype(F32) - 7) * step], opset=opset)
    if opset >= 13:
        steps, zeros = np.array([0.5, 1, 2, 4], F32), np.array([1, 2, 3, 4], dtype)
        by_column = np.clip(np.rint(np.nan_to_num(x, nan=-1e9) / steps) + zeros, ends.min, ends.max).astype(dtype)
        agree("QuantizeLinear", [x, steps, zeros], {"axis": 1}, wanted=[by_column], opset=opset)
        real = ((by_column.astype(F32) - zeros) * steps).astype(F32)
        agree("DequantizeLinear", [by_column, steps, zeros], {"axis": 1}, wanted=[real], opset=opset)


def test_numbers_quantised_in_blocks() -> None:
    x, steps = (9 * normal(2, 6)).astype(F32), np.array([[0.5, 1], [2, 4]], F32)
    wanted = np.clip(np.rint(x / np.repeat(steps, 3, 1)), 0, 255).astype(np.uint8)
    agree("QuantizeLinear", [x, steps], {"axis": 1, "block_size": 3}, wanted=[wanted], opset=21)
    signed = np.clip(np.rint(x / np.float32(0.5)), -128, 127).astype(np.int8)
    agree("QuantizeLinear", [x, np.array(0.5, F32)], {"output_dtype": 3}, wanted=[signed], opset=21)


def test_integers_by_zero_stay() -> None:
    x, y = RNG.integers(-9, 9, 8), np.array([0, 1, 2, 0, -1, 3, 0, 4])
    wanted = np.array([int(a / b) if b else a for a, b in zip(x.tolist(), y.tolist(), strict=True)])
    agree("Div", [x, y], wanted=[wanted])
    agree("Div", [normal(4), np.full(4, 2, F32)])


def test_slopes_say_nothing_of_zero() -> None:
    x = np.array([0.0, -1, 2, -3], F32)
    agree("PRelu", [x, np.array([np.inf, 2, np.nan, 0.5], F32)], wanted=[np.array([0, -2, 2, -1.5], F32)])


@pytest.mark.parametrize("dtype", [F32, F16])
def test_what_is_computed_wide(dtype: Any) -> None:
    x = normal(3, 4, 4, dtype=dtype)
    agree("Det", [x], wanted=[np.linalg.det(x.astype(np.float64)).astype(dtype)], opset=22, tolerance=1e-3)
    agree("Softsign", [x], wanted=[(x / (1 + np.abs(x))).astype(dtype)], opset=22, tolerance=1e-3)
    many = [np.full(2, 40000, F32), np.full((3, 1), 20000, F32)]
    arrays = [array.astype(dtype) if dtype == F32 else (array / 4).astype(dtype) for array in many]
    total = arrays[0].astype(F32) + arrays[1].astype(F32)
    agree("Sum", arrays, wanted=[total.astype(dtype)])
    agree("Mean", arrays, wanted=[(total / 2).astype(dtype)])
    inputs = [normal(2, 3, 5, dtype=dtype), normal(3, dtype=dtype), normal(3, dtype=dtype)]
    wide = inputs[0].astype(np.float64)
    centred = (wide - wide.mean(2, keepdims=True)) / np.sqrt(wide.var(2, keepdims=True) + 1e-5)
    wanted = centred * inputs[1].astype(float)[:, None] + inputs[2].astype(float)[:, None]
    agree("InstanceNormalization", inputs, wanted=[wanted.astype(dtype)], opset=22, tolerance=5e-3)


@pytest.mark.parametrize("opset", [10, 16])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_regions(opset: int, mode: str) -> None:
    x, at = normal(2, 3, 8, 9), RNG.uniform(0, 4, (5, 2)).astype(F32)
    rois = np.concatenate([at, at + RNG.uniform(1, 4, (5, 2))], 1).astype(F32)
    attributes = {"output_height": 2, "output_width": 3, "sampling_ratio": 2, "mode": mode}
    if mode == "avg":
        agree("RoiAlign", [x, rois, RNG.integers(0, 2, 5)], attributes, opset=opset)
    else:
        assert run("RoiAlign", [x, rois, RNG.integers(0, 2, 5)], attributes, opset=opset)[0].shape == (5, 3, 2, 3)


def test_counts_of_words_without_weights() -> None:
    attributes = {
        "mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0,
        "ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 3], "pool_int64s": [2, 3, 5, 2, 3],
    }  # fmt: skip
    agree("TfIdfVectorizer", [np.array([2, 3, 5, 2, 3])], attributes, wanted=[np.array([2, 2, 1, 2], F32)])
