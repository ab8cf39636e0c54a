"""Reductions that are one walk: scatters and ranks, what differs from them in one place, and the loops behind a
scalar."""

from __future__ import annotations

import pytest
from xdsl.dialects.arith import SelectOp

from fuseline.analysis.idioms import Idiom, idiom_of
from fuseline.analysis.ranks import Rank, rank_of
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, yielded
from fuseline.analysis.walks import Scatter, Selection, loops_behind, selection_of
from tests.unit.analysis.generics import view_of
from tests.unit.analysis.idiom_bodies import RANK, SCATTER


def walk_of(view: StructuredOp) -> Idiom | None:
    return idiom_of(view, view.loops(ShapeAnalysis()))


LAST = """%i = linalg.index 0 : index
  %ic = arith.index_cast %i : index to i64
  %hit = arith.cmpi eq, %ic, %a0 : i64
  %v = arith.select %hit, %a1, %a2 : f32
  linalg.yield %v : f32"""

LIMITED = RANK.replace(
    "linalg.yield %s : i64", "%most = arith.constant 7 : i64\n %l = arith.minsi %s, %most : i64\n linalg.yield %l : i64"
)


def _scatter(body: str = SCATTER, maps: tuple[str, str, str] = ("d1", "d1", "d0")):
    return view_of(list(maps), "pr", ["tensor<9xi64>", "tensor<9xf32>"], ["tensor<5xf32>"], body)


def _rank(body: str = RANK, maps: tuple[str, str, str] = ("d1", "d0", "d0"), *, same: bool = True):
    view = view_of(list(maps), "pr", ["tensor<5xi32>", "tensor<5xi32>"], ["tensor<5xi64>"], body)
    if same:
        view.op.operands[1] = view.op.operands[0]
    return type(view)(view.op)


@pytest.mark.parametrize(
    "change",
    [("", ""), ("eq, %ic, %a0", "eq, %a0, %ic"), ("addf %a2, %v", "addf %v, %a2"), ("arith.addf", "arith.maximumf")],
)
def test_a_scatter(change: tuple[str, str]):
    view = _scatter(SCATTER.replace(*change))
    found = walk_of(view)
    assert isinstance(found, Scatter)
    assert (found.element, found.position, found.scattered) == (view.body.args[1], view.body.args[0], 0)
    assert found.neutral is next(op for op in view.body.ops if op.name == "arith.constant").results[0]
    assert found.root is view


def test_a_scatter_that_replaces():
    view = _scatter(LAST)
    found = walk_of(view)
    assert isinstance(found, Scatter) and found.neutral is None
    assert (found.element, found.position, found.scattered) == (view.body.args[1], view.body.args[0], 0)


@pytest.mark.parametrize(
    "change",
    [
        ("select %hit, %a1, %a2", "select %hit, %a2, %a1"),
        ("%hit = arith.cmpi eq", "%hit = arith.cmpi ne"),
        ("select %hit, %a1, %a2", "select %hit, %a2, %a2"),
    ],
)
def test_what_replaces_something_else_is_no_scatter(change: tuple[str, str]):
    assert walk_of(_scatter(LAST.replace(*change))) is None


def test_a_scatter_without_a_cast_of_the_index():
    body = SCATTER.replace(
        "%ic = arith.index_cast %i : index to i64", "%p = arith.index_cast %a0 : i64 to index"
    ).replace("%ic, %a0 : i64", "%i, %p : index")
    assert isinstance(walk_of(_scatter(body)), Scatter)


@pytest.mark.parametrize(
    ("change", "maps"),
    [
        (("cmpi eq", "cmpi ne"), ("d1", "d1", "d0")),
        (("arith.select %hit, %a1, %n", "arith.select %hit, %n, %a1"), ("d1", "d1", "d0")),
        (("arith.addf %a2, %v", "arith.addf %a1, %v"), ("d1", "d1", "d0")),
        (("linalg.index 0", "linalg.index 1"), ("d1", "d1", "d0")),
        (
            ("%i = linalg.index 0 : index\n  %ic = arith.index_cast %i : index to i64", "%ic = arith.constant 3 : i64"),
            ("d1", "d1", "d0"),
        ),
    ],
    ids=["other comparison", "the neutral one first", "not the running result", "the summed loop", "a fixed place"],
)
def test_no_scatter(change: tuple[str, str], maps: tuple[str, str, str]):
    assert walk_of(_scatter(SCATTER.replace(*change), maps)) is None


def test_what_is_placed_must_not_vary_with_the_place():
    for ins, maps in (
        (["tensor<9xi64>", "tensor<9x5xf32>"], ["d1", "d1, d0", "d0"]),
        (["tensor<9x5xi64>", "tensor<9xf32>"], ["d1, d0", "d1", "d0"]),
    ):
        assert walk_of(view_of(maps, "pr", ins, ["tensor<5xf32>"], SCATTER)) is None


def test_a_place_that_no_summed_loop_moves_is_no_scatter():
    view = view_of(
        ["d1", "d1", "d2", "d0, d1"],
        "ppr",
        ["tensor<9xi64>", "tensor<9xf32>", "tensor<3xf32>"],
        ["tensor<5x9xf32>"],
        SCATTER.replace("%a2", "%a3"),
    )
    assert walk_of(view) is None


def test_a_rank():
    view = _rank()
    assert walk_of(view) == Rank(view, (1,), 0, None)


@pytest.mark.parametrize("order", ["%s, %most", "%most, %s"])
def test_a_rank_up_to_a_limit(order: str):
    view = _rank(LIMITED.replace("%s, %most", order))
    assert walk_of(view) == Rank(view, (1,), 0, 7)


@pytest.mark.parametrize(
    "change",
    [
        ("cmpi slt, %j", "cmpi sle, %j"),
        ("cmpi sle, %a0", "cmpi slt, %a0"),
        ("%lt = arith.cmpi slt", "%lt = arith.cmpi sle"),
        ("slt, %j, %i", "slt, %i, %j"),
        ("%lt = arith.cmpi slt, %a0, %a1", "%lt = arith.cmpi slt, %a1, %a0"),
        ("slt, %j, %i : index", "slt, %j, %c : index"),
        ("sle, %a0, %a1", "sle, %c0, %a1"),
        ("arith.extui %before : i1 to i64", "arith.extsi %before : i1 to i64"),
        ("%s = arith.addi %a2, %one", "%s = arith.addi %one, %one"),
        ("%i = linalg.index 0", "%i = linalg.index 1"),
    ],
)
def test_no_rank(change: tuple[str, str]):
    body = "%c = arith.constant 1 : index\n %c0 = arith.constant 1 : i32\n" + RANK
    assert rank_of(_rank(body)) is not None
    assert walk_of(_rank(body.replace(*change))) is None


def test_ranks_compare_a_tensor_with_itself():
    assert walk_of(_rank(same=False)) is None


def test_a_limit_below_one_is_none():
    assert walk_of(_rank(LIMITED.replace("constant 7", "constant 0"))) is None


@pytest.mark.parametrize("maps", [("d1", "d1", "d0"), ("d0", "d1", "d0")])
def test_both_sides_are_read_at_the_same_place_but_for_the_ranked_loop(maps: tuple[str, str, str]):
    assert walk_of(_rank(maps=maps)) is None


@pytest.mark.parametrize(
    ("maps", "agree"), [(["d2, d1", "d2, d0", "d0, d2"], True), (["d2, d1", "d0, d2", "d0, d2"], False)]
)
def test_the_other_loops_of_a_rank_agree(maps: list[str], agree: bool):
    view = view_of(maps, "prp", ["tensor<5x5xi32>", "tensor<5x5xi32>"], ["tensor<5x5xi64>"], RANK)
    view.op.operands[1] = view.op.operands[0]
    view = type(view)(view.op)
    assert walk_of(view) == (Rank(view, (1,), 0, None) if agree else None)


def test_a_rank_among_what_moves_with_the_ranked_loop_is_none():
    view = view_of(["d0, d1", "d0, d0", "d0"], "pr", ["tensor<5x5xi32>", "tensor<5x5xi32>"], ["tensor<5xi64>"], RANK)
    view.op.operands[1] = view.op.operands[0]
    assert walk_of(type(view)(view.op)) is None


def test_two_reduction_loops_and_two_results_are_no_walk():
    view = view_of(
        ["d1, d2", "d1, d2", "d0"], "prr", ["tensor<9x2xi64>", "tensor<9x2xf32>"], ["tensor<5xf32>"], SCATTER
    )
    assert walk_of(view) is None
    twice = SCATTER.replace("linalg.yield %s : f32", "linalg.yield %s, %s : f32, f32")
    assert (
        walk_of(
            view_of(["d1", "d1", "d0", "d0"], "pr", ["tensor<9xi64>", "tensor<9xf32>"], ["tensor<5xf32>"] * 2, twice)
        )
        is None
    )


def test_the_loops_behind_a_scalar():
    body = """%i = linalg.index 2 : index
      %c = arith.index_cast %i : index to i32
      %t = arith.addi %a0, %c : i32
      %u = arith.muli %t, %t : i32
      linalg.yield %u : i32"""
    view = view_of(
        ["d0, d3", "d1", "d0, d1, d2, d3"], "pppp", ["tensor<2x5xi32>", "tensor<3xi32>"], ["tensor<2x3x4x5xi32>"], body
    )
    assert loops_behind(view, yielded(view.op)[0]) == {0, 2, 3}
    assert loops_behind(view, view.body.args[1]) == {1}
    assert loops_behind(view, view.op.operands[0]) == frozenset()


ARGMAX = """%i = linalg.index 1 : index
  %ic = arith.index_cast %i : index to i64
  %c = arith.cmpf ogt, %a0, %a2 : f32
  %other = arith.cmpf oge, %a0, %a2 : f32
  %zero = arith.constant 0 : i64
  %counts = arith.cmpi sgt, %ic, %zero : i64
  %placed = arith.cmpi sgt, %zero, %a3 : i64
  %second = arith.cmpf ogt, %a1, %a0 : f32
  %v = arith.select %c, %a0, %a2 : f32
  %p = arith.select %c, %ic, %a3 : i64
  linalg.yield %v, %p : f32, i64"""


def _argmax(body: str = ARGMAX, kinds: str = "pr") -> StructuredOp:
    maps = ["d0, d1", "d0, d1", "d0", "d0"]
    return view_of(maps, kinds, ["tensor<5x9xf32>"] * 2, ["tensor<5xf32>", "tensor<5xi64>"], body)


def test_a_selection():
    view = _argmax()
    chosen = yielded(view.op)[0].owner
    assert isinstance(chosen, SelectOp) and selection_of(view) == Selection(view, 0, chosen.cond, 0, 1)
    second = _argmax(ARGMAX.replace("%c, %a0, %a2", "%c, %a1, %a2").replace("ogt, %a0", "ogt, %a1"))
    assert (found := selection_of(second)) is not None and found.element == 1


def test_a_selection_may_yield_the_place_first():
    swapped = ARGMAX.replace("%a3", "%a4").replace("%a2", "%a3").replace("%a4", "%a2")
    body = swapped.replace("yield %v, %p : f32, i64", "yield %p, %v : i64, f32")
    outs = ["tensor<5xi64>", "tensor<5xf32>"]
    view = view_of(["d0, d1", "d0, d1", "d0", "d0"], "pr", ["tensor<5x9xf32>"] * 2, outs, body)
    assert (found := selection_of(view)) is not None and (found.kept, found.position) == (1, 0)


@pytest.mark.parametrize(
    "change",
    [
        ("linalg.index 1", "linalg.index 0"),
        ("select %c, %a0, %a2", "select %c, %a2, %a0"),
        ("select %c, %ic, %a3", "select %c, %a3, %ic"),
        ("select %c, %ic, %a3", "select %other, %ic, %a3"),
        ("select %c, %ic, %a3", "select %c, %zero, %a3"),
        ("select %c,", "select %counts,"),
        ("select %c,", "select %placed,"),
        ("select %c,", "select %second,"),
        ("yield %v, %p", "yield %a2, %p"),
        ("yield %v, %p", "yield %v, %ic"),
    ],
)
def test_no_selection(change: tuple[str, str]):
    assert selection_of(_argmax(ARGMAX.replace(*change))) is None


def test_a_selection_walks_one_loop():
    assert selection_of(_argmax(kinds="pp")) is None
    assert selection_of(_scatter()) is None
