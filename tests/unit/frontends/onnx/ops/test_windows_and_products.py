"""Products, convolutions and poolings: attributes, odd and symbolic sizes; and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.frontends.onnx.ops import (
    convolution,
    einsum,
    matmul,
    phases,
    pooling,
    pooling_positions,
    scattered,
    transposed_convolution,
    windows,
)
from fuseline.ir.costs import MachineCosts
from fuseline.ir.dim import symbol
from tests.unit.frontends.onnx.ops.lowerings import RNG, agree, error, ints, normal, operators_of, refusal

SYMBOLS = pytest.mark.parametrize("free", [(), (0,)])


def test_what_is_lowered_here() -> None:
    assert operators_of(matmul) == {"Gemm", "MatMul"}
    assert operators_of(einsum) == {"Einsum"}
    assert operators_of(convolution) == {"Conv"}
    assert operators_of(transposed_convolution) == {"ConvTranspose"}
    assert operators_of(pooling) == set(
        "AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool".split()
    )
    assert operators_of(pooling_positions) == {"MaxUnpool"}


# -- products ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)), ((6, 1, 3, 4), (2, 4, 5))],
)
@SYMBOLS
def test_products_as_numpy_forms_them(a: tuple[int, ...], b: tuple[int, ...], free: Sequence[int]) -> None:
    agree("MatMul", [normal(*a), normal(*b)], free=free)
    x, y = ints(-9, 9, *a, dtype=np.int32), ints(-9, 9, *b, dtype=np.int32)
    agree("MatMul", [x, y], wanted=[np.asarray(x @ y)], constants=(1,))


def test_a_product_with_a_scalar() -> None:
    assert refusal("MatMul", [normal(3), normal()]) == "unsupported-rank: a scalar operand"


@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("more", [{}, {"alpha": 0.5}, {"beta": 0.0}, {"alpha": 2.0, "beta": -1.5}])
def test_products_plus_a_third(turned: tuple[int, int], more: Mapping[str, float]) -> None:
    a, b = normal(*((4, 3) if turned[0] else (3, 4))), normal(*((5, 4) if turned[1] else (4, 5)))
    for c in (normal(5), normal(3, 1), normal(3, 5), normal()):
        agree("Gemm", [a, b, c], {"transA": turned[0], "transB": turned[1], **more}, constants=(1, 2))
    agree("Gemm", [a, b], {"transA": turned[0], "transB": turned[1], **more}, free=(0,))


def test_products_of_integers() -> None:
    a, b, c = (ints(-9, 9, *shape, dtype=np.int32) for shape in ((3, 4), (4, 5), (5,)))
    agree("Gemm", [a, b, c], wanted=[a @ b + c])
    assert refusal("Gemm", [a, b, c], {"alpha": 0.5}) == "unsupported-dtype: scaled integer product"


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("ij,jk", [(3, 4), (4, 5)]),
        ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
        ("ij->ji", [(3, 4)]),
        ("ij->", [(3, 4)]),
        ("ii->i", [(4, 4)]),
        ("iji->j", [(3, 4, 3)]),
        ("i,j->ij", [(3,), (4,)]),
        ("...i->...", [(2, 3, 4)]),
        (" b i j , j -> b i ", [(1, 3, 4), (4,)]),
        ("ij,ij->", [(3, 4), (1, 4)]),
        ("ba,c", [(2, 3), (4,)]),
        ("i,i,i->i", [(3,)] * 3),
        ("ij,jk,kl->il", [(3, 4), (4, 5), (5, 2)]),
        ("ij,kl,jk->il", [(3, 4), (5, 2), (4, 5)]),
        ("btkf,btkfd,btk->btd", [(2, 3, 2, 4), (2, 3, 2, 4, 5), (2, 3, 2)]),
        ("...i,ij,...j->...", [(2, 3), (3, 4), (2, 4)]),
        ("a,ab,c,cb,ac->b", [(3,), (3, 4), (5,), (1, 4), (3, 5)]),
        ("ab,ab,ab->", [(3, 1), (1, 4), (3, 4)]),
        ("ii,j,k", [(3, 3), (2,), (4,)]),
    ],
)
def test_einstein_sums(equation: str, shapes: Sequence[tuple[int, ...]]) -> None:
    arrays = [normal(*shape) for shape in shapes]
    wanted = np.asarray(np.einsum(equation.replace(" ", ""), *arrays))
    agree("Einsum", arrays, {"equation": equation}, wanted=[wanted])
    repeats = "..." in equation or any(1 in shape for shape in shapes)
    agree("Einsum", arrays, {"equation": equation}, wanted=[wanted], free=() if repeats else range(len(arrays)))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [("ij,jk->ii", [(3, 4), (4, 3)]), ("ij->i", [(3,)]), ("i,j->ij", [(3,)])],
)
def test_sums_of_another_form(equation: str, shapes: Sequence[tuple[int, ...]]) -> None:
    assert refusal("Einsum", [normal(*s) for s in shapes], {"equation": equation}).startswith("einsum-form")


# -- convolutions ------------------------------------------------------------------------------------------------------

IMAGES = [((2, 4, 9), (6, 4, 3)), ((2, 4, 8, 7), (6, 4, 3, 2)), ((1, 2, 5, 6, 4), (3, 2, 2, 3, 1))]


@pytest.mark.parametrize(("image", "filters"), IMAGES)
@SYMBOLS
def test_convolutions_of_each_rank(image: tuple[int, ...], filters: tuple[int, ...], free: Sequence[int]) -> None:
    inputs, n = [normal(*image), normal(*filters), normal(filters[0])], len(image) - 2
    agree("Conv", inputs, free=free, rtol=1e-4, atol=1e-4)
    attributes = {"strides": [2] * n, "pads": [1, 0, 2][:n] + [0, 1, 1][:n]}
    agree("Conv", inputs[:2], attributes, constants=(1,), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convolutions_of_groups(groups: int, auto_pad: str) -> None:
    inputs = [normal(2, 4, 7, 8), normal(8 if groups < 4 else 4, 4 // groups, 3, 2)]
    agree("Conv", inputs, {"group": groups, "auto_pad": auto_pad, "strides": [2, 1]}, rtol=1e-4, atol=1e-4)
    agree(
        "Conv", inputs, {"group": groups, "dilations": [2, 3]}, free=(0,) if groups == 1 else (), rtol=1e-4, atol=1e-4
    )


def test_convolutions_that_are_refused() -> None:
    x, w = normal(1, 2, 5, 5), normal(3, 2, 3, 3)
    error("E0107", r"a window of \[8, 3\] is larger than the padded image", "Conv", [x, normal(3, 2, 8, 3)])
    error("E0107", "strides of 1 numbers; an image of 2 dimensions needs 2", "Conv", [x, w], {"strides": [1]})
    error("E0107", "pads of 2 numbers; an image of 2 dimensions needs 4", "Conv", [x, w], {"pads": [1, 1]})
    error("E0107", "the bias has 2 dimensions, not one", "Conv", [x, w, normal(3, 1)])
    assert refusal("Conv", [x, w], free=(1,)).startswith("symbolic-window")


@pytest.mark.parametrize("constants", [(1,), ()])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 3]},
        {"strides": [2, 2], "pads": [1, 0, 2, 1]},
        {"strides": [2, 3], "output_padding": [1, 2]},
        {"strides": [2, 2], "output_shape": [11, 12]},
        {"strides": [3, 2], "auto_pad": "SAME_UPPER"},
        {"strides": [3, 2], "auto_pad": "SAME_LOWER"},
        {"dilations": [2, 1], "pads": [1, 1, 1, 1]},
    ],
)
def test_transposed_convolutions(attributes: Mapping[str, Any], constants: Sequence[int]) -> None:
    inputs = [normal(2, 4, 5, 6), normal(4, 3, 3, 4), normal(3)]
    agree("ConvTranspose", inputs, attributes, constants=constants, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("strides", [[1, 1], [2, 3]])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_transposed_convolutions_of_groups(groups: int, strides: list[int]) -> None:
    for constants in ((), (1,)):
        inputs = [normal(1, 4, 5, 3), normal(4, 2 if groups < 4 else 1, 4, 3)]
        agree("ConvTranspose", inputs, {"group": groups, "strides": strides}, constants=constants, rtol=1e-4, atol=1e-4)


def test_a_transposed_convolution_of_one_pixel() -> None:
    inputs = [normal(2, 5, 1, 1), normal(5, 3, 4, 4)]
    agree("ConvTranspose", inputs, {"strides": [2, 2]}, constants=(1,), rtol=1e-4, atol=1e-4)
    agree("ConvTranspose", inputs, {"pads": [1, 1, 1, 1], "strides": [2, 1]}, constants=(1,), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kernel", "strides"), [((4, 3), (2, 3)), ((3, 5), (2, 2)), ((2, 2), (3, 1))])
@pytest.mark.parametrize("groups", [1, 2])
def test_filters_by_phase(kernel: tuple[int, int], strides: tuple[int, int], groups: int) -> None:
    """Every tap stands where its phase and place within it say, mirrored."""
    w = normal(4, 3, *kernel)
    first = [int(RNG.integers(stride)) for stride in strides]
    whole = np.pad(w, [(0, 0), (0, 0), *((0, -k % s) for k, s in zip(kernel, strides, strict=True))])
    found = phases.ordered_phases(whole, groups, strides, first)
    taps = [-(-k // s) for k, s in zip(kernel, strides, strict=True)]
    assert found.shape == (groups * strides[0] * strides[1] * 3, 4 // groups, *taps)
    parts = found.reshape(groups, *strides, 3, 4 // groups, *taps)
    for group, p, q, f, c, t, u in np.ndindex(*parts.shape):
        y, x = (
            (taps[axis] - 1 - tap) * strides[axis] + (phase + first[axis]) % strides[axis]
            for axis, (tap, phase) in enumerate(((t, p), (u, q)))
        )
        inside = y < kernel[0] and x < kernel[1]
        assert parts[group, p, q, f, c, t, u] == (w[group * (4 // groups) + c, f, y, x] if inside else 0)
    window = phases.phase_window((5, symbol("n")), kernel, strides)
    assert window.kernel == tuple(taps) and window.low == window.high == tuple(tap - 1 for tap in taps)
    assert window.out[0] == 5 + taps[0] - 1 and window.padded == (max(taps) > 1)


def test_where_a_product_is_worth_another_pass() -> None:
    costs = MachineCosts()
    small, large = [1, 1], [64, 64]
    assert scattered.mostly_border(small, [4, 4], [2, 2], [4, 4], costs)
    assert scattered.mostly_border(small, [4, 4], [1, 1], [4, 4], costs)
    assert not scattered.mostly_border(small, [4, 4], [1, 1], [1, 1], costs)  # nothing but the pixel is asked for
    assert not scattered.mostly_border(large, [4, 4], [2, 2], [130, 130], costs)
    assert not scattered.mostly_border([symbol("n"), 1], [4, 4], [2, 2], [4, 4], costs)
    assert not scattered.mostly_border([0, 1], [4, 4], [2, 2], [4, 4], costs)


# -- poolings ----------------------------------------------------------------------------------------------------------

WINDOWS: list[dict[str, Any]] = [
    {"kernel_shape": [2, 3]},
    {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [3, 2], "strides": [3, 2], "pads": [1, 1, 0, 0], "ceil_mode": 1},
    {"kernel_shape": [3, 3], "strides": [2, 1], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [2, 2], "strides": [2, 3], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [2, 2], "dilations": [2, 3]},
]


@pytest.mark.parametrize("attributes", WINDOWS)
@SYMBOLS
def test_poolings(attributes: Mapping[str, Any], free: Sequence[int]) -> None:
    x = normal(2, 3, 9, 8)
    agree("MaxPool", [x], attributes, free=free, opset=19)
    if "dilations" in attributes and free:
        return
    agree("AveragePool", [x], attributes, free=free, opset=19, rtol=1e-4)
    agree("AveragePool", [x], {**attributes, "count_include_pad": 1}, free=free, opset=19, rtol=1e-4)
    if "ceil_mode" not in attributes:
        agree("LpPool", [x], {**attributes, "p": 3}, opset=18, rtol=1e-4)


@pytest.mark.parametrize("attributes", [*WINDOWS[:4], {**WINDOWS[1], "storage_order": 1}])
def test_places_of_maxima(attributes: Mapping[str, Any]) -> None:
    x = RNG.permutation(2 * 3 * 9 * 8).reshape(2, 3, 9, 8).astype(np.float32)
    agree("MaxPool", [x], attributes, outputs=2)


@pytest.mark.parametrize("given", [True, False])
def test_values_put_back(given: bool) -> None:
    values, size = normal(1, 2, 2, 3), 4 * 6
    positions = np.stack([RNG.permutation(size)[:6] + size * c for c in range(2)]).reshape(1, 2, 2, 3)
    wanted = np.zeros(2 * size, np.float32)
    wanted[positions.reshape(-1)] = values.reshape(-1)
    inputs = [values, positions, np.array([1, 2, 4, 6])] if given else [values, positions]
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    agree("MaxUnpool", inputs, attributes, wanted=[wanted.reshape(1, 2, 4, 6)], constants=(2,) if given else ())
    odd = refusal("MaxUnpool", [values[0], positions[0]], attributes)
    assert odd == "unsupported-rank: rank 3 with a window of 2 axes"


@SYMBOLS
def test_poolings_of_whole_images(free: Sequence[int]) -> None:
    for shape in ((2, 3, 5), (2, 3, 4, 5)):
        x = normal(*shape)
        for op_type in ("GlobalAveragePool", "GlobalMaxPool"):
            agree(op_type, [x], free=free, rtol=1e-4)
        agree("GlobalLpPool", [x], {"p": 3}, free=free, rtol=1e-4)
        agree("GlobalLpPool", [x], rtol=1e-4)


def test_poolings_that_are_refused() -> None:
    x = normal(1, 2, 5, 5)
    assert refusal("LpPool", [x], {"kernel_shape": [2, 2], "p": 0}) == "unsupported-order: p = 0"
    dilated = {"kernel_shape": [2, 2], "dilations": [2, 2], "pads": [1, 1, 1, 1]}
    assert refusal("AveragePool", [x], dilated, opset=19, free=(0,)).startswith("symbolic-window: an average")
    error("E0107", r"a window of \[8, 2\] is larger", "MaxPool", [x], {"kernel_shape": [8, 2]})


# -- windows -----------------------------------------------------------------------------------------------------------


def test_maps_from_loops_to_the_image() -> None:
    window = windows.Window((3, 2), (2, 1), (1, 3), (0, 0), (0, 0), (4, 4))
    found = windows.window_map(6, [0, 5], [1, 2], [3, 4], window)
    for loops in ((1, 2, 3, 1, 1, 7), (0, 0, 0, 2, 0, 4)):
        n, y, x, i, j, c = loops
        assert found.eval(loops, ()) == (n, c, 2 * y + i, x + 3 * j)
    assert not window.padded
