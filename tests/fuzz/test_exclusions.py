"""What random graphs leave out: the list is the one in docs/numerics.md, every entry is used, and what onnxruntime is
said to do it does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import parser

import fuseline
from tests.fuzz.compare import close, form_problem
from tests.fuzz.evaluate import Rejected, ort_failures, ort_session
from tests.fuzz.exclusions import EXCLUSIONS, exclude
from tests.fuzz.graph import Graph, Setting
from tests.fuzz.tensors import F32, Array

DOCS = Path(__file__).parents[2] / "docs" / "numerics.md"


def test_the_documentation_has_this_list():
    section = DOCS.read_text().split("## What random graphs leave out")[1].split("\n## ")[0]
    assert dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.*) \|$", section, re.MULTILINE)) == EXCLUSIONS


def test_the_list_is_in_order_and_every_entry_is_used():
    assert list(EXCLUSIONS) == sorted(EXCLUSIONS)
    sources = [
        path.read_text()
        for path in Path(__file__).parent.glob("**/*.py")
        if path.name not in ("exclusions.py", Path(__file__).name)
    ]
    assert not [name for name in EXCLUSIONS if not any(f'"{name}"' in text or f"`{name}`" in text for text in sources)]


def test_an_exclusion_rejects():
    exclude("gelu-of-doubles", excluded=False)
    with pytest.raises(Rejected, match="gelu-of-doubles: .*f64"):
        exclude("gelu-of-doubles")
    with pytest.raises(KeyError):
        exclude("nothing", excluded=False)


HUGE, SMALL = np.float32(3e37), np.float32(2e-30)
LOST: list[tuple[str, str, list[Any], list[Any]]] = [
    ("period-beyond-the-digits", "Tan", [HUGE], [np.float32(1234.5)]),
    ("period-beyond-the-digits", "Mod", [np.float32(3), np.float32(1e-6)], [np.float32(3), np.float32(0.7)]),
    ("smaller-than-normal", "Mul", [SMALL, SMALL], [SMALL, np.float32(1)]),
    ("smaller-than-normal", "ReduceProd", [[SMALL, -SMALL]], [[SMALL, np.float32(1)]]),
]
"""What is lost, an operator, operands whose result has no digits in f32, and operands whose result has."""


@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize(("name", "op_type", "lost", "kept"), LOST)
def test_what_a_type_has_no_digits_for_is_left_out(
    name: str, op_type: str, lost: list[Any], kept: list[Any], wild: bool
):

    def add(operands: list[Any]) -> Array:
        graph = Graph(np.random.default_rng(0), 18, Setting({}, 1), wild, [F32])
        known = {"fmod": 1} if op_type == "Mod" else {}
        return graph.add(op_type, *(graph.constant(np.asarray(value)) for value in operands), **known).arrays[0]

    with pytest.raises(Rejected, match=name):
        add(lost)
    assert np.isfinite(add(kept)) and add(kept) != 0


def test_the_sign_of_a_product_and_the_tangent_of_a_quotient_depend_on_the_type():
    """Which is why they are left out: f64 answers otherwise, though f32 is as right as it can be."""
    with np.errstate(under="ignore"):
        assert np.sign(SMALL * SMALL) == 0 and np.sign(np.float64(SMALL) * np.float64(SMALL)) == 1
    quotient = HUGE / np.float32(0.7)
    exact = np.float64(HUGE) / np.float64(np.float32(0.7))
    assert quotient != exact and not np.isclose(np.tan(np.float64(quotient)), np.tan(exact), rtol=0.1)


X, W = np.array([[[1.5, -2.25, 3.125, 0.1, 2.7]]], np.float32), np.ones((1, 1, 1), np.float32)
THIRDS = np.array([1, 2, 7]) / 3
NAMES = "xwz"

DIFFERENCES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "automatic-pads-of-a-sparse-transpose": (
        (
            '(float[1,1,5] x, float[1,1,1] w) => (float[a,b,c] y) { y = ConvTranspose <auto_pad = "SAME_UPPER", '
            "strides = "
            "[2]> (x, w) }"
        ),
        (X, W),
    ),
    "automatic-pads-of-sparse-windows": (
        (
            '(float[1,1,6] x) => (float[a,b,c] y) { y = LpPool <auto_pad = "SAME_UPPER", kernel_shape = [1], strides = '
            "[3]> (x) }"
        ),
        (np.array([[[1.5, -2.25, 3.125, 0.1, 2.7, 9.5]]], np.float32),),
    ),
    "gelu-of-doubles": ('(double[3] x) => (double[a] y) { y = Gelu <approximate = "tanh"> (x) }', (THIRDS,)),
    "group-norm-of-doubles": (
        (
            "(double[1,2,2] x, double[2] w, double[2] z) => (double[a,b,c] y) { y = GroupNormalization "
            "<num_groups = 1> "
            "(x, w, z) }"
        ),
        (np.array([[[1000 + 1 / 3, 5], [2, 1]]]), np.array([2.0, 1]), np.array([3.0, 1])),
    ),
    "hard-swish-of-doubles": ("(double[3] x) => (double[a] y) { y = HardSwish (x) }", (THIRDS,)),
    "infinity-clipped-by-nothing": (
        "(float[2] x, float w) => (float[a] y) { y = Clip (x, w) }",
        (np.array([np.inf, 1], np.float32), np.float32(-1)),
    ),
    "instance-norm-of-one-element": (
        "(float[1,1,1] x, float[1] w, float[1] z) => (float[a,b,c] y) { y = InstanceNormalization (x, w, z) }",
        (np.array([[[4000.3]]], np.float32), np.array([1.34], np.float32), np.array([0.444589], np.float32)),
    ),
    "integers-shrunk-in-floats": (
        "(int32[3] x) => (int32[a] y) { y = Shrink <bias = 0.5, lambd = 1.5> (x) }",
        (np.array([1, 2, -3], np.int32),),
    ),
    "outside-of-uint32": (
        "(float[2] x) => (uint32[a] y) { y = Cast <to = 12> (x) }",
        (np.array([-8.9e37, 5e9], np.float32),),
    ),
    "reduction-of-nothing": (
        "(float[0] x) => (float y) { y = ReduceMean <keepdims = 0> (x) }",
        (np.zeros(0, np.float32),),
    ),
    "resize-to-a-part-of-a-pixel": (
        (
            "(float[1,1,5] x, float[0] w, float[3] z) => (float[a,b,c] y) { y = Resize "
            "<coordinate_transformation_mode = "
            '"align_corners"> (x, w, z) }'
        ),
        (X, np.zeros(0, np.float32), np.array([1, 1, 0.7], np.float32)),
    ),
    "shrink-of-doubles": ("(double[3] x) => (double[a] y) { y = Shrink <bias = 0.1, lambd = 0.3> (x) }", (THIRDS,)),
    "sign-of-a-half-that-is-nan": (
        "(float16[2] x) => (float16[a] y) { y = Sign (x) }",
        (np.array([np.nan, 2], np.float16),),
    ),
    "sum-out-of-range": (
        "(int32[2] x) => (int32 y) { y = ReduceSum <keepdims = 0> (x) }",
        (np.array([2**31 - 1, 5], np.int32),),
    ),
    "window-beyond-image": (
        "(float[1,1,5] x, float[1,1,6] w) => (float[a,b,c] y) { y = Conv (x, w) }",
        (X, np.ones((1, 1, 6), np.float32)),
    ),
    "window-of-padding": (
        "(float[1,1,5] x) => (float[a,b,c] y) { y = MaxPool <kernel_shape = [2], pads = [2, 0]> (x) }",
        (X,),
    ),
}
"""Where onnxruntime can be asked: models on which it refuses, or answers something else than fuseline."""


@pytest.mark.parametrize("name", DIFFERENCES)
def test_onnxruntime_is_different(name: str):
    text, arrays = DIFFERENCES[name]
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": {20 if "gelu" in name else 21 if "group" in name else 18}]> g {text}'
    )
    feeds = {key: np.asarray(array) for key, array in zip(NAMES, arrays, strict=False)}
    ort.set_default_logger_severity(4)
    try:
        theirs: Array = np.asarray(ort_session(model).run(None, feeds)[0])
    except ort_failures():
        return
    shapes = {key: array.shape for key, array in feeds.items()}
    ours = fuseline.compile(model, threads=1, shapes={key: shape for key, shape in shapes.items() if shape}).run(feeds)[
        "y"
    ]
    assert form_problem(ours, theirs) or not close(ours, theirs, theirs.dtype)
