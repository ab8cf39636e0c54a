"""Elements that a body takes out of a tensor at its own loops and at numbers are read by a map."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import linalg, tensor
from xdsl.ir.affine import AffineMap

import fuseline
from fuseline.ir.build import dims_map
from fuseline.passes.cleanup.folds.plain_reads import fold_plain_read
from fuseline.passes.cleanup.folds.worklist import Worklist
from tests.draws import RNG
from tests.unit.passes.cleanup.test_folds import parsed
from tests.unit.passes.cleanup.test_slice_folds import static

BODY = """
    %e = tensor.empty() : tensor<4x5xf32>
    %r = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [{iterators}]}}
        outs(%e : tensor<4x5xf32>) {{
    ^bb0(%o: f32):
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %c9 = arith.constant 9 : index
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %s = arith.addi %i, %j : index
      %v = tensor.extract %x[{places}] : tensor<9x9x9xf32>
      %w = arith.negf %v : f32
      linalg.yield %w : f32
    }} -> tensor<4x5xf32>"""


def _folded(places: str, iterators: str = '"parallel", "parallel"') -> Any:
    """The generic that the fold makes, None where it leaves the op alone."""
    body = BODY.format(places=places, iterators=iterators)
    module, block = parsed(body, "%x: tensor<9x9x9xf32>", "tensor<4x5xf32>")
    op = next(op for op in block.ops if isinstance(op, linalg.ops.GenericOp))
    if not fold_plain_read(op, Worklist({})):
        return None
    module.verify()
    return next(op for op in block.ops if isinstance(op, linalg.ops.GenericOp))


@pytest.mark.parametrize("order", list(permutations(["%i", "%j", "%c3"])))
def test_loops_and_numbers_are_a_slice_and_a_map(order: tuple[str, ...]):
    found = _folded(", ".join(order))
    at = {"%i": 0, "%j": 1}
    assert found.indexing_maps.data[0].data == dims_map(2, [at[name] for name in order if name in at])
    (cut,) = (value.owner for value in found.inputs)
    assert isinstance(cut, tensor.ExtractSliceOp)
    sizes = {"%i": 4, "%j": 5, "%c3": 1}
    assert static(cut) == [tuple(3 if n == "%c3" else 0 for n in order), tuple(sizes[n] for n in order), (1, 1, 1)]
    assert not any(isinstance(op, tensor.ExtractOp) for op in found.body.block.ops)
    assert found.indexing_maps.data[-1].data == AffineMap.identity(2)


@pytest.mark.parametrize("places", ["%i, %i, %c0", "%s, %i, %c0", "%i, %s, %j", "%i, %j, %c9"])
def test_any_other_place_stays(places: str):
    assert _folded(places) is None


def test_a_body_that_reduces_stays():
    assert _folded("%i, %c0, %c3", '"parallel", "reduction"') is None


def _text(shape: list[int], places: list[int | str], sizes: list[int]) -> str:
    """A program that yields elements of `%x`, each times the element of `%y` at its own place."""
    loops = ", ".join(f"d{i}" for i in range(len(sizes)))
    kind, read = "x".join(map(str, sizes)), "x".join(map(str, shape))
    lines = [f"    %n{i} = arith.constant {at} : index" for i, at in enumerate(places) if isinstance(at, int)]
    lines += [f"    %l{i} = linalg.index {i} : index" for i in range(len(sizes))]
    named = [f"%n{i}" if isinstance(at, int) else f"%l{at[1:]}" for i, at in enumerate(places)]
    body = "\n".join(lines)
    same = f"affine_map<({loops}) -> ({loops})>"
    return f"""func.func @main(%x: tensor<{read}xf32>, %y: tensor<{kind}xf32>) -> tensor<{kind}xf32> {{
  %e = tensor.empty() : tensor<{kind}xf32>
  %r = linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = [{", ".join(['"parallel"'] * len(sizes))}]}}
      ins(%y : tensor<{kind}xf32>) outs(%e : tensor<{kind}xf32>) {{
  ^bb0(%b: f32, %o: f32):
{body}
    %v = tensor.extract %x[{", ".join(named)}] : tensor<{read}xf32>
    %p = arith.mulf %v, %b : f32
    linalg.yield %p : f32
  }} -> tensor<{kind}xf32>
  return %r : tensor<{kind}xf32>
}}"""


def test_programs_of_any_rank(tmp_path: Path):
    """With numbers among the places, and dimensions that the read lacks."""
    for number in range(6):
        rank = int(RNG.integers(1, 4))
        sizes = [int(n) for n in RNG.integers(1, 20, rank)]
        loops = [int(n) for n in RNG.permutation(rank)[: RNG.integers(0, rank + 1)]]
        places: list[int | str] = [f"d{loop}" for loop in loops]
        for _ in range(int(RNG.integers(0, 3))):
            places.insert(int(RNG.integers(0, len(places) + 1)), int(RNG.integers(0, 6)))
        shape = [at + 2 if isinstance(at, int) else sizes[int(at[1:])] + int(RNG.integers(0, 3)) for at in places]
        if not shape:
            continue
        path = tmp_path / f"{number}.mlir"
        path.write_text(_text(shape, places, sizes))
        x, y = (RNG.standard_normal(part).astype(np.float32) for part in (shape, sizes))
        grid = np.indices(sizes)
        wanted = x[tuple(at if isinstance(at, int) else grid[int(at[1:])] for at in places)] * y
        program = fuseline.compile(path)
        (found,) = program.run({"x": x, "y": y}).values()
        np.testing.assert_array_equal(found, wanted)
        assert program.stats["dispatches"] == 1 and program.stats["gathers"] == 0


def test_a_tensor_that_is_only_read_so_is_itself(tmp_path: Path):
    """No dispatch is left of a reshape that is written element by element."""
    path = tmp_path / "flat.mlir"
    path.write_text("""func.func @main(%x: tensor<1x1x50xf32>) -> tensor<50xf32> {
  %e = tensor.empty() : tensor<50xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      outs(%e : tensor<50xf32>) {
  ^bb0(%o: f32):
    %c0 = arith.constant 0 : index
    %i = linalg.index 0 : index
    %v = tensor.extract %x[%c0, %c0, %i] : tensor<1x1x50xf32>
    linalg.yield %v : f32
  } -> tensor<50xf32>
  return %r : tensor<50xf32>
}""")
    program = fuseline.compile(path)
    x = RNG.standard_normal((1, 1, 50)).astype(np.float32)
    np.testing.assert_array_equal(next(iter(program.run({"x": x}).values())), x.ravel())
    assert program.stats["dispatches"] == 0
