"""Code for tensors of few integers, against the evaluation of the ops that it stands for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.evaluation import evaluate_function
from fuseline.ir.context import new_context
from fuseline.ir.fast.direct import operands_of
from fuseline.ir.text import parse_module
from fuseline.passes.dispatch.scalar_chains import ScalarChains
from fuseline.runtime import scalar_arithmetic
from fuseline.scalar_code import ScalarCode
from tests.draws import RNG

SIZE = 5
"""What `%n` is."""


def _result(lines: str, type_: str) -> tuple[FuncOp, ScalarChains, Any]:
    """A function that answers `%r`, and its code (None where there is none)."""
    text = f"""func.func @main(%x: tensor<2x3xi32>, %y: tensor<3xi32>, %w: tensor<40xi32>, %u: tensor<?xi32>,
    %f: tensor<f32>, %n: index) -> tensor<{type_}> {{
  %one = arith.constant 1 : index
  %k = arith.constant dense<[7, -2]> : tensor<2xi32>
  %e = tensor.empty({"%n" if "?" in type_ else ""}) : tensor<{type_}>
  {lines}
  return %r : tensor<{type_}>
}}"""
    (function,) = parse_module(text, new_context()).ops
    assert isinstance(function, FuncOp)
    end = function.body.block.last_op
    assert isinstance(end, ReturnOp)
    chains = ScalarChains(ShapeAnalysis(), {})
    return function, chains, chains.computed(operands_of(end)[0])


def _arguments() -> list[NDArray[np.int32]]:
    shapes = (2, 3), (3,), (40,), (6,)
    return [RNG.integers(-1000, 1000, shape).astype(np.int32) for shape in shapes]


def _generic(inputs: str, types: str, maps: str, body: str, out: str, loops: int = 1) -> str:
    kinds = ", ".join(['"parallel"'] * loops)
    return f"""%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({inputs} : {types}) outs(%e : tensor<{out}>) {{
  {body}
  }} -> tensor<{out}>"""


_ROW, _PAIR = "affine_map<(i) -> (i)>", "affine_map<(i, j) -> (i, j)>"


def _from_float(lines: str) -> str:
    """An op that makes an integer of the number `%f`."""
    body = f"^bb0(%a: f32, %o: i32):\n{lines}\nlinalg.yield %s : i32"
    return _generic("%f", "tensor<f32>", "affine_map<() -> ()>, affine_map<() -> ()>", body, "i32", 0)


_CASES = {
    "a float": (
        _from_float(
            "%c = arith.constant 2.5 : f32\n%m = arith.mulf %a, %c : f32\n%t = math.floor %m : f32\n"
            "%less = arith.cmpf ult, %t, %a : f32\n%n2 = arith.negf %t : f32\n"
            "%p = arith.select %less, %n2, %t : f32\n%s = arith.fptosi %p : f32 to i32"
        ),
        "i32",
    ),
    "sizes by a table of floats": (
        "%table = arith.constant dense<[1.5, 0.1, -3.0]> : tensor<3xf64>\n"
        + _generic(
            "%y, %table",
            "tensor<3xi32>, tensor<3xf64>",
            f"{_ROW}, {_ROW}, {_ROW}",
            "^bb0(%a: i32, %b: f64, %o: i64):\n%wide = arith.sitofp %a : i32 to f64\n%m = arith.mulf %wide, %b : f64\n"
            "%q = math.roundeven %m : f64\n%s = arith.fptosi %q : f64 to i64\nlinalg.yield %s : i64",
            "3xi64",
        ),
        "3xi64",
    ),
    "a column, the other way round": (
        """%c = tensor.extract_slice %x[1, 0] [1, 2] [1, 2] : tensor<2x3xi32> to tensor<2xi32>
        %r = tensor.concat dim(0) %c, %y, %k : (tensor<2xi32>, tensor<3xi32>, tensor<2xi32>) -> tensor<7xi32>""",
        "7xi32",
    ),
    "transposed by the maps of an op": (
        _generic(
            "%x, %y",
            "tensor<2x3xi32>, tensor<3xi32>",
            f"affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>, {_PAIR}",
            "^bb0(%a: i32, %b: i32, %o: i32):\n%s = arith.subi %a, %b : i32\nlinalg.yield %s : i32",
            "3x2xi32",
            2,
        ),
        "3x2xi32",
    ),
    "written in another order than counted": (
        _generic(
            "%x",
            "tensor<2x3xi32>",
            f"{_PAIR}, affine_map<(i, j) -> (j, i)>",
            "^bb0(%a: i32, %o: i32):\n%s = arith.muli %a, %a : i32\nlinalg.yield %s : i32",
            "3x2xi32",
            2,
        ),
        "3x2xi32",
    ),
    "reshapes": (
        """%flat = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xi32> into tensor<6xi32>
        %tall = tensor.expand_shape %flat [[0, 1]] output_shape [3, 2] : tensor<6xi32> into tensor<3x2xi32>
        %r = tensor.extract_slice %tall[0, 1] [3, 1] [1, 1] : tensor<3x2xi32> to tensor<3xi32>""",
        "3xi32",
    ),
    "a part replaced": (
        "%r = tensor.insert_slice %k into %y[1] [2] [1] : tensor<2xi32> into tensor<3xi32>",
        "3xi32",
    ),
    "positions": (
        _generic(
            "%y",
            "tensor<3xi32>",
            f"{_ROW}, {_ROW}",
            "^bb0(%a: i32, %o: i32):\n%i = linalg.index 0 : index\n%p = arith.index_cast %i : index to i32\n"
            "%s = arith.addi %a, %p : i32\nlinalg.yield %s : i32",
            "3xi32",
        ),
        "3xi32",
    ),
    "an element of a table, and a size": (
        _generic(
            "%y",
            "tensor<3xi32>",
            f"{_ROW}, {_ROW}",
            "^bb0(%a: i32, %o: i32):\n%t = tensor.extract %k[%one] : tensor<2xi32>\n"
            "%p = arith.index_cast %n : index to i32\n%q = arith.muli %p, %t : i32\n"
            "%s = arith.addi %a, %q : i32\nlinalg.yield %s : i32",
            "3xi32",
        ),
        "3xi32",
    ),
    "sizes in a row": (
        """%wide = arith.index_cast %n : index to i64
        %c = arith.constant -4 : i64
        %r = tensor.from_elements %c, %wide : tensor<2xi64>""",
        "2xi64",
    ),
    "what the output begins with": (
        "%nine = arith.constant 9 : i32\n"
        "%begin = linalg.fill ins(%nine : i32) outs(%e : tensor<3xi32>) -> tensor<3xi32>\n"
        + _generic(
            "%y",
            "tensor<3xi32>",
            f"{_ROW}, {_ROW}",
            "^bb0(%a: i32, %o: i32):\n%s = arith.minsi %a, %o : i32\nlinalg.yield %s : i32",
            "3xi32",
        ).replace("outs(%e", "outs(%begin"),
        "3xi32",
    ),
    "one element of many": (
        """%part = tensor.extract_slice %w[17] [1] [1] : tensor<40xi32> to tensor<1xi32>
        %other = tensor.extract_slice %u[2] [1] [1] : tensor<?xi32> to tensor<1xi32>
        %r = tensor.concat dim(0) %part, %other : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>""",
        "2xi32",
    ),
    "an image inside its border": (
        """%zero = arith.constant 0 : i32
        %p = tensor.pad %y low[2] high[1] {
        ^bb0(%i: index):
          tensor.yield %zero : i32
        } : tensor<3xi32> to tensor<6xi32>
        %r = tensor.extract_slice %p[2] [3] [1] : tensor<6xi32> to tensor<3xi32>""",
        "3xi32",
    ),
}


@pytest.mark.parametrize("case", _CASES)
def test_code_computes_what_ops_do(case: str) -> None:
    function, chains, found = _result(*_CASES[case])
    assert found is not None
    given = _arguments()
    arguments = [*given, np.float32(1.5), np.int64(SIZE)]
    names: dict[SSAValue, Any] = dict(zip(function.args, arguments, strict=True))
    code = ScalarCode(tuple(chains.ops), (found,))
    reads = [evaluated(function, value, arguments) if value not in names else names[value] for value in chains.tensors]
    (answer,) = scalar_arithmetic.operands_of(code, reads, [int(names[value]) for value in chains.sizes])
    (wanted,) = evaluate_function(function, arguments, {})
    np.testing.assert_array_equal(answer, wanted, strict=True)


def evaluated(function: FuncOp, value: Any, arguments: list[Any]) -> Any:
    """A value that the function computes."""
    copy = function.clone()
    ops, end = list(function.body.block.ops), copy.body.block.last_op
    assert end is not None
    end.operands[0] = list(copy.body.block.ops)[ops.index(value.owner)].results[0]
    return evaluate_function(copy, arguments, {})[0]


_REFUSED = {
    "floats as the result": (
        _generic(
            "%f",
            "tensor<f32>",
            "affine_map<() -> ()>, affine_map<() -> ()>",
            "^bb0(%a: f32, %o: f32):\n%s = arith.addf %a, %a : f32\nlinalg.yield %s : f32",
            "f32",
            0,
        ),
        "f32",
    ),
    "the bits of a float": (_from_float("%s = arith.bitcast %a : f32 to i32"), "i32"),
    "an operation that code lacks": (
        _from_float("%c = math.exp %a : f32\n%s = arith.fptosi %c : f32 to i32"),
        "i32",
    ),
    "floats of 16 bits": (
        _from_float("%h = arith.truncf %a : f32 to f16\n%s = arith.fptosi %h : f16 to i32"),
        "i32",
    ),
    "truth that a conversion makes": (
        _from_float("%c = arith.fptosi %a : f32 to i1\n%s = arith.extui %c : i1 to i32"),
        "i32",
    ),
    "too many": ("%r = tensor.concat dim(0) %w, %y : (tensor<40xi32>, tensor<3xi32>) -> tensor<43xi32>", "43xi32"),
    "unknown": ("%r = tensor.concat dim(0) %u, %y : (tensor<?xi32>, tensor<3xi32>) -> tensor<?xi32>", "?xi32"),
    "a fed place": ("%r = tensor.extract_slice %y[%n] [1] [1] : tensor<3xi32> to tensor<1xi32>", "1xi32"),
    "a place that is computed": (
        _generic(
            "%k",
            "tensor<2xi32>",
            f"{_ROW}, {_ROW}",
            "^bb0(%a: i32, %o: i32):\n%i = arith.index_cast %a : i32 to index\n"
            "%s = tensor.extract %y[%i] : tensor<3xi32>\nlinalg.yield %s : i32",
            "2xi32",
        ),
        "2xi32",
    ),
    "beside the image": (
        """%zero = arith.constant 0 : i32
        %r = tensor.pad %y low[2] high[1] {
        ^bb0(%i: index):
          tensor.yield %zero : i32
        } : tensor<3xi32> to tensor<6xi32>""",
        "6xi32",
    ),
    "nothing yet": ("%r = tensor.cast %e : tensor<3xi32> to tensor<3xi32>", "3xi32"),
}


@pytest.mark.parametrize("case", _REFUSED)
def test_what_there_is_no_code_for(case: str) -> None:
    assert _result(*_REFUSED[case])[-1] is None


@pytest.mark.parametrize("lines", [
    "%r = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xi32> into tensor<6xi32>",
    "%r = tensor.extract_slice %w[3] [6] [1] : tensor<40xi32> to tensor<6xi32>",
])  # fmt: skip
def test_what_lies_in_memory_needs_none(lines: str) -> None:
    assert _result(lines, "6xi32")[-1] is None


@pytest.mark.parametrize(("ops", "is_code"), [(30, True), (400, False)])
@pytest.mark.parametrize("inside", [True, False])
def test_very_long_chains_are_not_followed_to_their_end(ops: int, is_code: bool, inside: bool) -> None:
    """In a body, and over tensors. What is left out there is read as it is."""
    if inside:
        lines = [f"%s{i + 1} = arith.muli %s{i}, %s{i} : i32" for i in range(ops)]
        body = "\n".join(["^bb0(%s0: i32, %o: i32):", *lines, f"linalg.yield %s{ops} : i32"])
        text = _generic("%y", "tensor<3xi32>", f"{_ROW}, {_ROW}", body, "3xi32")
    else:
        square = "^bb0(%a: i32, %o: i32):\n%s = arith.muli %a, %a : i32\nlinalg.yield %s : i32"
        one = _generic("%y", "tensor<3xi32>", f"{_ROW}, {_ROW}", square, "3xi32")
        names = ["y", *(f"t{i}" for i in range(1, ops)), "r"]
        text = "\n".join(one.replace("%r", f"%{b}").replace("%y", f"%{a}") for a, b in pairwise(names))
    _, chains, found = _result(text, "3xi32")
    assert (found is not None and chains.tensors[0].name_hint == "y") == is_code
