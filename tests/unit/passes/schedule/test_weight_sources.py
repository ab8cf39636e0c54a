"""What packed constants are made from: the model's bytes, once for all that have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fuseline.passes.schedule.weight_sources import weight_sources
from fuseline.weight_layouts import LayoutKey, PackedLayout
from tests.draws import RNG


def _key(rows: int, columns: int) -> LayoutKey:
    layout = PackedLayout(pad_to=(rows, columns), reshape=(rows, columns), permutation=(1, 0))
    return LayoutKey((rows, columns), layout)


def _bytes(array: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def test_equal_bytes_are_one_block() -> None:
    rows, columns = (int(n) for n in RNG.integers(2, 9, 2))
    weight = RNG.standard_normal((rows, columns)).astype(np.float32)
    plain, packed = _bytes(weight.copy()), _bytes(weight.T)
    found = weight_sources(
        {1: (weight, _key(rows, columns)), 2: (weight.copy(), _key(rows, columns))}, [plain, packed, packed]
    )
    assert set(found) == {1, 2}
    assert found[1].data is plain and found[2].data is plain, "a block that is stored as it is serves both"
    assert found[1].data.tobytes() == weight.tobytes()


def test_what_no_plain_block_has_is_shared_among_the_packed() -> None:
    weight = RNG.standard_normal((4, 6)).astype(np.float32)
    block = _bytes(weight.T)
    found = weight_sources({0: (weight, _key(4, 6)), 1: (weight.copy(), _key(4, 6))}, [block, block])
    assert found[0].data is found[1].data and found[0].data.tobytes() == weight.tobytes()


def test_a_part_of_a_weight_has_no_source() -> None:
    weight = RNG.standard_normal((4, 12)).astype(np.float32)
    assert weight_sources({0: (weight[:, :6], _key(4, 6))}, [_bytes(weight[:, :6].T)]) == {}
    assert set(weight_sources({0: (weight[:2].T, _key(12, 2))}, [_bytes(weight[:2])])) == {0}, "moved, but whole"
