"""Floats that host steps compute, against the kernels and NumPy: every operation, of special values and random ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.runtime.scalar_arithmetic import _Prepared  # pyright: ignore[reportPrivateUsage]
from fuseline.scalar_code import (
    ARITY,
    FLOAT_COMPARISONS,
    FLOATS,
    FROM_FLOATS,
    TO_FLOATS,
    Computed,
    ScalarCode,
    ScalarOp,
)
from tests.draws import RNG

Array = NDArray[Any]
_OF_MATH = ("absf", "floor", "ceil", "trunc", "roundeven", "sqrt")
_WHOLE = [f"i{bits}" for bits in (8, 16, 32, 64)]
_TO_FLOATS = [name for name, kind in TO_FLOATS.items() if kind == "i"]


def _pairs(bits: int) -> tuple[Array, Array]:
    """Pairs: every two special values, at the ends of the ranges of floats and integers, and random ones."""
    info = np.finfo(f"float{bits}")
    edges = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 0.1, 1 / 3, 16777217.0, np.inf, np.nan]
    edges += [float(info.max), float(info.tiny), float(info.smallest_subnormal), float(info.eps)]
    edges += [2.0**k for k in (7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64)]
    edges += [np.nextafter(2.0**k, 0, dtype=f"float{bits}") for k in (31, 32, 63, 64)]
    every = [sign * edge for edge in edges for sign in (1, -1)]
    a, b = np.array([(a, b) for a in every for b in every], f"float{bits}").T
    more = (RNG.standard_normal((2, 200)) * 10.0 ** RNG.integers(-5, 12, (2, 200))).astype(a.dtype)
    return np.concatenate([a, more[0]]), np.concatenate([b, more[1]])


def _integers(bits: int) -> Array:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    near = [(1 << k) + d for k in range(bits - 1) for d in (-1, 0, 1)]
    ties = [(1 << 53) + d for d in range(-5, 6)] + [(((1 << 24) + 1) << k) + d for k in range(39) for d in (-1, 0, 1)]
    edges = [v for n in (*near, *ties, low, high, high - 1, low + 1) for v in (n, -n) if low <= v <= high]
    return np.concatenate([np.array(edges, np.int64), RNG.integers(low, high, 200, endpoint=True)]).astype(f"int{bits}")


def _found(name: str, bits: int, rows: tuple[Array, ...], leaf: str) -> list[Any]:
    """What host steps make of each column of `rows`."""
    leaves = [ScalarOp(leaf, 8 * row.itemsize, (i, 0)) for i, row in enumerate(rows)]
    op = ScalarOp(name, bits, (0, 1)[: ARITY[name]])
    prepared = _Prepared(ScalarCode((*leaves, op), (Computed("bool", (0,), ()),)))
    return [prepared.numbers(column, ())[-1] for column in zip(*rows, strict=True)]


def _kernel(tmp_path: Path, target: str, line: str, result: str, rows: tuple[Array, ...]) -> Array:
    """What a kernel makes of the rows `%a`, `%b` by `line`."""
    given = [f"{'f' if row.dtype.kind == 'f' else 'i'}{8 * row.itemsize}" for row in rows]
    names, count, row = "ab"[: len(rows)], rows[0].size, "affine_map<(i) -> (i)>"
    types = ", ".join(f"tensor<{count}x{type_}>" for type_ in given)
    arguments, numbers = (
        ", ".join(form.format(name, type_) for name, type_ in zip(names, given, strict=True))
        for form in (f"%{{}}s: tensor<{count}x{{}}>", "%{}: {}")
    )
    text = f"""func.func @main({arguments}) -> tensor<{count}x{result}> {{
  %e = tensor.empty() : tensor<{count}x{result}>
  %r = linalg.generic {{indexing_maps = [{", ".join([row] * (len(rows) + 1))}], iterator_types = ["parallel"]}}
      ins({", ".join(f"%{n}s" for n in names)} : {types}) outs(%e : tensor<{count}x{result}>) {{
  ^bb0({numbers}, %o: {result}):
    %s = {line}
    linalg.yield %s : {result}
  }} -> tensor<{count}x{result}>
  return %r : tensor<{count}x{result}>
}}"""
    path = tmp_path / "m.mlir"
    path.write_text(text)
    feeds = {f"{name}s": row for name, row in zip(names, rows, strict=True)}
    (answer,) = fuseline.compile(path, target=target, threads=1).run(feeds).values()
    return answer


def _same(found: list[Any], wanted: Array, name: str) -> None:
    """Equal, zeros with their signs; any NaN is one."""
    answer = np.array(found, wanted.dtype)
    np.testing.assert_array_equal(answer, wanted, err_msg=name)
    if name not in ("maximumf", "minimumf"):  # of zeros that differ in sign, kernels take either
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(answer[numbers]), np.signbit(wanted[numbers]), err_msg=name)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", FLOATS)
def test_operations_are_those_of_kernels(name: str, bits: int, tmp_path: Path) -> None:
    rows = _pairs(bits)[: ARITY[name]]
    dialect = "math" if name in _OF_MATH else "arith"
    line = f"{dialect}.{name} {', '.join(['%a', '%b'][: len(rows)])} : f{bits}"
    _same(_found(name, bits, rows, "elementf"), _kernel(tmp_path, "cpu", line, f"f{bits}", rows), name)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", FLOAT_COMPARISONS)
def test_comparisons_are_those_of_kernels(name: str, bits: int, tmp_path: Path) -> None:
    rows = _pairs(bits)
    wanted = _kernel(tmp_path, "cpu", f"arith.cmpf {name[:-1]}, %a, %b : f{bits}", "i1", rows)
    assert [-value for value in _found(name, 1, rows, "elementf")] == wanted.astype(int).tolist()


@pytest.mark.parametrize("given", [32, 64])
@pytest.mark.parametrize("result", _WHOLE)
@pytest.mark.parametrize("name", FROM_FLOATS)
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_integers_of_floats_are_those_of_kernels(
    name: str, result: str, given: int, target: str, tmp_path: Path
) -> None:
    rows = (np.unique(_pairs(given)[0]),)
    wanted = _kernel(tmp_path, target, f"arith.{name} %a : f{given} to {result}", result, rows)
    assert _found(name, int(result[1:]), rows, "elementf") == wanted.view(f"int{result[1:]}").tolist()


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("given", [8, 16, 32, 64])
@pytest.mark.parametrize("name", _TO_FLOATS)
def test_floats_of_integers_are_those_of_kernels(name: str, given: int, bits: int, tmp_path: Path) -> None:
    rows = (_integers(given),)
    wanted = _kernel(tmp_path, "cpu", f"arith.{name} %a : i{given} to f{bits}", f"f{bits}", rows)
    _same(_found(name, bits, rows, "element"), wanted, name)


@pytest.mark.parametrize(("name", "given", "bits"), [("extf", 32, 64), ("truncf", 64, 32)])
def test_conversions_between_floats_are_those_of_kernels(name: str, given: int, bits: int, tmp_path: Path) -> None:
    rows = (_pairs(given)[0],)
    wanted = _kernel(tmp_path, "cpu", f"arith.{name} %a : f{given} to f{bits}", f"f{bits}", rows)
    _same(_found(name, bits, rows, "elementf"), wanted, name)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("value", [0.0, -0.0, 1.1, -3.5, np.inf, -np.inf, np.nan])
def test_constants_are_given_by_their_bits(value: float, bits: int) -> None:
    number = np.array(value, f"float{bits}")
    op = ScalarOp("constantf", bits, (int(number.view(f"int{bits}")),))
    (found,) = _Prepared(ScalarCode((op,), ())).numbers((), ())
    _same([found], number.reshape(1), "constantf")
