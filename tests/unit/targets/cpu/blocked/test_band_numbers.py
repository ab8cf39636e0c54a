"""Which numbers of a body are those of rows in the whole image."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, linalg

from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.targets.cpu.families.blocked.band_numbers import row_numbers
from tests.draws import RNG

PROGRAM = """func.func @main(%x: tensor<3x4x5xindex>) -> tensor<3x4x5xindex> {{
  %y = linalg.generic {{indexing_maps = [affine_map<(b, r, c) -> (b, r, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}} outs(%x : tensor<3x4x5xindex>) {{
  ^bb0(%o: index):
    %b = linalg.index 0 : index
    %r = linalg.index 1 : index
    %c = linalg.index 2 : index
    %n = arith.constant {step} : index
    {body}
    linalg.yield %v : index
  }} -> tensor<3x4x5xindex>
  return %y : tensor<3x4x5xindex>
}}"""


def _generic(body: str, step: int) -> linalg.ops.GenericOp:
    module = parse_module(PROGRAM.format(body="\n    ".join(body.split(";")), step=step), new_context())
    (found,) = (op for op in module.walk() if isinstance(op, linalg.ops.GenericOp))
    return found


BANDS, PLAIN = "%m = arith.muli %b, %n : index", "%m = arith.muli %n, %b : index"
SUM, TURNED = "%v = arith.addi %m, %r : index", "%v = arith.addi %r, %m : index"


@pytest.mark.parametrize("product", [BANDS, PLAIN])
@pytest.mark.parametrize("total", [SUM, TURNED])
@pytest.mark.parametrize("other", ["", ";%w = arith.muli %v, %c : index", ";%w = arith.addi %c, %n : index"])
def test_multiples_of_the_band_and_the_row(product: str, total: str, other: str):
    step = int(RNG.integers(2, 50))
    op = _generic(f"{product};{total}{other}", step)
    last = next(inner for inner in op.body.walk() if isinstance(inner, arith.AddiOp))
    assert row_numbers(op, 0, 1) == ({last.result: step}, True)


def test_bands_of_one_row():
    op = _generic("%v = arith.addi %b, %r : index", 7)
    (last,) = (inner for inner in op.body.walk() if isinstance(inner, arith.AddiOp))
    assert row_numbers(op, 0, 1) == ({last.result: 1}, True)


@pytest.mark.parametrize(
    "other",
    [
        "%w = arith.addi %b, %c : index", "%w = arith.muli %r, %n : index", "%w = arith.muli %b, %r : index",
        "%w = arith.subi %m, %r : index", "%w = arith.muli %m, %n : index", "%w = arith.addi %r, %r : index",
    ],
)  # fmt: skip
def test_numbers_that_are_used_for_something_else_too(other: str):
    step = int(RNG.integers(2, 50))
    steps, alone = row_numbers(_generic(f"{BANDS};{SUM};{other}", step), 0, 1)
    assert list(steps.values()) == [step] and not alone


@pytest.mark.parametrize("loops", [(1, 0), (0, 2), (2, 1)])
def test_other_loops(loops: tuple[int, int]):
    steps, alone = row_numbers(_generic(f"{BANDS};{SUM}", int(RNG.integers(2, 50))), *loops)
    assert not steps and not alone


def test_numbers_that_nothing_asks_for():
    assert row_numbers(_generic("%v = arith.addi %c, %n : index", 3), 0, 1) == ({}, True)
