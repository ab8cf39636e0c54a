"""Where an element lies in a constant that another kernel laid out: where the layout puts it."""

from __future__ import annotations

from math import prod
from typing import Any, cast

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.emit.shared_layouts import shared_index
from fuseline.weight_layouts import LayoutKey, PackedLayout, SharedLayout, fill
from tests.draws import generator


class Numbers:
    """Coordinates on ints, as `DispatchBuffers` has them in code."""

    class view:
        class entry:
            class sym_name:
                data = "reader"

    def delinearize(self, index: Any, sizes: tuple[Dim, ...]) -> list[Index]:
        parts = np.unravel_index(index.base, tuple(int(cast("int", size)) for size in sizes))
        return [Index(int(part)) for part in parts]

    def linear(self, index: list[Any], sizes: list[int], lanes: int) -> Index:
        assert lanes == 1
        return Index(int(np.ravel_multi_index([int(part.base) for part in index], sizes)))


def _layout(rng: np.random.Generator) -> tuple[PackedLayout, tuple[int, ...]]:
    """Two dimensions in blocks, padded, the digits in any order; and the sizes of the constant."""
    blocks = [(int(a), int(b)) for a, b in rng.integers(1, 5, (2, 2))]
    pad_to = tuple(a * b for a, b in blocks)
    dims = tuple(int(rng.integers(1, size + 1)) for size in pad_to)
    order = tuple(int(i) for i in rng.permutation(4))
    return PackedLayout(pad_to, tuple(extent for block in blocks for extent in block), order), dims


@pytest.mark.parametrize("draw", range(10))
def test_every_element_is_where_the_layout_puts_it(draw: int) -> None:
    rng = generator(f"layout {draw}")
    layout, dims = _layout(rng)
    axes = (0, 1) if rng.random() < 0.5 else (1, 0)
    shared = SharedLayout(axes, LayoutKey(dims, layout))
    constant = rng.permutation(prod(dims)).reshape(dims).astype(np.int64) + 1
    held = np.zeros(layout.elements, np.int64)
    fill(constant, shared.key, held.view(np.uint8))
    buffers = cast("DispatchBuffers", Numbers())
    for place in np.ndindex(*dims):
        mine = [Index(0), Index(0)]
        for axis, coordinate in zip(axes, place, strict=True):
            mine[axis] = Index(coordinate)
        found = shared_index(buffers, shared, mine, 1)
        assert held[int(cast("int", found.base))] == constant[place]


def test_a_layout_that_transforms_has_no_places() -> None:
    layout = PackedLayout((2,), (2,), (0,), matrices=(((1.0, 1.0), (1.0, -1.0)),))
    with pytest.raises(FuselineError, match="elements have no place") as raised:
        shared_index(cast("DispatchBuffers", Numbers()), SharedLayout((0,), LayoutKey((2,), layout)), [Index(0)], 1)
    assert (raised.value.code, raised.value.node) == ("E0901", "reader")
