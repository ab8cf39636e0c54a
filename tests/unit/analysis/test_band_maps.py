"""How far bands are apart that a copy takes of a tensor is an extent; steps of other ops and copies are code."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from xdsl.dialects import linalg
from xdsl.dialects.func import FuncOp

from fuseline.analysis.band_maps import maps_but_for_bands, takes_bands
from fuseline.analysis.extents_key import extents_key
from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.dedup.value_digests import ValueDigests
from tests.draws import RNG

PROGRAM = """func.func @main(%x: tensor<{size}x5xf32>) -> tensor<3x{rows}x5xf32> {{
  %e = tensor.empty() : tensor<3x{rows}x5xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(b, r, c) -> ({read}, c)>, affine_map<(b, r, c) -> (b, r, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%x : tensor<{size}x5xf32>) outs(%e : tensor<3x{rows}x5xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %v = arith.negf %a : f32
    linalg.yield {made} : f32
  }} -> tensor<3x{rows}x5xf32>
  return %r : tensor<3x{rows}x5xf32>
}}"""


def _entry(step: int, rows: int, *, read: str = "{step} * b + r", made: str = "%a") -> FuncOp:
    text = PROGRAM.format(size=(rows + 2) * step + rows, rows=rows, read=read.format(step=step), made=made)
    (entry,) = parse_module(text, new_context()).ops
    assert isinstance(entry, FuncOp)
    return entry


def _copy(entry: FuncOp) -> linalg.ops.GenericOp:
    (found,) = (op for op in entry.walk() if isinstance(op, linalg.ops.GenericOp))
    return found


def _said(entry: FuncOp, numbers: AttributeNumbers) -> tuple[Hashable, Hashable]:
    return extents_key(entry, numbers), ValueDigests(entry).of(_copy(entry).results[0])


def _two_steps() -> tuple[int, int]:
    first = int(RNG.integers(2, 30))
    return first, first + int(RNG.integers(1, 30))


def test_bands_of_any_step_are_alike():
    numbers = AttributeNumbers()
    one, other = (_entry(step, int(RNG.integers(2, 40))) for step in _two_steps())
    assert takes_bands(_copy(one)) and _said(one, numbers) == _said(other, numbers)
    assert maps_but_for_bands(_copy(one)) == maps_but_for_bands(_copy(other))


@pytest.mark.parametrize("given", [{"made": "%v"}, {"read": "{step} * r"}])
def test_other_steps_count(given: dict[str, str]):
    numbers, rows = AttributeNumbers(), int(RNG.integers(2, 40))
    one, other = (_entry(step, rows, **given) for step in _two_steps())
    assert not takes_bands(_copy(one))
    assert all(a != b for a, b in zip(_said(one, numbers), _said(other, numbers), strict=True))


def test_bands_are_no_tensor_as_it_is():
    numbers = AttributeNumbers()
    one, other = (_entry(2, 4, read=read) for read in ("2 * b + r", "b + r"))
    assert all(a != b for a, b in zip(_said(one, numbers), _said(other, numbers), strict=True))
