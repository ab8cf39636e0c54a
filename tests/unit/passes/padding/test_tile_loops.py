"""Which loops grow to a target's multiples, and what an elementwise body makes of the zeros that are added."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i32

from fuseline.analysis.structured import StructuredOp
from fuseline.passes.padding.constant_bodies import body_value, constant_attribute
from fuseline.passes.padding.tile_loops import tile_extents, tile_loops
from tests.unit.analysis.generics import generic, op_of, view_of

PRODUCT = "%m = arith.mulf %a0, %a1 : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32"


def _view(maps: list[str], kinds: str, ins: list[str], out: str) -> StructuredOp:
    return view_of(maps, kinds, [f"tensor<{shape}xf32>" for shape in ins], [f"tensor<{out}xf32>"], PRODUCT)


def test_the_loops_of_a_contraction():
    assert tile_loops(_view(["d0, d1, d3", "d3, d2", "d0, d1, d2"], "pppr", ["2x3x5", "5x4"], "2x3x4")) == {
        "M": 1,
        "N": 2,
        "K": 3,
    }
    assert tile_loops(_view(["d0, d1", "d1", "d0"], "pr", ["3x5", "5"], "3")) == {"M": 0, "K": 1}


def test_the_loops_of_a_convolution():
    found = tile_loops(
        _view(
            ["d0, d1 + d4, d2 + d5, d6", "d4, d5, d6, d3", "d0, d1, d2, d3"],
            "pppprrr",
            ["2x8x9x3", "3x3x3x4"],
            "2x6x7x4",
        )
    )
    assert list(found.values()) == [1, 2, 3, 6]


def test_the_loops_of_a_convolution_along_one_dimension():
    found = tile_loops(_view(["d0 + d2, d3", "d2, d3, d1", "d0, d1"], "pprr", ["8x3", "3x3x4"], "6x4"))
    assert sorted(found.values()) == [0, 1, 3]


def test_others_have_none():
    assert tile_loops(_view(["d0 + d2, d1", "d2, d1", "d0, d1"], "ppr", ["8x3", "3x3"], "6x3")) == {}
    assert (
        tile_loops(_view(["d0, d2, d3", "d2, d1", "d0, d1"], "pprr", ["3x5x2", "5x4"], "3x4")) == {}
    )  # one loop is summed on one side only


@pytest.mark.parametrize(
    ("multiples", "grown"),
    [
        ({"M": 4, "N": 8, "K": 16}, {0: 4, 1: 8, 2: 16}),
        ({"M": 3, "N": 7}, {}),
        ({"M": 2, "K": 1}, {0: 4}),
        ({"N": 5}, {1: 10}),
        ({}, {}),
    ],
)
def test_what_grows(multiples: dict[str, int], grown: dict[int, int]):
    view = _view(["d0, d2", "d2, d1", "d0, d1"], "ppr", ["3x5", "5x7"], "3x7")
    assert tile_extents(view, (3, 7, 5), multiples) == grown


def _body(body: str, types: tuple[str, str] = ("f32", "f32")):
    ins = [f"tensor<3x{element}>" for element in types]
    return op_of(generic(["d0"] * 3, "p", ins, ["tensor<3xf32>"], f"{body}\n linalg.yield %r : f32"))


def test_what_a_body_makes_of_constants():
    zero, two = FloatAttr(0.0, f32), FloatAttr(2.0, f32)
    assert body_value(_body("%r = math.exp %a0 : f32"), {0: zero}) == FloatAttr(1.0, f32)
    assert body_value(_body("%r = arith.subf %a0, %a1 : f32"), {0: zero, 1: two}) == FloatAttr(-2.0, f32)
    assert body_value(_body("%c = arith.constant 3.0 : f32\n %r = arith.mulf %a0, %c : f32"), {0: two}) == FloatAttr(
        6.0, f32
    )
    assert body_value(
        _body("%r = arith.sitofp %a0 : i32 to f32", ("i32", "f32")), {0: IntegerAttr(7, i32)}
    ) == FloatAttr(7.0, f32)


@pytest.mark.parametrize(
    "body",
    [
        "%r = arith.addf %a0, %a1 : f32",
        "%r = arith.addf %a0, %a2 : f32",
        (
            "%i = linalg.index 0 : index\n %j = arith.index_cast %i : index to i32\n %f = arith.sitofp %j : i32 to "
            "f32\n "
            "%r = arith.addf %a0, %f : f32"
        ),
        "%i = arith.constant 1 : index\n %e = tensor.extract %x1[%i] : tensor<3xf32>\n %r = arith.addf %a0, %e : f32",
    ],
    ids=["another input", "the init", "the position", "a captured tensor"],
)
def test_what_depends_on_more_is_not_known(body: str):
    assert body_value(_body(body), {0: FloatAttr(0.0, f32)}) is None


def test_the_attribute_of_a_scalar_constant():
    op = _body("%c = arith.constant 3.0 : f32\n %r = arith.mulf %a0, %c : f32")
    constant, product = list(op.body.block.ops)[:2]
    assert constant_attribute(constant.results[0]) == FloatAttr(3.0, f32)
    assert constant_attribute(product.results[0]) is None and constant_attribute(op.body.block.args[0]) is None
