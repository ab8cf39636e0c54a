"""Whether bands of an image are possible that a reshape makes of a product's rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from xdsl.dialects import linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.structured import DENSE, kind
from fuseline.ir.build import dims_map
from fuseline.ir.context import new_context
from fuseline.ir.dim import symbol
from fuseline.passes.dispatch.band_height import BandChoice
from fuseline.passes.layout.rewriting.image_bands import image_bands
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.targets.target import Refusal
from tests.graphs.program import Program


def _answer(p: Program, image: SSAValue, **described: Any) -> BandChoice | Refusal:
    ctx = new_context()
    ctx.target = replace(ctx.target, **described)
    ctx.symbols |= {name: symbol(name) for name in p.names}
    scope = Scope(p.function, ctx)
    makers = [op for op in p.function.walk() if isinstance(op, linalg.ops.GenericOp) and kind(op) in DENSE]
    return image_bands(scope, image, makers[:1])


def _product(p: Program, pixels: SSAValue, weights: SSAValue) -> SSAValue:
    maps = [dims_map(4, dims) for dims in ([0, 1, 3], [3, 2], [0, 1, 2])]
    init = p.zeros(*p.shape(pixels)[:2], p.shape(weights)[1])
    return p.multiply_add(pixels, weights, init, maps, "pppr")


def _windowed(p: Program, image: SSAValue, filter_: SSAValue) -> SSAValue:
    image_map = AffineMap.from_callable(lambda h, w, c, k, m: (h + k, w + m, c))
    rows, columns, channels = p.shape(image)
    init = p.zeros(*(size - 2 if isinstance(size, int) else size for size in (rows, columns)), channels)
    return p.multiply_add(image, filter_, init, [image_map, dims_map(5, [3, 4, 2]), dims_map(5, [0, 1, 2])], "ppprr")


def _program(rows: Any, columns: int, channels: int = 32, deep: int = 16, windows: int = 1) -> tuple[Program, SSAValue]:
    """A product, its rows as pixels, 3 x 3 windows over them, relu, and a product behind the first of these."""
    p = Program((rows, columns, deep), (deep, channels), (3, 3, channels), (channels, 24))
    image = _product(p, p.x[0], p.x[1])
    made = [p.relu(_windowed(p, image, p.x[2])) for _ in range(windows)]
    p.done(_product(p, made[0], p.x[3]), *made[1:])
    return p, image


SIZES = [(259, 259, 32), (130, 131, 32), (301, 300, 16), (257, 130, 64)]


@pytest.mark.parametrize(("rows", "columns", "channels"), SIZES)
def test_bands(rows: int, columns: int, channels: int) -> None:
    found = _answer(*_program(rows, columns, channels))
    assert isinstance(found, BandChoice) and found.loss_ns < 0
    assert sum(bands.count * bands.rows for bands in found.cut) == rows - 2
    assert found.scratch_bytes < 5 / 8 * (2 << 20)


def test_the_product_behind_counts() -> None:
    """What the window makes is not stored either."""
    (p, image), alone = _program(259, 259), Program((259, 259, 16), (16, 32), (3, 3, 32))
    made = _product(alone, alone.x[0], alone.x[1])
    alone.done(_windowed(alone, made, alone.x[2]))
    one, other = _answer(p, image), _answer(alone, made)
    assert isinstance(one, BandChoice) and isinstance(other, BandChoice)
    assert one.loss_ns < other.loss_ns and one.count > other.count


def _refusal(found: BandChoice | Refusal) -> str:
    assert isinstance(found, Refusal) and found.detail
    return found.code


def test_rows_that_only_a_run_knows() -> None:
    assert _refusal(_answer(*_program("h", 259))) == "loops"


def test_several_windows() -> None:
    assert _refusal(_answer(*_program(259, 259, windows=2))) == "window"


def test_rows_that_cost_more_than_they_save() -> None:
    found = _answer(*_program(259, 259, deep=2048))
    assert _refusal(found) == "unprofitable" and isinstance(found, Refusal) and found.numbers["predicted_loss_ns"] > 0


def test_bands_that_nothing_keeps() -> None:
    assert _refusal(_answer(*_program(259, 259), band_bytes_limit=1)) == "scratch"
