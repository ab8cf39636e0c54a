"""Constants read as another kernel asked for them: what can, what it costs, and why others cannot."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.func import FuncOp

from fuseline.ir.context import new_context
from fuseline.ir.costs import MachineCosts
from fuseline.ir.text import parse_module
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.nests.loop_nest import LoopNest
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.layout_sharing import layout_price, layout_refusal, reader_plan
from fuseline.targets.target import Refusal
from fuseline.weight_layouts import LayoutKey, PackedLayout, SharedLayout

ROWS, COLUMNS = 64, 32
GATHER = f"""func.func @main(%table: tensor<{ROWS}x{COLUMNS}xf32>, %i: tensor<LINESxi64>)
    -> tensor<LINESx{COLUMNS}xf32> {{
  %e = tensor.empty() : tensor<LINESx{COLUMNS}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]}} ins(%i : tensor<LINESxi64>) outs(%e : tensor<LINESx{COLUMNS}xf32>) {{
  ^bb0(%p: i64, %o: f32):
    %row = arith.index_cast %p : i64 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %table[%row, %column] : tensor<{ROWS}x{COLUMNS}xf32>
    linalg.yield %v : f32
  }} -> tensor<LINESx{COLUMNS}xf32>
  return %r : tensor<LINESx{COLUMNS}xf32>
}}"""
READ = f"""func.func @main(%table: tensor<{ROWS}x{COLUMNS}xf32>) -> tensor<{ROWS}x{COLUMNS}xf32> {{
  %e = tensor.empty() : tensor<{ROWS}x{COLUMNS}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]}} ins(%table : tensor<{ROWS}x{COLUMNS}xf32>)
      outs(%e : tensor<{ROWS}x{COLUMNS}xf32>) {{
  ^bb0(%p: f32, %o: f32):
    %v = arith.negf %p : f32
    linalg.yield %v : f32
  }} -> tensor<{ROWS}x{COLUMNS}xf32>
  return %r : tensor<{ROWS}x{COLUMNS}xf32>
}}"""
PANELS = PackedLayout((ROWS, COLUMNS), (ROWS // 16, 16, COLUMNS), (0, 2, 1))
"""16 rows side by side: the columns of a row are 16 elements apart."""

PLAIN = PackedLayout((ROWS, COLUMNS), (ROWS, COLUMNS), (0, 1))
MIXED = PackedLayout((ROWS, COLUMNS), (ROWS, COLUMNS), (0, 1), matrices=(((1.0,) * ROWS,) * ROWS, None))


def _entry(text: str, lines: int = 5) -> FuncOp:
    (entry,) = parse_module(text.replace("LINES", str(lines)), new_context()).ops
    assert isinstance(entry, FuncOp)
    return entry


def _asked(layout: PackedLayout) -> dict[int, SharedLayout]:
    return {0: SharedLayout((0, 1), LayoutKey((ROWS, COLUMNS), layout))}


@pytest.mark.parametrize(
    ("text", "layout", "code"),
    [(GATHER, PANELS, ""), (GATHER, PLAIN, ""), (GATHER, MIXED, "transformed"), (READ, PANELS, "read-along-loops")],
)
def test_what_can_be_read_so(text: str, layout: PackedLayout, code: str) -> None:
    found = layout_refusal(_entry(text), _asked(layout))
    assert (found.code if found is not None else "") == code
    assert found is None or found.detail


def test_a_price_per_element_that_lies_apart() -> None:
    costs = MachineCosts()
    near, few, many = (
        layout_price(_entry(GATHER, lines), _asked(layout), costs)
        for layout, lines in ((PLAIN, 5), (PANELS, 5), (PANELS, 50))
    )
    assert near.ns == 0 and 0 < 10 * few.ns == pytest.approx(many.ns) and many.reason
    assert few.ns == pytest.approx(5 * COLUMNS * (64 - 4) / costs.memory_bytes_per_ns)


def test_a_step_below_a_line_costs_less() -> None:
    pairs = PackedLayout((ROWS, COLUMNS), (ROWS // 2, 2, COLUMNS), (0, 2, 1))
    costs = MachineCosts()
    near, apart = (layout_price(_entry(GATHER), _asked(layout), costs).ns for layout in (pairs, PANELS))
    assert 0 < near < apart


def test_a_reader_is_planned_with_what_it_asks_of_the_constant() -> None:
    entry, isa = _entry(GATHER), machine("avx2")
    plan = reader_plan(LoopNest(), entry, _asked(PANELS), isa)
    assert not isinstance(plan, Refusal) and plan.constant_layouts[0] == PANELS
    other: Any = reader_plan(ContractionFamily(), entry, _asked(PANELS), isa)
    assert isinstance(other, Refusal) and (other.code, "contraction" in other.detail) == ("family", True)
