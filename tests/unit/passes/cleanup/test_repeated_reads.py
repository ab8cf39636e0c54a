"""Elements that a body takes out of a repeated tensor are taken out of the tensor that is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import linalg, tensor

import fuseline
from fuseline.evaluation import evaluate_function, main_function
from fuseline.passes.cleanup.folds.repeated_reads import fold_repeated_read
from fuseline.passes.cleanup.folds.worklist import Worklist
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.unit.passes.cleanup.test_folds import parsed


def _type(sizes: Sequence[int | str], element: str = "f32") -> str:
    return f"tensor<{''.join(f'{size}x' for size in sizes)}{element}>"


def _maps(maps: Sequence[Sequence[int]], rank: int) -> str:
    loops = ", ".join(f"d{i}" for i in range(rank))
    texts = (f"affine_map<({loops}) -> ({', '.join(f'd{i}' for i in map_)})>" for map_ in maps)
    kinds = ", ".join(['"parallel"'] * rank)
    return f"{{indexing_maps = [{', '.join(texts)}], iterator_types = [{kinds}]}}"


def _program(opened: Sequence[int], kept: Sequence[int], groups: Sequence[Sequence[int]], more: str = "") -> Any:
    """20 elements at fed places of a tensor with dimensions `kept` of `opened`, repeated along the rest and collapsed
    by `groups`."""
    source, wide = _type([opened[axis] for axis in kept]), _type(opened)
    flat = [prod(opened[axis] for axis in group) for group in groups]
    feeds = ", ".join(f"%p{i}: tensor<20xindex>" for i in range(len(groups)))
    places = "\n".join(f"%i{i} = tensor.extract %p{i}[%n] : tensor<20xindex>" for i in range(len(groups)))
    body = f"""
    %e = tensor.empty() : {wide}
    %w = linalg.generic {_maps([kept, range(len(opened))], len(opened))} ins(%x : {source}) outs(%e : {wide}) {{
    ^bb0(%in: f32, %o: f32):
      linalg.yield %in : f32
    }} -> {wide}
    %u = tensor.collapse_shape %w {[list(group) for group in groups]} : {wide} into {_type(flat)}
    %f = tensor.empty() : tensor<20xf32>
    {more.format(flat=_type(flat), wide=wide)}
    %r = linalg.generic {_maps([[0]], 1)} outs(%f : tensor<20xf32>) {{
    ^bb0(%o: f32):
      %n = linalg.index 0 : index
      {places}
      %v = tensor.extract %u[{", ".join(f"%i{i}" for i in range(len(groups)))}] : {_type(flat)}
      linalg.yield %v : f32
    }} -> tensor<20xf32>"""
    return parsed(body, f"%x: {source}, {feeds}", "tensor<20xf32>")


def _reader(block: Any) -> Any:
    return [op for op in block.ops if isinstance(op, linalg.ops.GenericOp)][-1]


def _drawn() -> tuple[list[int], list[int], list[list[int]]]:
    """Sizes, the dimensions among them that are not repeated, and groups of neighbours."""
    opened = [int(size) for size in RNG.integers(1, 5, RNG.integers(2, 6))]
    kept = sorted(int(axis) for axis in RNG.permutation(len(opened))[: RNG.integers(1, len(opened))])
    inside = sorted({int(cut) for cut in RNG.integers(1, len(opened), 2)})[: len(opened) - 2]  # one group has several
    return opened, kept, [list(range(a, b)) for a, b in pairwise([0, *inside, len(opened)])]


@pytest.mark.parametrize("case", range(12))
def test_the_same_elements(case: int):
    opened, kept, groups = _drawn()
    module, block = _program(opened, kept, groups)
    x = RNG.standard_normal([opened[axis] for axis in kept]).astype(np.float32)
    places = [RNG.integers(0, prod(opened[axis] for axis in group), 20) for group in groups]
    wanted = evaluate_function(main_function(module), [x, *places])[0]
    assert fold_repeated_read(_reader(block), Worklist({}))
    module.verify()
    found = evaluate_function(main_function(module), [x, *places])[0]
    np.testing.assert_array_equal(found, wanted)
    reads = [op for op in _reader(block).body.block.ops if isinstance(op, tensor.ExtractOp)]
    assert reads[-1].tensor is block.args[0]


OTHER_READERS = {
    "a whole result": "%other = tensor.cast %u : {flat} to {flat}",
    "the repeated tensor": "%other = tensor.cast %w : {wide} to {wide}",
}


@pytest.mark.parametrize("more", OTHER_READERS.values(), ids=OTHER_READERS)
def test_a_tensor_that_is_stored_for_others_is_read_there(more: str):
    _, block = _program([3, 2, 4], [0, 2], [[0, 1], [2]], more)
    assert not fold_repeated_read(_reader(block), Worklist({}))


@pytest.mark.parametrize("factors", [(2, 2), (3, 1), (1, 4)])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_image_that_is_repeated_and_added_to_one_of_a_size_of_its_own(factors: tuple[int, int], threads: int):
    down, right = factors
    proto = onnx_model(
        f"""(float[1,3,h,w] x, float[1,3,n,m] y) => (float[1,3,a,b] z)
        <float[4] s = {{1.0, 1.0, {float(down)}, {float(right)}}}> {{
          u = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (x, , s)
          z = Add(u, y)
        }}"""
    )
    program = fuseline.compile(proto, threads=threads)
    assert (program.stats["dispatches"], program.stats["fills"]) == (1, 0)
    for _ in range(3):
        height, width = (int(size) for size in RNG.integers(2, 9, 2))
        x = RNG.standard_normal((1, 3, height, width)).astype(np.float32)
        wide = x.repeat(down, 2).repeat(right, 3)
        for sizes in (wide.shape[2:], (1, 1), (1, wide.shape[3])):
            y = RNG.standard_normal((1, 3, *sizes)).astype(np.float32)
            np.testing.assert_array_equal(program.run({"x": x, "y": y})["z"], wide + y)
