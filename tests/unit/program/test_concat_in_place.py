"""Which parts of a concat are written in place, and which concats have to be dispatches."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.program.concat_in_place import ConcatsInPlace, concats_in_place

T = "tensor<2x3xf32>"


def _function(body: str, result: str, type_: str) -> FuncOp:
    text = f"""func.func private @make() -> {T}
func.func @main(%x: {T}, %y: {T}) -> {type_} {{
  %a = func.call @make() : () -> {T}
  %b = func.call @make() : () -> {T}
{body}
  return %{result} : {type_}
}}"""
    *_, main = parse_module(text, new_context()).ops
    assert isinstance(main, FuncOp)
    return main


def _claims(body: str, result: str = "r", type_: str = "tensor<4x3xf32>") -> list[list[str | None] | None]:
    """The parts of each concat that are written in place, by name."""
    block = _function(body, result, type_).body.block
    places = ConcatsInPlace(block, ShapeAnalysis())
    found = [places.claim(op) for op in block.ops if isinstance(op, tensor.ConcatOp)]
    return [None if parts is None else [_name(part) for part in parts] for parts in found]


def _name(value: SSAValue | None) -> str | None:
    return None if value is None else value.name_hint


def _concat(*parts: str, dim: int = 0, result: str = "r", type_: str = "tensor<4x3xf32>", each: str = T) -> str:
    values, types = ", ".join(f"%{part}" for part in parts), ", ".join(each for _ in parts)
    return f"  %{result} = tensor.concat dim({dim}) {values} : ({types}) -> {type_}\n"


def test_parts_that_steps_make_are_written_in_place() -> None:
    assert _claims(_concat("a", "b")) == [["a", "b"]]


def test_one_part_may_be_copied_and_no_more() -> None:
    assert _claims(_concat("a", "x")) == [["a", None]]
    assert _claims(_concat("x", "y", "a", type_="tensor<6x3xf32>"), type_="tensor<6x3xf32>") == [None]


def test_arguments_are_copied_however_many_there_are() -> None:
    assert _claims(_concat("x", "y")) == [[None, None]]
    flat = "  %c = tensor.collapse_shape %x [[0, 1]] : {T} into tensor<6xf32>\n".replace("{T}", T)
    back = f"  %d = tensor.expand_shape %c [[0, 1]] output_shape [2, 3] : tensor<6xf32> into {T}\n"
    assert _claims(flat + back + _concat("d", "x", "d", type_="tensor<6x3xf32>"), type_="tensor<6x3xf32>") == [
        [None] * 3
    ]


def test_a_part_has_one_place() -> None:
    assert _claims(_concat("a", "a")) == [["a", None]]
    again = _concat("a", "b") + _concat("a", "x", result="s") + _concat("b", "y", result="t")
    assert _claims(again) == [["a", "b"], None, None]


def test_parts_that_would_not_lie_in_one_piece() -> None:
    assert _claims(_concat("a", "b", dim=1, type_="tensor<2x6xf32>"), type_="tensor<2x6xf32>") == [None]


def test_units_in_front_do_not_matter() -> None:
    one, whole = "tensor<1x6xf32>", "tensor<1x12xf32>"
    flat = "".join(
        f"  %{new} = tensor.collapse_shape %{old} [[0, 1]] : {T} into tensor<6xf32>\n"
        f"  %{new}1 = tensor.expand_shape %{new} [[0, 1]] output_shape [1, 6] : tensor<6xf32> into {one}\n"
        for old, new in (("a", "c"), ("b", "d"))
    )
    body = flat + _concat("c1", "d1", dim=1, type_=whole, each=one)
    assert _claims(body, type_=whole) == [["a", "b"]]


def test_what_is_returned_lies_elsewhere_already() -> None:
    assert _claims(_concat("a", "b", result="s"), "a", T) == [[None, "b"]]


def test_a_refused_concat_claims_nothing() -> None:
    refused = _concat("a", "x", "y", result="q", type_="tensor<6x3xf32>")
    assert _claims(refused + _concat("a", "b")) == [None, ["a", "b"]]


def test_concats_that_are_memory() -> None:
    body = _concat("a", "b") + _concat("x", "y", result="s")
    function = _function(body, "r", "tensor<4x3xf32>")
    first, _ = [op for op in function.walk() if isinstance(op, tensor.ConcatOp)]
    assert concats_in_place(function.body.block, ShapeAnalysis()) == {first}
