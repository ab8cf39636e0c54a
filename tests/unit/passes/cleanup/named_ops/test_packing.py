"""`linalg.pack` and `linalg.unpack` of known sizes, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseline.errors import FuselineError
from fuseline.ir.linalg_named import PackOp, UnPackOp
from fuseline.passes.cleanup.named_ops.packing import expand_pack, expand_unpack
from tests.unit.passes.cleanup.expanding import expanded, names, numbers, run

Pair = tuple[int, int]


def _type(shape: tuple[int, ...]) -> str:
    return f"tensor<{'x'.join(str(size) for size in shape)}xf32>"


def _words(tiles: Pair, outer: Pair, inner: Pair) -> str:
    order = [tiles[d] for d in inner]
    return f"outer_dims_perm = {[*outer]} inner_dims_pos = {[*inner]} inner_tiles = {order}"


def _packed_shape(shape: Pair, tiles: Pair, outer: Pair, inner: Pair) -> tuple[int, ...]:
    return (*(-(-shape[d] // tiles[d]) for d in outer), *(tiles[d] for d in inner))


def _pack(shape: Pair, tiles: Pair, outer: Pair, inner: Pair, padding: str = "padding_value(%p : f32)") -> str:
    packed = _type(_packed_shape(shape, tiles, outer, inner))
    return f"""func.func @main(%x: {_type(shape)}, %o: {packed}, %p: f32) -> {packed} {{
  %r = linalg.pack %x {padding} {_words(tiles, outer, inner)} into %o : {_type(shape)} -> {packed}
  return %r : {packed}
}}"""


def _unpack(shape: Pair, tiles: Pair, outer: Pair, inner: Pair) -> str:
    packed = _type(_packed_shape(shape, tiles, outer, inner))
    return f"""func.func @main(%x: {packed}, %o: {_type(shape)}) -> {_type(shape)} {{
  %r = linalg.unpack %x {_words(tiles, outer, inner)} into %o : {packed} -> {_type(shape)}
  return %r : {_type(shape)}
}}"""


def _packed(x: np.ndarray, tiles: Pair, outer: Pair, inner: Pair, fill: float) -> np.ndarray:
    high = [-size % tile for size, tile in zip(x.shape, tiles, strict=True)]
    whole = np.pad(x, [(0, more) for more in high], constant_values=fill)
    split = whole.reshape(whole.shape[0] // tiles[0], tiles[0], whole.shape[1] // tiles[1], tiles[1])
    return split.transpose(*(2 * d for d in outer), *(2 * d + 1 for d in inner))


PAIRS = st.tuples(st.integers(1, 7), st.integers(1, 7))
ORDERS = st.sampled_from([(0, 1), (1, 0)])


@settings(max_examples=25)
@given(PAIRS, st.tuples(st.integers(1, 4), st.integers(1, 4)), ORDERS, ORDERS)
def test_packing_and_back(shape: Pair, tiles: Pair, outer: Pair, inner: Pair) -> None:
    x = numbers(*shape)
    expected = _packed(x, tiles, outer, inner, -2.5)
    module = expanded(_pack(shape, tiles, outer, inner), PackOp, expand_pack)
    np.testing.assert_array_equal(run(module, x, np.zeros_like(expected), np.float32(-2.5)), expected)
    back = expanded(_unpack(shape, tiles, outer, inner), UnPackOp, expand_unpack)
    np.testing.assert_array_equal(run(back, expected, np.zeros_like(x)), x)


def test_one_dimension_may_have_no_tile() -> None:
    text = """func.func @main(%x: tensor<3x8xf32>, %o: tensor<3x2x4xf32>) -> tensor<3x2x4xf32> {
  %r = linalg.pack %x inner_dims_pos = [1] inner_tiles = [4] into %o : tensor<3x8xf32> -> tensor<3x2x4xf32>
  return %r : tensor<3x2x4xf32>
}"""
    x = numbers(3, 8)
    module = expanded(text, PackOp, expand_pack)
    np.testing.assert_array_equal(run(module, x, numbers(3, 2, 4)), x.reshape(3, 2, 4))


def test_whole_tiles_need_no_pad_and_no_slice() -> None:
    module = expanded(_pack((4, 6), (2, 3), (0, 1), (0, 1), ""), PackOp, expand_pack)
    assert "tensor.pad" not in names(module)
    back = expanded(_unpack((4, 6), (2, 3), (0, 1), (0, 1)), UnPackOp, expand_unpack)
    assert "tensor.extract_slice" not in names(back)


def test_without_a_padding_value_tiles_have_to_divide() -> None:
    text = _pack((4, 5), (2, 3), (0, 1), (0, 1), "").replace("x3xf32>\n", 'x3xf32> loc("p")\n')
    with pytest.raises(FuselineError, match="tiles do not divide the sizes") as caught:
        expanded(text, PackOp, expand_pack)
    assert (caught.value.code, caught.value.node) == ("E0106", "p")


@pytest.mark.parametrize("packs", [True, False])
def test_a_tile_that_only_the_run_knows(packs: bool) -> None:
    there, back = "tensor<8xf32>", "tensor<?x?xf32>"
    source, dest = (there, back) if packs else (back, there)
    text = f"""func.func @main(%x: {source}, %o: {dest}, %t: index) -> {dest} {{
  %r = linalg.{"pack" if packs else "unpack"} %x inner_dims_pos = [0] inner_tiles = [%t] into %o : {source} -> {dest}
  return %r : {dest}
}}"""
    with pytest.raises(FuselineError, match="a tile size is not known at compile time") as caught:
        if packs:
            expanded(text, PackOp, expand_pack)
        else:
            expanded(text, UnPackOp, expand_unpack)
    assert caught.value.code == "E0106"
