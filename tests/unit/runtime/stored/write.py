"""`python -m tests.unit.runtime.stored.write` stores an artifact of the present format version beside this file, for
`test_stored_artifact.py`. Once stored, one stays as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fuseline
from fuseline.runtime.abi import FORMAT_VERSION
from tests.graphs.onnx_text import onnx_model

WEIGHTS = (np.arange(15, dtype=np.float32).reshape(5, 3) - 7) / 4


def path_of(version: int) -> Path:
    """Where the artifact of a format version lies."""
    return Path(__file__).parent / f"format_{version}.fuse"


def write() -> None:
    """`y = Relu(x w)` and `z = Softmax(y)` for any number of rows, for every x86-64 CPU."""
    text = "(float[n, 5] x) => (float[n, 3] y, float[n, 3] z) { t = MatMul(x, w) y = Relu(t) z = Softmax(y) }"
    program = fuseline.compile(onnx_model(text, w=WEIGHTS), target="cpu:baseline", threads=2, cache=False)
    program.save(path_of(FORMAT_VERSION))


if __name__ == "__main__":
    write()
