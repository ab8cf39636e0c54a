"""Which elementwise ops only centre and scale what is stored in 8 bits, and within what range."""

from __future__ import annotations

import pytest
from xdsl.ir import BlockArgument

from fuseline.analysis.stored_integers import StoredIntegers, constant_of, stored_integers
from tests.unit.analysis.generics import generic, op_of

ROWS = ["d0, d1", "d1", "d0, d1"]
SCALED = """%w = arith.extsi %a0 : i8 to i32
  %z = arith.constant 3 : i32
  %c = arith.subi %w, %z : i32
  %f = arith.sitofp %c : i32 to f32
  %s = arith.constant 0.5 : f32
  %r = arith.mulf %f, %s : f32
  linalg.yield %r : f32"""


def _found(
    body: str,
    stored: str = "i8",
    other: str = "f32",
    out: str = "f32",
    maps: list[str] | None = None,
    kinds: str = "pp",
) -> StoredIntegers | None:
    ins = [f"tensor<3x5x{stored}>", f"tensor<5x{other}>"]
    return stored_integers(op_of(generic(maps or ROWS, kinds, ins, [f"tensor<3x5x{out}>"], body)))


def test_a_centred_and_scaled_tensor():
    found = _found(SCALED)
    assert found is not None
    assert (found.range, found.scale) == ((-131, 124), 0.5)
    assert found.integer.owner is next(op for op in found.op.body.block.ops if op.name == "arith.subi")


@pytest.mark.parametrize("order", ["%f, %a1", "%a1, %f"])
def test_the_scale_may_be_an_input(order: str):
    found = _found(SCALED.replace("%f, %s", order))
    assert found is not None and isinstance(found.scale, BlockArgument) and found.scale.index == 1


@pytest.mark.parametrize(
    ("body", "stored", "expected"),
    [
        (SCALED.replace("extsi", "extui"), "i8", (-3, 252)),
        (SCALED.replace("i8", "i4"), "i4", (-11, 4)),
        (SCALED.replace("i8", "i4").replace("extsi", "extui"), "i4", (-3, 12)),
        (SCALED.replace("%w, %z", "%z, %w"), "i8", (-124, 131)),
        (SCALED.replace("constant 3", "constant -128"), "i8", (0, 255)),
        (
            SCALED.replace(
                "%z = arith.constant 3 : i32", "%k = arith.constant -7 : i8\n %z = arith.extsi %k : i8 to i32"
            ),
            "i8",
            (-121, 134),
        ),
        (
            SCALED.replace(
                "%z = arith.constant 3 : i32", "%k = arith.constant -7 : i8\n %z = arith.extui %k : i8 to i32"
            ),
            "i8",
            (-377, -122),
        ),
        (SCALED.replace("constant 3 :", "constant 32639 :"), "i8", (-32767, -32512)),
        (SCALED.replace("constant 3 :", "constant -32640 :"), "i8", (32512, 32767)),
        (SCALED.replace("%c : i32 to f32", "%w : i32 to f32"), "i8", (-128, 127)),
    ],
)
def test_the_range(body: str, stored: str, expected: tuple[int, int]):
    found = _found(body, stored)
    assert found is not None and found.range == expected


def test_without_a_scale_in_i32():
    body = (
        "%w = arith.extui %a0 : i8 to i32\n %z = arith.constant 9 : i32\n %c = arith.subi %w, %z : i32\n "
        "linalg.yield %c : i32"
    )
    found = _found(body, out="i32")
    assert found is not None and (found.range, found.scale) == ((-9, 246), None)


@pytest.mark.parametrize(
    "change",
    [
        ("constant 3 :", "constant 32640 :"),
        ("constant 3 :", "constant -32641 :"),
        ("arith.subi", "arith.addi"),
        ("sitofp %c : i32", "uitofp %c : i32"),
        ("%r = arith.mulf", "%r = arith.addf"),
        ("%s = arith.constant 0.5 : f32", "%s = math.exp %f : f32"),
        ("sitofp %c : i32 to f32", "sitofp %a0 : i8 to f32"),
        ("%c = arith.subi %w, %z", "%q = arith.muli %w, %z : i32\n %c = arith.subi %q, %z"),
        ("%c = arith.subi %w, %z", "%q = arith.muli %w, %z : i32\n %c = arith.subi %z, %q"),
        ("arith.mulf %f, %s", "arith.mulf %f, %f"),
        ("%w = arith.extsi %a0", "%d = arith.addi %a0, %a0 : i8\n %w = arith.extsi %d"),
    ],
)
def test_anything_else_is_not(change: tuple[str, str]):
    assert change[0] in SCALED
    assert _found(SCALED.replace(*change)) is None


def test_wider_and_narrower_storage_is_not():
    assert _found(SCALED.replace("i8", "i16"), "i16") is None
    assert _found(SCALED.replace("i8", "i1"), "i1") is None
    assert _found(SCALED.replace("f32", "f64"), other="f64", out="f64") is None


def test_a_scale_of_integers_is_no_factor():
    body = (
        "%w = arith.extsi %a0 : i8 to i32\n %c = arith.muli %w, %a1 : i32\n %f = arith.sitofp %c : i32 to f32\n "
        "linalg.yield %f : f32"
    )
    assert _found(body, other="i32") is None


def test_reductions_and_ops_of_two_results_are_not():
    assert (
        stored_integers(op_of(generic(["d0, d1", "d0"], "pr", ["tensor<3x5xi8>"], ["tensor<3xf32>"], SCALED))) is None
    )
    both = SCALED.replace("linalg.yield %r : f32", "linalg.yield %r, %r : f32, f32")
    assert stored_integers(op_of(generic(["d0"] * 3, "p", ["tensor<3xi8>"], ["tensor<3xf32>"] * 2, both))) is None


def test_the_attribute_of_a_constant():
    op = op_of(generic(["d0", "d0"], "p", ["tensor<3xi8>"], ["tensor<3xf32>"], SCALED))
    constant, difference = (
        next(inner for inner in op.body.block.ops if inner.name == name) for name in ("arith.constant", "arith.subi")
    )
    assert str(constant_of(constant.results[0])) == "3 : i32"
    assert constant_of(difference.results[0]) is None and constant_of(op.body.block.args[0]) is None
