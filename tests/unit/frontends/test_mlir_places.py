"""Where MLIR programs read and write: inside of their tensors, whatever they are fed; native code and the interpreter agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.errors import FuselineError

Array = NDArray[Any]
RNG = np.random.default_rng(29)
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
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (PLACE)>], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%y : tensor<SHAPExf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<SHAPExf32>
  return %r : tensor<SHAPExf32>
}"""


@pytest.mark.parametrize(("shape", "place"), [("?", "i + 5"), ("?", "2 * i"), ("?", "i mod 2"), ("?x?", "i, 0"), ("?x?", "i, i"), ("?x4", "i, 2")])
def test_results_are_written_whole(shape: str, place: str, tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(WRITES.replace("SHAPE", shape).replace("PLACE", place))
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
