"""Packs and unpacks as one op that reads where a tile and a place in it lead, against those of known sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseline.ir.build import Emitter
from fuseline.ir.linalg_named import PackOp, UnPackOp
from fuseline.ir.provenance import replace
from fuseline.passes.cleanup.named_ops.packing_unknown import pack_unknown, unpack_unknown
from tests.unit.passes.cleanup.expanding import expanded, names, numbers, run

WORDS = "outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [3, 2]"


def _pack(op: PackOp) -> None:
    replace(op, [], [pack_unknown(Emitter.before(op), op, [3, 2])])


def _unpack(op: UnPackOp) -> None:
    replace(op, [], [unpack_unknown(Emitter.before(op), op, [3, 2])])


def _text(name: str, padding: str, source: str, dest: str) -> str:
    return f"""func.func @main(%x: {source}, %o: {dest}, %p: f32) -> {dest} {{
  %r = linalg.{name} %x {padding} {WORDS} into %o : {source} -> {dest}
  return %r : {dest}
}}"""


WHOLE, TILED = "tensor<?x?xf32>", "tensor<?x?x3x2xf32>"


def _tiled(x: np.ndarray) -> np.ndarray:
    rows, columns = x.shape[0] // 2, x.shape[1] // 3
    return x.reshape(rows, 2, columns, 3).transpose(2, 0, 3, 1)


@settings(max_examples=20)
@given(st.integers(1, 7), st.integers(1, 7))
def test_a_padded_pack_and_back(rows: int, columns: int) -> None:
    x = numbers(rows, columns)
    expected = _tiled(np.pad(x, [(0, -rows % 2), (0, -columns % 3)], constant_values=4.5))
    module = expanded(_text("pack", "padding_value(%p : f32)", WHOLE, TILED), PackOp, _pack)
    np.testing.assert_array_equal(run(module, x, np.zeros_like(expected), np.float32(4.5)), expected)
    back = expanded(_text("unpack", "", TILED, WHOLE), UnPackOp, _unpack)
    np.testing.assert_array_equal(run(back, expected, np.zeros_like(x), np.float32(0)), x)


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (4, 9)])
def test_without_a_padding_value_nothing_is_padded(rows: int, columns: int) -> None:
    x = numbers(rows, columns)
    module = expanded(_text("pack", "", WHOLE, TILED), PackOp, _pack)
    assert "tensor.pad" not in names(module)
    np.testing.assert_array_equal(run(module, x, np.zeros_like(_tiled(x)), np.float32(0)), _tiled(x))
