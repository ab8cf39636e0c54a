"""What programs take for granted about symbolic sizes is noted once, with the node, and nothing changes."""

from __future__ import annotations

import pytest

from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.require_equal_sizes import RequireEqualSizesPass

N, M = d.symbol("n"), d.symbol("m")

ADD = """func.func @main(%x: tensor<?x4xf32> {fuseline.dims = ["n", "4"]},
    %y: tensor<?x4xf32> {fuseline.dims = ["m", "4"]}) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>,
      affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<?x4xf32> loc("sum")
  return %r : tensor<?x4xf32>
}"""
CONCAT = """func.func @main(%x: tensor<?x4xf32> {fuseline.dims = ["n", "4"]},
    %y: tensor<?x?xf32> {fuseline.dims = ["m", "n"]}) -> tensor<?x4xf32> {
  %r = tensor.concat dim(0) %x, %y : (tensor<?x4xf32>, tensor<?x?xf32>) -> tensor<?x4xf32> loc("join")
  return %r : tensor<?x4xf32>
}"""
RESHAPE = """func.func @main(%x: tensor<?xf32> {fuseline.dims = ["n"]}) -> tensor<4x6xf32> {
  %s = tensor.cast %x : tensor<?xf32> to tensor<24xf32> loc("shape")
  %r = tensor.expand_shape %s [[0, 1]] output_shape [4, 6] : tensor<24xf32> into tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}"""


def noted(text: str, **bounds: d.Dim) -> CompilerContext:
    """The context after the pass ran twice, which must leave the program as it was."""
    ctx = new_context()
    module = parse_module(text, ctx)
    ctx.symbols |= {"n": N, "m": M} | bounds
    before = print_module(module)
    for _ in range(2):
        RequireEqualSizesPass().apply(ctx, module)
    assert print_module(module) == before
    return ctx


@pytest.mark.parametrize(
    ("text", "expected"),
    [(ADD, (N, M, "sum")), (CONCAT, (4, N, "join")), (RESHAPE, (N, 24, "shape"))],
    ids=["loops", "concat", "reshape"],
)
def test_sizes_that_must_be_equal(text: str, expected: tuple[d.Dim, d.Dim, str]):
    assert [(item.left, item.right, item.node) for item in noted(text).requirements.values()] == [expected]


def test_what_follows_from_the_symbols_needs_no_check():
    assert not noted(ADD.replace('"m"', '"n"')).requirements


def test_a_program_without_symbols_needs_none():
    ctx = new_context()
    RequireEqualSizesPass().apply(ctx, parse_module(ADD.replace("?x4", "3x4").replace("(%n)", "()"), ctx))
    assert not ctx.requirements


def test_sizes_that_never_agree():
    with pytest.raises(FuselineError, match="E0107 .join.: sizes 4 and n must be equal and never are"):
        noted(CONCAT, n=d.symbol("n", 5, 9))


SLICE = """func.func @main(%x: tensor<?x4xf32> {fuseline.dims = ["n", "4"]}) -> tensor<3x4xf32> {
  %r = tensor.extract_slice %x[2, 0] [3, 4] [1, 1] : tensor<?x4xf32> to tensor<3x4xf32> loc("part")
  return %r : tensor<3x4xf32>
}"""


def test_a_slice_lies_inside_what_it_is_a_slice_of():
    assert [
        (item.left, item.right, item.node, item.relation == "at_least") for item in noted(SLICE).requirements.values()
    ] == [(N, 5, "part", True)]
    assert not noted(SLICE, n=d.symbol("n", 5, 9)).requirements


def test_a_slice_that_never_lies_inside():
    with pytest.raises(FuselineError, match="E0107 .part.: size n must be at least 5 and never is"):
        noted(SLICE, n=d.symbol("n", 1, 4))


def test_slices_put_in_are_as_large_as_they_say():
    text = """func.func @main(%x: tensor<?xf32> {fuseline.dims = ["n"]}, %y: tensor<9xf32>,
        %m: index {fuseline.name = "m"}) -> tensor<9xf32> {
  %r = tensor.insert_slice %x into %y[0] [%m] [1] : tensor<?xf32> into tensor<9xf32> loc("put")
  return %r : tensor<9xf32>
}"""
    assert [(item.left, item.right) for item in noted(text).requirements.values() if item.relation != "at_least"] == [
        (N, M)
    ]


def test_strides_lead_on():
    text = """func.func @main(%x: tensor<9xf32>, %m: index {fuseline.name = "m"}) -> tensor<1xf32> {
  %r = tensor.extract_slice %x[0] [1] [%m] : tensor<9xf32> to tensor<1xf32> loc("cut")
  return %r : tensor<1xf32>
}"""
    free = d.symbol("m", 0)
    assert [(item.left, item.right) for item in noted(text, m=free).requirements.values()] == [(free, 1)]


COLLAPSE = """func.func @main(%x: tensor<?x4xf32> {fuseline.dims = ["n", "4"]}) -> tensor<24xf32> {
  %r = tensor.collapse_shape %x [[0, 1]] : tensor<?x4xf32> into tensor<24xf32> loc("flat")
  return %r : tensor<24xf32>
}"""
LONG = """func.func @main(%x: tensor<?xf32> {fuseline.dims = ["n"]}, %y: tensor<?xf32> {fuseline.dims = ["m"]})
    -> tensor<10xf32> {
  %r = tensor.concat dim(0) %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<10xf32> loc("join")
  return %r : tensor<10xf32>
}"""


@pytest.mark.parametrize(
    ("text", "left", "right"), [(COLLAPSE, d.mul(N, 4), 24), (LONG, d.add(N, M), 10)], ids=["collapsed", "joined"]
)
def test_a_result_is_as_large_as_its_type_says(text: str, left: d.Dim, right: d.Dim):
    assert [(item.left, item.right) for item in noted(text).requirements.values()] == [(left, right)]


@pytest.mark.parametrize(
    ("offset", "size", "ok"), [(0, 5, True), (1, 4, True), (2, 4, False), (5, 0, True), (6, 0, False)]
)
def test_programs_without_symbols_are_looked_at_as_well(offset: int, size: int, ok: bool):
    """A part that does not fit is refused when it is compiled, not met by a kernel."""
    text = f"""func.func @main(%x: tensor<{size}xf32>, %y: tensor<5xf32>) -> tensor<5xf32> {{
      %r = tensor.insert_slice %x into %y[{offset}] [{size}] [1] : tensor<{size}xf32> into tensor<5xf32> loc("part")
      return %r : tensor<5xf32>
    }}"""
    ctx = new_context()
    module = parse_module(text, ctx)
    step = RequireEqualSizesPass()
    if ok:
        step.apply(ctx, module)
        assert not ctx.requirements
        return
    with pytest.raises(FuselineError, match="at least") as caught:
        step.apply(ctx, module)
    assert (caught.value.code, caught.value.node) == ("E0107", "part")


LOOP = """func.func @main(%x: tensor<?xf32> {fuseline.dims = ["n"]}, %m: index {fuseline.name = "m"},
    %k: index {fuseline.name = "k"}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %m step %c1 {
    PLACE
    %s = tensor.extract_slice %x[%p] [1] [1] : tensor<?xf32> to tensor<1xf32> loc("step")
  }
  return %x : tensor<?xf32>
}"""
FREE, MANY = d.symbol("n", 0), d.symbol("m", 1)
UP = "%p = arith.addi %i, %c2 : index"
DOWN = "%q = arith.subi %m, %c1 : index\n %p = arith.subi %q, %i : index"


@pytest.mark.parametrize(
    ("position", "expected"), [(UP, [(FREE, d.add(MANY, 2))]), (DOWN, [(FREE, MANY)])], ids=["forwards", "backwards"]
)
def test_what_a_loop_cuts_is_weighed_where_it_is_tightest(position: str, expected: list[tuple[d.Dim, d.Dim]]):
    """In the last iteration where the place grows, in the first where it shrinks: one requirement, not two."""
    found = noted(LOOP.replace("PLACE", position), n=FREE, m=MANY).requirements.values()
    assert [(item.left, item.right, item.node) for item in found] == [(*pair, "step") for pair in expected]


def test_what_a_loop_cuts_at_a_place_of_unknown_direction_holds_at_both_ends():
    k = d.symbol("k", -9, 9)
    position = "%j = arith.muli %i, %k : index\n %p = arith.addi %j, %c2 : index"
    found = noted(LOOP.replace("PLACE", position), n=FREE, m=MANY, k=k).requirements.values()
    last = d.add(d.mul(d.sub(MANY, 1), k), 2)
    assert {(item.left, item.right) for item in found} == {(FREE, 3), (FREE, d.add(last, 1)), (last, 0)}


@pytest.mark.parametrize("falling", [False, True], ids=["stays-or-rises", "stays-or-falls"])
def test_what_a_loop_cuts_at_a_place_that_may_stay_is_weighed_once(falling: bool):
    """A step from 0 on leads to the last iteration, one up to 0 to the first."""
    k = d.symbol("k", -9, 0) if falling else d.symbol("k", 0, 9)
    position = "%j = arith.muli %i, %k : index\n %p = arith.addi %j, %m : index"
    found = noted(LOOP.replace("PLACE", position), n=FREE, m=MANY, k=k).requirements.values()
    last = d.add(d.mul(d.sub(MANY, 1), k), MANY)
    expected = {(FREE, d.add(MANY, 1)), (last, 0)} if falling else {(FREE, d.add(last, 1))}
    assert {(item.left, item.right) for item in found} == expected


def test_what_a_loop_cuts_beside_its_counter_is_weighed_once():
    found = noted(LOOP.replace("PLACE", "%p = arith.addi %m, %c0 : index"), n=FREE, m=MANY).requirements.values()
    assert [(item.left, item.right) for item in found] == [(FREE, d.add(MANY, 1))]


CUTS = """func.func @main(%x: tensor<?xf32> {fuseline.dims = ["n"]}, %m: index {fuseline.name = "m"}) -> tensor<?xf32> {
  %v = arith.constant 0.0 : f32
  BODY
  return %r : tensor<?xf32>
}"""
PAD = """%r = tensor.pad %x {} {{
  ^bb0(%i: index):
    tensor.yield %v : f32
  }} : tensor<?xf32> to tensor<?xf32> loc("at")"""
ANY = d.symbol("m", -5, 9)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('%r = tensor.empty(%m) : tensor<?xf32> loc("at")', [(ANY, 0)]),
        (
            PAD.format("low[%m] high[-1]"),
            [(ANY, 0)],
        ),
        (
            PAD.format("low[0] high[%m]"),
            [(ANY, 0)],
        ),
        (
            '%r = tensor.extract_slice %x[0] [%m] [1] : tensor<?xf32> to tensor<?xf32> loc("at")',
            [(ANY, 0), (N, ANY)],
        ),
        (
            '%r = tensor.extract_slice %x[%m] [2] [-1] : tensor<?xf32> to tensor<?xf32> loc("at")',
            [(ANY, 0), (N, d.add(ANY, 1)), (d.sub(ANY, 2), -1)],
        ),
        (
            '%r = tensor.extract_slice %x[%m] [2] [3] : tensor<?xf32> to tensor<?xf32> loc("at")',
            [(ANY, 0), (N, d.add(ANY, 4))],
        ),
    ],
    ids=["empty", "pad before", "pad after", "size", "backwards", "strides"],
)
def test_sizes_that_must_be_large_enough(body: str, expected: list[tuple[d.Dim, d.Dim]]):
    found = noted(CUTS.replace("BODY", body), m=ANY).requirements.values()
    assert [(item.left, item.right) for item in found if item.relation == "at_least"] == expected
    assert all(item.node == "at" for item in found)
