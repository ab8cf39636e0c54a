"""Where an operand lies in stored tensors: one case per op that is looked through, and per reason to stop."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block, BlockArgument
from xdsl.ir.affine import AffineMap

from fuseline.analysis.linear_forms import Linear
from fuseline.analysis.operand_access import (
    Bound,
    LinearAccess,
    Quotient,
    Segment,
    always_inside,
    coordinates_of,
    segments,
)
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir import dim as d
from fuseline.ir.build import identity_map, shape_of
from tests.graphs.last_value import last_value

PADDED = (
    "%{0} = tensor.pad %{1} low[{2}] high[{3}] {{\n^bb0(%i{0}: index, %j{0}: index):\n  tensor.yield %{4} : f32\n}}"
    " : tensor<{5}xf32> to tensor<{6}xf32>"
)
NUMBERS = "%zero = arith.constant 0.0 : f32\n%one = arith.constant 1.0 : f32\n"
CONCAT = "%c = tensor.concat dim(1) %a, %b : (tensor<8x12xf32>, tensor<8x20xf32>) -> tensor<8x32xf32>"
PARTS = ("a: tensor<8x12xf32>", "b: tensor<8x20xf32>")

BLOCK = Block(arg_types=[TensorType(f32, [96])])


def found(
    body: str, *arguments: str, map_: AffineMap | None = None, extents: tuple[int, ...] | None = None
) -> tuple[Segment, ...] | None:
    """How the last value of `body` is read through `map_` (all of it, in order)."""
    text = f"func.func @main({', '.join(f'%{name}' for name in arguments)}) {{\n{NUMBERS}{body}\nreturn\n}}"
    value = last_value(text)
    shape = shape_of(value)
    return segments(
        ShapeAnalysis(),
        value,
        map_ or identity_map(len(shape)),
        extents or shape,
        lambda v: isinstance(v, BlockArgument),
    )


def flat(result: tuple[Segment, ...] | None) -> list[Linear]:
    """The addresses of the segments."""
    assert result is not None
    return [segment.access.flat for segment in result]


def test_the_parts_of_a_concat():
    result = found(CONCAT, *PARTS)
    assert flat(result) == [Linear({0: 12, 1: 1}), Linear({0: 20, 1: 1})]
    assert result is not None
    assert [(s.loop, s.start, s.size) for s in result] == [(1, 0, 12), (1, 12, 20)]


@pytest.mark.parametrize(
    ("column", "expected"), [(3, Linear({0: 12}, 3)), (12, Linear({0: 20}, 0)), (31, Linear({0: 20}, 19))]
)
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
    assert not result[0].access.floordiv_terms


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
        iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<8x14x1xf32>)
            outs(%e : tensor<8x14x2xf32>) {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    } -> tensor<8x14x2xf32>
    %r = tensor.collapse_shape %g [[0], [1, 2]] : tensor<8x14x2xf32> into tensor<8x28xf32>"""
    assert found(pad + repeat, PARTS[0]) is None
    plain = repeat.replace("%p", "%a").replace("14", "12").replace("8x28", "8x24")
    result = found(plain, PARTS[0])
    assert result is not None
    assert [(q.divisor, q.stride) for q in result[0].access.floordiv_terms] == [(2, 1)]


@pytest.mark.parametrize(("columns", "size"), [("4", "4"), ("?", "%n")])
def test_a_place_is_divided_by_numbers_only(columns: str, size: str):
    """What a kernel steps over by counting; a size of the run would be a division per element."""
    body = f"""%s = tensor.extract_slice %a[0, 0] [8, {size}] [1, 1] : tensor<8x9xf32> to tensor<8x{columns}xf32>
    %r = tensor.collapse_shape %s [[0, 1]] : tensor<8x{columns}xf32> into tensor<{32 if columns == "4" else "?"}xf32>"""
    result = found(body, "a: tensor<8x9xf32>", "n: index", extents=(32,))
    assert (result is None) == (columns == "?")
    if result is not None:
        assert [(q.divisor, q.stride) for q in result[0].access.floordiv_terms] == [(4, 5)]


def window(rows: int, columns: int) -> AffineMap:
    """Reads from that row and column on."""
    return AffineMap.from_callable(lambda i, j: (i + rows, j + columns))


def test_steps_between_two_iterations():
    """`step` estimates what a loop moves by, quotients included; `stride` leaves them out."""
    quotients = (Quotient(Linear({1: 3, 2: 1}), 2, 8), Quotient(Linear({1: 1}), 4, 2))
    access = LinearAccess(BLOCK.args[0], Linear({0: -12, 1: 5}, 7), (), 0, quotients)
    assert [access.stride(loop) for loop in range(4)] == [-12, 5, 0, 0]
    assert [access.has_floordiv(loop) for loop in range(4)] == [False, True, True, False]
    assert [access.step(loop, lambda size: int(str(size))) for loop in range(4)] == [
        12,
        5 + 3 * 8 / 2 + 2 / 4,
        8 / 2,
        0,
    ]


@pytest.mark.parametrize(
    ("coordinate", "size", "expected"),
    [
        (Linear({0: 1}), 8, True),
        (Linear({0: 1}), 7, False),
        (Linear({0: 1}, -1), 8, False),
        (Linear({0: -1}, 7), 8, True),
        (Linear({0: -1}, 6), 8, False),
        (Linear({0: 2, 1: 1}), 17, True),
        (Linear({0: 2, 1: 1}), 16, False),
        (Linear({0: 1}), d.symbol("n", 100, 200), False),
    ],
)
def test_bounds_that_no_iteration_leaves(coordinate: Linear, size: d.Dim, expected: bool):
    assert always_inside(Bound(coordinate, size), (8, 3)) is expected


def test_coordinates_of_linear_maps():
    assert coordinates_of(AffineMap.from_callable(lambda i, j: (i * 2 + j + 3, j, 4))) == [
        Linear({0: 2, 1: 1}, 3),
        Linear({1: 1}),
        Linear({}, 4),
    ]
    assert coordinates_of(AffineMap.from_callable(lambda i, j: (j, i % 2))) is None


def test_a_pad_is_a_bound_where_it_pads():
    body = PADDED.format("p", "a", "2, 0", "0, 0", "one", "8x12", "10x12")
    result = found(body, PARTS[0])
    assert flat(result) == [Linear({0: 12, 1: 1}, -24)]
    assert result is not None
    assert (result[0].loop, result[0].access.pad, result[0].access.bounds) == (
        None,
        1.0,
        (Bound(Linear({0: 1}, -2), 8),),
    )
    behind = found(PADDED.format("p", "a", "0, 0", "0, 3", "one", "8x12", "8x15"), PARTS[0])
    assert flat(behind) == [Linear({0: 12, 1: 1})]
    assert behind is not None
    assert behind[0].access.bounds == (Bound(Linear({1: 1}), 12),)


def test_a_pad_that_is_not_reached_is_no_bound():
    body = PADDED.format("p", "a", "2, 0", "3, 0", "one", "8x12", "13x12")
    for extents, start, bounds in (((8, 12), 2, 0), ((9, 12), 2, 1), ((8, 12), 1, 1)):
        result = found(body, PARTS[0], map_=window(start, 0), extents=extents)
        assert result is not None
        assert len(result[0].access.bounds) == bounds


@pytest.mark.parametrize(("parts", "cut"), [(16, True), (17, False), (18, False)])
def test_most_segments(parts: int, cut: bool):
    """As many as are told apart, and one more."""
    types = ", ".join(["tensor<2x3xf32>"] * parts)
    body = f"%c = tensor.concat dim(1) {', '.join(['%a'] * parts)} : ({types}) -> tensor<2x{3 * parts}xf32>"
    result = found(body, "a: tensor<2x3xf32>")
    assert (result is not None) is cut
    assert [s.start for s in result or ()] == ([3 * i for i in range(parts)] if cut else [])


def test_padding_beside_a_concat_is_no_segment():
    body = CONCAT + "\n" + PADDED.format("p", "c", "0, 1", "0, 0", "zero", "8x32", "8x33")
    assert found(body, *PARTS) is None
    assert found(body, *PARTS, map_=AffineMap.from_callable(lambda i, j: (i, j + 1)), extents=(8, 32)) is not None


def test_a_window_over_a_concat_meets_the_parts_it_reaches():
    for start, size, expected in (
        (10, 5, [(0, 2, 10), (2, 3, 0)]),
        (0, 12, [(0, 12, 0)]),
        (12, 20, [(0, 20, 0)]),
        (11, 2, [(0, 1, 11), (1, 1, 0)]),
    ):
        result = found(CONCAT, *PARTS, map_=window(0, start), extents=(8, size))
        assert result is not None
        assert [(s.start, s.size, s.access.flat.constant) for s in result] == expected


def test_what_is_computed_has_no_place():
    body = (
        "%e = tensor.empty() : tensor<8x12xf32>\n%f = linalg.fill ins(%one : f32) outs(%e : tensor<8x12xf32>) -> "
        "tensor<8x12xf32>"
    )
    assert found(body, PARTS[0]) is None


def test_a_cast_and_reshapes_change_nothing_in_memory():
    body = """%t = tensor.cast %a : tensor<8x12xf32> to tensor<8x12xf32>
    %x = tensor.expand_shape %t [[0], [1, 2]] output_shape [8, 3, 4] : tensor<8x12xf32> into tensor<8x3x4xf32>"""
    result = found(body, PARTS[0])
    assert flat(result) == [Linear({0: 12, 1: 4, 2: 1})]
    assert result is not None and isinstance(result[0].access.source, BlockArgument)


def test_a_part_that_does_not_reach_its_padding_has_no_bound():
    """Columns 2 to 11 of what is padded behind column 11; the loop goes on in the next part."""
    padded = PADDED.format("p", "a", "0, 0", "0, 4", "zero", "8x12", "8x16")
    cut = "%s = tensor.extract_slice %p[0, 2] [8, SIZE] [1, 1] : tensor<8x16xf32> to tensor<8xSIZExf32>"
    joined = "%c = tensor.concat dim(1) %s, %b : (tensor<8xSIZExf32>, tensor<8x20xf32>) -> tensor<8xALLxf32>"
    for size, bounds in ((10, 0), (11, 1)):
        text = "\n".join([padded, cut, joined]).replace("SIZE", str(size)).replace("ALL", str(size + 20))
        result = found(text, *PARTS)
        assert result is not None and [len(segment.access.bounds) for segment in result] == [bounds, 0]
