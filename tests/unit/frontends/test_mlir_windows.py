"""`iree_linalg_ext.im2col` and the winograd transforms, as `iree-opt` prints them: with the product between them they
are the convolution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.mlir.linalg_ext.winograd import matrices
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module, print_module
from tests.draws import RNG

Array = NDArray[Any]


def _run(text: str, folder: Path, *feeds: Array) -> Array:
    path = folder / "p.mlir"
    path.write_text(text)
    native, evaluated = (fuseline.compile(path, target=target)(*feeds) for target in ("cpu", "interpreter"))
    np.testing.assert_allclose(native, evaluated, rtol=1e-3, atol=1e-3)
    return np.asarray(native)


def _x(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def _refused(text: str, folder: Path, words: str, code: str) -> None:
    path = folder / "p.mlir"
    path.write_text(text)
    with pytest.raises(FuselineError, match=words) as caught:
        fuseline.compile(path, target="null")
    assert caught.value.code == code


def _im2col(words: dict[str, str], image: str, out: str) -> str:
    said = " ".join(f"{word} = {value}" for word, value in words.items())
    return (
        f"func.func @main(%x: tensor<{image}xf32>) -> tensor<{out}xf32> {{\n  %e = tensor.empty() : tensor<{out}xf32>\n"
        f"  %r = iree_linalg_ext.im2col {said} ins(%x : tensor<{image}xf32>) outs(%e : tensor<{out}xf32>) -> "
        f"tensor<{out}xf32>\n  return %r : tensor<{out}xf32>\n}}"
    )


_NHWC = {
    "strides": "[1, 2, 1]",
    "dilations": "[1, 1, 2]",
    "kernel_size": "[1, 3, 2]",
    "offsets": "[0, 0, 0, 0]",
    "output_sizes": "[[2], [3], [6], [1, 3, 2, 4]]",
    "batch_pos": "[]",
    "m_pos": "[0, 1, 2]",
    "k_pos": "[3]",
    "input_k_perm": "[0, 1, 2, 3]",
    "output_perm": "[0, 1, 2, 3]",
}
_NCHW = {
    **{word: f"[{', '.join(value.strip('[]').split(', ')[1:])}]" for word, value in list(_NHWC.items())[:3]},
    "offsets": "[0, 0, 0]",
    "output_sizes": "[[2], [3, 6], [4, 3, 2]]",
    "batch_pos": "[0]",
    "m_pos": "[2, 3]",
    "k_pos": "[1]",
    "input_k_perm": "[0, 1, 2]",
    "output_perm": "[0, 2, 1]",
}


def _windows(x: Array) -> Array:
    """`[n, y, x, ky, kx, c]` of an image `[n, 7, 8, c]`."""
    rows = [[x[:, 2 * y : 2 * y + 3, c : c + 3 : 2] for c in range(6)] for y in range(3)]
    return np.stack([np.stack(row, 1) for row in rows], 1)


def test_windows_of_an_image_with_channels_last(tmp_path: Path):
    x = _x(2, 7, 8, 4)
    found = _run(_im2col(_NHWC, "2x7x8x4", "2x3x6x24"), tmp_path, x)
    np.testing.assert_array_equal(found, _windows(x).reshape(2, 3, 6, 24))


def test_windows_of_an_image_with_channels_first_whose_places_are_one_dimension(tmp_path: Path):
    x = _x(2, 4, 7, 8)
    found = _run(_im2col(_NCHW, "2x4x7x8", "2x24x18"), tmp_path, x)
    want = _windows(x.transpose(0, 2, 3, 1)).transpose(0, 5, 3, 4, 1, 2)
    np.testing.assert_array_equal(found, want.reshape(2, 24, 18))


@pytest.mark.parametrize(
    ("change", "words", "code"),
    [
        ({"offsets": "[0, 1, 0, 0]"}, "from an offset on", "E0306"),
        ({"output_sizes": "[[2], [3], [6], [24]]"}, "cut otherwise", "E0306"),
        ({"output_sizes": "[[2], [3], [6], [1, 3, 4, 2]]"}, "cut otherwise", "E0306"),
        ({"m_pos": "[0, 1]"}, "name", "E0302"),
        ({"strides": "[1, 2]"}, "strides of 2 numbers", "E0302"),
        ({"output_perm": "[0, 1, 2, 2]"}, "do not fit", "E0302"),
        ({"output_sizes": "[[2], [3], [5], [1, 3, 2, 4]]"}, "of the result", "E0302"),
    ],
)
def test_windows_that_are_refused(change: dict[str, str], words: str, code: str, tmp_path: Path):
    _refused(_im2col({**_NHWC, **change}, "2x7x8x4", "2x3x6x24"), tmp_path, words, code)


def _winograd(nchw: bool) -> str:
    """A convolution of `2x4x11x9` with eight filters of 3x3, as `iree-opt` writes it."""
    image, kernel = ("2x4x11x9", "8x4x3x3") if nchw else ("2x11x9x4", "3x3x4x8")
    out = "2x8x12x12" if nchw else "2x12x12x8"
    space, taps = ("[2, 3]", "[2, 3]") if nchw else ("[1, 2]", "[0, 1]")
    size = "output_tile_size(6) kernel_size(3)"
    return f"""func.func @main(%x: tensor<{image}xf32>, %w: tensor<{kernel}xf32>) -> tensor<{out}xf32> {{
  %z = arith.constant 0.0 : f32
  %a = tensor.empty() : tensor<8x8x4x8xf32>
  %b = iree_linalg_ext.winograd.filter_transform {size} kernel_dimensions({taps})
    ins(%w : tensor<{kernel}xf32>) outs(%a : tensor<8x8x4x8xf32>) -> tensor<8x8x4x8xf32>
  %c = tensor.collapse_shape %b [[0, 1], [2], [3]] : tensor<8x8x4x8xf32> into tensor<64x4x8xf32>
  %d = tensor.empty() : tensor<8x8x2x2x2x4xf32>
  %e = iree_linalg_ext.winograd.input_transform {size} image_dimensions({space})
    ins(%x : tensor<{image}xf32>) outs(%d : tensor<8x8x2x2x2x4xf32>) -> tensor<8x8x2x2x2x4xf32>
  %f = tensor.collapse_shape %e [[0, 1], [2, 3, 4], [5]] : tensor<8x8x2x2x2x4xf32> into tensor<64x8x4xf32>
  %g = tensor.empty() : tensor<64x8x8xf32>
  %h = linalg.fill ins(%z : f32) outs(%g : tensor<64x8x8xf32>) -> tensor<64x8x8xf32>
  %i = linalg.batch_matmul ins(%f, %c : tensor<64x8x4xf32>, tensor<64x4x8xf32>)
    outs(%h : tensor<64x8x8xf32>) -> tensor<64x8x8xf32>
  %j = tensor.expand_shape %i [[0, 1], [2, 3, 4], [5]] output_shape [8, 8, 2, 2, 2, 8] :
    tensor<64x8x8xf32> into tensor<8x8x2x2x2x8xf32>
  %k = tensor.empty() : tensor<{out}xf32>
  %r = iree_linalg_ext.winograd.output_transform {size} image_dimensions({space})
    ins(%j : tensor<8x8x2x2x2x8xf32>) outs(%k : tensor<{out}xf32>) -> tensor<{out}xf32>
  return %r : tensor<{out}xf32>
}}"""


@pytest.mark.parametrize("nchw", [False, True])
def test_the_transforms_make_a_convolution(nchw: bool, tmp_path: Path):
    x, w = _x(2, 11, 9, 4), _x(3, 3, 4, 8)
    want = sum(x[:, i : i + 9, j : j + 7] @ w[i, j] for i in range(3) for j in range(3))
    feeds = (x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)) if nchw else (x, w)
    found = _run(_winograd(nchw), tmp_path, *map(np.ascontiguousarray, feeds))
    found = found.transpose(0, 2, 3, 1) if nchw else found
    np.testing.assert_allclose(found[:, :9, :7], want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("nchw", [False, True])
def test_the_transform_of_an_image_is_one_dispatch(nchw: bool, tmp_path: Path):
    image, space = ("1x40x16x10", "[2, 3]") if nchw else ("1x16x10x40", "[1, 2]")
    type_ = "tensor<8x8x1x3x2x40xf32>"
    text = f"""func.func @main(%x: tensor<{image}xf32>) -> {type_} {{
  %o = tensor.empty() : {type_}
  %r = iree_linalg_ext.winograd.input_transform output_tile_size(6) kernel_size(3) image_dimensions({space})
    ins(%x : tensor<{image}xf32>) outs(%o : {type_}) -> {type_}
  return %r : {type_}
}}"""
    x = _x(1, 16, 10, 40)
    found = _run(text, tmp_path, np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if nchw else x)
    padded, matrix = np.pad(x, ((0, 0), (0, 4), (0, 4), (0, 0))), matrices()[0]
    tiles = np.stack([np.stack([padded[0, 6 * y : 6 * y + 8, 6 * z : 6 * z + 8] for z in range(2)]) for y in range(3)])
    want = np.einsum("ai,bj,yzijc->abyzc", matrix, matrix, tiles)
    np.testing.assert_allclose(found[:, :, 0], want, rtol=1e-3, atol=1e-3)
    assert fuseline.compile(tmp_path / "p.mlir").stats["dispatches"] == 1


@pytest.mark.parametrize(
    ("old", "new", "words", "code"),
    [
        ("output_tile_size(6)", "output_tile_size(4)", "tiles other than", "E0306"),
        ("image_dimensions([1, 2])", "image_dimensions([0, 2])", "image_dimensions", "E0302"),
        ("tensor<2x12x12x8xf32>", "tensor<2x18x12x8xf32>", "expected", "E0306"),
    ],
)
def test_transforms_that_are_refused(old: str, new: str, words: str, code: str, tmp_path: Path):
    text = _winograd(False)
    assert old in text
    _refused(text.replace(old, new), tmp_path, words, code)


@pytest.mark.parametrize("text", [_winograd(False), _im2col(_NCHW, "2x4x7x8", "2x24x18")])
@pytest.mark.parametrize("generic", [False, True])
def test_what_is_printed_is_read_again(text: str, generic: bool):
    printed = print_module(parse_module(text, new_context(), "p.mlir"), generic=generic)
    again = print_module(parse_module(printed, new_context(), "q.mlir"), generic=generic)
    assert printed == again and "iree_linalg_ext." in printed
