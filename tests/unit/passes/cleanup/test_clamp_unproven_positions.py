"""Places that data names are brought inside; what sizes say stays, and the program computes what it should."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp

from fuseline.ir.context import new_context
from fuseline.ir.dim import symbol
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.clamp_unproven_positions import ClampUnprovenPositionsPass

from .expanding import run

READ = """func.func @main(%x: tensor<SIZExf32>, %i: tensor<?xTYPE> {fuseline.dims = ["m"]}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %i, %c0 : tensor<?xTYPE>
  %e = tensor.empty(%m) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%i : tensor<?xTYPE>) outs(%e : tensor<?xf32>) {
  ^bb0(%p: TYPE, %out: f32):
    %zero = arith.constant 0 : index
    %at = PLACE
    %s = tensor.extract %x[%at] : tensor<SIZExf32>
    linalg.yield %s : f32
  } -> tensor<?xf32> loc("read")
  return %r : tensor<?xf32>
}"""
SIGNED, UNSIGNED = "arith.index_cast %p : TYPE to index", "arith.index_castui %p : TYPE to index"


def clamped(size: str, position: str, type_: str) -> tuple[ModuleOp, tuple[int, int]]:
    """The program after the pass, which finds nothing to do a second time; how often it takes a minimum, a maximum."""
    ctx = new_context()
    module = parse_module(READ.replace("PLACE", position).replace("SIZE", size).replace("TYPE", type_), ctx)
    ctx.symbols["m"] = symbol("m", 0)
    ClampUnprovenPositionsPass().apply(ctx, module)
    module.verify()
    text = print_module(module)
    ClampUnprovenPositionsPass().apply(ctx, module)
    assert print_module(module) == text
    ops = list(module.walk())
    return module, tuple([sum(isinstance(op, kind) for op in ops) for kind in (arith.MinSIOp, arith.MaxSIOp)])  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize("size", ["6", "1", "?"])
@pytest.mark.parametrize(
    ("position", "type_", "ends"),
    [(SIGNED, "i64", (1, 1)), (SIGNED, "i8", (1, 1)), (UNSIGNED, "i8", (1, 0))],
    ids=["i64", "i8", "ui8"],
)
def test_a_place_in_data_is_the_nearest_one_there_is(size: str, position: str, type_: str, ends: tuple[int, int]):
    module, found = clamped(size, position, type_)
    assert found == ends
    dtype = {"i64": np.int64, "i8": np.int8}[type_]
    x = np.random.default_rng().standard_normal(1 if size == "1" else 6).astype(np.float32)
    fed = np.array([-128, -7, -1, 0, 1, 4, 5, 6, 7, 127]).astype(dtype)
    wide = fed.astype(np.uint8) if position is UNSIGNED else fed
    np.testing.assert_array_equal(run(module, x, fed), x[np.clip(wide.astype(np.int64), 0, len(x) - 1)])


@pytest.mark.parametrize(
    ("size", "position", "type_"),
    [("256", UNSIGNED, "i8"), ("?", "linalg.index 0 : index", "i64"), ("2", UNSIGNED, "i1")],
    ids=["every byte has its place", "a counter must be inside", "every bit"],
)
def test_what_stays_inside_is_left_alone(size: str, position: str, type_: str):
    assert clamped(size, position, type_)[1] == (0, 0)


def test_a_read_outside_of_a_body_is_left_alone():
    ctx = new_context()
    text = """func.func @main(%x: tensor<4xf32>, %i: index) -> f32 {
      %s = tensor.extract %x[%i] : tensor<4xf32>
      return %s : f32
    }"""
    module = parse_module(text, ctx)
    before = print_module(module)
    ClampUnprovenPositionsPass().apply(ctx, module)
    assert print_module(module) == before
