"""The ONNX backend interface: whole models and single nodes."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest

import fuseline
from fuseline.interop.onnx_backend import FuselineBackend
from tests.draws import RNG
from tests.small_models import mlp


def test_prepare_and_run():
    x = RNG.standard_normal((4, 16), np.float32)
    prepared = fuseline.onnx_backend.prepare(mlp())
    (by_list,), (by_array,) = prepared.run([x]), prepared.run(x)
    assert np.array_equal(by_list, by_array)
    assert np.allclose(by_list.sum(axis=-1), 1, atol=1e-5)


@pytest.mark.parametrize("info", [None, [(np.float32, (3, 5))]])
def test_run_node(info: list[tuple[type, tuple[int, ...]]] | None):
    a, b = RNG.standard_normal((3, 4), np.float32), RNG.standard_normal((4, 5), np.float32)
    (y,) = FuselineBackend.run_node(oh.make_node("MatMul", ["a", "b"], ["y"]), [a, b], outputs_info=info)
    assert np.abs(y - a @ b).max() <= 1e-4 * np.abs(y).max()


def test_only_the_cpu_is_supported():
    assert FuselineBackend.supports_device("CPU:0")
    assert not FuselineBackend.supports_device("CUDA")
