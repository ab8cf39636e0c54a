"""Borders around dimensions whose size only the run knows: told by what their indices are, in whatever spelling, and
nothing else taken for one."""

from __future__ import annotations

import pytest
from xdsl.ir import OpResult

from fuseline.analysis.border_modes import BorderMode
from fuseline.analysis.borders import BorderedAxis, border_read
from fuseline.analysis.shapes import ShapeAnalysis
from tests.draws import RNG
from tests.graphs.last_value import last_value

CLAMPED = "%m{n} = arith.maxsi {at}, %zero : index\n%p{n} = arith.minsi %m{n}, %last : index"
MIRRORED = """%n = arith.subi %zero, %at : index
      %r = arith.maxsi %at, %n : index
      %t = arith.subi %twice, %r : index
      %q = arith.minsi %r, %t : index"""
AROUND = """%below = arith.cmpi slt, %at, %zero : index
      %above = arith.cmpi sge, %at, %size : index
      %minus = arith.subi %at, %size : index
      %plus = arith.addi %at, %size : index
      %far = arith.select %above, %minus, %at : index
      %q = arith.select %below, %plus, %far : index"""
SPELLINGS: dict[str, tuple[BorderMode, str]] = {
    "clamped": ("edge", CLAMPED.format(at="%at", n="")),
    "clamped from above first": ("edge", "%m = arith.minsi %at, %last : index\n%p = arith.maxsi %m, %zero : index"),
    "mirrored": ("reflect", f"{MIRRORED}\n{CLAMPED.format(at='%q', n='')}"),
    "taken around": ("wrap", f"{AROUND}\n{CLAMPED.format(at='%q', n='')}"),
}
"""Of `%at`, which is some less than the loop's index."""


def gather(index: str, low: int, beyond: int | None = None) -> OpResult:
    """A gather of rows of `tensor<3x?xf32>` at `%p`, with `beyond` more columns than those, by default twice `low`."""
    text = f"""func.func @main(%x: tensor<3x?xf32> {{fuseline.dims = ["3", "w"]}}) {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %low = arith.constant {low} : index
      %beyond = arith.constant {2 * low if beyond is None else beyond} : index
      %size = tensor.dim %x, %one : tensor<3x?xf32>
      %columns = arith.addi %size, %beyond : index
      %o = tensor.empty(%columns) : tensor<3x?xf32>
      %y = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
        outs(%o : tensor<3x?xf32>) {{
      ^bb0(%unused: f32):
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %at = arith.subi %j, %low : index
        %last = arith.subi %size, %one : index
        %twice = arith.addi %last, %last : index
        {index}
        %e = tensor.extract %x[%i, %p] : tensor<3x?xf32>
        linalg.yield %e : f32
      }} -> tensor<3x?xf32>
      return
    }}"""
    value = last_value(text)
    assert isinstance(value, OpResult)
    return value


@pytest.mark.parametrize("low", [1, 2, 5])
@pytest.mark.parametrize(("mode", "index"), SPELLINGS.values(), ids=SPELLINGS)
def test_modes_are_told_by_what_they_read(mode: BorderMode, index: str, low: int):
    read = border_read(gather(index, low).op, ShapeAnalysis())
    assert read is not None and read.axes == (BorderedAxis(0, 0, None), BorderedAxis(1, low, mode))


@pytest.mark.parametrize("low", [0, 1, 3])
def test_what_is_cut_never_leaves_the_tensor(low: int):
    """Clamped for nothing: columns from the first on, or further in, and fewer than there are."""
    index = f"%s = arith.addi %at, %low : index\n%f = arith.addi %s, %low : index\n{CLAMPED.format(at='%f', n='')}"
    read = border_read(gather(index, low, -low).op, ShapeAnalysis())
    assert read is not None and read.axes == (BorderedAxis(0, 0, None), BorderedAxis(1, -low, None))


REFUSED = {
    "two turns": "%p = arith.remui %j, %size : index",
    "a stride": f"%d = arith.addi %at, %at : index\n{CLAMPED.format(at='%d', n='')}",
    "mirrored with the first element": f"""%f = arith.subi %zero, %one : index
      {MIRRORED.replace("%zero, %at", "%f, %at")}
      {CLAMPED.format(at="%q", n="")}""",
    "not inside": "%p = arith.addi %at, %zero : index",
    "one row for all": "%p = arith.minsi %zero, %last : index",
    "another border far along": f"""%m = arith.constant 40 : index
      %c = arith.cmpi sgt, %j, %m : index
      {CLAMPED.format(at="%at", n="1")}
      %z = arith.minsi %m, %last : index
      %p = arith.select %c, %z, %p1 : index""",
    "a border of large images only": f"""%m = arith.constant 60 : index
      %c = arith.cmpi slt, %size, %m : index
      {CLAMPED.format(at="%at", n="1")}
      %p = arith.select %c, %zero, %p1 : index""",
    "numbers too large to look beyond": f"""%m = arith.constant 100000 : index
      %c = arith.cmpi sgt, %j, %m : index
      {CLAMPED.format(at="%at", n="1")}
      %p = arith.select %c, %zero, %p1 : index""",
}


@pytest.mark.parametrize("index", REFUSED.values(), ids=REFUSED)
def test_other_indices_are_no_borders(index: str):
    assert border_read(gather(index, int(RNG.integers(1, 4))).op, ShapeAnalysis()) is None
