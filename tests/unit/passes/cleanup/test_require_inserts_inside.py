"""An element is put where there is one: known when compiling, checked by the run, or left out where data says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.dim import Dim, add, symbol
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.inside_requirements import require_of_symbols
from fuseline.passes.cleanup.require_inserts_inside import RequireInsertsInsidePass
from fuseline.size_requirement import SizeRequirement

PUT = """
func.func @main(%t: tensor<?x3xELEMENT>, %s: ELEMENT, %i: index, %j: index) -> tensor<?x3xELEMENT> {
  %r = tensor.insert %s into %t[%i, %j] : tensor<?x3xELEMENT>
  return %r : tensor<?x3xELEMENT>
}
"""
COMPUTED = """
func.func @main(%t: tensor<?xf32>, %s: f32, %at: tensor<i64>) -> tensor<?xf32> {
  %v = tensor.extract %at[] : tensor<i64>
  %i = arith.index_cast %v : i64 to index
  %r = tensor.insert %s into %t[%i] : tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


def result(path: Path, text: str, target: str, **feeds: Any) -> Any:
    (path / "put.mlir").write_text(text)
    return next(iter(fuseline.compile(str(path / "put.mlir"), target=target).run(feeds).values()))


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("element", ["f32", "i64", "i1"])
def test_a_place_that_the_caller_gives(tmp_path: Path, target: str, element: str) -> None:
    dtype = {"f32": np.float32, "i64": np.int64, "i1": np.bool_}[element]
    text, t = PUT.replace("ELEMENT", element), np.random.default_rng().integers(0, 2, (4, 3)).astype(dtype)
    expected = t.copy()
    expected[3, 2] = 1
    np.testing.assert_array_equal(result(tmp_path, text, target, t=t, s=dtype(1), i=3, j=2), expected)
    for i, j in ((4, 0), (0, 3), (2**62, 0), (-1, 0)):
        with pytest.raises(FuselineError) as error:
            result(tmp_path, text, target, t=t, s=dtype(1), i=i, j=j)
        assert error.value.code == "E0203" and error.value.node


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_a_place_in_data_may_be_none(tmp_path: Path, target: str) -> None:
    t = np.random.default_rng().standard_normal(5).astype(np.float32)
    for at in (0, 4, 5, -1, 2**62, -(2**63)):
        expected = t.copy()
        expected[at : at + 1 or None] = 7 if 0 <= at < 5 else expected[at : at + 1 or None]
        np.testing.assert_array_equal(
            result(tmp_path, COMPUTED, target, t=t, s=np.float32(7), at=np.array(at)), expected
        )


def test_what_no_run_can_check_is_not_asked_for() -> None:
    ctx = CompilerContext()
    ctx.symbols["n"] = symbol("n")
    require_of_symbols(ctx, SizeRequirement(symbol("n"), 3, "node", relation="at_least"))
    require_of_symbols(ctx, SizeRequirement(symbol("m"), symbol("n"), "node"))
    assert len(ctx.requirements) == 1


NAMED = """func.func @main(%t: tensor<?xf32> {fuseline.dims = ["n"]}, %s: f32, %i: index {fuseline.name = "i"})
    -> tensor<?xf32> {
  %two = arith.constant 2 : index
  %at = arith.OP
  %r = tensor.insert %s into %t[%at] : tensor<?xf32> loc("put")
  return %r : tensor<?xf32>
}"""


def _noted(op: str, n: Dim, i: Dim) -> list[tuple[Dim, Dim, str]]:
    """What is asked for where `op` names the place, once or twice; the program stays as it is."""
    ctx = new_context()
    module = parse_module(NAMED.replace("OP", op), ctx)
    ctx.symbols |= {"n": n, "i": i}
    before = print_module(module)
    for _ in range(2):
        RequireInsertsInsidePass().apply(ctx, module)
    assert print_module(module) == before
    assert all(found.relation == "at_least" for found in ctx.requirements.values())
    return [(found.left, found.right, found.node) for found in ctx.requirements.values()]


ANY, SIZE = symbol("i", 0), symbol("n", 0)


@pytest.mark.parametrize(
    ("op", "i", "expected"),
    [
        ("addi %i, %two : index", ANY, [(SIZE, add(ANY, 3), "put")]),
        ("subi %i, %two : index", ANY, [(add(ANY, -2), 0, "put"), (SIZE, add(ANY, -1), "put")]),
        ("addi %two, %two : index", ANY, [(SIZE, 5, "put")]),
        ("subi %two, %two : index", ANY, [(SIZE, 1, "put")]),
    ],
    ids=["behind", "before", "a number", "the first"],
)
def test_a_place_of_named_sizes_is_asked_for(op: str, i: Dim, expected: list[tuple[Dim, Dim, str]]) -> None:
    assert _noted(op, SIZE, i) == expected


def test_a_place_that_symbols_keep_inside_needs_nothing() -> None:
    assert not _noted("addi %i, %two : index", symbol("n", 8), symbol("i", 0, 5))


@pytest.mark.parametrize(("n", "i"), [(symbol("n", 0, 4), symbol("i", 2)), (symbol("n", 0, 1), symbol("i", 0))])
def test_a_place_that_is_never_there_is_refused(n: Dim, i: Dim) -> None:
    with pytest.raises(FuselineError, match="it writes element") as error:
        _noted("addi %i, %two : index", n, i)
    assert (error.value.code, error.value.node) == ("E0107", "put")
