"""How a contraction reads its operands: by how they lie, how long they are and how often they are read."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import SSAValue

from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.contraction.column_axis import NARROW_COLUMNS, SHARED_ROWS, WIDE_ROWS
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, contraction_loops
from fuseline.targets.cpu.families.contraction.operand_modes import (
    PANEL_LIMIT,
    ROWS_LIMIT,
    column_choice,
    lhs_mode_of,
    packed_constant,
)
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.tiles import Tile
from fuseline.targets.target import Refusal
from fuseline.weight_layouts import LayoutKey, fill
from tests.draws import RNG
from tests.graphs.program import Program, Size
from tests.kernels import Runner

TILE, LANES = Tile(6, 2), 8


def loops_of(p: Program, value: SSAValue) -> ContractionLoops:
    found = contraction_loops(p.dispatch(value))
    assert not isinstance(found, Refusal)
    return found


def product(m: Size, k: Size, n: Size, *, constant: bool = False, computed: bool = False) -> ContractionLoops:
    """`x @ y`; `computed`: of the negated left operand."""
    p = Program((m, k), (k, n), constants=[1] if constant else [])
    return loops_of(p, p.matmul(p.unary(p.x[0]) if computed else p.x[0], p.x[1]))


def test_rows_are_read_where_they_lie():
    assert lhs_mode_of(product(32, 64, 16), TILE, 0) == "linear"
    assert lhs_mode_of(product("m", "k", 16), TILE, 0) == "linear"


def test_computed_rows_are_packed_where_a_tile_of_them_fits():
    most = ROWS_LIMIT // (4 * TILE.rows) - 64
    assert lhs_mode_of(product(32, most, 16, computed=True), TILE, None) == "packed"
    assert lhs_mode_of(product(32, most + 1, 16, computed=True), TILE, None) == "pulled"
    assert lhs_mode_of(product(32, "k", 16, computed=True), TILE, None) == "pulled"


def test_rows_whose_addresses_cannot_be_chosen_are_packed():
    assert lhs_mode_of(product(32, 64, 16), TILE, None) == "packed"


def test_constant_columns_are_packed_at_compile_time():
    assert column_choice(product(32, 64, 48, constant=True), TILE, LANES) == (TILE, "constant")


def test_columns_that_few_tiles_read_stay_where_they_are():
    assert column_choice(product(6, 64, 48), TILE, LANES) == (TILE, "direct")
    assert column_choice(product(6000, 64, 48), TILE, LANES)[1] == "packed"


def test_a_panel_that_does_not_fit_is_narrowed_or_not_packed():
    fitting = PANEL_LIMIT // (4 * LANES)
    assert column_choice(product(6000, fitting // 2, 48), TILE, LANES) == (TILE, "packed")
    assert column_choice(product(6000, fitting, 48), TILE, LANES) == (Tile(TILE.rows, 1), "packed")
    assert column_choice(product(6000, fitting + LANES, 48), TILE, LANES) == (TILE, "direct")
    assert column_choice(product(6000, "k", 48), TILE, LANES) == (TILE, "direct")


def test_a_slice_of_a_constant_begins_with_a_panel_or_is_read_as_it_lies():
    def sliced(first: int) -> ContractionLoops:
        p = Program((6, 20), (20, 96), constants=[1])
        return loops_of(p, p.matmul(p.x[0], p.columns(p.x[1], first, 32)))

    assert column_choice(sliced(32), TILE, LANES) == (TILE, "constant")
    assert column_choice(sliced(8), TILE, LANES) == (Tile(TILE.rows, 1), "constant")
    assert column_choice(sliced(5), TILE, LANES)[1] == "direct"


@pytest.mark.parametrize(("k", "n", "width"), [(5, 7, 8), (12, 48, 16), (3, 33, 16)])
def test_a_packed_constant_holds_its_columns_side_by_side(k: int, n: int, width: int):
    packed = packed_constant(product(6, k, n, constant=True), width, 1).layout
    weights = np.arange(1, k * n + 1, dtype=np.int64).reshape(k, n)
    held = np.zeros(packed.elements, np.int64)
    fill(weights, LayoutKey((k, n), packed), held.view(np.uint8))
    padded = np.zeros((k, -(-n // width) * width), np.int64)
    padded[:, :n] = weights
    np.testing.assert_array_equal(held, padded.reshape(k, -1, width).transpose(1, 0, 2).reshape(-1))


@pytest.mark.parametrize("rows", [SHARED_ROWS - 1, SHARED_ROWS, WIDE_ROWS - 1, WIDE_ROWS])
@pytest.mark.parametrize("filters", [1, 3])
def test_rows_run_along_the_lanes_where_few_columns_face_them(rows: int, filters: int):
    """`out[filter, line, row, phase]`, as the phases of a transposed convolution lie: where other filters read the same
    rows, fewer of them are worth turning."""
    lines, k, phases = (int(size) for size in RNG.integers((2, 2, 2), (6, 9, NARROW_COLUMNS + 1)))
    p = Program((k, lines, rows), (k, phases, filters))
    maps = [dims_map(5, [4, 0, 1]), dims_map(5, [4, 2, 3]), dims_map(5, [3, 0, 1, 2])]
    out = p.multiply_add(p.x[0], p.x[1], p.zeros(filters, lines, rows, phases), maps, "ppppr")
    wide, run = SHARED_ROWS if filters > 1 else WIDE_ROWS, Runner(ContractionFamily(), p.dispatch(out))
    assert isinstance(run.plan, ContractionPlan)
    assert run.plan.loops.column.extent == (rows if rows >= wide else phases)
    a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in ((k, lines, rows), (k, phases, filters)))
    np.testing.assert_allclose(run(a, b)[0], np.einsum("klr,kpf->flrp", a, b), rtol=1e-4, atol=1e-4)
