"""Bands whose last product reads what is made of the window's rows where it reads them, point by point, perhaps with
its dimensions in another order: as it is where the epilogue of the window is not fused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.wishes.compared import agree

CHEAP = "image_bytes_limit = 1000\n[costs]\nmemory_bytes_per_ns = 0.001\nstored_bytes_per_ns = 0.001\n"
"""A machine on which no tensor should be stored."""

ENDS = {
    "one": "d = Tanh(c)  y = Conv(d, z)",
    "two": "d = Clip(c, lo, hi)  e = Exp(d)  y = Conv(e, z)",
    "turned": "d = Tanh(c)  e = Transpose<perm = [0, 2, 3, 1]>(d)  y = MatMul(e, q)",
    "columns-first": "d = Tanh(c)  e = Transpose<perm = [0, 3, 2, 1]>(d)  y = MatMul(e, q)",
}


def _normal(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("without", ["elementwise-epilogue", "elementwise-cluster"])
def test_outputs_are_those_of_the_interpreter(end: str, without: str, tmp_path: Path):
    rows, columns = (int(RNG.integers(24, 60)) for _ in range(2))
    inputs, inner, outputs = (int(RNG.integers(8, 40)) for _ in range(3))
    model = onnx_model(
        f"""(float[1, {inputs}, {rows}, {columns}] x) => (y) {{ a = Conv(x, u)
            c = Conv<group = {inner}, pads = [1, 1, 1, 1]>(a, v)  {ENDS[end]} }}""",
        {"u": _normal(inner, inputs, 1, 1), "v": _normal(inner, 1, 3, 3), "z": _normal(outputs, inner, 1, 1)},
        q=_normal(inner, outputs),
        lo=np.float32(0),
        hi=np.float32(1),
    )
    (tmp_path / "m.toml").write_text(CHEAP)
    reference = fuseline.compile(model, target="interpreter", fusion="none", cache=False)
    feeds = {"x": RNG.standard_normal((1, inputs, rows, columns), dtype=np.float32)}
    target, (wanted,) = f"cpu:{tmp_path / 'm.toml'}", reference.run(feeds).values()
    for threads in (1, 2):
        program = fuseline.compile(model, target=target, without_rules=[without], threads=threads, cache=False)
        (found,) = program.run(feeds).values()
        agree(found, wanted, str([one.code for one in program.decisions if one.rule == "fuse-row-bands"]))
