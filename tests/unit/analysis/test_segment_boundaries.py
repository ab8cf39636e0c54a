"""Where concats and pads cut a loop."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.tensor import ConcatOp
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.segment_boundaries import segment_boundaries, split_at, stored_strides
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import identity_map, shape_of
from tests.graphs.last_value import last_value


def cuts(
    body: str, *arguments: str, loop: int = 1, map_: AffineMap | None = None, extents: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """The cuts along a loop of `%r`, the last value of `body`."""
    text = (
        f"func.func @main({', '.join(f'%{name}' for name in arguments)}) {{\n%zero = arith.constant 0.0 : "
        f"f32\n{body}\nreturn\n}}"
    )
    value = last_value(text)
    shape = shape_of(value)
    return segment_boundaries(
        ShapeAnalysis(),
        value,
        map_ or identity_map(len(shape)),
        loop,
        extents or shape,
        lambda v: isinstance(v, BlockArgument),
    )


CONCAT = "%c = tensor.concat dim(1) %a, %b : (tensor<8x12xf32>, tensor<8x20xf32>) -> tensor<8x32xf32>"
ARGUMENTS = ("a: tensor<8x12xf32>", "b: tensor<8x20xf32>")
NEGATED = """
%e = tensor.empty() : tensor<8x32xf32>
%n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%c : tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) {
^bb0(%v: f32, %o: f32):
  %w = arith.negf %v : f32
  linalg.yield %w : f32
} -> tensor<8x32xf32>"""
PAD = """
%p = tensor.pad %n low[0, 3] high[0, 1] {
^bb0(%i: index, %j: index):
  tensor.yield %zero : f32
} : tensor<8x32xf32> to tensor<8x36xf32>"""


def test_a_concat_cuts_where_a_part_ends():
    assert cuts(CONCAT, *ARGUMENTS) == (12,)


def test_the_other_loops_are_whole():
    assert cuts(CONCAT, *ARGUMENTS, loop=0) == ()


def test_cuts_are_seen_through_arithmetic_and_moved_by_pads():
    assert cuts(CONCAT + NEGATED + PAD, *ARGUMENTS) == (3, 15, 35)


def test_a_slice_shows_only_the_cuts_it_holds():
    cut = "\n%s = tensor.extract_slice %c[0, 10] [8, 6] [1, 1] : tensor<8x32xf32> to tensor<8x6xf32>"
    assert cuts(CONCAT + cut, *ARGUMENTS) == (2,)


@pytest.mark.parametrize(("step", "expected"), [(1, (12,)), (5, (3,))])
def test_steps(step: int, expected: tuple[int, ...]):
    """A loop of steps of five reaches the second part at its third iteration."""
    map_ = AffineMap.from_callable(lambda i, j: (i, j * step))
    assert cuts(CONCAT, *ARGUMENTS, map_=map_, extents=(8, 32 // step)) == expected


def test_two_loops_in_a_coordinate_cut_neither():
    assert cuts(CONCAT, *ARGUMENTS, map_=AffineMap.from_callable(lambda i, j: (i, i + j)), extents=(8, 20)) == ()


def test_pieces():
    assert split_at(10, (7, 3)) == [(0, 3), (3, 7), (7, 10)]
    assert split_at(10, ()) == [(0, 10)]


@pytest.mark.parametrize(("loop", "stride"), [(0, 12), (1, 1)])
def test_the_stride_of_a_loop_in_what_is_stored(loop: int, stride: int):
    x = Block(arg_types=[TensorType(f32, [8, 12])]).args[0]
    assert stored_strides(ShapeAnalysis(), x, identity_map(2), loop, (8, 12), lambda v: v is x) == [stride]


@pytest.mark.parametrize(("whole", "cut", "strides"), [(False, (12,), [12, 20]), (True, (), [32])])
def test_what_is_stored_is_not_looked_through(whole: bool, cut: tuple[int, ...], strides: list[int]):
    """The parts of a concat that is stored itself cut nothing, and have no strides."""
    text = f"func.func @main(%a: tensor<8x12xf32>, %b: tensor<8x20xf32>) {{\n{CONCAT}{NEGATED}\nreturn\n}}"
    value = last_value(text)

    def is_stored(v: SSAValue) -> bool:
        return isinstance(v, BlockArgument) or (whole and isinstance(v.owner, ConcatOp))

    found = [(ShapeAnalysis(), value, identity_map(2), loop, (8, 32), is_stored) for loop in range(2)]
    assert segment_boundaries(*found[1]) == cut
    assert stored_strides(*found[0]) == strides
