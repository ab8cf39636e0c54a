"""Borders that repeat the tensor: recognised by what their indices are, in whatever spelling; and as bounds of an
access."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import BlockArgument, OpResult
from xdsl.ir.affine import AffineMap

from fuseline.analysis.border_modes import BORDER_MODES, BorderMode, folded, reach
from fuseline.analysis.borders import BorderedAxis, border_read
from fuseline.analysis.linear_forms import Fold, Linear, fold_of
from fuseline.analysis.operand_access import LinearAccess, segments
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.source_paths import Border, Bound
from tests.draws import RNG
from tests.graphs.last_value import last_value

MIRRORED = "%n = arith.subi %zero, %at : index\n%m = arith.maxsi %at, %n : index\n"
FURTHER = "%c = arith.cmpi sgt, %m, %last : index\n"
SPELLINGS: dict[str, tuple[BorderMode, str]] = {
    "clamped": ("edge", "%m = arith.maxsi %at, %zero : index\n%p = arith.minsi %m, %last : index"),
    "clamped from above first": ("edge", "%m = arith.minsi %at, %last : index\n%p = arith.maxsi %m, %zero : index"),
    "mirrored": (
        "reflect",
        f"{MIRRORED}%t = arith.subi %twice, %m : index\n%p = arith.minsi %m, %t : index",
    ),
    "mirrored by choice": (
        "reflect",
        f"{MIRRORED}%t = arith.subi %twice, %m : index\n{FURTHER}%p = arith.select %c, %t, %m : index",
    ),
    "taken around": ("wrap", "%s = arith.addi %at, %size : index\n%p = arith.remui %s, %size : index"),
}
"""Of `%at`, which is 2 less than the loop's index, in a dimension of 7."""


def gather(index: str, *, size: int = 7, extent: int = 12, arguments: str = "", yielded: str = "%e") -> OpResult:
    """A gather of rows of `tensor<3xSIZExf32>` at `%p`."""
    text = f"""func.func @main(%x: tensor<3x{size}xf32>{arguments}) {{
      %zero = arith.constant 0 : index
      %two = arith.constant 2 : index
      %size = arith.constant {size} : index
      %last = arith.constant {size - 1} : index
      %twice = arith.constant {2 * size - 2} : index
      %o = tensor.empty() : tensor<3x{extent}xf32>
      %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
        outs(%o : tensor<3x{extent}xf32>) {{
      ^bb0(%unused: f32):
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %at = arith.subi %j, %two : index
        {index}
        %e = tensor.extract %x[%i, %p] : tensor<3x{size}xf32>
        {"%g = arith.negf %e : f32" if yielded == "%g" else ""}
        linalg.yield {yielded} : f32
      }} -> tensor<3x{extent}xf32>
      return
    }}"""
    value = last_value(text)
    assert isinstance(value, OpResult)
    return value


@pytest.mark.parametrize(("mode", "index"), SPELLINGS.values(), ids=SPELLINGS)
def test_modes_are_told_by_what_they_read(mode: BorderMode, index: str):
    read = border_read(gather(index).op, ShapeAnalysis())
    assert read is not None and isinstance(read.source, BlockArgument)
    assert read.axes == (BorderedAxis(0, 0, None), BorderedAxis(1, 2, mode))


REFUSED = {
    "two turns": "%p = arith.remui %j, %size : index",
    "a stride": "%m = arith.muli %j, %two : index\n%p = arith.remui %m, %size : index",
    "a sum of loops": "%s = arith.addi %j, %i : index\n%p = arith.remui %s, %size : index",
    "a place of its own": "%s = arith.xori %j, %two : index\n%p = arith.minsi %s, %last : index",
    "one element for all": "%p = arith.minsi %zero, %last : index",
    "outside": "%p = arith.addi %at, %zero : index",
}


@pytest.mark.parametrize("index", REFUSED.values(), ids=REFUSED)
def test_other_places_are_no_borders(index: str):
    assert border_read(gather(index, extent=22).op, ShapeAnalysis()) is None


def test_what_is_computed_of_the_element_is_no_border():
    clamped = SPELLINGS["clamped"][1]
    assert border_read(gather(clamped, yielded="%g").op, ShapeAnalysis()) is None


def test_places_that_are_fed_are_no_border():
    index = "%p = arith.minsi %k, %last : index"
    assert border_read(gather(index, arguments=", %k: index").op, ShapeAnalysis()) is None


def _of_any_size(index: str) -> OpResult:
    """A gather of `tensor<?x7xf32>`, its rows at `%i`, its columns at `index`, of 9."""
    text = f"""func.func @main(%x: tensor<?x7xf32>) {{
      %zero = arith.constant 0 : index
      %last = arith.constant 6 : index
      %n = tensor.dim %x, %zero : tensor<?x7xf32>
      %o = tensor.empty(%n) : tensor<?x9xf32>
      %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
        outs(%o : tensor<?x9xf32>) {{
      ^bb0(%unused: f32):
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %p = arith.minsi %j, %last : index
        %q = arith.minsi %i, %last : index
        %e = tensor.extract %x[{index}, %p] : tensor<?x7xf32>
        linalg.yield %e : f32
      }} -> tensor<?x9xf32>
      return
    }}"""
    value = last_value(text)
    assert isinstance(value, OpResult)
    return value


def test_what_is_computed_of_a_size_that_is_not_known_is_no_border():
    assert border_read(_of_any_size("%q").op, ShapeAnalysis()) is None


def test_a_size_that_is_not_known_may_be_traversed_as_it_is():
    found = border_read(_of_any_size("%i").op, ShapeAnalysis())
    assert found is not None and found.axes == (BorderedAxis(0, 0, None), BorderedAxis(1, 0, "edge"))


@pytest.mark.parametrize("mode", BORDER_MODES)
def test_folded_is_what_numpy_pads_with(mode: BorderMode):
    for size in (1, 2, 3, 8):
        most = reach(size, mode)
        amount = 5 if most is None else most
        padded = np.pad(np.arange(size), amount, mode=mode)
        at = np.arange(-amount, size + amount)
        np.testing.assert_array_equal(folded(at, size, mode), padded)
        assert all(folded(int(i), size, mode) == want for i, want in zip(at, padded, strict=True))


def test_a_fold_is_a_term_that_moves_with_its_loops():
    form = Linear({0: 1, 1: 2}, -1)
    found = fold_of(form, 5, "reflect")
    assert found is not None and not found.plain and found.loops == {}
    assert found == Linear({Fold(((0, 1), (1, 2)), -1, 5, "reflect"): 1})
    assert found.counted_from(0, 3) == fold_of(Linear({0: 1, 1: 2}, 2), 5, "reflect")
    assert found.counted_from(7, 3) == found
    assert found.with_loops(lambda i: Linear({}, 0)) == Linear({}, 2)  # from -1 to 1
    assert fold_of(found, 5, "edge") is None


def access(map_: AffineMap, extents: tuple[int, ...], index: str = SPELLINGS["mirrored"][1]) -> LinearAccess:
    value = gather(index)
    found = segments(ShapeAnalysis(), value, map_, extents, lambda v: isinstance(v, BlockArgument))
    assert found is not None and len(found) == 1
    return found[0].access


def test_windows_over_a_border_are_addressed_as_if_the_tensor_went_on():
    found = access(AffineMap.from_callable(lambda i, p, t: (i, p * 2 + t)), (3, 5, 3))
    assert found.flat == Linear({0: 7, 1: 2, 2: 1}, -2)
    assert found.bounds == found.borders == (Bound(Linear({1: 2, 2: 1}, -2), 7, Border("reflect", 1)),)
    assert found.padding == ()


def test_a_window_that_stays_inside_meets_no_border():
    found = access(AffineMap.from_callable(lambda i, p: (i, p + 2)), (3, 7))
    assert found == LinearAccess(found.source, Linear({0: 7, 1: 1}, 0))


@pytest.mark.parametrize("mode", BORDER_MODES)
def test_every_element_is_where_the_access_says(mode: BorderMode):
    index = next(text for one, text in SPELLINGS.values() if one == mode)
    extents = 3, int(RNG.integers(1, 6)), int(RNG.integers(1, 4))
    step = int(RNG.integers(1, 3))
    found = access(AffineMap.from_callable(lambda i, p, t: (i, p * step + t)), extents, index)
    padded = np.pad(np.arange(21).reshape(3, 7), ((0, 0), (2, 3)), mode=mode)
    for i, p, t in np.ndindex(*extents):
        at = {0: i, 1: p, 2: t}
        place = sum(int(c) * at[loop] for loop, c in found.flat.loops.items()) + int(found.flat.constant)  # pyright: ignore
        for bound in found.borders:
            assert bound.border is not None
            c = sum(int(c) * at[loop] for loop, c in bound.coordinate.loops.items()) + int(bound.coordinate.constant)  # pyright: ignore
            place += int(bound.border.stride) * (folded(c, int(bound.size), bound.border.mode) - c)  # pyright: ignore
        assert place == padded[i, p * step + t]
