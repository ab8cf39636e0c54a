"""Windows read dequantised images as integers of 16 bits, their scale behind the window or in its filter; else they
stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import linalg

from fuseline.analysis.structured import StructuredOp
from fuseline.evaluation import evaluate_module
from fuseline.ir.context import new_context
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.multiply_in_integers import MultiplyInIntegersPass
from fuseline.passes.cleanup.narrow_images import LEAST, keep_image_narrow
from fuseline.passes.cleanup.quantized_operands import IntegerMaker
from tests.draws import RNG

SIZE, CHANNELS, TAPS = 9, 5, 3
DEPTHWISE = "%p = arith.mulf %a, %b : f32\n %q = arith.addf %o, %p : f32"
MAXIMUM = "%q = arith.maximumf %o, %a : f32"
LOWEST, ZERO = "0xff800000", "0.0"


def _text(body: str, *, border: str, start: str, pads: int = 1, step: int = 1, gap: int = 1, scale: str = "0.25",
          zero: int = 3) -> str:  # fmt: skip
    """A window of `TAPS` over one axis of `x[SIZE, CHANNELS]`, dequantised and padded on both sides."""
    padded, image = SIZE + 2 * pads, f"tensor<{SIZE}x{CHANNELS}xf32>"
    out = (padded - (TAPS - 1) * gap - 1) // step + 1
    result, wide = f"tensor<{out}x{CHANNELS}xf32>", f"tensor<{padded}x{CHANNELS}xf32>"
    return f"""func.func @main(%x: tensor<{SIZE}x{CHANNELS}xi8>, %w: tensor<{TAPS}x{CHANNELS}xf32>) -> {result} {{
      %xe = tensor.empty() : {image}
      %xf = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}} ins(%x : tensor<{SIZE}x{CHANNELS}xi8>) outs(%xe : {image}) {{
      ^bb0(%a: i8, %o: f32):
        %n = arith.extsi %a : i8 to i32
        %z = arith.constant {zero} : i32
        %c = arith.subi %n, %z : i32
        %g = arith.sitofp %c : i32 to f32
        %f = arith.constant {scale} : f32
        %r = arith.mulf %g, %f : f32
        linalg.yield %r : f32
      }} -> {image}
      %edge = arith.constant {border} : f32
      %xp = tensor.pad %xf low[{pads}, 0] high[{pads}, 0] {{
      ^bb0(%i: index, %j: index):
        tensor.yield %edge : f32
      }} : {image} to {wide}
      %first = arith.constant {start} : f32
      %e = tensor.empty() : {result}
      %init = linalg.fill ins(%first : f32) outs(%e : {result}) -> {result}
      %r = linalg.generic {{indexing_maps = [affine_map<(x, c, k) -> (x * {step} + k * {gap}, c)>,
          affine_map<(x, c, k) -> (k, c)>, affine_map<(x, c, k) -> (x, c)>],
          iterator_types = ["parallel", "parallel", "reduction"]}}
          ins(%xp, %w : {wide}, tensor<{TAPS}x{CHANNELS}xf32>) outs(%init : {result}) {{
      ^bb0(%a: f32, %b: f32, %o: f32):
        {body}
        linalg.yield %q : f32
      }} -> {result} loc("window")
      return %r : {result}
    }}"""


def _read(text: str, numerics: str = "default", *, exactly: bool = False) -> str:
    """The element type of the image that the window reads after the pass; it computes what it did before."""
    ctx = new_context()
    ctx.target = TargetDescription("null", numerics=numerics)
    module = parse_module(text, ctx)
    feeds = [
        RNG.integers(-128, 128, (SIZE, CHANNELS)).astype(np.int8),
        RNG.standard_normal((TAPS, CHANNELS)).astype(np.float32),
    ]
    (expected,) = evaluate_module(module, feeds)
    MultiplyInIntegersPass().apply(ctx, module)
    module.verify()
    (found,) = evaluate_module(module, feeds, ctx.resources)
    if exactly:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    (root,) = [op for op in module.walk() if isinstance(op, linalg.ops.GenericOp) and StructuredOp(op).reduction]
    return str(root.inputs[0].type.get_element_type())  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(("step", "gap", "pads"), [(1, 1, 1), (2, 1, 1), (1, 2, 3), (1, 1, 0)])
def test_a_depthwise_convolution_reads_integers(step: int, gap: int, pads: int):
    assert _read(_text(DEPTHWISE, border=ZERO, start=ZERO, step=step, gap=gap, pads=pads)) == "i16"


@pytest.mark.parametrize(("step", "pads", "zero"), [(1, 1, 3), (2, 1, -128), (2, 2, 127), (1, 0, 0)])
def test_a_maximum_reads_integers_and_is_the_same_number(step: int, pads: int, zero: int):
    text = _text(MAXIMUM, border=LOWEST, start=LOWEST, step=step, pads=pads, zero=zero, scale="0.0201")
    assert _read(text, "strict", exactly=True) == "i16"


def test_strict_sums_stay():
    assert _read(_text(DEPTHWISE, border=ZERO, start=ZERO), "strict", exactly=True) == "f32"


@pytest.mark.parametrize(
    "text",
    [
        _text(MAXIMUM, border=ZERO, start=LOWEST),
        _text(MAXIMUM, border=LOWEST, start=ZERO),
        _text(MAXIMUM, border=LOWEST, start=LOWEST, scale="-0.25"),
        _text(MAXIMUM, border=LOWEST, start=LOWEST, pads=3),
        _text(MAXIMUM, border=LOWEST, start=LOWEST, gap=2),
        _text(MAXIMUM.replace("%a", "%b"), border=LOWEST, start=LOWEST),
        _text("%q = arith.minimumf %o, %a : f32", border=LOWEST, start=LOWEST),
        _text("%q = arith.addf %o, %a : f32", border=ZERO, start=ZERO),
        _text(DEPTHWISE, border="1.0", start=ZERO),
        _text(DEPTHWISE, border=ZERO, start="1.0"),
        _text(f"{DEPTHWISE.replace('%q', '%s')}\n %q = arith.addf %s, %s : f32", border=ZERO, start=ZERO),
    ],
    ids=["border", "start", "scale", "windows in the border", "gaps", "other operand", "minimum", "sum", "padded",
         "starts", "twice"],
)  # fmt: skip
def test_what_would_be_another_number_stays(text: str):
    assert _read(text, exactly=True) == "f32"


def _kept_narrow(text: str, numerics: str) -> tuple[bool, str, str]:
    """Whether the window says that it was rewritten, and the program before and after."""
    ctx = new_context()
    ctx.target = TargetDescription("null", numerics=numerics)
    module = parse_module(text, ctx)
    before = print_module(module)
    (root,) = [op for op in module.walk() if isinstance(op, linalg.ops.GenericOp) and StructuredOp(op).reduction]
    said = keep_image_narrow(IntegerMaker(ctx), root)
    module.verify()
    return said, before, print_module(module)


@pytest.mark.parametrize(
    ("text", "numerics", "scaled"),
    [
        (_text(DEPTHWISE, border=ZERO, start=ZERO), "default", f"tensor<{TAPS}x{CHANNELS}xf32>"),
        (_text(MAXIMUM, border=LOWEST, start=LOWEST), "strict", f"tensor<{SIZE}x{CHANNELS}xf32>"),
    ],
    ids=["filter", "result"],
)
def test_the_scale_follows_the_window(text: str, numerics: str, scaled: str):
    said, _, after = _kept_narrow(text, numerics)
    assert said and f"tensor<{SIZE + 2}x{CHANNELS}xi16>" in after and f"tensor<{SIZE + 2}x{CHANNELS}xf32>" not in after
    (line,) = [line for line in after.splitlines() if '"parallel", "parallel"]' in line and "xi8>" not in line]
    assert scaled in line
    assert (str(LEAST) in after) == (numerics == "strict")


@pytest.mark.parametrize(
    ("text", "numerics"),
    [
        (_text(DEPTHWISE, border=ZERO, start=ZERO), "strict"),
        (_text(MAXIMUM, border=ZERO, start=LOWEST), "default"),
        (_text(MAXIMUM, border=LOWEST, start=LOWEST, pads=3), "default"),
        (_text("%q = arith.addf %o, %a : f32", border=ZERO, start=ZERO), "default"),
        (_text(DEPTHWISE, border=ZERO, start=ZERO).replace("f32", "f64"), "default"),
    ],
    ids=["strict", "border", "windows in the border", "sum", "f64"],
)
def test_a_window_that_stays_is_not_touched(text: str, numerics: str):
    said, before, after = _kept_narrow(text, numerics)
    assert not said and before == after
