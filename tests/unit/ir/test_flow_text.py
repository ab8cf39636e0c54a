"""Types with their unknown sizes as `flow` ops print and read them."""

from __future__ import annotations

from io import StringIO

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, TensorType, f32, i8
from xdsl.ir import Attribute, Block
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.flow_text import (
    dynamic_count,
    parse_count,
    parse_shaped_type,
    parse_shaped_types,
    parse_workload,
    print_shaped_types,
)
from fuseline.ir.text import parse_module

ANY = DYNAMIC_INDEX
UNKNOWN = TensorType(f32, [ANY, 4, ANY])


def _parser(text: str, *names: str) -> Parser:
    """A parser of some text, behind index values of these names."""
    parser = Parser(new_context(), text)
    for name in names:
        (value,) = Block(arg_types=[IndexType()]).args
        value.name_hint = name
        parser.ssa_values[name] = (value,)
    return parser


@pytest.mark.parametrize(
    ("type_", "count"),
    [(UNKNOWN, 2), (TensorType(i8, [3]), 0), (TensorType(f32, []), 0), (IndexType(), 0), (f32, 0)],
)
def test_unknown_sizes_are_counted(type_: Attribute, count: int):
    assert dynamic_count(type_) == count


@pytest.mark.parametrize(
    ("types", "count", "text"),
    [
        ([], 0, "()"),
        ([IndexType()], 0, "(index)"),
        ([UNKNOWN], 2, "(tensor<?x4x?xf32>{%n0, %n1})"),
        ([TensorType(i8, [3]), UNKNOWN], 2, "(tensor<3xi8>, tensor<?x4x?xf32>{%n0, %n1})"),
        ([TensorType(i8, [ANY]), f32, UNKNOWN], 3, "(tensor<?xi8>{%n0}, f32, tensor<?x4x?xf32>{%n1, %n2})"),
    ],
)
def test_what_is_printed_is_read(types: list[Attribute], count: int, text: str):
    dims = Block(arg_types=[IndexType()] * count).args
    for number, dim in enumerate(dims):
        dim.name_hint = f"n{number}"
    print_shaped_types(Printer(stream := StringIO()), types, dims)
    assert stream.getvalue() == text
    parser = _parser(text, *(f"n{i}" for i in range(count)))
    found, sizes = parse_shaped_types(parser)
    assert found == types and [size.name_hint for size in sizes] == [f"n{i}" for i in range(count)]


def test_one_type_needs_no_parentheses():
    types, dims = parse_shaped_types(_parser("tensor<2x?xf32>{%n}", "n"))
    assert types == [TensorType(f32, [2, ANY])] and [dim.name_hint for dim in dims] == ["n"]
    type_, names = parse_shaped_type(_parser("tensor<2x3xf32>"))
    assert type_ == TensorType(f32, [2, 3]) and names == []


@pytest.mark.parametrize("text", ["tensor<?xf32>", "(tensor<4xf32>, tensor<?xf32>)", "(tensor<4xf32>", "4"])
def test_types_without_their_sizes_are_refused(text: str):
    with pytest.raises(ParseError):
        parse_shaped_types(_parser(text))


@pytest.mark.parametrize("text", ["tensor<?xf32>{%n, %m}", "(tensor<?x?xf32>{%n})", "(tensor<4xf32>, tensor<?xf32>{})"])
def test_there_is_one_size_for_each_unknown(text: str):
    with pytest.raises(ParseError, match="one for each"):
        parse_shaped_types(_parser(text, "n", "m"))


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ("-> (tensor<?xf32>)", "0 sizes are given for the 1 unknown ones of its results"),
        ("-> (tensor<?xf32>, tensor<4xf32>)", "0 sizes"),
        ("-> (tensor<4xf32>)", "does not end with flow.return of its results"),
    ],
)
def test_a_region_says_its_sizes_and_returns_its_results(op: str, message: str):
    types = op.removeprefix("-> (").removesuffix(")")
    text = f"""func.func @main(%x: tensor<?xf32>) {{
      %r:{types.count("tensor")} = "flow.dispatch.region"() <{{operandSegmentSizes = array<i32: 0, 0>}}> ({{
        "flow.return"(%x) : (tensor<?xf32>) -> ()
      }}) : () {op}
      return
    }}"""
    with pytest.raises(FuselineError) as caught:
        parse_module(text, new_context())
    assert caught.value.code == "E0302" and message in caught.value.message
    assert caught.value.node == "<input>:2:7"


def test_a_dispatch_says_the_sizes_of_what_it_is_given():
    text = """func.func @main(%x: tensor<?xf32>) {
      "flow.dispatch"(%x) <{entry_points = [@e::@f], operandSegmentSizes = array<i32: 0, 1, 0, 0>}>
        : (tensor<?xf32>) -> ()
      return
    }"""
    with pytest.raises(FuselineError, match="0 sizes are given for the 1 unknown ones of its arguments"):
        parse_module(text, new_context())


@pytest.mark.parametrize(("text", "names"), [("[%a, %b]", ["a", "b"]), ("[]", []), ("(%a)", [])])
def test_a_workload_stands_in_square_brackets(text: str, names: list[str]):
    parser = _parser(text, "a", "b")
    assert [value.name_hint for value in parse_workload(parser)] == names
    assert names or text == "[]" or parser.parse_optional_punctuation("(") == "("


def test_a_count_is_a_region_over_the_workload():
    text = """(%w: index, %v: index) -> (index, index, index) {
      %one = arith.constant 1 : index
      flow.return %w, %v, %one : index, index, index
    }"""
    region = parse_count(_parser(text))
    assert [argument.type for argument in region.block.args] == [IndexType()] * 2
    end = region.block.last_op
    assert end is not None and list(end.operands[:2]) == list(region.block.args)
