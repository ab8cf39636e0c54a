"""Integers that host steps compute, against the kernels and the interpreter: every operation at every width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.runtime.scalar_arithmetic import operands_of
from fuseline.scalar_code import (
    ARITY,
    COMPARISONS,
    DTYPES,
    FLOAT_COMPARISONS,
    FLOATS,
    FROM_FLOATS,
    LEAVES,
    TO_FLOATS,
    Computed,
    ScalarCode,
    ScalarOp,
)
from tests.draws import RNG

Array = NDArray[Any]
BITS = (8, 16, 32, 64)
_DIVISIONS = ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")
_OF_MATH = ("absi", "ipowi", "ctlz", "cttz", "ctpop")
_CASTS = ("extsi", "extui", "trunci", "index_cast", "index_castui", "bitcast")
_BINARY = [name for name, n in ARITY.items() if n == 2 and name not in {*LEAVES, *FLOATS, *FLOAT_COMPARISONS}]
_UNARY = [name for name in _OF_MATH if ARITY[name] == 1]


def _numbers(bits: int) -> tuple[Array, Array]:
    """Pairs: every two of those at the ends of the range and around the width, and random ones."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    edges = [0, 1, -1, 2, 3, -7, bits - 1, bits, low, low + 1, high]
    pairs = [(a, b) for a in edges for b in edges]
    pairs += [(int(a), int(b)) for a, b in RNG.integers(low, high, (40, 2), endpoint=True)]
    first, second = np.array(pairs, np.int64).T
    return first.astype(f"int{bits}"), second.astype(f"int{bits}")


def _line(name: str, bits: int) -> str:
    if name in COMPARISONS:
        return f"arith.cmpi {name}, %a, %b : i{bits}"
    dialect = "math" if name in _OF_MATH else "arith"
    return f"{dialect}.{name} %a, %b : i{bits}" if ARITY[name] == 2 else f"{dialect}.{name} %a : i{bits}"


def _cast(name: str, given: int, bits: int) -> str:
    """A conversion of `%a`; those of indices go by way of one."""
    if not name.startswith("index"):
        return f"arith.{name} %a : i{given} to i{bits}"
    return f"arith.index_cast %i_{name} : index to i{bits}"


def _program(body: Mapping[str, tuple[str, str]], given: str, count: int) -> str:
    """MLIR that answers, for each name, what its line makes of two rows, in its type."""
    rows = [f"tensor<{count}x{type_}>" for _, type_ in body.values()]
    empties = "\n".join(f"  %e{i} = tensor.empty() : {row}" for i, row in enumerate(rows))
    lines = "\n".join(f"    %r{i} = {line}" for i, (line, _) in enumerate(body.values()))
    outs = ", ".join(f"%o{i}: {type_}" for i, (_, type_) in enumerate(body.values()))
    results, types = (", ".join(item) for item in ([f"%r{i}" for i in range(len(rows))], [t for _, t in body.values()]))
    row = "affine_map<(i) -> (i)>"
    maps, spaces = ", ".join([row] * (2 + len(rows))), ", ".join(f"%e{i}" for i in range(len(rows)))
    text = ", ".join(rows)
    return f"""func.func @main(%x: tensor<{count}x{given}>, %y: tensor<{count}x{given}>) -> ({text}) {{
{empties}
  %r:{len(rows)} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins(%x, %y : tensor<{count}x{given}>, tensor<{count}x{given}>) outs({spaces} : {text}) {{
  ^bb0(%a: {given}, %b: {given}, {outs}):
    %i_index_cast = arith.index_cast %a : {given} to index
    %i_index_castui = arith.index_castui %a : {given} to index
{lines}
    linalg.yield {results} : {types}
  }} -> ({text})
  return {", ".join(f"%r#{i}" for i in range(len(rows)))} : {text}
}}"""


def _computed(name: str, bits: int, given: int, pairs: Sequence[tuple[Any, Any]]) -> list[int]:
    """What host steps make of each pair, as bits."""
    leaves = [ScalarOp("element", given, (0, 0)), ScalarOp("element", given, (1, 0))]
    op, result = ScalarOp(name, bits, (0, 1)[: ARITY[name]]), Computed("bool" if bits == 1 else f"uint{bits}", (), (2,))
    code = ScalarCode((*leaves, op), (result,))
    return [int(operands_of(code, pair, ())[0]) for pair in pairs]


def _bits(array: Array, bits: int) -> list[int]:
    return [int(value) & ((1 << bits) - 1) for value in array.tolist()]


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_operations_are_those_of_kernels(bits: int, target: str, tmp_path: Path) -> None:
    """The interpreter is asked where MLIR defines a result; kernels define the others, too."""
    a, b = _numbers(bits)
    if target == "interpreter":
        defined = (b != 0) & ~((b == -1) & (a == np.iinfo(a.dtype).min))
        a, b = a[defined], b[defined]
    body = {name: (_line(name, bits), "i1" if name in COMPARISONS else f"i{bits}") for name in (*_BINARY, *_UNARY)}
    path = tmp_path / "m.mlir"
    path.write_text(_program(body, f"i{bits}", a.size))
    answers = fuseline.compile(path, target=target, threads=1).run({"x": a, "y": b}).values()
    for (name, (_, type_)), answer in zip(body.items(), answers, strict=True):
        width = int(type_[1:])
        assert _computed(name, width, bits, list(zip(a, b, strict=True))) == _bits(answer, width), name


_WIDENED = [(1, 8), (1, 64), (8, 16), (8, 64), (16, 32), (32, 64)]


@pytest.mark.parametrize(("narrow", "wide"), _WIDENED)
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_conversions_are_those_of_kernels(narrow: int, wide: int, target: str, tmp_path: Path) -> None:
    for given, bits, names in (
        (narrow, wide, ("extsi", "extui", "index_cast", "index_castui")),
        (wide, narrow, ("trunci", "index_cast")),
    ):
        a, b = (np.array([False, True]),) * 2 if given == 1 else _numbers(given)
        body = {name: (_cast(name, given, bits), f"i{bits}") for name in names}
        path = tmp_path / f"m{given}.mlir"
        path.write_text(_program(body, f"i{given}", a.size))
        answers = fuseline.compile(path, target=target, threads=1).run({"x": a, "y": b}).values()
        for name, answer in zip(names, answers, strict=True):
            assert _computed(name, bits, given, list(zip(a, b, strict=True))) == _bits(answer, bits), name


@pytest.mark.parametrize(("name", "given", "bits", "value", "result"), [
    ("index_cast", 32, 64, -5, -5), ("index_cast", 1, 64, 1, -1), ("index_cast", 64, 16, 65537, 1),
    ("index_castui", 32, 64, -5, (1 << 32) - 5), ("index_castui", 1, 64, 1, 1), ("bitcast", 16, 16, -2, -2),
])  # fmt: skip
def test_casts_to_indices_keep_the_sign_or_add_zeros(name: str, given: int, bits: int, value: int, result: int) -> None:
    assert _computed(name, bits, given, [(np.array(value), np.array(0))]) == [result & ((1 << bits) - 1)]


def test_every_operation_is_tested_here() -> None:
    integers = {*LEAVES, *_BINARY, *_UNARY, *_CASTS, "select"}
    assert integers | {*FLOATS, *FLOAT_COMPARISONS, *TO_FLOATS, *FROM_FLOATS} == set(ARITY)


@pytest.mark.parametrize("condition", [False, True])
def test_a_choice(condition: bool) -> None:
    ops = (ScalarOp("element", 1, (0, 1)), ScalarOp("constant", 32, (-3,)), ScalarOp("constant", 32, (4,)))
    code = ScalarCode((*ops, ScalarOp("select", 32, (0, 1, 2))), (Computed("int32", (1,), (3,)),))
    (row,) = operands_of(code, [np.array([not condition, condition])], ())
    np.testing.assert_array_equal(row, np.array([-3 if condition else 4], np.int32), strict=True)


@pytest.mark.parametrize(
    ("name", "result"), [("slt", 1), ("ult", 0), ("maxsi", 0), ("maxui", 1), ("addi", 1), ("muli", 0), ("subi", 1)]
)
def test_truth_is_minus_one_where_signs_count(name: str, result: int) -> None:
    assert _computed(name, 1, 1, [(np.array(True), np.array(False))]) == [result]


@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_have_the_type_and_shape_that_is_asked_for(dtype: str) -> None:
    bits = DTYPES[dtype]
    ops = tuple(ScalarOp("constant", bits, (number,)) for number in (0, 1, -1))
    (found,) = operands_of(ScalarCode(ops, (Computed(dtype, (2, 2), (2, 0, 1, 0)),)), [], ())
    last = True if dtype == "bool" else np.array(-1).astype(dtype)
    np.testing.assert_array_equal(found, np.array([[last, 0], [1, 0]], dtype), strict=True)


def test_what_is_not_computed_goes_through() -> None:
    given = [np.arange(3), "text", None]
    code = ScalarCode((ScalarOp("size", 64, (1,)),), (1, 0, Computed("int64", (), (0,)), 2))
    text, row, size, missing = operands_of(code, given, (7, 9))
    assert text == "text" and row is given[0] and missing is None
    np.testing.assert_array_equal(size, np.array(9), strict=True)


def test_elements_are_counted_in_rows() -> None:
    ops = (ScalarOp("element", 16, (0, 4)), ScalarOp("element", 16, (1, 0)))
    code = ScalarCode(ops, (Computed("int16", (2,), (0, 1)),))
    rows = np.asfortranarray(np.array([[1, 2, 3], [4, -5, 6]], np.int16))
    (found,) = operands_of(code, [rows, np.int16(8)], ())
    assert found.tolist() == [-5, 8]
