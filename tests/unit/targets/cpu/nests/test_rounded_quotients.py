"""Quantising divides by a constant, rounds and bounds: multiplied, to the same integer whatever is quantised."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.targets.cpu.emit import rounded_quotients as module
from fuseline.targets.cpu.emit.rounded_quotients import rounded_quotients
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

from .generics import empty, function, generic, tensor
from .texts import parse

ROUNDED = "%s = arith.constant 0.0307 : f32\n%q = arith.divf %i0, %s : f32\n%r = math.roundeven %q : f32\n"
ENDS = "%l = arith.constant -128.0 : f32\n%h = arith.constant 127.0 : f32\n"
LOWER, UPPER = "%b = arith.maxnumf {}, %l : f32\n", "%v = arith.minnumf {}, %h : f32"
BOTH = ENDS + LOWER.format("%r") + UPPER.format("%b")
BODIES = {
    "bounded": (ROUNDED + BOTH, 1),
    "in the other order": (ROUNDED + ENDS + "%b = arith.minimumf %h, %r : f32\n%v = arith.maximumf %l, %b : f32", 1),
    "with a zero point": (
        ROUNDED + "%z = arith.constant 7.0 : f32\n%a = arith.addf %r, %z : f32\n" + ENDS + LOWER.format("%a")
        + UPPER.format("%b"), 1,
    ),
    "with an offset that is no integer": (
        ROUNDED + "%z = arith.constant 7.5 : f32\n%a = arith.addf %r, %z : f32\n" + ENDS + LOWER.format("%a")
        + UPPER.format("%b"), 0,
    ),
    "bounded on one side": (ROUNDED + ENDS + LOWER.format("%r") + "%v = arith.maxnumf %b, %h : f32", 0),
    "not bounded": (ROUNDED + "%v = arith.negf %r : f32", 0),
    "bounds far away": (ROUNDED + BOTH.replace("127.0", "1.0e6"), 0),
    "not rounded": (ROUNDED + BOTH.replace("%r", "%q"), 0),
    "rounded down": (ROUNDED.replace("roundeven", "floor") + BOTH, 0),
    "read again": (
        ROUNDED + ENDS + LOWER.format("%r") + "%w = arith.minnumf %b, %h : f32\n%v = arith.addf %w, %q : f32", 0,
    ),
    "a scale next to 0": (ROUNDED.replace("0.0307", "1.0e-39") + BOTH, 0),
    "below 0": (ROUNDED.replace("0.0307", "-0.03") + BOTH, 0),
    "by what is read": (ROUNDED.replace("%i0, %s", "%s, %i0") + BOTH, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_only_what_is_rounded_and_bounded(name: str) -> None:
    body, count = BODIES[name]
    t = tensor((7, 5))
    lines = [
        empty("e", (7, 5)),
        generic("%y", [("%x", t)], [("%e", t)], ["d0, d1", "d0, d1"], "pp", body, [("%v", "f32")]),
    ]
    view = parse(function([("x", (7, 5), "f32")], [], "\n".join(lines), [("%y", t)]))
    assert len(rounded_quotients(view.members)) == count


def around_steps(scale: np.float32) -> NDArray[np.float32]:
    """Numbers around each step, of all magnitudes, and what is no ordinary number."""
    steps = ((np.arange(-300, 300) + 0.5) * float(scale)).astype(np.float32).view(np.int32)
    near = (steps[:, None] + np.arange(-20, 21, dtype=np.int32)).view(np.float32)
    bits = RNG.integers(0, 1 << 32, 20_003, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return np.concatenate([near.ravel(), bits, np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)])


@pytest.mark.parametrize("element", [np.uint8, np.int8])
@pytest.mark.parametrize("target", ["cpu", "cpu:avx2", "cpu:baseline"])
def test_quantized_as_by_division(target: str, element: Any) -> None:
    ends = np.iinfo(element)
    scale = np.float32(2.0 ** RNG.uniform(-12, 5))
    zero = int(RNG.integers(ends.min, ends.max + 1))
    x = around_steps(scale)
    text = f"(float[{len(x)}] x) => (y) {{ y = QuantizeLinear(x, s, z) }}"
    model = onnx_model(text, {"s": np.array(scale), "z": np.array(zero, element)}, opset=21, ir_version=10)
    found = np.asarray(fuseline.compile(model, target=target, threads=1)(x))
    with np.errstate(all="ignore"):
        wanted = np.clip(np.rint(x / scale) + zero, ends.min, ends.max)
    np.testing.assert_array_equal(found, np.where(np.isnan(wanted), ends.min, wanted).astype(element))


def test_a_scale_that_rounds_otherwise_is_divided_by() -> None:
    """One part of the reciprocal is too little for most scales."""
    scales = [float(np.float32(scale)) for scale in RNG.uniform(0.01, 1, 20)]
    agrees = module._agrees.__wrapped__  # pyright: ignore[reportPrivateUsage]
    assert all(agrees(scale, -128, 127) for scale in scales)
    with mock.patch.object(module, "_parts", lambda scale: (float(np.float32(1 / scale)), 0.0)):
        assert not all(agrees(scale, -128, 127) for scale in scales)
