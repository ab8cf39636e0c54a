"""What an operand costs in place of a constant: nothing where the code is the same."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from fuseline.dispatch.body_constants import BodyConstant, body_constants
from fuseline.ir.context import new_context
from fuseline.ir.costs import MachineCosts
from fuseline.ir.text import parse_module
from fuseline.targets.cpu.sharing import ANY, IDENTITY, QUOTIENT, SHIFT, sharing_price
from fuseline.targets.cpu.target import CpuTarget

PROGRAM = """func.func @main(%x: tensor<{rows}x7x{element}>) -> tensor<{rows}x7x{element}> {{
  %e = tensor.empty() : tensor<{rows}x7x{element}>
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x : tensor<{rows}x7x{element}>) outs(%e : tensor<{rows}x7x{element}>) {{
  ^bb0(%a: {element}, %o: {element}):
    {constant}
    {body}
    linalg.yield %v : {element}
  }} -> tensor<{rows}x7x{element}>
  return %r : tensor<{rows}x7x{element}>
}}"""


def _constant(body: str, number: str, element: str, rows: int) -> tuple[FuncOp, BodyConstant]:
    made = f"%c = arith.constant {number} : {element}" if "%c," in body or ", %c :" in body else ""
    module = parse_module(PROGRAM.format(body=body, constant=made, element=element, rows=rows), new_context())
    (entry,) = module.ops
    assert isinstance(entry, FuncOp)
    (constant,) = body_constants(entry)
    return entry, constant


def _price(body: str, number: str, element: str = "f32", rows: int = 5) -> float:
    found = CpuTarget("avx2").sharing_price(*_constant(body, number, element, rows))
    assert found is None or (found.ns > 0 and found.reason)
    return found.ns if found is not None else 0.0


@pytest.mark.parametrize(
    ("op", "number", "element"),
    [
        *((op, number, "f32") for op in ("addf", "subf", "divf", "maximumf", "minnumf") for number in ("0.3", "-7.0")),
        *(("mulf", number, "f32") for number in ("0.3", "-1.0", "2.0")),
        ("addf", "0.0", "f32"),
        ("subf", "-0.0", "f32"),
        *((op, "-7", "i32") for op in ("addi", "subi", "maxsi", "minui", "andi")),
    ],
)
def test_what_takes_a_register_as_it_takes_a_number_is_free(op: str, number: str, element: str) -> None:
    assert _price(f"%v = arith.{op} %a, %c : {element}", number, element) == 0


@pytest.mark.parametrize(
    ("op", "number", "element"),
    [
        ("mulf", "1.0", "f32"),
        ("addf", "-0.0", "f32"),
        ("subf", "0.0", "f32"),
        ("divf", "0.25", "f32"),
        ("divf", "-2.0", "f32"),
        ("addi", "0", "i32"),
        ("muli", "7", "i32"),
        ("shli", "3", "i32"),
        ("divsi", "3", "i32"),
    ],
)
def test_what_a_known_number_makes_cheaper_has_a_price_per_element(op: str, number: str, element: str) -> None:
    small, large = (_price(f"%v = arith.{op} %a, %c : {element}", number, element, rows) for rows in (5, 50))
    assert 0 < 10 * small == pytest.approx(large)


def test_a_constant_that_decides_the_code_stays() -> None:
    known = _price("%v = arith.mulf %a, %c : f32", "1.0")
    assert _price("%v = math.powf %a, %c : f32", "2.0") > known
    assert _price("%b = arith.cmpf olt, %a, %c : f32\n %v = arith.select %b, %a, %a : f32", "2.0") > known


@pytest.mark.parametrize(
    ("widen", "cut", "is_free"),
    [
        ("%w = arith.extsi %a : i16 to i32", "%v = arith.trunci %s : i32 to i16", False),
        ("%w = arith.extui %a : i16 to i32", "%v = arith.trunci %s : i32 to i16", False),
        (
            "%n = arith.addi %a, %a : i16\n %w = arith.extsi %n : i16 to i32",
            "%v = arith.trunci %s : i32 to i16",
            True,
        ),
        (
            "%w = arith.extsi %a : i16 to i32",
            "%f = arith.sitofp %s : i32 to f32\n %v = arith.fptosi %f : f32 to i16",
            True,
        ),
    ],
)
def test_integers_of_memory_that_are_cut_at_once_are_cheaper_with_a_number(widen: str, cut: str, is_free: bool) -> None:
    wide = "%c32 = arith.constant -7 : i32"
    body = f"{wide}\n{widen}\n %s = arith.subi %w, %c32 : i32\n {cut}"
    assert (_price(body, "1", "i16") == 0) is is_free


def test_a_constant_that_is_divided_by_what_varies_is_free() -> None:
    assert _price("%v = arith.divf %c, %a : f32", "2.0") == 0


@pytest.mark.parametrize(
    ("body", "number", "element", "instructions"),
    [
        ("%v = arith.mulf %a, %c : f32", "1.0", "f32", IDENTITY),
        ("%v = arith.divf %a, %c : f32", "4.0", "f32", QUOTIENT),
        ("%v = arith.muli %a, %c : i32", "3", "i32", SHIFT),
        ("%v = arith.divsi %a, %c : i32", "3", "i32", ANY),
        ("%v = arith.divf %c, %a : f32", "4.0", "f32", 0),
        ("%v = arith.divf %a, %c : f32", "3.0", "f32", 0),
    ],
)
def test_a_launch_loses_instructions_at_every_point(body: str, number: str, element: str, instructions: int) -> None:
    for rows, operation_ns in ((5, 1.0), (11, 0.5)):
        found = sharing_price(*_constant(body, number, element, rows), MachineCosts(operation_ns=operation_ns))
        assert (found.ns if found is not None else 0.0) == instructions * rows * 7 * operation_ns
        assert found is None or f"arith.{body.split('.')[1].split()[0]}" in found.reason or "dividing" in found.reason
