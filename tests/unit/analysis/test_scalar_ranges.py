"""Ranges enclose what bodies compute, and where they say that their ends are met, those are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import linalg, tensor
from xdsl.ir import SSAValue

from fuseline.analysis.range_rules import ScalarRange
from fuseline.analysis.scalar_ranges import ScalarRanges
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp
from fuseline.ir import dim as d
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module

N = d.symbol("n")
BODY = """func.func @main(%x: tensor<?xf32> {fuseline.dims = ["n"]}, %i: tensor<5x7xi64>, %b: tensor<5x7xi8>)
    -> tensor<5x7xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %held = arith.constant dense<[3, -2, 9, 4, 0]> : tensor<5xi64>
  %e = tensor.empty() : tensor<5x7xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(p, q) -> (p, q)>, affine_map<(p, q) -> (p, q)>,
      affine_map<(p, q) -> (p)>,
      affine_map<(p, q) -> (p, q)>], iterator_types = ["parallel", "parallel"]}
      ins(%i, %b, %held : tensor<5x7xi64>, tensor<5x7xi8>, tensor<5xi64>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%fed: i64, %byte: i8, %known: i64, %out: f32):
    %p = linalg.index 0 : index
    %q = linalg.index 1 : index
    %f = arith.index_cast %fed : i64 to index
    %s = arith.index_cast %byte : i8 to index
    %u = arith.index_castui %byte : i8 to index
    %k = arith.index_cast %known : i64 to index
    %zero = arith.constant 0 : index
    %two = arith.constant 2 : index
    %three = arith.constant 3 : index
    %minus = arith.constant -3 : index
    %most = arith.constant 250 : index
    %last = arith.subi %n, %two : index
    PLACE
    %read = tensor.extract %x[%at] : tensor<?xf32>
    linalg.yield %read : f32
  } -> tensor<5x7xf32>
  return %r : tensor<5x7xf32>
}"""


def range_of(place: str) -> ScalarRange:
    ctx = new_context()
    module = parse_module(BODY.replace("PLACE", place), ctx)
    (read,) = [op for op in module.walk() if isinstance(op, tensor.ExtractOp)]
    generic: Any = read.parent_op()
    assert isinstance(generic, linalg.ops.GenericOp)
    value: SSAValue = read.indices[0]
    return ScalarRanges(ShapeAnalysis({"n": N}), StructuredOp(generic), ctx.resources).of(value)


def op(name: str, a: str, b: str, to: str = "at") -> str:
    return f"%{to} = arith.{name} %{a}, %{b} : index"


AS_BYTE = "\n%t = arith.index_cast %w : index to i8\n%at = arith.index_cast %t : i8 to index"
CASES: dict[str, tuple[str, d.Dim | None, d.Dim | None, bool]] = {
    "a loop": (op("addi", "p", "two"), 2, 6, True),
    "two loops": (op("addi", "p", "q"), 0, 10, True),
    "two loops, one counts down": (op("subi", "p", "q"), -6, 4, True),
    "a loop twice": (op("addi", "p", "p"), 0, 8, True),
    "a loop against itself": (op("subi", "two", "p", "back") + "\n" + op("addi", "back", "p"), -2, 6, False),
    "times a number": (op("muli", "q", "minus"), -18, 0, True),
    "times a size": (op("muli", "p", "n"), 0, d.mul(N, 4), True),
    "times a loop": (op("muli", "p", "q"), None, None, False),
    "a size": (op("addi", "last", "p"), d.sub(N, 2), d.add(N, 2), True),
    "data": (op("addi", "f", "two"), None, None, True),
    "data from 0 on": (op("maxsi", "f", "zero"), 0, None, True),
    "data in a range": (op("maxsi", "f", "zero", "low") + "\n" + op("minsi", "low", "three"), 0, 3, True),
    "a signed byte": (op("addi", "s", "two"), -126, 129, False),
    "an unsigned byte": (op("addi", "u", "two"), 2, 257, False),
    "a constant": (op("addi", "k", "two"), 0, 11, False),
    "one of two": (
        "%c = arith.cmpi slt, %f, %two : index\n%at = arith.select %c, %p, %last : index",
        d.minimum(0, d.sub(N, 2)),
        None,
        False,
    ),
    "unsigned least": (op("minui", "f", "three"), 0, 3, False),
    "unsigned least of loops": (op("minui", "q", "three"), 0, 3, True),
    "a remainder": (op("remsi", "f", "three"), -2, 2, False),
    "a remainder of a loop": (op("remsi", "q", "three"), 0, 2, False),
    "an unsigned remainder": (op("remui", "f", "n"), 0, d.sub(N, 1), False),
    "a quotient": (op("divsi", "q", "two"), 0, 3, True),
    "a quotient of what may be negative": (op("divui", "s", "two"), None, None, False),
    "rounded down": (op("subi", "p", "three", "less") + "\n" + op("floordivsi", "less", "two"), -2, 0, True),
    "shifted": (op("shrui", "q", "two"), 0, 1, True),
    "masked": (op("andi", "f", "three"), 0, 3, False),
    "some number": (op("xori", "p", "two"), None, None, False),
    "what a byte cannot hold": (
        (
            "%w = arith.addi %p, %most : index\n%t = arith.index_cast %w : index to i8\n%at = arith.index_cast %t "
            ": i8 to "
            "index"
        ),
        -128,
        127,
        False,
    ),
    "what a byte can hold": (
        (
            "%w = arith.subi %p, %three : index\n%t = arith.index_cast %w : index to i8\n%at = arith.index_cast "
            "%t : i8 "
            "to index"
        ),
        -3,
        1,
        True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_range(name: str):
    place, low, high, met = CASES[name]
    found = range_of(place)
    if name == "one of two":
        high = d.maximum(4, d.sub(N, 2))
    assert (found.low, found.high, found.met) == (low, high, met)


def test_sizes_in_half_words_are_assumed_to_fit():
    ctx = new_context()
    text = (
        "%t = arith.index_cast %n : index to i32\n%w = arith.addi %t, %t : i32\n%at = arith.index_cast %w : i32 to "
        "index"
    )
    module = parse_module(BODY.replace("PLACE", text), ctx)
    (read,) = [op for op in module.walk() if isinstance(op, tensor.ExtractOp)]
    generic: Any = read.parent_op()
    ranges = ScalarRanges(ShapeAnalysis({"n": N}), StructuredOp(generic), {})
    assert ranges.of(read.indices[0]).single == d.mul(N, 2)
    assert {(d.to_text(size), bits) for size, bits in ranges.assumed} == {("n", 32), ("2*n", 32)}


RUNNING = """func.func @main(%x: tensor<9xf32>, %i: tensor<5xi64>) -> tensor<i64> {
  %start = arith.constant dense<3> : tensor<i64>
  %none = arith.constant dense<> : tensor<0xi64>
  %away = arith.constant dense_resource<away> : tensor<5xi64>
  %r = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>, affine_map<(p) -> ()>],
      iterator_types = ["reduction"]}
      ins(%i, %away : tensor<5xi64>, tensor<5xi64>) outs(%start : tensor<i64>) {
  ^bb0(%fed: i64, %held: i64, %total: i64):
    %zero = arith.constant 0 : index
    %none_at = tensor.extract %none[%zero] : tensor<0xi64>
    %at = arith.index_cast %PLACE : i64 to index
    %read = tensor.extract %x[%at] : tensor<9xf32>
    %sum = arith.addi %total, %fed : i64
    linalg.yield %sum : i64
  } -> tensor<i64>
  return %r : tensor<i64>
}"""


@pytest.mark.parametrize(("place", "met"), [("total", False), ("held", True), ("none_at", False), ("fed", True)])
def test_nothing_is_known_of(place: str, met: bool):
    """Of a running total, whatever it starts from; of a constant that is elsewhere, and of one without elements."""
    module = parse_module(RUNNING.replace("PLACE", place), new_context())
    read = [op for op in module.walk() if isinstance(op, tensor.ExtractOp)][-1]
    generic: Any = read.parent_op()
    found = ScalarRanges(ShapeAnalysis(), StructuredOp(generic), {}).of(read.indices[0])
    assert (found.low, found.high, found.met) == (None, None, met)


def test_long_chains_are_followed():
    chain = [f"%v{i + 1} = arith.addi %v{i}, %two : index" for i in range(3000)]
    found = range_of("\n".join(["%v0 = arith.addi %p, %two : index", *chain, "%at = arith.addi %v3000, %two : index"]))
    assert (found.low, found.high) == (np.int64(6004), np.int64(6008))
