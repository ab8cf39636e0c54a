"""Slices, pads, concats and casts that do nothing, or that become less: what each fold makes of an op, and what it
leaves alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation

from fuseline.evaluation import evaluate_module
from fuseline.passes.cleanup.folds.slices import (
    MOST_SHARED_PARTS,
    fold_cast,
    fold_concat,
    fold_empty_pad,
    fold_extract_of_concat,
    fold_extract_of_extract,
    fold_whole_extract,
    fold_whole_insert,
)
from fuseline.passes.cleanup.folds.worklist import Fold, Worklist
from tests.unit.passes.cleanup.test_folds import folded, parsed


def same(fold: Fold, body: str, arguments: str, result: str) -> Any:
    """The op, or argument, that `fold` puts in place of the one that makes `%r`, where the program means the same; None
    where it is left alone. Sizes of run time are 3."""
    module, block = parsed(body, arguments, result)
    rng = np.random.default_rng(7)
    inputs = [_input(argument.type, rng) for argument in block.args]
    before = evaluate_module(module, inputs)
    end = block.last_op
    assert end is not None
    op = end.operands[0].owner
    assert isinstance(op, Operation)
    if not fold(op, Worklist({})):
        return None
    module.verify()
    np.testing.assert_allclose(evaluate_module(module, inputs)[0], before[0], rtol=1e-5, atol=1e-6)
    value = end.operands[0]
    return value if isinstance(value, BlockArgument) else value.owner


def _input(type_: Attribute, rng: np.random.Generator) -> Any:
    if isinstance(type_, IndexType):
        return np.int64(3)
    shape = [size if size >= 0 else 3 for size in type_.get_shape()] if isinstance(type_, TensorType) else []
    return rng.standard_normal(shape).astype(np.float32) if shape else np.float32(rng.standard_normal())


def static(op: tensor.ExtractSliceOp) -> list[tuple[int, ...]]:
    """Offsets, sizes and strides."""
    return [tuple(part.get_values()) for part in (op.static_offsets, op.static_sizes, op.static_strides)]


# slices ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "type_", "whole"),
    [
        ("[0, 0] [6, 4] [1, 1]", "tensor<6x4xf32>", True),
        ("[0, 0] [%n, 4] [1, 1]", "tensor<?x4xf32>", True),
        ("[0, 0] [%n, %m] [1, 1]", "tensor<?x?xf32>", True),
        ("[0, 0] [%m, %n] [1, 1]", "tensor<?x?xf32>", False),
        ("[0, 0] [%k, 4] [1, 1]", "tensor<?x4xf32>", False),
        ("[%k, 0] [%n, 4] [1, 1]", "tensor<?x4xf32>", False),
        ("[0, 0] [%n, 4] [%k, 1]", "tensor<?x4xf32>", False),
        ("[1, 0] [6, 4] [1, 1]", "tensor<6x4xf32>", False),  # leaves the tensor: the check of bounds has to see it
        ("[0, 0] [6, 4] [2, 1]", "tensor<6x4xf32>", False),
        ("[5, 0] [6, 4] [-1, 1]", "tensor<6x4xf32>", False),
    ],
)
def test_a_slice_of_all_is_none(spec: str, type_: str, whole: bool):
    dims = "%c0 = arith.constant 0 : index\n %c1 = arith.constant 1 : index\n"
    sizes = f"%n = tensor.dim %x, %c0 : {type_}\n %m = tensor.dim %x, %c1 : {type_}\n"
    body = f"{dims}{sizes}%r = tensor.extract_slice %x{spec} : {type_} to {type_}"
    assert folded(fold_whole_extract, body, f"%x: {type_}, %k: index", type_) == (0 if whole else None)


def test_a_slice_of_another_type_is_no_slice_of_all():
    body = "%r = tensor.extract_slice %x[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> to tensor<4xf32>"
    assert folded(fold_whole_extract, body, "%x: tensor<1x4xf32>", "tensor<4xf32>") is None


def test_a_slice_of_a_slice_is_one():
    body = """%s = tensor.extract_slice %x[1, 3] [5, 6] [2, 1] : tensor<12x9xf32> to tensor<5x6xf32>
      %r = tensor.extract_slice %s[1, 4] [2, 2] [3, -2] : tensor<5x6xf32> to tensor<2x2xf32>"""
    made = same(fold_extract_of_extract, body, "%x: tensor<12x9xf32>", "tensor<2x2xf32>")
    assert isinstance(made.source, BlockArgument)
    assert static(made) == [(3, 7), (2, 2), (6, -2)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("[%n] [5] [1]", "[1] [2] [1]"),
        ("[1] [5] [%n]", "[1] [2] [1]"),
        ("[1] [5] [1]", "[%n] [2] [1]"),
        ("[1] [5] [1]", "[0] [2] [%n]"),
    ],
)
def test_places_of_run_time_stay_two_slices(first: str, second: str):
    body = f"""%s = tensor.extract_slice %x{first} : tensor<20xf32> to tensor<5xf32>
      %r = tensor.extract_slice %s{second} : tensor<5xf32> to tensor<2xf32>"""
    assert same(fold_extract_of_extract, body, "%x: tensor<20xf32>, %n: index", "tensor<2xf32>") is None


def test_a_slice_of_unknown_size_stays_two_slices():
    body = """%s = tensor.extract_slice %x[1] [5] [1] : tensor<20xf32> to tensor<5xf32>
      %r = tensor.extract_slice %s[1] [%n] [1] : tensor<5xf32> to tensor<?xf32>"""
    assert same(fold_extract_of_extract, body, "%x: tensor<20xf32>, %n: index", "tensor<?xf32>") is None


def test_a_slice_of_what_lost_a_dimension_stays():
    body = """%s = tensor.extract_slice %x[1, 0] [1, 5] [1, 1] : tensor<3x5xf32> to tensor<5xf32>
      %r = tensor.extract_slice %s[1] [2] [1] : tensor<5xf32> to tensor<2xf32>"""
    assert same(fold_extract_of_extract, body, "%x: tensor<3x5xf32>", "tensor<2xf32>") is None
    assert (
        same(
            fold_extract_of_extract,
            "%r = tensor.extract_slice %x[1] [2] [1] : tensor<5xf32> to tensor<2xf32>",
            "%x: tensor<5xf32>",
            "tensor<2xf32>",
        )
        is None
    )


PARTS = "%x: tensor<2x4xf32>, %y: tensor<2x3xf32>, %z: tensor<2x5xf32>, %n: index"
JOINED = """%c = tensor.concat dim(1) %x, %y, %z : (tensor<2x4xf32>, tensor<2x3xf32>, tensor<2x5xf32>)
    -> tensor<2x12xf32>
  %r = tensor.extract_slice %c[OFFSETS] [SIZES] [STRIDES] : tensor<2x12xf32> to tensor<SHAPExf32>"""


def of_concat(offsets: str, sizes: str, strides: str = "1, 1") -> Any:
    shape = "x".join("?" if size == "%n" else size for size in sizes.split(", "))
    body = (
        JOINED.replace("OFFSETS", offsets).replace("SIZES", sizes).replace("STRIDES", strides).replace("SHAPE", shape)
    )
    return same(fold_extract_of_concat, body, PARTS, f"tensor<{shape}xf32>")


@pytest.mark.parametrize(
    ("offsets", "sizes", "strides", "part", "at"),
    [
        ("0, 0", "2, 4", "1, 1", 0, 0),
        ("1, 3", "1, 1", "1, 1", 0, 3),
        ("0, 4", "2, 3", "1, 1", 1, 0),
        ("0, 5", "2, 2", "1, 1", 1, 1),
        ("0, 7", "2, 5", "1, 1", 2, 0),
        ("0, 7", "2, 3", "1, 2", 2, 0),
        ("0, 6", "2, 3", "1, -1", 1, 2),
        ("0, 11", "2, 3", "1, -2", 2, 4),
    ],
)
def test_a_slice_that_lies_in_one_part_reads_that_part(offsets: str, sizes: str, strides: str, part: int, at: int):
    made = of_concat(offsets, sizes, strides)
    assert isinstance(made.source, BlockArgument) and made.source.index == part
    assert static(made)[0][1] == at


@pytest.mark.parametrize(
    ("offsets", "sizes", "strides"),
    [
        ("0, 3", "2, 2", "1, 1"),
        ("0, 4", "2, 4", "1, 1"),
        ("0, 6", "2, 2", "1, 2"),
        ("0, 8", "2, 3", "1, -1"),
        ("0, %n", "2, 1", "1, 1"),
        ("0, 4", "2, %n", "1, 1"),
        ("0, 4", "2, 2", "1, %n"),
    ],
)
def test_a_slice_over_parts_stays(offsets: str, sizes: str, strides: str):
    assert of_concat(offsets, sizes, strides) is None


def test_parts_of_unknown_size_may_lie_anywhere():
    body = """%c = tensor.concat dim(0) %x, %y : (tensor<2xf32>, tensor<?xf32>) -> tensor<?xf32>
      %r = tensor.extract_slice %c[OFFSET] [1] [1] : tensor<?xf32> to tensor<1xf32>"""
    arguments = "%x: tensor<2xf32>, %y: tensor<?xf32>"
    assert same(fold_extract_of_concat, body.replace("OFFSET", "3"), arguments, "tensor<1xf32>") is None
    assert same(fold_extract_of_concat, body.replace("OFFSET", "1"), arguments, "tensor<1xf32>").source.index == 0


def test_a_slice_of_anything_else_stays():
    assert (
        same(
            fold_extract_of_concat,
            "%r = tensor.extract_slice %x[1] [2] [1] : tensor<5xf32> to tensor<2xf32>",
            "%x: tensor<5xf32>",
            "tensor<2xf32>",
        )
        is None
    )


@pytest.mark.parametrize(
    ("spec", "type_", "whole"),
    [
        ("[0, 0] [6, 4] [1, 1]", "tensor<6x4xf32>", True),
        ("[5, 0] [6, 4] [-1, 1]", "tensor<6x4xf32>", False),
        ("[%k, 0] [6, 4] [1, 1]", "tensor<6x4xf32>", False),
        ("[0, 0] [6, 4] [2, 1]", "tensor<6x4xf32>", False),
        ("[0, 0] [%k, 4] [1, 1]", "tensor<?x4xf32>", False),
    ],
)
def test_what_replaces_all_is_the_result(spec: str, type_: str, whole: bool):
    body = f"%r = tensor.insert_slice %y into %x{spec} : {type_} into {type_}"
    assert folded(fold_whole_insert, body, f"%x: {type_}, %y: {type_}, %k: index", type_) == (1 if whole else None)


def test_what_replaces_a_part_is_not():
    body = "%r = tensor.insert_slice %y into %x[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<6x4xf32>"
    assert folded(fold_whole_insert, body, "%x: tensor<6x4xf32>, %y: tensor<1x4xf32>", "tensor<6x4xf32>") is None


# pads, concats, casts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amounts", "source", "nothing"),
    [
        ("low[0, 0] high[0, 0]", "6x4", True),
        ("nofold low[0, 0] high[0, 0]", "6x4", False),
        ("low[0, 1] high[0, -1]", "6x4", False),
        ("low[-1, 0] high[1, 0]", "6x4", False),
        ("low[0, 1] high[0, 0]", "6x3", False),
        ("low[0, 0] high[1, 0]", "5x4", False),
    ],
)
def test_a_pad_by_nothing_is_none(amounts: str, source: str, nothing: bool):
    body = f"""%r = tensor.pad %x {amounts} {{
      ^bb0(%i: index, %j: index):
        tensor.yield %v : f32
      }} : tensor<{source}xf32> to tensor<6x4xf32>"""
    assert folded(fold_empty_pad, body, f"%x: tensor<{source}xf32>, %v: f32", "tensor<6x4xf32>") == (
        0 if nothing else None
    )


def test_a_pad_by_what_the_run_says_stays():
    body = """%r = tensor.pad %x low[%n] high[0] {
      ^bb0(%i: index):
        tensor.yield %v : f32
      } : tensor<?xf32> to tensor<?xf32>"""
    assert folded(fold_empty_pad, body, "%x: tensor<?xf32>, %v: f32, %n: index", "tensor<?xf32>") is None


def concat(parts: str, types: str, result: str, axis: int = 0) -> str:
    return f"%r = tensor.concat dim({axis}) {parts} : ({types}) -> {result}"


def test_a_concat_of_one_tensor_is_that():
    assert (
        folded(fold_concat, concat("%x", "tensor<4xf32>", "tensor<4xf32>"), "%x: tensor<4xf32>", "tensor<4xf32>") == 0
    )
    assert (
        folded(fold_concat, concat("%x", "tensor<0xf32>", "tensor<0xf32>"), "%x: tensor<0xf32>", "tensor<0xf32>") == 0
    )


def test_parts_without_elements_are_left_out():
    three = concat("%x, %y, %x", "tensor<4xf32>, tensor<0xf32>, tensor<4xf32>", "tensor<8xf32>")
    made = same(fold_concat, three, "%x: tensor<4xf32>, %y: tensor<0xf32>", "tensor<8xf32>")
    assert len(made.inputs) == 2
    two = concat("%y, %x", "tensor<0xf32>, tensor<4xf32>", "tensor<4xf32>")
    assert folded(fold_concat, two, "%x: tensor<4xf32>, %y: tensor<0xf32>", "tensor<4xf32>") == 0
    none = concat("%y, %y", "tensor<0xf32>, tensor<0xf32>", "tensor<0xf32>")
    assert folded(fold_concat, none, "%y: tensor<0xf32>", "tensor<0xf32>") is None
    beside = concat("%y, %y", "tensor<0x4xf32>, tensor<0x4xf32>", "tensor<0x8xf32>", 1)
    assert folded(fold_concat, beside, "%y: tensor<0x4xf32>", "tensor<0x8xf32>") is None


def test_a_concat_of_concats_is_one_concat():
    inner = "%c = tensor.concat dim(0) %x, %y : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<3x3xf32>\n"
    arguments = "%x: tensor<2x3xf32>, %y: tensor<1x3xf32>"
    outer = concat("%x, %c, %y", "tensor<2x3xf32>, tensor<3x3xf32>, tensor<1x3xf32>", "tensor<6x3xf32>")
    made = same(fold_concat, inner + outer, arguments, "tensor<6x3xf32>")
    assert [part.index for part in made.inputs] == [0, 0, 1, 1]
    across = concat("%c, %c", "tensor<3x3xf32>, tensor<3x3xf32>", "tensor<3x6xf32>", 1)
    assert same(fold_concat, inner + across, arguments, "tensor<3x6xf32>") is None


@pytest.mark.parametrize(("parts", "opened"), [(MOST_SHARED_PARTS - 1, True), (MOST_SHARED_PARTS, False)])
@pytest.mark.parametrize("shared", [True, False])
def test_a_concat_that_others_read_is_opened_where_it_has_few_parts(parts: int, opened: bool, shared: bool):
    names, types = ", ".join(["%x"] * parts), ", ".join(["tensor<2xf32>"] * parts)
    inner = f"tensor<{2 * parts}xf32>"
    also = f"%k = tensor.extract_slice %c[0] [1] [1] : {inner} to tensor<1xf32>\n" if shared else ""
    body = f"%c = tensor.concat dim(0) {names} : ({types}) -> {inner}\n{also}"
    made = same(
        fold_concat,
        body + concat("%c, %x", f"{inner}, tensor<2xf32>", f"tensor<{2 * parts + 2}xf32>"),
        "%x: tensor<2xf32>",
        f"tensor<{2 * parts + 2}xf32>",
    )
    assert (made is not None) == (opened or not shared)


@pytest.mark.parametrize(
    ("body", "argument", "result", "expected"),
    [
        ("%r = tensor.cast %x : tensor<4xf32> to tensor<4xf32>", "tensor<4xf32>", "tensor<4xf32>", 0),
        ("%r = tensor.cast %x : tensor<4xf32> to tensor<?xf32>", "tensor<4xf32>", "tensor<?xf32>", None),
        (
            (
                "%m = tensor.cast %x : tensor<4xf32> to tensor<?xf32>\n %r = tensor.cast %m : tensor<?xf32> to "
                "tensor<4xf32>"
            ),
            "tensor<4xf32>",
            "tensor<4xf32>",
            0,
        ),
        (
            (
                "%m = tensor.cast %x : tensor<?x4xf32> to tensor<?x?xf32>\n %r = tensor.cast %m : tensor<?x?xf32> to "
                "tensor<3x4xf32>"
            ),
            "tensor<?x4xf32>",
            "tensor<3x4xf32>",
            None,
        ),
    ],
)
def test_casts_there_and_back(body: str, argument: str, result: str, expected: int | None):
    assert folded(fold_cast, body, f"%x: {argument}", result) == expected
