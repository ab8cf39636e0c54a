"""Inserts that are pads or concats: the forms that fold, with the same values, and those that stay."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects import arith, tensor

from fuseline.passes.cleanup.folds.inserted_slices import fold_covering_inserts, fold_insert_into_fill
from tests.unit.passes.cleanup.test_slice_folds import same

FILL = """%v = arith.constant -1.5 : f32
  %e = tensor.empty() : tensor<5x6xf32>
  %d = linalg.fill ins(%v : f32) outs(%e : tensor<5x6xf32>) -> tensor<5x6xf32>
  """

NUMBERS = [[float(i + j) for j in range(6)] for i in range(5)]
OTHER_NUMBERS = f"%d = arith.constant dense<{NUMBERS}> : tensor<5x6xf32>\n  "


def _insert(dest: str, at: str, source: str = "%x", sizes: str = "3, 4", type_: str = "3x4", strides: str = "1, 1"):
    types = f"tensor<{type_}xf32> into tensor<5x6xf32>"
    return f"tensor.insert_slice {source} into {dest}[{at}] [{sizes}] [{strides}] : {types}"


def _padded(body: str, arguments: str = "%x: tensor<3x4xf32>") -> Any:
    return same(fold_insert_into_fill, body, arguments, "tensor<5x6xf32>")


@pytest.mark.parametrize(("at", "high"), [("1, 2", (1, 0)), ("0, 0", (2, 2)), ("2, 1", (0, 1))])
def test_into_a_fill(at: str, high: tuple[int, int]) -> None:
    found = _padded(f"{FILL}%r = {_insert('%d', at)}")
    assert isinstance(found, tensor.PadOp)
    assert tuple(found.static_low.get_values()) == tuple(map(int, at.split(", ")))
    assert tuple(found.static_high.get_values()) == high


def test_into_a_constant_of_one_number() -> None:
    found = _padded(f"%d = arith.constant dense<2.25> : tensor<5x6xf32>\n  %r = {_insert('%d', '1, 1')}")
    assert isinstance(found, tensor.PadOp)
    assert isinstance(found.prev_op, arith.ConstantOp)


def test_into_a_number_that_is_an_argument() -> None:
    body = FILL.replace("%v = arith.constant -1.5 : f32\n", "") + f"%r = {_insert('%d', '1, 1')}"
    assert isinstance(_padded(body, "%x: tensor<3x4xf32>, %v: f32"), tensor.PadOp)


@pytest.mark.parametrize(
    "body",
    [
        f"{OTHER_NUMBERS}%r = {_insert('%d', '1, 1')}",
        f"{FILL}%r = {_insert('%d', '0, 0', strides='2, 1')}",
        f"{FILL}%r = {_insert('%d', '0, 0', sizes='3, 1', type_='3', source='%y')}",
        f"{FILL}%s = {_insert('%d', '1, 1')}\n  %r = {_insert('%s', '0, 0')}",
    ],
    ids=["other numbers", "gaps", "fewer dimensions", "into another insert"],
)
def test_no_pad(body: str) -> None:
    assert _padded(body, "%x: tensor<3x4xf32>, %y: tensor<3xf32>") is None


def test_an_insert_that_another_goes_into_waits_for_it() -> None:
    body = f"{FILL}%r = {_insert('%d', '1, 1')}\n  %s = {_insert('%r', '0, 0')}"
    assert _padded(body) is None


COLUMNS = {"%a": ("5, 1", "5x1"), "%b": ("5, 3", "5x3"), "%c": ("5, 2", "5x2")}
ARGUMENTS = ", ".join(f"{name}: tensor<{type_}xf32>" for name, (_, type_) in COLUMNS.items())


def _columns(*parts: tuple[str, int], first: str = "%e = tensor.empty() : tensor<5x6xf32>") -> str:
    """The parts, each from a column on, one after the other."""
    lines, dest = [first], "%e"
    for number, (name, start) in enumerate(parts):
        result = "%r" if number == len(parts) - 1 else f"%s{number}"
        sizes, type_ = COLUMNS[name]
        lines.append(f"{result} = {_insert(dest, f'0, {start}', name, sizes, type_)}")
        dest = result
    return "\n  ".join(lines)


@pytest.mark.parametrize(
    ("parts", "order"),
    [
        ([("%a", 0), ("%b", 1), ("%c", 4)], [0, 1, 2]),
        ([("%c", 4), ("%a", 0), ("%b", 1)], [0, 1, 2]),
        ([("%b", 0), ("%c", 4), ("%a", 3)], [1, 0, 2]),
    ],
)
def test_side_by_side_in_any_order(parts: list[tuple[str, int]], order: list[int]) -> None:
    found = same(fold_covering_inserts, _columns(*parts), ARGUMENTS, "tensor<5x6xf32>")
    assert isinstance(found, tensor.ConcatOp)
    block = found.parent
    assert block is not None and found.dim.value.data == 1
    assert list(found.inputs) == [block.args[i] for i in order]


def test_along_the_first_dimension_with_columns_of_run_time() -> None:
    body = """%one = arith.constant 1 : index
  %n = tensor.dim %a, %one : tensor<2x?xf32>
  %e = tensor.empty(%n) : tensor<5x?xf32>
  %s = tensor.insert_slice %a into %e[0, 0] [2, %n] [1, 1] : tensor<2x?xf32> into tensor<5x?xf32>
  %r = tensor.insert_slice %b into %s[2, 0] [3, %n] [1, 1] : tensor<3x?xf32> into tensor<5x?xf32>"""
    found = same(fold_covering_inserts, body, "%a: tensor<2x?xf32>, %b: tensor<3x?xf32>", "tensor<5x?xf32>")
    assert isinstance(found, tensor.ConcatOp)


@pytest.mark.parametrize(
    "parts",
    [[("%a", 0), ("%b", 1)], [("%a", 0), ("%b", 1), ("%c", 3)], [("%b", 0), ("%b", 3), ("%c", 4)]],
    ids=["a gap", "an overlap", "another overlap"],
)
def test_no_concat(parts: list[tuple[str, int]]) -> None:
    zero = "%z = arith.constant 0.5 : f32\n  %f = tensor.empty() : tensor<5x6xf32>\n  "
    fill = f"{zero}%e = linalg.fill ins(%z : f32) outs(%f : tensor<5x6xf32>) -> tensor<5x6xf32>"
    assert same(fold_covering_inserts, _columns(*parts, first=fill), ARGUMENTS, "tensor<5x6xf32>") is None


def test_only_the_last_of_a_chain_is_asked() -> None:
    body = _columns(("%b", 0), ("%b", 3), first=FILL.replace("%e", "%f").replace("%d", "%e"))
    assert isinstance(same(fold_covering_inserts, body, ARGUMENTS, "tensor<5x6xf32>"), tensor.ConcatOp)
