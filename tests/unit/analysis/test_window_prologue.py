"""What a window pays for reading its image through producers."""

from __future__ import annotations

import pytest

from fuseline.analysis.prologue_kind import Prologue

from .prologue_programs import judged


def pooling(image: str, h: int, w: int, c: int) -> str:
    """3x3, channels last, no padding."""
    return f"""
    %window = tensor.empty() : tensor<3x3xf32>
    %e = tensor.empty() : tensor<1x{h - 2}x{w - 2}x{c}xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x{h - 2}x{w - 2}x{c}xf32>) -> tensor<1x{h - 2}x{w - 2}x{c}xf32>
    %r = linalg.generic {{indexing_maps = [affine_map<(n, h, w, c, a, b) -> (n, h + a, w + b, c)>,
        affine_map<(n, h, w, c, a, b) -> (a, b)>,
        affine_map<(n, h, w, c, a, b) -> (n, h, w, c)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}}
        ins({image}, %window : tensor<1x{h}x{w}x{c}xf32>, tensor<3x3xf32>)
            outs(%f : tensor<1x{h - 2}x{w - 2}x{c}xf32>) {{
    ^bb0(%bx: f32, %by: f32, %bz: f32):
      %bs = arith.maximumf %bz, %bx : f32
      linalg.yield %bs : f32
    }} -> tensor<1x{h - 2}x{w - 2}x{c}xf32>
    return %r : tensor<1x{h - 2}x{w - 2}x{c}xf32>"""


@pytest.mark.parametrize(("axis", "expected"), [(3, "segmented"), (1, None)])
def test_pooling_reads_a_concat_along_its_channels(axis: int, expected: str | None):
    parts = ["1x6x7x5", "1x6x7x4"] if axis == 3 else ["1x2x7x9", "1x4x7x9"]
    types = ", ".join(f"tensor<{part}xf32>" for part in parts)
    concat = f"%c = tensor.concat dim({axis}) %a, %b : ({types}) -> tensor<1x6x7x9xf32>"
    arguments = (f"a: tensor<{parts[0]}xf32>", f"b: tensor<{parts[1]}xf32>")
    found = judged(concat + pooling("%c", 6, 7, 9), "tensor<1x4x5x9xf32>", *arguments)
    assert found.kind == expected
    assert (found.pieces == 2) == (expected is not None)


def test_pooling_reads_a_slice_where_it_lies():
    cut = (
        "%s = tensor.extract_slice %a[0, 1, 2, 0] [1, 6, 7, 9] [1, 1, 1, 1] : tensor<1x8x9x9xf32> to "
        "tensor<1x6x7x9xf32>"
    )
    assert judged(cut + pooling("%s", 6, 7, 9), "tensor<1x4x5x9xf32>", "a: tensor<1x8x9x9xf32>") == Prologue(
        "addressed"
    )


def _pooling_of_planes(step: int, apart: int) -> str:
    return f"""
    %pw = tensor.empty() : tensor<3x3xf32>
    %po = tensor.empty() : tensor<9x4x4xf32>
    %r = linalg.generic {{indexing_maps = [affine_map<(c, h, w, k, l) -> (c, h + k, w * {step} + l * {apart})>,
        affine_map<(c, h, w, k, l) -> (k, l)>, affine_map<(c, h, w, k, l) -> (c, h, w)>],
        iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}}
        ins(%s, %pw : tensor<9x6x40xf32>, tensor<3x3xf32>) outs(%po : tensor<9x4x4xf32>) {{
    ^bb0(%bv: f32, %bx: f32, %bo: f32):
      %bs = arith.maximumf %bo, %bv : f32
      linalg.yield %bs : f32
    }} -> tensor<9x4x4xf32>
    return %r : tensor<9x4x4xf32>"""


@pytest.mark.parametrize(("step", "apart", "taken"), [
    (1, 2, True), (2, 1, True), (4, 3, True), (5, 1, False), (2, 2, False), (4, 2, False),
])  # fmt: skip
def test_lanes_are_few_pixels_apart_and_windows_meet_all_of_a_line(step: int, apart: int, taken: bool):
    """A border around planes; the first step beyond `MOST_LANE_STEP` is refused, as are gaps that no window meets."""
    cut = "%s = tensor.extract_slice %a[0, 1, 2] [9, 6, 40] [1, 1, 1] : tensor<9x8x44xf32> to tensor<9x6x40xf32>"
    clamped = """%so = tensor.empty() : tensor<9x6x40xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>],
        iterator_types = ["parallel", "parallel", "parallel"]} outs(%so : tensor<9x6x40xf32>) {
    ^bb0(%unused: f32):
      %two = arith.constant 2 : index
      %first = arith.constant 0 : index
      %c = linalg.index 0 : index
      %h = linalg.index 1 : index
      %w = linalg.index 2 : index
      %at = arith.subi %w, %two : index
      %p = arith.maxsi %at, %first : index
      %e = tensor.extract %a[%c, %h, %p] : tensor<9x8x44xf32>
      linalg.yield %e : f32
    } -> tensor<9x6x40xf32>"""
    for image in (clamped, cut) if step > 1 else (clamped,):
        found = judged(image + _pooling_of_planes(step, apart), "tensor<9x4x4xf32>", "a: tensor<9x8x44xf32>")
        assert found.kind == ("addressed" if taken else None)


def test_pooling_evaluates_a_computed_image_in_strips():
    """Each element once where all lines fit the scratch, and padding not at all."""
    double = """
    %me = tensor.empty() : tensor<1x6x7x9xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>,
        affine_map<(a, b, c, d) -> (a, b, c, d)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%a : tensor<1x6x7x9xf32>)
            outs(%me : tensor<1x6x7x9xf32>) {
    ^bb0(%v: f32, %o: f32):
      %w = arith.addf %v, %v : f32
      linalg.yield %w : f32
    } -> tensor<1x6x7x9xf32>"""
    found = judged(double + pooling("%m", 6, 7, 9), "tensor<1x4x5x9xf32>", "a: tensor<1x6x7x9xf32>")
    assert (found.kind, found.recompute, found.operations) == ("strips", 1.0, 1)
