"""Where MLIR programs read and write: inside of their tensors, whatever they are fed; native code and the interpreter
agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.proved import ProvedProgram

Array = NDArray[Any]
TARGETS = ("cpu", "interpreter")


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def outcome(text: str, feeds: dict[str, Any], tmp_path: Path) -> Any:
    """The one result, or the code of the error, on which native code and the interpreter agree."""
    path = tmp_path / "p.mlir"
    path.write_text(text)
    native, reference = (_outcome(path, feeds, target) for target in TARGETS)
    np.testing.assert_array_equal(native, reference)
    return native


def _outcome(path: Path, feeds: dict[str, Any], target: str) -> Any:
    try:
        return next(iter(fuseline.compile(path, target=target, threads=1).run(feeds).values()))
    except FuselineError as error:
        return error.code


WRITES = """func.func @main(%x: tensor<?xf32>, %y: tensor<SHAPExf32>) -> tensor<SHAPExf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (PLACE)>],
      iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%y : tensor<SHAPExf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<SHAPExf32>
  return %r : tensor<SHAPExf32>
}"""


@pytest.mark.parametrize(
    ("shape", "position"),
    [("?", "i + 5"), ("?", "2 * i"), ("?", "i mod 2"), ("?x?", "i, 0"), ("?x?", "i, i"), ("?x4", "i, 2")],
)
def test_results_are_written_whole(shape: str, position: str, tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(WRITES.replace("SHAPE", shape).replace("PLACE", position))
    with pytest.raises(FuselineError, match=r"E0306 .p\.mlir:2.*a result is written at"):
        fuseline.compile(path, target="null")


def test_a_unit_of_a_result_needs_no_loop(tmp_path: Path):
    x = floats(5)
    found = outcome(WRITES.replace("SHAPE", "?x1").replace("PLACE", "i, 0"), {"x": x, "y": floats(5, 1)}, tmp_path)
    np.testing.assert_array_equal(found, x[:, None])


QUOTIENT = """func.func @main(%x: tensor<?xf32>, %a: index, %b: index) -> tensor<3xf32> {
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %cm7 = arith.constant -7 : index
  %less = arith.subi %a, %c9 : index
  %least = arith.maxsi %less, %cm7 : index
  %half = arith.floordivsi %least, %DIVISOR : index
  %at = arith.addi %half, %c9 : index
  %r = tensor.extract_slice %x[%at] [3] [2] : tensor<?xf32> to tensor<3xf32>
  return %r : tensor<3xf32>
}"""


@pytest.mark.parametrize("divisor", ["c4", "b"])
@pytest.mark.parametrize("a", [0, 3, 8, 9, 30])
def test_quotients_of_negative_sizes_are_rounded_down(a: int, divisor: str, tmp_path: Path):
    """The runtime checks the same number that the kernel adds to an address."""
    x, start = floats(20), max(a - 9, -7) // 4 + 9
    found = outcome(QUOTIENT.replace("DIVISOR", divisor), {"x": x, "a": a, "b": 4}, tmp_path)
    np.testing.assert_array_equal(found, x[start : start + 6 : 2])


GATHER = """func.func @main(%x: tensor<?xf32>, %i: tensor<?xi64>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %i, %c0 : tensor<?xi64>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%z : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(LOOPS) -> (a)>, affine_map<(LOOPS) -> (WRITTEN)>],
      iterator_types = [KINDS]}
      ins(%i : tensor<?xi64>) outs(%init : tensor<?xf32>) {
  ^bb0(%p: i64, %out: f32):
    %zero = arith.constant 0 : index
    %two = arith.constant 2 : index
    %here = linalg.index 0 : index
    %there = linalg.index OTHER : index
    %fed = arith.index_cast %p : i64 to index
    %last = arith.subi %n, %two : index
    PLACE
    %s = tensor.extract %x[%at] : tensor<?xf32>
    %sum = arith.addf %s, %out : f32
    linalg.yield %sum : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}"""
REDUCED = (
    GATHER.replace("LOOPS", "a, b")
    .replace("WRITTEN", "b")
    .replace("KINDS", '"reduction", "parallel"')
    .replace("OTHER", "1")
)
GATHERED = GATHER.replace("LOOPS", "a").replace("WRITTEN", "a").replace("KINDS", '"parallel"').replace("OTHER", "0")
PLACES = {
    "data": "%at = arith.addi %fed, %zero : index",
    "data that may count from the end": """%neg = arith.cmpi slt, %fed, %zero : index
    %w = arith.addi %fed, %n : index
    %at = arith.select %neg, %w, %fed : index""",
    "a choice": """%c = arith.cmpi slt, %fed, %two : index
    %far = arith.addi %last, %here : index
    %at = arith.select %c, %here, %far : index""",
    "clamped at one end": "%at = arith.minsi %fed, %last : index",
    "clamped at the other end": "%at = arith.maxsi %fed, %last : index",
    "clamped, and moved": """%low = arith.minsi %fed, %last : index
    %high = arith.maxsi %low, %zero : index
    %at = arith.addi %high, %two : index""",
    "a remainder": "%at = arith.remsi %fed, %n : index",
    "a product": "%at = arith.muli %here, %there : index",
    "a quotient of what may be negative": """%q = arith.subi %here, %two : index
    %at = arith.divui %q, %two : index""",
    "bits": "%at = arith.xori %here, %two : index",
    "half a word": """%h = arith.trunci %p : i64 to i32
    %at = arith.index_cast %h : i32 to index""",
    "a byte": """%t = arith.index_cast %here : index to i8
    %at = arith.index_cast %t : i8 to index""",
}
WILD = np.array([0, 5, -1, 7, -(2**63), 2**63 - 1, 2**32, -6, 3], np.int64)


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("text", [GATHERED, REDUCED], ids=["gathered", "summed up"])
def test_computed_places_are_inside(text: str, name: str, tmp_path: Path):
    """Where sizes cannot tell, the nearest place is read: every access is proved, and both targets agree."""
    path = tmp_path / "p.mlir"
    path.write_text(text.replace("PLACE", PLACES[name]))
    program, reference = ProvedProgram(path), fuseline.compile(path, target="interpreter")
    for size, count in ((6, 9), (1, 3), (300, 200)):
        feeds = {"x": floats(size), "i": np.resize(WILD, count)}
        try:
            (wanted,) = reference.run(feeds).values()
        except FuselineError as error:
            assert error.code == "E0203"
            with pytest.raises(FuselineError, match="E0203"):
                program.run(feeds)
        else:
            np.testing.assert_allclose(program.run(feeds)[0], wanted, rtol=1e-4, atol=1e-4)
            assert text is REDUCED or np.isin(wanted, feeds["x"]).all()


PRODUCT = """func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x5xf32>, %i: tensor<?xi64>) -> tensor<?x5xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %i, %c0 : tensor<?xi64>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<?xi64>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%p: i64, %out: f32):
    %at = arith.index_cast %p : i64 to index
    %b = linalg.index 1 : index
    %s = tensor.extract %x[%at, %b] : tensor<?x8xf32>
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  %f = tensor.empty(%m) : tensor<?x5xf32>
  %init = linalg.fill ins(%z : f32) outs(%f : tensor<?x5xf32>) -> tensor<?x5xf32>
  %r = linalg.matmul ins(%g, %w : tensor<?x8xf32>, tensor<8x5xf32>) outs(%init : tensor<?x5xf32>) -> tensor<?x5xf32>
  return %r : tensor<?x5xf32>
}"""


def test_a_gather_in_a_product(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(PRODUCT)
    x, w = floats(6, 8), floats(8, 5)
    (found,) = ProvedProgram(path).run({"x": x, "w": w, "i": WILD})
    np.testing.assert_allclose(found, x[np.clip(WILD, 0, 5)] @ w, rtol=1e-4, atol=1e-4)
