"""Offsets and strides of slices that are constants become numbers of the op."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects import tensor

from fuseline.passes.cleanup.folds.known_places import fold_known_places
from fuseline.passes.cleanup.folds.slices import fold_whole_insert
from tests.unit.passes.cleanup.test_slice_folds import same, static

CONSTANTS = "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c2 = arith.constant 2 : index\n"
UNKNOWN = -(1 << 63)


@pytest.mark.parametrize(
    ("spec", "offsets", "strides", "left"),
    [
        ("[%c0, %k] [2, 2] [1, 1]", (0, UNKNOWN), (1, 1), 1),
        ("[%k, %c2] [2, 2] [%c1, 1]", (UNKNOWN, 2), (1, 1), 1),
        ("[%c1, %c2] [2, 2] [%c2, %c1]", (1, 2), (2, 1), 0),
        ("[1, %k] [2, 2] [1, %c2]", (1, UNKNOWN), (1, 2), 1),
    ],
)
def test_places_of_slices_that_are_read(spec: str, offsets: tuple[int, ...], strides: tuple[int, ...], left: int):
    body = f"{CONSTANTS}%r = tensor.extract_slice %x{spec} : tensor<9x9xf32> to tensor<2x2xf32>"
    found: Any = same(fold_known_places, body, "%x: tensor<9x9xf32>, %k: index", "tensor<2x2xf32>")
    assert isinstance(found, tensor.ExtractSliceOp)
    assert static(found) == [offsets, (2, 2), strides]
    assert len([*found.offsets, *found.strides]) == left


def test_places_of_slices_that_are_written():
    types = "tensor<2x2xf32> into tensor<9x9xf32>"
    body = f"{CONSTANTS}%r = tensor.insert_slice %y into %x[%c2, %k] [2, 2] [%c1, 1] : {types}"
    found: Any = same(fold_known_places, body, "%x: tensor<9x9xf32>, %y: tensor<2x2xf32>, %k: index", "tensor<9x9xf32>")
    assert isinstance(found, tensor.InsertSliceOp)
    assert tuple(found.static_offsets.get_values()) == (2, UNKNOWN) and len(found.offsets) == 1


def test_sizes_stay_with_their_types():
    body = f"{CONSTANTS}%r = tensor.extract_slice %x[0, 0] [%c2, 2] [1, 1] : tensor<9x9xf32> to tensor<?x2xf32>"
    assert same(fold_known_places, body, "%x: tensor<9x9xf32>", "tensor<?x2xf32>") is None


@pytest.mark.parametrize(("size", "whole"), [("%k", True), ("%j", False)])
def test_what_replaces_all_of_an_unknown_size_is_the_result(size: str, whole: bool):
    body = f"""%e = tensor.empty(%k) : tensor<4x?xf32>
    %r = tensor.insert_slice %y into %e[0, 0] [4, {size}] [1, 1] : tensor<4x?xf32> into tensor<4x?xf32>"""
    found = same(fold_whole_insert, body, "%y: tensor<4x?xf32>, %k: index, %j: index", "tensor<4x?xf32>")
    assert (found is not None) == whole
