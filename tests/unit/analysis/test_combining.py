"""Reductions whose order matters, and what that leaves of an order of loops."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, linalg

from fuseline.analysis.combining import combinations, in_fold_order, is_ordered
from fuseline.analysis.structured import StructuredOp
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module

BODIES = {
    "sum": "%r = arith.addf %x, %acc : f32",
    "sum, the other way round": "%r = arith.addf %acc, %x : f32",
    "largest": "%r = arith.maximumf %x, %acc : f32",
    "of squares": "%s = arith.mulf %x, %x : f32\n %r = arith.addf %s, %acc : f32",
    "difference": "%r = arith.subf %acc, %x : f32",
    "decaying sum": "%h = arith.constant 0.5 : f32\n %s = arith.mulf %acc, %h : f32\n %r = arith.addf %s, %x : f32",
    "sum used twice": "%s = arith.mulf %acc, %x : f32\n %r = arith.addf %s, %acc : f32",
    "doubled": "%r = arith.addf %acc, %acc : f32",
    "first above": "%c = arith.cmpf ogt, %x, %acc : f32\n %r = arith.select %c, %x, %acc : f32",
    "the last": "%r = arith.addf %x, %x : f32",
}
ANY_ORDER = {"sum", "sum, the other way round", "largest", "of squares"}


def _view(body: str, kinds: tuple[str, ...] = ("reduction", "parallel", "reduction")) -> StructuredOp:
    loops = [f"d{i}" for i in range(len(kinds))]
    kept = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == "parallel"]
    given, made = (f"tensor<{'4x' * len(names)}f32>" for names in (loops, kept))
    over = ", ".join(loops)
    text = f"""func.func @main(%a: {given}, %init: {made}) -> {made} {{
      %y = linalg.generic {{indexing_maps = [affine_map<({over}) -> ({over})>,
          affine_map<({over}) -> ({", ".join(kept)})>], iterator_types = {list(kinds)}}}
          ins(%a : {given}) outs(%init : {made}) {{
      ^bb0(%x: f32, %acc: f32):
        {body}
        linalg.yield %r : f32
      }} -> {made}
      return %y : {made}
    }}""".replace("'", '"')
    (found,) = [op for op in parse_module(text, new_context()).walk() if isinstance(op, linalg.ops.GenericOp)]
    return StructuredOp(found)


@pytest.mark.parametrize("name", BODIES)
def test_what_combines_in_any_order(name: str) -> None:
    view = _view(BODIES[name])
    found = combinations(view.op)
    assert (found is not None) == (name in ANY_ORDER) == (not is_ordered(view))
    if found is not None:
        ((combine, element),) = found
        assert isinstance(combine, arith.AddfOp | arith.MaximumfOp)
        assert element is (view.body.first_op.results[0] if name == "of squares" else view.body.args[0])  # pyright: ignore[reportOptionalMemberAccess]


def test_one_loop_has_one_order() -> None:
    assert not is_ordered(_view(BODIES["decaying sum"], ("reduction", "parallel", "parallel")))
    assert is_ordered(_view(BODIES["decaying sum"], ("reduction", "reduction")))


@pytest.mark.parametrize(
    ("kinds", "wanted", "kept"),
    [
        ("rpr", (2, 1, 0), (0, 1, 2)),
        ("rpr", (1, 2, 0), (1, 0, 2)),
        ("rpr", (0, 2, 1), (0, 2, 1)),
        ("prpr", (3, 2, 1, 0), (1, 2, 3, 0)),
        ("rrr", (2, 0, 1), (0, 1, 2)),
        ("ppr", (2, 1, 0), (2, 1, 0)),
    ],
)
def test_reduction_loops_keep_their_order_where_it_matters(
    kinds: str, wanted: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    names = tuple({"r": "reduction", "p": "parallel"}[kind] for kind in kinds)
    assert in_fold_order(_view(BODIES["decaying sum"], names), wanted) == kept
    assert in_fold_order(_view(BODIES["sum"], names), wanted) == wanted
