"""The box of an image that a block of a convolution's rows reads: its sizes, and how high blocks are."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import i8, i16, i32

from fuseline.analysis.image_box import ImageBox, image_box
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.dispatch.view import DispatchView
from tests.draws import RNG
from tests.graphs.program import Program, Size, dims_map
from tests.unit.targets.cpu.contraction_families.test_convolution import maps_of


def box_of(
    image: tuple[Size, Size], window: tuple[int, int], stride: int, dilation: int, *, channels: int = 3
) -> tuple[ImageBox | None, DispatchView]:
    """Of an image with its channels first."""
    p = Program((2, channels, *image), (*window, channels, 16), (2, *image, 16), constants=[1])
    out = [
        (n - (k - 1) * dilation - 1) // stride + 1 if isinstance(n, int) else n
        for n, k in zip(image, window, strict=True)
    ]
    maps = maps_of(2, [stride] * 2, [dilation] * 2, first=True)
    view = p.dispatch(p.multiply_add(p.unary(p.x[0]), p.x[1], p.zeros(2, *out, 16), maps, "pppprrr"))
    root = view.root_view
    assert root is not None
    return image_box(root, 0, view.shapes, lambda value: value in view.tensors), view


def test_a_box_holds_what_its_rows_read():
    """Counted element by element, for blocks of any size."""
    for _ in range(20):
        window = int(RNG.integers(1, 6)), int(RNG.integers(2, 6))
        stride, dilation = (int(n) for n in RNG.integers(1, 4, 2))
        box, view = box_of((60, 70), window, stride, dilation)
        assert box is not None and view.root_view is not None
        lines, pixels = (int(n) for n in RNG.integers(1, 9, 2))
        rows = {stride * y + dilation * i for y in range(lines) for i in range(window[0])}
        columns = {stride * x + dilation * j for x in range(pixels) for j in range(window[1])}
        counts, (*_, high, wide) = box.counts(lines, pixels), box.axes
        for axis, read in ((high, rows), (wide, columns)):
            reached = {axis.constant + axis.step * i for i in range(axis.size(counts))}
            assert read <= reached and max(read) == max(reached)
            assert axis.step == np.gcd.reduce([n - min(read) for n in read]) or len(axis.terms) == 2
        assert box.evaluated(counts) == 3 * high.size(counts) * wide.size(counts) <= box.elements(counts)


@pytest.mark.parametrize("first", [True, False])
def test_elements_that_lie_side_by_side_do_in_the_box(first: bool):
    p = Program((1, 3, 30, 31) if first else (1, 30, 31, 3), (3, 3, 3, 16), constants=[1])
    maps = maps_of(2, [2, 2], [1, 1], first=first)
    view = p.dispatch(p.multiply_add(p.unary(p.x[0]), p.x[1], p.zeros(1, 14, 15, 16), maps, "pppprrr"))
    assert view.root_view is not None
    box = image_box(view.root_view, 0, view.shapes, lambda value: value in view.tensors)
    assert box is not None and box.order == (0, 1, 2, 3)
    assert box.strides(box.counts(2, 15))[3] == 1


@pytest.mark.parametrize(("channels", "order"), [(6, (0, 2, 3, 1)), (5, (0, 1, 2, 3))])
def test_pairs_of_integers_are_neighbours_in_the_box(channels: int, order: tuple[int, ...]):
    """Channels, wherever they lie in memory; unless one of them would stand alone."""
    p = Program((1, channels, 30, 31), (3, 3, channels, 16), constants=[1], element=i32, arguments=[i16, i8])
    double = p.empty(1, channels, 30, 31, element=i16)
    image = p.elementwise([p.x[0]], double, lambda b: b.op(arith.AddiOp, b.args[0], b.args[0]))
    maps = maps_of(2, [1, 1], [1, 1], first=True)
    view = p.dispatch(p.multiply_add(image, p.x[1], p.zeros(1, 28, 29, 16), maps, "pppprrr"))
    assert view.root_view is not None
    box = image_box(view.root_view, 0, view.shapes, lambda value: value in view.tensors)
    assert box is not None and box.order == order


def test_a_turned_image_lies_in_the_box_as_it_is_stored():
    p = Program((3, 30, 31), (3, 3, 3, 16), constants=[1])
    turned = p.moved(p.unary(p.x[0]), [2, 0, 1], 30, 31, 3)
    x = p.expand(turned, 1, 30, 31, 3, groups=[[0, 1], [2], [3]])
    y = p.multiply_add(x, p.x[1], p.zeros(1, 28, 29, 16), maps_of(2, [1, 1], [1, 1]), "pppprrr")
    view = p.dispatch(y)
    assert view.root_view is not None
    box = image_box(view.root_view, 0, view.shapes, lambda value: value in view.tensors)
    assert box is not None and box.order == (0, 1, 3, 2)


@pytest.mark.parametrize(("rows", "written", "boxed"), [("kr", "rc", True), ("rk", "rc", False), ("kr", "cr", False)])
def test_rows_that_lie_across_memory_have_a_box(rows: str, written: str, boxed: bool):
    """As those of a 1x1 convolution do whose channels are far apart; not rows that lie as they are walked, nor what
    vectors of the result run along."""
    sizes = {"r": int(RNG.integers(20, 400)), "c": 24, "k": int(RNG.integers(2, 40))}
    p = Program([sizes[n] for n in rows], (sizes["k"], 24), constants=[1])
    maps = [dims_map(3, ["rck".index(n) for n in names]) for names in (rows, "kc", written)]
    out = p.zeros(*(sizes[n] for n in written))
    view = p.dispatch(p.multiply_add(p.unary(p.x[0]), p.x[1], out, maps, "ppr"))
    assert view.root_view is not None
    box = image_box(view.root_view, 0, view.shapes, lambda value: value in view.tensors)
    assert (box is not None) == boxed
    assert box is None or (box.order == (0, 1) and box.strides(box.counts(1, 8))[1] == 1)


def test_no_box_of_a_filter_a_product_or_what_is_too_large():
    p = Program((8, 9), (9, 4))
    product = p.matmul(p.x[0], p.x[1])
    p.done(product)
    root = product.owner
    assert is_generic(root) and image_box(StructuredOp(root), 0, ShapeAnalysis(), lambda _: True) is None
    _, view = box_of((30, 30), (3, 3), 1, 1)
    assert view.root_view is not None and image_box(view.root_view, 1, view.shapes, lambda _: True) is None
    assert box_of((30, 30), (3, 3), 1, 1, channels=400)[0] is None
