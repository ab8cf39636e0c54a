"""Where an operand lies in stored tensors: one case per op that is looked through, and per reason to stop."""

from __future__ import annotations

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument
from xdsl.ir.affine import AffineMap
from xdsl.parser import Parser

from fuseline.analysis.linear_forms import Linear
from fuseline.analysis.operand_access import Segment, segments
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import identity_map
from fuseline.ir.context import new_context

PADDED = (
    "%{0} = tensor.pad %{1} low[{2}] high[{3}] {{\n^bb0(%i{0}: index, %j{0}: index):\n  tensor.yield %{4} : f32\n}}"
    " : tensor<{5}xf32> to tensor<{6}xf32>"
)
NUMBERS = "%zero = arith.constant 0.0 : f32\n%one = arith.constant 1.0 : f32\n"
CONCAT = "%c = tensor.concat dim(1) %a, %b : (tensor<8x12xf32>, tensor<8x20xf32>) -> tensor<8x32xf32>"
PARTS = ("a: tensor<8x12xf32>", "b: tensor<8x20xf32>")


def found(body: str, *arguments: str, map_: AffineMap | None = None, extents: tuple[int, ...] | None = None) -> tuple[Segment, ...] | None:
    """How the last value of `body` is read through `map_` (all of it, in order)."""
    text = f"func.func @main({', '.join(f'%{name}' for name in arguments)}) {{\n{NUMBERS}{body}\nreturn\n}}"
    module = Parser(new_context(), text).parse_module()
    entry = next(op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    last = entry.body.block.last_op
    value = last.prev_op.results[0] if last is not None and last.prev_op is not None else None
    assert value is not None and isinstance(value.type, TensorType)
    shape = value.type.get_shape()
    return segments(ShapeAnalysis(), value, map_ or identity_map(len(shape)), extents or shape, lambda v: isinstance(v, BlockArgument))


def flat(result: tuple[Segment, ...] | None) -> list[Linear]:
    """The addresses of the segments."""
    assert result is not None
    return [segment.access.flat for segment in result]


def test_the_parts_of_a_concat():
    result = found(CONCAT, *PARTS)
    assert flat(result) == [Linear({0: 12, 1: 1}), Linear({0: 20, 1: 1})]
    assert result is not None
    assert [(s.loop, s.start, s.size) for s in result] == [(1, 0, 12), (1, 12, 20)]


@pytest.mark.parametrize(("column", "expected"), [(3, Linear({0: 12}, 3)), (12, Linear({0: 20}, 0)), (31, Linear({0: 20}, 19))])
def test_a_fixed_place_lies_in_one_part(column: int, expected: Linear):
    result = found(CONCAT, *PARTS, map_=AffineMap.from_callable(lambda i: (i, column)), extents=(8,))
    assert flat(result) == [expected]


def test_two_loops_along_a_concat_cut_neither():
    assert found(CONCAT, *PARTS, map_=AffineMap.from_callable(lambda i, j: (i, i + j)), extents=(8, 20)) is None


def test_steps_over_the_parts_are_not_cut():
    assert found(CONCAT, *PARTS, map_=AffineMap.from_callable(lambda i, j: (i, j * 2)), extents=(8, 16)) is None


def test_concats_along_two_loops_are_not_cut():
    both = CONCAT + "\n%d = tensor.concat dim(0) %c, %c : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>"
    assert found(both, *PARTS) is None


def test_a_map_that_is_not_linear():
    assert found(CONCAT, *PARTS, map_=AffineMap.from_callable(lambda i, j: (i, j % 4)), extents=(8, 32)) is None


def test_named_transposes_and_broadcasts():
    body = """
    %e = tensor.empty() : tensor<4x8xf32>
    %t = linalg.transpose ins(%a : tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) permutation = [1, 0]
    %f = tensor.empty() : tensor<4x3x8xf32>
    %r = linalg.broadcast ins(%t : tensor<4x8xf32>) outs(%f : tensor<4x3x8xf32>) dimensions = [1]"""
    assert flat(found(body, "a: tensor<8x4xf32>")) == [Linear({0: 1, 2: 4})]


def test_a_slice_that_drops_unit_dimensions():
    body = "%s = tensor.extract_slice %a[2, 0, 3] [1, 5, 4] [1, 1, 2] : tensor<3x5x12xf32> to tensor<5x4xf32>"
    assert flat(found(body, "a: tensor<3x5x12xf32>")) == [Linear({0: 12, 1: 2}, 123)]


def test_a_collapse_of_batches_is_undone_by_the_loops_that_made_it():
    body = "%r = tensor.collapse_shape %s [[0, 1], [2]] : tensor<3x5x4xf32> into tensor<15x4xf32>"
    cut = "%s = tensor.extract_slice %a[0, 0, 0] [3, 5, 4] [1, 1, 1] : tensor<3x9x4xf32> to tensor<3x5x4xf32>\n"
    map_ = AffineMap.from_callable(lambda n, i, k: (n * 5 + i, k))
    result = found(cut + body, "a: tensor<3x9x4xf32>", map_=map_, extents=(3, 5, 4))
    assert flat(result) == [Linear({0: 36, 1: 4, 2: 1})]
    assert result is not None
    assert not result[0].access.quotients


def test_pads_of_two_values_are_not_one_access():
    once = PADDED.format("p", "a", "0, 1", "0, 0", "zero", "8x12", "8x13")
    twice = PADDED.format("q", "p", "1, 0", "0, 0", "one", "8x13", "9x13")
    assert found(once, PARTS[0]) is not None
    assert found(once + "\n" + twice, PARTS[0]) is None
    assert found(once + "\n" + twice.replace("%one", "%zero"), PARTS[0]) is not None


def test_padding_inside_what_is_upsampled_has_no_linear_border():
    """The border would move in steps."""
    pad = PADDED.format("p", "a", "0, 1", "0, 1", "zero", "8x12", "8x14")
    repeat = """
    %x = tensor.expand_shape %p [[0], [1, 2]] output_shape [8, 14, 1] : tensor<8x14xf32> into tensor<8x14x1xf32>
    %e = tensor.empty() : tensor<8x14x2xf32>
    %g = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, 0)>, affine_map<(i, j, k) -> (i, j, k)>],
        iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<8x14x1xf32>) outs(%e : tensor<8x14x2xf32>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    } -> tensor<8x14x2xf32>
    %r = tensor.collapse_shape %g [[0], [1, 2]] : tensor<8x14x2xf32> into tensor<8x28xf32>"""
    assert found(pad + repeat, PARTS[0]) is None
    plain = repeat.replace("%p", "%a").replace("14", "12").replace("8x28", "8x24")
    result = found(plain, PARTS[0])
    assert result is not None
    assert [(q.divisor, q.stride) for q in result[0].access.quotients] == [(2, 1)]
