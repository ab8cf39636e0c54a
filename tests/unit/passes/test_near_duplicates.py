"""What looks alike, and what differs first in it."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.dispatch.body_constants import body_constants
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.dedup.first_difference import first_difference
from fuseline.passes.dedup.loose_key import loose_key

CODE = {
    "shape": "3x5",
    "factor": "2.0",
    "op": "arith.mulf",
    "map": "affine_map<(i, j) -> (i, j)>",
    "start": "0.0",
    "low": "1",
    "padded": "4x5",
}
PROGRAM = """func.func @main(%x: tensor<SHAPExf32>) -> tensor<PADDEDxf32> {
  %e = tensor.empty() : tensor<SHAPExf32>
  %z = arith.constant START : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<SHAPExf32>) -> tensor<SHAPExf32>
  %r = linalg.generic {indexing_maps = [MAP, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<SHAPExf32>) outs(%f : tensor<SHAPExf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.constant FACTOR : f32
    %v = OP %a, %c : f32
    linalg.yield %v : f32
  } -> tensor<SHAPExf32>
  %p = tensor.pad %r low[LOW, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<SHAPExf32> to tensor<PADDEDxf32>
  return %p : tensor<PADDEDxf32>
}"""
TURNED = "affine_map<(i, j) -> (j, i)>"


def _entry(**changed: str) -> FuncOp:
    text = PROGRAM
    for name, value in {**CODE, **changed}.items():
        text = text.replace(name.upper(), value)
    (entry,) = parse_module(text, new_context()).ops
    assert isinstance(entry, FuncOp)
    return entry


@pytest.mark.parametrize(
    ("changed", "alike"),
    [
        ({}, True),
        ({"factor": "3.0"}, True),
        ({"shape": "7x9", "padded": "8x9"}, True),
        ({"low": "2", "padded": "5x5"}, True),
        ({"op": "arith.addf"}, False),
        ({"start": "1.0"}, False),
        ({"shape": "5x5", "padded": "6x5", "map": TURNED}, False),
    ],
)
def test_constants_of_bodies_and_extents_make_near_duplicates(changed: dict[str, str], alike: bool):
    numbers = AttributeNumbers()
    keys = [
        loose_key(entry, numbers, {constant.place for constant in body_constants(entry)})
        for entry in (_entry(), _entry(**changed))
    ]
    assert (keys[0] == keys[1]) is alike


def test_a_constant_that_is_not_erased_counts():
    numbers = AttributeNumbers()
    assert loose_key(_entry(), numbers) == loose_key(_entry(), numbers) != loose_key(_entry(factor="3.0"), numbers)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, ""),
        ({"factor": "3.0"}, ""),
        ({"shape": "7x9", "padded": "8x9"}, "argument 0 is tensor<3x5xf32>, tensor<7x9xf32>"),
        ({"low": "2", "padded": "5x5"}, "a value of tensor.pad is tensor<4x5xf32>, tensor<5x5xf32>"),
        ({"op": "arith.addf"}, "an op is arith.mulf, arith.addf"),
    ],
)
def test_the_first_difference_is_told_in_words(changed: dict[str, str], words: str):
    assert first_difference(_entry(), _entry(**changed)) == words


def test_a_difference_of_attributes_alone_is_named():
    other = _entry(shape="5x5", padded="6x5")
    turned = _entry(shape="5x5", padded="6x5", map=TURNED)
    assert first_difference(other, turned).startswith("indexing_maps of linalg.generic is ")
