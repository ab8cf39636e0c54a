"""LineIndex in text, names as they are written, large splats as one number."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, DenseResourceAttr, FileLineColLoc, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from fuseline.ir.build import LARGE_SPLAT
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.source_parser import LineIndex, SourceParser

TEXT = "one\n  two\n\nthree"


@pytest.mark.parametrize("first", [1, 17])
@pytest.mark.parametrize(
    ("position", "line", "column"),
    [(0, 0, 1), (2, 0, 3), (3, 0, 4), (4, 1, 1), (6, 1, 3), (9, 1, 6), (10, 2, 1), (11, 3, 1), (15, 3, 5), (16, 3, 6)],
)
def test_places_count_from_the_first_line(first: int, position: int, line: int, column: int):
    assert LineIndex(TEXT, first).line_and_column(position) == (first + line, column)


def test_lines_are_shown_shortened():
    places = LineIndex(TEXT + "\n" + "x" * 200, 5)
    assert [places.shown(line) for line in (5, 6, 7, 8)] == ["one", "two", "", "three"]
    assert places.shown(9) == "x" * 120 and places.shown(10) == ""


def _parsed(text: str, first: int = 1) -> tuple[ModuleOp, CompilerContext]:
    ctx = new_context()
    return SourceParser(ctx, text, "m.mlir", LineIndex(text, first)).parse_module(), ctx


def _function(text: str) -> FuncOp:
    (function,) = _parsed(text)[0].ops
    assert isinstance(function, FuncOp)
    return function


def test_ops_stand_where_they_are_written():
    text = 'func.func @main() {\n  %a = arith.constant 3 : i32\n    %b = arith.addi %a, %a : i32 loc("n")\n  return\n}'
    module, _ = _parsed(text, 7)
    (function,) = module.ops
    places = {op.name: op.location for op in function.walk()}
    found = places["arith.constant"]
    assert isinstance(found, FileLineColLoc)
    assert (found.filename.data, found.line.data, found.column.data) == ("m.mlir", 8, 3)
    assert "n" in str(places["arith.addi"]) and isinstance(places["func.return"], FileLineColLoc)


def test_a_body_that_is_not_written_stands_with_its_op():
    text = """func.func @main(%x: tensor<4xf32>, %o: tensor<f32>) {
      %r = linalg.dot ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<f32>) -> tensor<f32> loc("dot")
      return
    }"""
    (op,) = [op for op in _function(text).walk() if op.name == "linalg.dot"]
    assert {str(inner.location) for inner in op.walk()} == {str(op.location)}


def test_names_are_kept_as_they_are_written():
    text = (
        "func.func @main(%x_0: f32) {\n %y_1 = arith.negf %x_0 : f32\n %2 "
        "= arith.negf %y_1 : f32\n %z = arith.negf %2 : f32\n return }"
    )
    module, ctx = _parsed(text)
    assert sorted(ctx.spelled.values()) == ["x_0", "y_1"]
    assert {value.name_hint for op in module.walk() for value in op.results} == {"y", None, "z"}


def _constant(text: str) -> DenseIntOrFPElementsAttr:
    (op,) = [
        op
        for op in _function(f"func.func @main() {{ %c = arith.constant {text}\n return }}").walk()
        if isinstance(op, arith.ConstantOp)
    ]
    assert isinstance(op.value, DenseIntOrFPElementsAttr)
    return op.value


@pytest.mark.parametrize("size", [LARGE_SPLAT - 1, LARGE_SPLAT, 1 << 40])
@pytest.mark.parametrize(
    ("number", "type_"), [("3", "i32"), ("-2.5", "f32"), ("-7", "i8"), ("true", "i1"), ("1.0e+03", "f64")]
)
def test_a_splat_has_one_number(size: int, number: str, type_: str):
    value = _constant(f"dense<{number}> : tensor<{size}x{type_}>")
    assert len(value.data.data) <= 8 or size < LARGE_SPLAT
    found: object = next(iter(value.iter_values()))
    assert value.is_splat() and f"<{size}x{type_}>" in str(value.type)
    assert found in ((1, -1) if number == "true" else (float(number),))


def test_small_tensors_and_lists_are_as_ever():
    assert list(_constant("dense<[1, 2, 3]> : tensor<3xi32>").get_values()) == [1, 2, 3]
    assert list(_constant("dense<> : tensor<0xi32>").get_values()) == []


def test_several_types_may_stand_in_parentheses_or_not():
    one = """func.func @main(%c: i1, %x: f32) -> f32 {
      %r = scf.if %c -> TYPE { scf.yield %x : f32 } else { scf.yield %x : f32 }
      return %r : f32
    }"""
    for written in ("f32", "(f32)"):
        assert next(op.name for op in _function(one.replace("TYPE", written)).body.block.ops) == "scf.if"


def test_resources_keep_their_names():
    text = "func.func @main() { %c = arith.constant dense_resource<w> : tensor<2xf32>\n return }"
    for _ in range(2):  # a second reading does not rename them
        (op,) = [op for op in _function(text).walk() if isinstance(op, arith.ConstantOp)]
        assert isinstance(op.value, DenseResourceAttr)
        assert op.value.resource_handle == StringAttr("w") or "w" == str(op.value.resource_handle).strip('"')


def test_attributes_beside_those_of_a_generic_are_its_own():
    """In braces before the operands, where MLIR reads them, also within the body of another op."""
    generic = """linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} {beside = "one", more = 2 : i64} ins(%x : tensor<4xf32>)
      outs(%x : tensor<4xf32>) attrs = {behind = true} {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
    } -> tensor<4xf32>"""
    text = f"""func.func @main(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {{
  %r = scf.if %c -> (tensor<4xf32>) {{
    %s = {generic}
    scf.yield %s : tensor<4xf32>
  }} else {{
    scf.yield %x : tensor<4xf32>
  }}
  return %r : tensor<4xf32>
}}"""
    named = {op.name: set(op.attributes) & {"beside", "more", "behind"} for op in _function(text).walk()}
    assert named.pop("linalg.generic") == {"beside", "more", "behind"}
    assert not any(named.values())
