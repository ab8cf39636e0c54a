"""Each idiom is told in one place; what is all but one says what is missing, and what is far from one says nothing."""

from __future__ import annotations

from typing import get_args

import pytest

from fuseline.analysis.idioms import Idiom, NearIdiom, idiom_of, name_of, near_idiom
from fuseline.analysis.ranks import Rank
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp
from fuseline.analysis.walks import Scan, Scatter, Selection
from tests.unit.analysis.generics import view_of
from tests.unit.analysis.idiom_bodies import RANK, SCATTER

SCAN = """%i = linalg.index 0 : index
  %j = linalg.index 1 : index
  %counts = arith.cmpi sle, %j, %i : index
  %n = arith.constant 0.0 : f32
  %v = arith.select %counts, %a0, %n : f32
  %s = arith.addf %a1, %v : f32
  linalg.yield %s : f32"""

SELECTION = """%j = linalg.index 1 : index
  %jc = arith.index_cast %j : index to i64
  %better = arith.cmpf ogt, %a0, %a1 : f32
  %v = arith.select %better, %a0, %a1 : f32
  %at = arith.select %better, %jc, %a2 : i64
  linalg.yield %v, %at : f32, i64"""


def _scan(body: str = SCAN, n: int = 5, element: str = "d1") -> StructuredOp:
    source = "tensor<5xf32>" if element == "d1" else "tensor<5x5xf32>"
    return view_of([element, "d0"], "pr", [source], [f"tensor<{n}xf32>"], body)


def _scatter(body: str = SCATTER) -> StructuredOp:
    return view_of(["d1", "d1", "d0"], "pr", ["tensor<9xi64>", "tensor<9xf32>"], ["tensor<5xf32>"], body)


def _rank(body: str = RANK, dtype: str = "i32", *, same: bool = True) -> StructuredOp:
    view = view_of(["d1", "d0", "d0"], "pr", [f"tensor<5x{dtype}>"] * 2, ["tensor<5xi64>"], body)
    if same:
        view.op.operands[1] = view.op.operands[0]
    return StructuredOp(view.op)


def _selection(body: str = SELECTION) -> StructuredOp:
    return view_of(["d0, d1", "d0", "d0"], "pr", ["tensor<4x7xf32>"], ["tensor<4xf32>", "tensor<4xi64>"], body)


def _extents(view: StructuredOp):
    return view.loops(ShapeAnalysis())


def _near(view: StructuredOp) -> NearIdiom | None:
    return near_idiom(view, _extents(view))


FORMS = {
    "scan": (_scan, Scan),
    "scatter": (_scatter, Scatter),
    "rank": (_rank, Rank),
    "selection": (_selection, Selection),
}


def test_the_forms_are_all_there_are():
    assert {form for _, form in FORMS.values()} == set(get_args(Idiom))


@pytest.mark.parametrize("name", FORMS)
def test_an_idiom_is_told_and_is_near_nothing(name: str):
    make, form = FORMS[name]
    view = make()
    found = idiom_of(view, _extents(view))
    assert isinstance(found, form) and name_of(found) == name
    assert _near(view) is None


NEAR = {
    "a scan whose running result is changed": (
        lambda: _scan(SCAN.replace("linalg.yield %s", "%t = arith.mulf %s, %s : f32\n  linalg.yield %t")),
        "scan",
        "the running result is used or changed",
    ),
    "a scan with a second use of the running result": (
        lambda: _scan(SCAN.replace("linalg.yield %s", "%t = arith.addf %s, %a1 : f32\n  linalg.yield %t")),
        "scan",
        "the running result is used or changed",
    ),
    "a scan of what is not constant elsewhere": (
        lambda: _scan(SCAN.replace("%a0, %n : f32", "%a0, %a0 : f32")),
        "scan",
        "what does not count is no constant",
    ),
    "a scan over another length": (lambda: _scan(n=4), "scan", "differ in length"),
    "a scan over two loops": (
        lambda: view_of(["d1, d2", "d0"], "prr", ["tensor<5x3xf32>"], ["tensor<5xf32>"], SCAN),
        "scan",
        "it reduces over 2 loops",
    ),
    "a scatter of what varies with the place": (
        lambda: view_of(["d1", "d1, d0", "d0"], "pr", ["tensor<9xi64>", "tensor<9x5xf32>"], ["tensor<5xf32>"], SCATTER),
        "scatter",
        "the element varies with the loop",
    ),
    "a scatter that takes something else instead": (
        lambda: _scatter(SCATTER.replace("%a1, %n : f32", "%a1, %a1 : f32")),
        "scatter",
        "what does not hit a place is no constant",
    ),
    "a scatter whose running result is changed": (
        lambda: _scatter(SCATTER.replace("linalg.yield %s", "%t = arith.negf %s : f32\n  linalg.yield %t")),
        "scatter",
        "the running result is used or changed",
    ),
    "a scatter into two results": (
        lambda: view_of(
            ["d1", "d1", "d0", "d0"],
            "pr",
            ["tensor<9xi64>", "tensor<9xf32>"],
            ["tensor<5xf32>"] * 2,
            SCATTER.replace("linalg.yield %s : f32", "linalg.yield %s, %s : f32, f32"),
        ),
        "scatter",
        "it has 2 results, not 1",
    ),
    "a rank of floats": (
        lambda: _rank(
            RANK.replace("cmpi sle, %a0, %a1 : i32", "cmpf ole, %a0, %a1 : f32").replace(
                "cmpi slt, %a0, %a1 : i32", "cmpf olt, %a0, %a1 : f32"
            ),
            "f32",
        ),
        "rank",
        "the elements are no integers",
    ),
    "a rank among another tensor": (lambda: _rank(same=False), "rank", "not one tensor with itself"),
    "a rank that does not keep the order": (
        lambda: _rank(RANK.replace("sle, %a0", "slt, %a0")),
        "rank",
        "less, or equal and before",
    ),
    "a selection whose parts change apart": (
        lambda: _selection(
            SELECTION.replace("%at =", "%worse = arith.cmpf olt, %a0, %a1 : f32\n  %at =").replace(
                "%at = arith.select %better", "%at = arith.select %worse"
            )
        ),
        "selection",
        "do not change together",
    ),
    "a selection that asks where": (
        lambda: _selection(
            SELECTION.replace("%better = arith.cmpf ogt, %a0, %a1 : f32", "%better = arith.cmpi slt, %jc, %a2 : i64")
        ),
        "selection",
        "depends on where that stood",
    ),
    "a selection of what is computed": (
        lambda: _selection(
            SELECTION.replace(
                "%v = arith.select %better, %a0", "%e = arith.negf %a0 : f32\n  %v = arith.select %better, %e"
            )
        ),
        "selection",
        "what is kept is computed",
    ),
    "a selection by a second tensor": (
        lambda: view_of(
            ["d0, d1", "d0, d1", "d0", "d0"],
            "pr",
            ["tensor<4x7xf32>"] * 2,
            ["tensor<4xf32>", "tensor<4xi64>"],
            SELECTION.replace("%a2", "%a3")
            .replace("%a1", "%a2")
            .replace("ogt, %a0, %a2", "ogt, %a1, %a2")
            .replace("%better = ", "%more = arith.addf %a0, %a1 : f32\n  %better = ")
            .replace("ogt, %a1", "ogt, %more"),
        ),
        "selection",
        "depends on more than the two",
    ),
    "a selection over two loops": (
        lambda: view_of(
            ["d0, d1, d2", "d0", "d0"], "prr", ["tensor<4x7x2xf32>"], ["tensor<4xf32>", "tensor<4xi64>"], SELECTION
        ),
        "selection",
        "it reduces over 2 loops",
    ),
}


@pytest.mark.parametrize("case", NEAR)
def test_what_is_nearly_an_idiom_says_what_is_missing(case: str):
    make, name, missing = NEAR[case]
    view = make()
    assert idiom_of(view, _extents(view)) is None
    found = _near(view)
    assert found is not None and found.name == name and missing in found.missing


def test_a_sum_under_a_mask_is_far_from_a_scan():
    """Its elements vary with both loops: it has as many of them as it looks at."""
    assert _near(_scan(element="d0, d1")) is None


def test_a_diagonal_is_far_from_a_scatter():
    body = SCAN.replace("cmpi sle", "cmpi eq")
    assert _near(_scan(body)) is None


WEIGHTED = """%i = linalg.index 1 : index
  %c = arith.index_cast %i : index to i64
  %f = arith.sitofp %c : i64 to f32
  %w = arith.mulf %a0, %f : f32
  %s = arith.addf %a1, %w : f32
  linalg.yield %s : f32"""


@pytest.mark.parametrize("body", ["%s = arith.addf %a1, %a0 : f32\n linalg.yield %s : f32", WEIGHTED])
def test_plain_and_weighted_sums_are_far_from_all(body: str):
    view = _scan(body)
    assert idiom_of(view, _extents(view)) is None and _near(view) is None


def test_what_does_not_reduce_is_none():
    body = "%i = linalg.index 0 : index\n %c = arith.index_cast %i : index to i64\n linalg.yield %c : i64"
    view = view_of(["d0", "d0"], "p", ["tensor<5xi64>"], ["tensor<5xi64>"], body)
    assert idiom_of(view, _extents(view)) is None and _near(view) is None
