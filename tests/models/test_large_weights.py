"""Compiling and saving a model of gigabytes takes little more memory than its weights."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.graphs.onnx_text import onnx_model

MATRICES, SIZE = 12, 8192
MOST = 1.25
"""Times the weights."""

_COMPILE = """
import resource, sys, fuseline
fuseline.compile(sys.argv[1], cache=False).save(sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def write_model(folder: Path, matrices: int, size: int) -> Path:
    """A chain of products with square matrices that lie in one file beside the model, which is answered."""
    rng = np.random.default_rng()
    nodes = "  ".join(f"x{i + 1} = MatMul(x{i}, w{i})" for i in range(matrices))
    model = onnx_model(f"(float[3, {size}] x0) => (float[3, {size}] x{matrices}) {{ {nodes} }}", opset=17)
    with (folder / "weights.bin").open("wb") as file:
        for i in range(matrices):
            file.write(rng.standard_normal((size, size), np.float32).tobytes())
            model.graph.initializer.append(_external(f"w{i}", size, i * size * size * 4))
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def _external(name: str, size: int, offset: int) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[size, size])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", offset), ("length", size * size * 4)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _available() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) << 10


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="the system does not say how much memory it has")
def test_a_compile_takes_the_weights_once(tmp_path: Path):
    weights = MATRICES * SIZE * SIZE * 4
    if shutil.disk_usage(tmp_path).free < 3 * weights or _available() < 2 * weights:
        pytest.skip("no room for 3.2 GB of weights")
    model, saved = write_model(tmp_path, MATRICES, SIZE), tmp_path / "model.fuse"
    run = subprocess.run(
        [sys.executable, "-c", _COMPILE, str(model), str(saved)],
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    assert int(run.stdout) <= MOST * weights
    assert saved.stat().st_size >= weights
    shutil.rmtree(tmp_path)
