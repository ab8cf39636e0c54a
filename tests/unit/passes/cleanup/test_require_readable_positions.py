"""Reads at computed places ask for sizes that keep them inside, unless the symbols do already."""

from __future__ import annotations

import pytest

from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.clamp_unproven_positions import ClampUnprovenPositionsPass
from fuseline.passes.cleanup.require_readable_positions import RequireReadablePositionsPass

N, M = d.symbol("n", 0), d.symbol("m", 0)

READ = """func.func @main(%x: tensor<?xf32> {fuseline.dims = ["n"]}, %i: tensor<?xi64> {fuseline.dims = ["m"]})
    -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %i, %c0 : tensor<?xi64>
  %e = tensor.empty(%m) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%i : tensor<?xi64>) outs(%e : tensor<?xf32>) {
  ^bb0(%p: i64, %out: f32):
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %fed = arith.index_cast %p : i64 to index
    %here = linalg.index 0 : index
    %last = arith.subi %n, %one : index
    PLACE
    %s = tensor.extract %x[%at] : tensor<?xf32>
    linalg.yield %s : f32
  } -> tensor<?xf32> loc("read")
  return %r : tensor<?xf32>
}"""

CLAMPED = """%low = arith.maxsi %fed, %zero : index
    %at = arith.minsi %low, %last : index"""
OTHER_WAY = """%high = arith.minsi %fed, %last : index
    %at = arith.maxsi %high, %zero : index"""
COUNTER = "%at = arith.addi %here, %zero : index"
BEHIND = "%at = arith.addi %here, %two : index"
DOUBLED = "%at = arith.muli %here, %two : index"
MIRRORED = "%at = arith.subi %last, %here : index"
CHOSEN = """%c = arith.cmpi slt, %p, %p : i64
    %at = arith.select %c, %here, %last : index"""
TOGETHER = """%back = arith.subi %last, %here : index
    %both = arith.addi %back, %here : index
    %at = arith.maxsi %both, %back : index"""
FED = "%at = arith.addi %fed, %zero : index"


def noted(position: str, **bounds: d.Dim) -> CompilerContext:
    ctx = new_context()
    module = parse_module(READ.replace("PLACE", position), ctx)
    ctx.symbols |= {"n": N, "m": M} | bounds
    before = print_module(module)
    RequireReadablePositionsPass().apply(ctx, module)
    assert print_module(module) == before
    return ctx


def refused(ctx: CompilerContext, n: int, m: int) -> bool:
    values = {"n": n, "m": m}
    return any(d.evaluate(r.left, values) < d.evaluate(r.right, values) for r in ctx.requirements.values())


@pytest.mark.parametrize(
    ("position", "inside", "outside"),
    [
        (OTHER_WAY, [(1, 5), (0, 0), (3, 0)], [(0, 1)]),
        (CLAMPED, [(1, 5), (0, 0), (3, 0)], [(0, 1)]),
        (COUNTER, [(5, 5), (0, 0), (6, 2)], [(4, 5), (0, 1)]),
        (BEHIND, [(7, 5), (0, 0)], [(6, 5), (5, 5)]),
        (DOUBLED, [(9, 5), (0, 0)], [(8, 5)]),
        (MIRRORED, [(5, 5), (6, 5), (0, 0)], [(4, 5)]),
    ],
    ids=["end, start", "start, end", "counter", "behind", "doubled", "mirrored"],
)
def test_sizes_that_would_be_left_are_refused(
    position: str, inside: list[tuple[int, int]], outside: list[tuple[int, int]]
):
    ctx = noted(position)
    assert {r.node for r in ctx.requirements.values()} == {"read"}
    assert not any(refused(ctx, n, m) for n, m in inside)
    assert all(refused(ctx, n, m) for n, m in outside)


def test_what_follows_from_the_symbols_needs_no_check():
    assert not noted(OTHER_WAY, n=d.symbol("n")).requirements
    assert not noted(COUNTER, m=d.symbol("m", 0, 4), n=d.symbol("n", 4)).requirements


def test_a_range_that_is_not_known_asks_for_nothing():
    assert not noted(FED).requirements


@pytest.mark.parametrize("position", [FED, CHOSEN, TOGETHER], ids=["data", "chosen", "two that vary together"])
def test_what_is_clamped_asks_for_some_place(position: str):
    """Of a range that may not be met nothing is asked but that there is a place at all."""
    ctx = new_context()
    module = parse_module(READ.replace("PLACE", position), ctx)
    ctx.symbols |= {"n": N, "m": M}
    for step in (ClampUnprovenPositionsPass(), RequireReadablePositionsPass()):
        step.apply(ctx, module)
    assert not any(refused(ctx, n, m) for n, m in [(1, 5), (0, 0), (3, 0), (5, 9)])
    assert refused(ctx, 0, 1)


def test_places_that_are_never_inside():
    with pytest.raises(FuselineError, match="it reads element") as error:
        noted(BEHIND, n=d.symbol("n", 0, 4), m=d.symbol("m", 3))
    assert (error.value.code, error.value.node) == ("E0107", "read")


def test_a_size_in_32_bits_must_fit_them():
    """A place that is computed in fewer bits than a size has is what the size says only where that fits."""
    ctx = noted("""%z = arith.constant 0 : i32
    %l = arith.index_cast %last : index to i32
    %f = arith.trunci %p : i64 to i32
    %low = arith.maxsi %f, %z : i32
    %high = arith.minsi %low, %l : i32
    %at = arith.index_cast %high : i32 to index""")
    assert not any(refused(ctx, n, m) for n, m in [(1, 3), (5, 5), (2**31, 3), (0, 0)])
    assert all(refused(ctx, n, m) for n, m in [(2**31 + 1, 3), (0, 1)])
