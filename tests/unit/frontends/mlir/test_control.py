"""Blocks in a row, calls, branches and loops: left are ops in a row, and the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from fuseline.frontends.mlir import loops
from fuseline.frontends.mlir.control import erase_uncalled, flatten_branches, inline_calls, join_blocks
from fuseline.ir.context import new_context
from tests.unit.frontends.mlir.steps import after, computed, function, normal, ops_after, refused

V = "tensor<3xf32>"
X = f"%x: {V}"


def _join(module: ModuleOp, main: FuncOp) -> None:
    join_blocks(main)


def _inline(module: ModuleOp, main: FuncOp) -> None:
    inline_calls(module, main)


def _inline_and_erase(module: ModuleOp, main: FuncOp) -> None:
    inline_calls(module, main)
    erase_uncalled(module, main)


def _flatten(module: ModuleOp, main: FuncOp) -> None:
    flatten_branches(main)


def _straighten(module: ModuleOp, main: FuncOp) -> None:
    loops.straighten(module, main, new_context())


# -- blocks ------------------------------------------------------------------------------------------------------------

ROW = f"""%a = math.exp %x : {V}
cf.br ^next(%a, %x : {V}, {V})
^last(%u: {V}):
  %r = arith.addf %u, %p : {V}
  return %r : {V}
^next(%p: {V}, %q: {V}):
  %s = arith.mulf %p, %q : {V}
  cf.br ^last(%s : {V})"""


def _blocks(lines: str) -> str:
    return f"func.func @main({X}, %c: i1) -> {V} {{\n{lines}\n}}"


def test_blocks_in_a_row_become_one() -> None:
    x = normal(3)
    assert ops_after(_blocks(ROW), _join) == ["math.exp", "arith.mulf", "arith.addf", "func.return"]
    found = computed(_blocks(ROW), _join, x, np.array(True))[0]
    np.testing.assert_allclose(found, np.exp(x) * x + np.exp(x), rtol=1e-5)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (f"cf.cond_br %c, ^a, ^b\n^a:\nreturn %x : {V}\n^b:\nreturn %x : {V}", "a branch that depends on data"),
        ("cf.br ^a\n^a:\ncf.br ^a", "blocks that several others lead to"),
    ],
)
def test_choices_between_blocks(lines: str, words: str) -> None:
    refused(_blocks(lines), _join, words)


# -- calls -------------------------------------------------------------------------------------------------------------

TWICE = f"""func.func private @twice(%y: {V}) -> {V} {{
  %z = arith.addf %y, %y : {V}
  return %z : {V}
}}
func.func private @four(%y: {V}) -> {V} {{
  %z = func.call @twice(%y) : ({V}) -> {V}
  %w = func.call @twice(%z) : ({V}) -> {V}
  return %w : {V}
}}
func.func private @never(%y: {V}) -> {V} {{
  return %y : {V}
}}
"""


def test_calls_are_put_in_place() -> None:
    text = TWICE + function(X, f"%r = func.call @four(%x) : ({V}) -> {V}", [V])
    assert ops_after(text, _inline) == ["arith.addf", "arith.addf", "func.return"]
    x = normal(3)
    np.testing.assert_allclose(computed(text, _inline, x)[0], 4 * x, rtol=1e-6)
    names = [op.sym_name.data for op in after(text, _inline_and_erase).ops if isinstance(op, FuncOp)]
    assert names == ["main"]


def test_what_is_called_stays() -> None:
    text = TWICE + function(X, f"%r = func.call @four(%x) : ({V}) -> {V}", [V])
    module = after(text, lambda module, main: erase_uncalled(module, main))
    assert {op.sym_name.data for op in module.ops if isinstance(op, FuncOp)} == {"main", "four", "twice"}


def test_calls_that_are_refused() -> None:
    again = (
        f"func.func private @again(%y: {V}) -> {V} {{\n%z = func.call @again(%y) : ({V}) -> {V}\nreturn %z : {V}\n}}\n"
    )
    refused(again + function(X, f"%r = func.call @again(%x) : ({V}) -> {V}", [V]), _inline, "again calls itself")
    other = function(X, "%r = func.call @twice(%x) : (tensor<3xf32>) -> tensor<4xf32>", ["tensor<4xf32>"])
    refused(TWICE + other, _inline, "result type mismatch|@twice has another type", "E0302")


# -- branches ----------------------------------------------------------------------------------------------------------


def _if(yes: str, no: str, result: str = "%t", other: str = "%e") -> str:
    lines = f"""%r = scf.if %c -> ({V}) {{
  {yes}
  scf.yield {result} : {V}
}} else {{
  {no}
  scf.yield {other} : {V}
}}"""
    return function(f"{X}, %c: i1, %i: index, %n: tensor<3xi32>", lines, [V])


@pytest.mark.parametrize("taken", [True, False])
def test_both_sides_are_computed(taken: bool) -> None:
    text = _if(f"%t = math.exp %x : {V}", f"%e = arith.negf %x : {V}")
    assert ops_after(text, _flatten) == ["math.exp", "arith.negf", "arith.select", "func.return"]
    x = normal(3)
    found = computed(text, _flatten, x, np.array(taken), np.array(0), np.zeros(3, np.int32))[0]
    np.testing.assert_allclose(found, np.exp(x) if taken else -x, rtol=1e-5)


DIVIDED = "%d = arith.divsi %n, {} : tensor<3xi32>\n%t = arith.sitofp %d : tensor<3xi32> to tensor<3xf32>"
QUOTIENT = f"""%w = arith.constant 7 : i32
%z = arith.constant {{}} : i32
%d = arith.divsi %w, %z : i32
%f = arith.sitofp %d : i32 to f32
%t = tensor.splat %f : {V}"""
READ = f"%s = tensor.extract %x[{{}}] : {V}\n%t = tensor.splat %s : {V}"


@pytest.mark.parametrize(
    ("yes", "words"),
    [
        (DIVIDED.format("%n"), "arith.divsi must not be computed where it was not meant to be"),
        (QUOTIENT.format(-1), "arith.divsi must not be computed"),
        (QUOTIENT.format(0), "arith.divsi must not be computed"),
        (READ.format("%i"), "an element at a computed place"),
        (f"%t = func.call @f(%x) : ({V}) -> {V}", "func.call must not run"),
    ],
)
def test_sides_that_must_not_run(yes: str, words: str) -> None:
    refused(f"func.func private @f({V}) -> {V}\n" + _if(yes, "", other="%x"), _flatten, words)


@pytest.mark.parametrize(
    "yes",
    [
        QUOTIENT.format(2),
        "%k = arith.constant 1 : index\n" + READ.format("%k"),
    ],
)
def test_sides_that_may_run(yes: str) -> None:
    x, n = normal(3), np.zeros(3, np.int32)
    text = _if(yes, "", other="%x")
    wanted = np.full(3, 3 if "divsi" in yes else x[1])
    np.testing.assert_array_equal(computed(text, _flatten, x, np.array(True), np.array(0), n)[0], wanted)


def test_a_branch_without_a_result() -> None:
    refused(function("%c: i1", "scf.if %c {\n}"), _flatten, "a branch without a result")


# -- loops -------------------------------------------------------------------------------------------------------------


def _for(bounds: str, inside: str = f"%y = arith.addf %s, %x : {V}", before: str = "") -> str:
    lines = f"""%k0 = arith.constant 0 : index
%k1 = arith.constant 1 : index
%k2 = arith.constant 2 : index
%k5 = arith.constant 5 : index
%far = arith.constant 30000 : index
{before}
%r = scf.for %j = {bounds} iter_args(%s = %x) -> ({V}) {{
  {inside}
  scf.yield %y : {V}
}}"""
    return function(f"{X}, %n: index", lines, [V])


@pytest.mark.parametrize(
    ("bounds", "count"),
    [("%k0 to %k5 step %k1", 5), ("%k0 to %k5 step %k2", 3), ("%k1 to %k2 step %k5", 1), ("%k5 to %k0 step %k1", 0)],
)
def test_loops_are_written_out(bounds: str, count: int) -> None:
    x = normal(3)
    assert ops_after(_for(bounds), _straighten).count("arith.addf") == count
    np.testing.assert_allclose(computed(_for(bounds), _straighten, x, np.array(9))[0], x * (1 + count), rtol=1e-5)


def test_counters_are_numbers() -> None:
    inside = f"""%i = arith.index_cast %j : index to i32
  %f = arith.sitofp %i : i32 to f32
  %u = tensor.splat %f : {V}
  %y = arith.addf %s, %u : {V}"""
    x = normal(3)
    found = computed(_for("%k1 to %k5 step %k2", inside), _straighten, x, np.array(9))[0]
    np.testing.assert_allclose(found, x + 1 + 3, rtol=1e-5)


def test_loops_and_branches_inside_each_other() -> None:
    inside = f"""%c = arith.cmpi slt, %j, %k2 : index
  %y = scf.if %c -> ({V}) {{
    %z = scf.for %h = %k0 to %k2 step %k1 iter_args(%w = %s) -> ({V}) {{
      %v = arith.addf %w, %x : {V}
      scf.yield %v : {V}
    }}
    scf.yield %z : {V}
  }} else {{
    scf.yield %s : {V}
  }}"""
    text = _for("%k0 to %k5 step %k1", inside)
    assert not {"scf.for", "scf.if"} & set(ops_after(text, _straighten))
    x = normal(3)
    np.testing.assert_allclose(computed(text, _straighten, x, np.array(9))[0], 5 * x, rtol=1e-5)


def test_a_loop_that_does_not_count_is_refused() -> None:
    refused(_for("%k0 to %k5 step %k0"), _straighten, "counts in steps of 0")


@pytest.mark.parametrize("bounds", ["%k0 to %n step %k1", "%k0 to %far step %k1"])
def test_loops_that_are_not_written_out_are_repeated_by_the_host(bounds: str) -> None:
    assert "func.call" in ops_after(_for(bounds), _straighten)
