"""Which blocks a file holds for a program's constants: each once, and weights instead of what is made from them."""

from __future__ import annotations

from typing import Any

from fuseline.runtime.stored_constants import laid_out_json, made_constants, of_both, stored_blocks, with_sources
from fuseline.weight_layouts import WeightSource


class _Source:
    """Stands for a weight that constants are made from."""

    def __init__(self, data: Any) -> None:
        self.data = data


def _block(*numbers: int) -> Any:
    return memoryview(bytearray(numbers))


def _source(data: Any) -> WeightSource:
    return _Source(data)  # pyright: ignore[reportReturnType] - only `data` is read


def test_sources_are_by_number():
    a, b = _block(1), _block(2)
    source = _source(_block(3))
    assert with_sources([a, b], {1: source}) == [(a, None), (b, source)]


def test_a_fallback_shares_what_is_the_same_block():
    a, b, c, like_a = _block(1), _block(2), _block(3), _block(1)
    kept, numbers = of_both([(a, None), (b, None)], [(b, None), (c, None), (like_a, None), (c, None)])
    assert [id(block) for block, _ in kept] == [id(one) for one in (a, b, c, like_a)] and numbers == [1, 2, 3, 2]
    assert of_both([(a, None)]) == ([(a, None)], [])


def test_a_weight_in_several_forms_is_stored_once():
    weight, plain = _block(7, 8), _block(9)
    constants = [(_block(1), _source(weight)), (plain, None), (_block(2), _source(weight)), (plain, None)]
    sections, numbers = stored_blocks(constants)
    assert [id(section) for section in sections] == [id(weight), id(plain)] and numbers == [0, 1, 0, 1]


def test_files_that_hold_every_block_say_nothing():
    stored = [_block(1), _block(2)]
    assert laid_out_json([(block, None) for block in stored], [0, 1]) is None
    assert made_constants(stored, None) == (stored, {}, 0.0)
