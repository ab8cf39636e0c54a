"""What a body gathers is evaluated where it is gathered, unless that takes longer: one case per part of the price."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.report.records import Decision
from tests.draws import RNG

BODIES = {
    "one table": "%v = arith.negf %x : {t}",
    "sum": "%v = arith.addf %x, %y : {t}",
    "widened": "%h = arith.addf %x, %y : {t}  %v = arith.extf %h : {t} to f32",
    "costly": "%h = math.exp %x : {t}  %k = math.exp %h : {t}  %v = arith.addf %k, %y : {t}",
}
ROWS, COLUMNS = "(a, b) -> (a, b)", "(a, b) -> (b, a)"


def _text(body: str, rows: int, columns: int, count: int, element: str, by_element: bool, second: str) -> str:
    """A table is made of two; `count` rows of it are taken, with columns as they are or at places of their own."""
    made = "f32" if body == "widened" else element
    column = "%c = arith.index_cast %q : i64 to index" if by_element else "%c = linalg.index 1 : index"
    turned = f"{columns}x{rows}" if second == COLUMNS else f"{rows}x{columns}"
    sizes = (f"tensor<{rows}x{columns}x{element}>", f"tensor<{turned}x{element}>")
    table, result = f"tensor<{rows}x{columns}x{made}>", f"tensor<{count}x{columns}x{made}>"
    places = f"tensor<{count}xi64>, tensor<{columns}xi64>"
    return f"""
func.func @main(%s: {sizes[0]}, %t: {sizes[1]}, %i: tensor<{count}xi64>, %j: tensor<{columns}xi64>) -> {result} {{
  %e = tensor.empty() : {table}
  %w = linalg.generic {{indexing_maps = [affine_map<{ROWS}>, affine_map<{second}>, affine_map<{ROWS}>],
      iterator_types = ["parallel", "parallel"]}} ins(%s, %t : {sizes[0]}, {sizes[1]}) outs(%e : {table}) {{
  ^bb0(%x: {element}, %y: {element}, %o: {made}):
    {BODIES[body].format(t=element)}
    linalg.yield %v : {made}
  }} -> {table}
  %g = tensor.empty() : {result}
  %r = linalg.generic {{indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (b)>, affine_map<{ROWS}>],
      iterator_types = ["parallel", "parallel"]}} ins(%i, %j : {places}) outs(%g : {result}) {{
  ^bb0(%p: i64, %q: i64, %o: {made}):
    %row = arith.index_cast %p : i64 to index
    {column}
    %v = tensor.extract %w[%row, %c] : {table}
    linalg.yield %v : {made}
  }} -> {result}
  return %r : {result}
}}"""


Compiled = Callable[..., tuple[int, list[Decision]]]


@pytest.fixture
def compiled(tmp_path: Path) -> Compiled:
    """`_compiled` with a folder for the program."""
    return partial(_compiled, tmp_path / "gather.mlir")


def _compiled(
    path: Path,
    body: str,
    *,
    often: float,
    element: str = "f32",
    by_element: bool = True,
    second: str = ROWS,
    threads: int = 1,
) -> tuple[int, list[Decision]]:
    """Dispatches and what was refused, where each element is picked `often` times; results on this machine are
    compared."""
    rows, columns = int(RNG.integers(150, 200)), int(RNG.integers(80, 99))
    count = max(1, int(rows * often))
    path.write_text(_text(body, rows, columns, count, element, by_element, second))
    program = fuseline.compile(path, threads=threads, target="null")  # costs of no machine in particular
    dtype = {"f32": np.float32, "f16": np.float16, "f64": np.float64}[element]
    shape = (columns, rows) if second == COLUMNS else (rows, columns)
    feeds: dict[str, Any] = {
        "s": RNG.uniform(-1, 1, (rows, columns)).astype(dtype),
        "t": RNG.uniform(-1, 1, shape).astype(dtype),
        "i": RNG.integers(0, rows, count),
        "j": RNG.permutation(columns),
    }
    (found,) = fuseline.compile(path, threads=threads).run(feeds).values()
    other = feeds["t"].T if second == COLUMNS else feeds["t"]
    table = {
        "one table": lambda: -feeds["s"],
        "sum": lambda: feeds["s"] + other,
        "widened": lambda: (feeds["s"] + other).astype(np.float32),
        "costly": lambda: np.exp(np.exp(feeds["s"])) + other,
    }[body]()
    expected = table[feeds["i"]][:, feeds["j"] if by_element else slice(None)]
    tolerance = 2e-3 if element == "f16" else 1e-5
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    return program.stats["dispatches"], [one for one in program.record.decisions if one.verdict == "missed"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(("body", "often"), [("sum", 2), ("one table", 2.5), ("costly", 1)])
def test_rows_are_evaluated_where_they_are_taken_whole(
    compiled: Compiled, body: str, often: float, element: str, threads: int
):
    assert compiled(body, often=often, element=element, by_element=False, threads=threads)[0] == 1


def test_a_half_is_rounded_whenever_it_is_computed(compiled: Compiled):
    assert compiled("sum", often=4, by_element=False)[0] == 1
    assert compiled("sum", often=4, by_element=False, element="f16")[0] == 2


@pytest.mark.parametrize("often", [2, 4])
def test_a_conversion_is_part_of_the_load(compiled: Compiled, often: float):
    assert compiled("widened", often=often, element="f16", by_element=False)[0] == 1


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("element", ["f32", "f64", "f16"])
def test_a_second_table_that_is_gathered_by_element_has_its_price(compiled: Compiled, element: str, threads: int):
    dispatches, missed = compiled("sum", often=4, element=element, second=COLUMNS, threads=threads)
    assert dispatches == 2
    (refusal,) = [one for one in missed if one.code == "unprofitable"]
    assert re.match(r"the producer would be evaluated again: [\d,.]+ us more for [\d,.]+ us saved", refusal.detail)
    assert refusal.numbers["evaluation_ns"] > refusal.numbers["saved_ns"] > 0
    assert refusal.numbers["predicted_loss_ns"] > 0


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("element", "often"), [("f32", 2), ("f32", 1), ("f64", 2), ("f16", 1)])
def test_elements_are_picked_of_rows_that_are_made_whole(compiled: Compiled, element: str, often: int, threads: int):
    assert compiled("sum", often=often, element=element, threads=threads)[0] == 1


def test_rows_have_their_price(compiled: Compiled):
    for element in ("f16", "f32", "f64"):
        assert compiled("sum", often=4, element=element)[0] == 2
    assert compiled("costly", often=1)[0] == 1
    assert compiled("costly", often=2)[0] == 2


def test_one_table_is_gathered_either_way(compiled: Compiled):
    assert compiled("one table", often=3)[0] == 1


def test_fewer_elements_than_there_are_are_gathered_twice(compiled: Compiled):
    assert compiled("sum", often=0.5)[0] == 1


def test_costly_elements_are_computed_once(compiled: Compiled):
    dispatches, missed = compiled("costly", often=4, by_element=False)
    assert (dispatches, [one.code for one in missed]) == (2, ["unprofitable"])


def test_what_lies_across_memory_is_gathered_though_rows_are_taken(compiled: Compiled):
    assert compiled("sum", often=4, by_element=False, second=COLUMNS)[0] == 2
    assert compiled("sum", often=4, by_element=False)[0] == 1
