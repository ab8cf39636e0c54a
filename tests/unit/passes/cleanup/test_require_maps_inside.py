"""Maps ask for sizes that keep them inside, and for no more, unless the symbols do already."""

from __future__ import annotations

import pytest

from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.require_maps_inside import RequireMapsInsidePass

N, M, K = d.symbol("n", 0), d.symbol("m", 0), d.symbol("k", 0)

READ = """func.func @main(%x: tensor<?xf32> {fuseline.dims = ["n"]}, %e: tensor<?x?xf32> {fuseline.dims = ["m", "k"]})
    -> tensor<?x?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (PLACE)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%p: f32, %out: f32):
    linalg.yield %p : f32
  } -> tensor<?x?xf32> loc("read")
  return %r : tensor<?x?xf32>
}"""


def noted(position: str, **bounds: d.Dim) -> CompilerContext:
    ctx = new_context()
    module = parse_module(READ.replace("PLACE", position), ctx)
    ctx.symbols |= {"n": N, "m": M, "k": K} | bounds
    before = print_module(module)
    RequireMapsInsidePass().apply(ctx, module)
    assert print_module(module) == before
    return ctx


def refused(ctx: CompilerContext, n: int, m: int, k: int) -> bool:
    values = {"n": n, "m": m, "k": k}
    return any(d.evaluate(r.left, values) < d.evaluate(r.right, values) for r in ctx.requirements.values())


@pytest.mark.parametrize(
    ("position", "inside", "outside"),
    [
        ("2 * i + j", [(9, 4, 3), (0, 0, 5), (0, 5, 0), (1, 1, 1)], [(8, 4, 3), (0, 1, 1)]),
        ("i + 5", [(9, 4, 3), (3, 0, 3)], [(8, 4, 3)]),
        ("7 - i", [(8, 8, 1), (8, 1, 1)], [(7, 1, 1), (9, 9, 1)]),
        ("i - j", [(4, 4, 1)], [(4, 4, 2), (3, 4, 1)]),
        ("i floordiv 2 + j", [(4, 5, 2)], [(3, 5, 2)]),
        ("(i - 4) floordiv 3 + 2", [(2, 2, 1), (3, 6, 1)], [(0, 1, 1), (2, 6, 1)]),
        ("(i + 1) ceildiv 3", [(2, 3, 1)], [(2, 4, 1), (1, 1, 1)]),
        ("i mod 4", [(4, 9, 1), (3, 3, 1)], [(3, 4, 1)]),
        ("(i * 2) mod 4", [(3, 9, 1), (1, 1, 1)], [(2, 2, 1)]),
        ("0", [(1, 1, 1), (0, 0, 4)], [(0, 1, 1)]),
        ("3", [(4, 1, 1)], [(3, 1, 1)]),
    ],
)
def test_sizes_that_would_be_left_are_refused(
    position: str, inside: list[tuple[int, int, int]], outside: list[tuple[int, int, int]]
):
    ctx = noted(position)
    assert {r.node for r in ctx.requirements.values()} == {"read"}
    assert [sizes for sizes in inside if refused(ctx, *sizes)] == []
    assert [sizes for sizes in outside if not refused(ctx, *sizes)] == []


def test_what_follows_from_the_symbols_needs_no_check():
    h = d.symbol("h")
    windows = d.add(d.floor_div(h, 2), 1)
    assert not noted("2 * i + j", h=h, n=d.add(h, 2), m=windows, k=2).requirements
    assert noted("2 * i + j", h=h, n=d.add(h, 1), m=windows, k=2).requirements
    assert not noted("i mod 4", n=4).requirements
    assert not noted("i", m=d.symbol("m", 9)).requirements  # equal sizes are another pass's business


def test_places_that_are_never_inside():
    with pytest.raises(FuselineError, match="it reads element 8 of n") as error:
        noted("i + 5", n=d.symbol("n", 0, 8), m=4, k=1)
    assert (error.value.code, error.value.node) == ("E0107", "read")


def test_a_place_that_is_no_sum_of_loops_is_refused_with_its_node():
    with pytest.raises(FuselineError, match="an indexing map uses") as error:
        noted("i mod (0 - 4)")
    assert (error.value.code, error.value.node) == ("E0306", "read")
