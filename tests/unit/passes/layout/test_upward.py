"""How far up an expand may climb: what is free, what cancels, and which loops it splits on the way."""

from __future__ import annotations

import pytest
from xdsl.ir import OpResult

from fuseline.ir.dim import Dim
from fuseline.passes.layout.rewriting.free_reshapes import cancels, is_free
from fuseline.passes.layout.rewriting.upward import climbs, splits_of
from tests.unit.passes.layout.test_permutation import Program

BODY = "{ ^bb0(%i: f32, %o: f32): %q = arith.negf %i : f32\n linalg.yield %q : f32 }"
CUBE = """linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
    iterator_types = ["parallel", "parallel", "parallel"]}"""
FLAT = """linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
    iterator_types = ["parallel", "parallel"]}"""
ROWS = """linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>],
    iterator_types = ["parallel", "reduction"]}"""
PROGRAM = f"""func.func @main(%x: tensor<2x3x4xf32>, %y: tensor<6x4xf32>, %v: f32) {{
  %e3 = tensor.empty() : tensor<2x3x4xf32>
  %e2 = tensor.empty() : tensor<6x4xf32>
  %e1 = tensor.empty() : tensor<6xf32>
  %fill = linalg.fill ins(%v : f32) outs(%e2 : tensor<6x4xf32>) -> tensor<6x4xf32>
  %splat = arith.constant dense<2.5> : tensor<6x4xf32>
  %given = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %made = {CUBE} ins(%x : tensor<2x3x4xf32>) outs(%e3 : tensor<2x3x4xf32>) {BODY} -> tensor<2x3x4xf32>
  %flat = tensor.collapse_shape %made [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %again = {FLAT} ins(%flat : tensor<6x4xf32>) outs(%e2 : tensor<6x4xf32>) {BODY} -> tensor<6x4xf32>
  %top = {FLAT} ins(%again : tensor<6x4xf32>) outs(%e2 : tensor<6x4xf32>) {BODY} -> tensor<6x4xf32>
  %other = {FLAT} ins(%y : tensor<6x4xf32>) outs(%e2 : tensor<6x4xf32>) {BODY} -> tensor<6x4xf32>
  %rows = {ROWS} ins(%top : tensor<6x4xf32>) outs(%e1 : tensor<6xf32>) {BODY} -> tensor<6xf32>
  return
}}"""


@pytest.fixture
def p() -> Program:
    return Program(PROGRAM)


@pytest.mark.parametrize(
    ("name", "free"),
    [("x", True), ("fill", True), ("splat", True), ("e2", True), ("given", True), ("made", False), ("flat", False)],
)
def test_what_takes_any_shape_for_nothing(p: Program, name: str, free: bool):
    assert is_free(p[name]) is free


@pytest.mark.parametrize(
    ("name", "dims", "expected"),
    [
        ("flat", (2, 3, 4), True),
        ("flat", (6, 2, 2), False),
        ("flat", (6, 4), False),
        ("flat", (24,), False),
        ("flat", (2, 3, 2, 2), False),
        ("made", (6, 4), False),
    ],
)
def test_what_undoes_a_reshape(p: Program, name: str, dims: tuple[Dim, ...], expected: bool):
    assert cancels(p.scope, p[name], dims) is expected


@pytest.mark.parametrize(
    ("name", "dims", "splits"),
    [
        ("again", (2, 3, 4), {0: [2, 3]}),
        ("again", (6, 2, 2), {1: [2, 2]}),
        ("again", (3, 2, 2, 2), {0: [3, 2], 1: [2, 2]}),
        ("again", (6, 4), {}),
        ("again", (24,), None),
        ("again", (8, 3), None),
        ("rows", (2, 3), {0: [2, 3]}),
    ],
)
def test_loops_that_are_split(p: Program, name: str, dims: tuple[Dim, ...], splits: dict[int, list[Dim]] | None):
    value = p[name]
    assert isinstance(value, OpResult)
    assert splits_of(p.scope, value, dims) == splits


@pytest.mark.parametrize(
    ("name", "dims", "expected"),
    [
        ("x", (24,), (True, False)),
        ("flat", (2, 3, 4), (True, True)),
        ("rows", (2, 3), (True, True)),
        ("top", (2, 3, 4), (True, True)),
        ("top", (6, 2, 2), (False, False)),
        ("top", (24,), (False, False)),
        ("other", (2, 3, 4), (True, False)),
    ],
)
def test_how_an_expand_climbs(p: Program, name: str, dims: tuple[Dim, ...], expected: tuple[bool, bool]):
    assert climbs(p.scope, p[name], dims) == expected


def test_an_expand_climbs_so_far_and_no_further(p: Program):
    assert climbs(p.scope, p["top"], (2, 3, 4), 2) == (True, True)
    assert climbs(p.scope, p["top"], (2, 3, 4), 1) == (False, False)
    assert climbs(p.scope, p["flat"], (2, 3, 4), 0) == (True, True)


def test_what_others_read_as_well_is_not_climbed_through():
    p = Program(
        PROGRAM.replace("%rows =", "%more = tensor.cast %again : tensor<6x4xf32> to tensor<?x4xf32>\n  %rows =")
    )
    assert climbs(p.scope, p["top"], (2, 3, 4)) == (False, False)
