"""Concats before products of quantised models: what lies between is computed with each part."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

HEAD = """(float[1, 16, {h}, {w}] x) => (float[] y) {{
  xq = QuantizeLinear(x, s0, z)  xd = DequantizeLinear(xq, s0, z)
  f1 = DequantizeLinear(k1, t, u)  a0 = Conv(xd, f1)  a = Relu(a0)
  f2 = DequantizeLinear(k2, t, u)  b0 = Conv<pads = [1, 1, 1, 1]>(xd, f2)  b = Relu(b0)
  aq = QuantizeLinear(a, s1, z)  ad = DequantizeLinear(aq, s1, z)
  bq = QuantizeLinear(b, s2, z)  bd = DequantizeLinear(bq, s2, z)
"""
TAIL = """
  cq = QuantizeLinear(c, s3, z)  cd = DequantizeLinear(cq, s3, z)
  f3 = DequantizeLinear(k3, t, u)  d = Conv(cd, f3)  dq = QuantizeLinear(d, s4, z)  y = DequantizeLinear(dq, s4, z)
}}"""
POOLED = """
  g0 = GlobalAveragePool(xd)  gq = QuantizeLinear(g0, s0, z)  gd = DequantizeLinear(gq, s0, z)
  g1 = Conv(gd, f1)  g2 = QuantizeLinear(g1, s1, z)  g3 = DequantizeLinear(g2, s1, z)
  g4 = Resize<mode = "nearest">(g3, "", "", sizes)  g5 = QuantizeLinear(g4, s1, z)  g = DequantizeLinear(g5, s1, z)
"""
PARTS = {
    "two": ("c = Concat<axis = 1>(ad, bd)", (12, 20)),
    "three": ("ab = Concat<axis = 1>(ad, bd)  c = Concat<axis = 1>(ab, xd)", (12, 20, 16)),
    "pooled": (POOLED + "c = Concat<axis = 1>(ad, bd, g)", (12, 20, 12)),
    "odd": ("c = Concat<axis = 1>(ad, bd)", (11, 20)),
    "read twice": ("c = Concat<axis = 1>(ad, bd, ad)", (12, 20, 12)),
}


def _weights(channels: tuple[int, ...], size: tuple[int, int]) -> dict[str, NDArray[Any]]:
    def filter_(outputs: int, inputs: int, window: int) -> NDArray[Any]:
        """7 bits: onnxruntime saturates sums of two products with more on machines without an instruction for them."""
        return RNG.integers(-63, 64, (outputs, inputs, window, window)).astype(np.int8)

    scales = {f"s{i}": np.array(scale, np.float32) for i, scale in enumerate((0.02, 0.03, 0.05, 0.06, 0.1))}
    return {
        **scales, "z": np.array(int(RNG.integers(-128, 1)), np.int8), "t": np.array(0.004, np.float32),
        "u": np.array(0, np.int8), "k1": filter_(channels[0], 16, 1), "k2": filter_(channels[1], 16, 3),
        "k3": filter_(256, sum(channels), 1), "sizes": np.array([1, channels[0], *size], np.int64),
    }  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_a_quantized_concat(name: str):
    """To a step of the last scale, as onnxruntime has it; read where it lies, or packed where pairs of integers would
    lie in two parts."""
    size = int(RNG.integers(12, 20)), int(RNG.integers(12, 20))
    middle, channels = PARTS[name]
    weights = _weights(channels, size)
    needed = weights if "sizes" in middle else {key: value for key, value in weights.items() if key != "sizes"}
    model = onnx_model((HEAD + middle + TAIL).format(h=size[0], w=size[1]), needed)
    x = RNG.standard_normal((1, 16, *size)).astype(np.float32)
    program = fuseline.compile(model, threads=int(RNG.integers(1, 3)))
    (found,) = program.run({"x": x}).values()
    wanted = np.asarray(onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0])
    assert (np.abs(found - wanted) > 0.001).mean() < 0.02 and np.abs(found - wanted).max() <= 0.1001
    joined = [d for d in program.record.dispatches if any(member.kind == "concat" for member in d.members)]
    assert [d.family for d in joined if d.family == "elementwise"] == [] and len(joined) == 1


def test_outputs_are_those_without_the_pass():
    """To the bit: nothing is computed in another way."""
    weights = _weights((12, 20, 12), (9, 7))
    model = onnx_model((HEAD + PARTS["pooled"][0] + TAIL).format(h=9, w=7), weights)
    x = RNG.standard_normal((1, 16, 9, 7)).astype(np.float32)
    results = [
        next(iter(fuseline.compile(model, threads=1, without_rules=rules, fusion=fusion).run({"x": x}).values()))
        for rules, fusion in (([], "default"), (["read-in-place"], "default"), ([], "none"), ([], "aggressive"))
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def _handed_over(end: str, batch: int, more: str = "") -> Any:
    """Two convolutions, of the image or the second of the first one, or one and the image, concatenated and quantised
    for the caller."""
    size = int(RNG.integers(12, 30)), int(RNG.integers(12, 30))
    second, outputs = {"image": ("xd", (12, 16)), "chain": ("bd", (16, 20))}.get(end, ("bd", (12, 20)))
    text = HEAD.format(h=size[0], w=size[1]).replace("float[1,", f"float[{batch},")
    if end == "chain":
        lines = text.replace("(xd, f2)", "(ad, f2)").split("\n")
        text = "\n".join([*lines[:3], lines[4], lines[3], *lines[5:]])
    if second == "xd":
        text = "\n".join(line for line in text.split("\n") if "f2" not in line and "bq" not in line)
    text += (
        f"  c = Concat<axis = 1>(ad, {second})  cq = QuantizeLinear(c, s3, z)  y = DequantizeLinear(cq, s3, z){more}}}"
    )
    weights = _weights(outputs, size)
    used = {name: value for name, value in weights.items() if f"{name}," in text or f"{name})" in text}
    return onnx_model(text, used), RNG.standard_normal((batch, 16, *size)).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("end", "batch", "apart"),
    [("both", 1, True), ("both", 2, True), ("chain", 1, True), ("chain", 2, False), ("image", 1, True)],
)
def test_what_the_caller_gets_is_computed_with_each_part(end: str, batch: int, apart: bool, threads: int):
    """Where all parts are made by roots and lie in one piece, whoever else reads them: no dispatch reads them again."""
    model, x = _handed_over(end, batch)
    program = fuseline.compile(model, threads=threads)
    last = program.record.dispatches[-1]
    assert (last.family != "elementwise") == apart
    (found,) = program.run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    np.testing.assert_array_equal(found, wanted)
    other = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    assert np.abs(found - np.asarray(other)).max() <= 0.0601
