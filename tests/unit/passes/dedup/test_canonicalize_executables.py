"""Code that is written in another order is the same text afterwards, and computes the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from fuseline.dispatch.executable_entry import entry_of
from fuseline.errors import FuselineError
from fuseline.evaluation import evaluate_module
from fuseline.ir.context import new_context
from fuseline.ir.flow import ExecutableOp
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.dedup.canonicalize_executables import CanonicalizeExecutablesPass
from tests.draws import RNG

X, ROW = "tensor<4x3xf32>", "tensor<3xf32>"


def _module(body: str, *, inputs: str = "x, row", arguments: str = "x, row, o") -> ModuleOp:
    """One dispatch of an elementwise op of `%x` and a row; inside of the body they are `%u` and `%v`. A call passes
    the same tensors under any order of `arguments`."""
    types = {"x": X, "row": ROW, "o": X}
    scalars = {"x": "u", "row": "v"}
    maps = {"x": "affine_map<(i, j) -> (i, j)>", "row": "affine_map<(i, j) -> (j)>"}
    read, given = inputs.split(", "), arguments.split(", ")
    call = ", ".join(f"%{name}" for name in given)
    signature = ", ".join(f"%{name}: {types[name]}" for name in given)
    text = f"""func.func @main(%x: {X}, %row: {ROW}, %o: {X}) -> {X} {{
      %r = flow.dispatch @e::@e({call}) : ({", ".join(types[name] for name in given)}) -> {X}
      return %r : {X}
    }}
    flow.executable private @e {{ flow.executable.export public @e
      builtin.module {{ func.func @e({signature}) -> {X} {{
        %r = linalg.generic {{indexing_maps = [{", ".join(maps[name] for name in read)}, {maps["x"]}],
            iterator_types = ["parallel", "parallel"]}}
            ins({", ".join(f"%{name}" for name in read)} : {", ".join(types[name] for name in read)}) outs(%o : {X}) {{
        ^bb0({", ".join(f"%{scalars[name]}: f32" for name in read)}, %out: f32):
          {body}
          linalg.yield %y : f32
        }} -> {X}
        func.return %r : {X} }} }} }}"""
    return parse_module(text, new_context())


def _canonical(module: ModuleOp, level: str = "exact") -> str:
    """The executable after the pass, without the names of values; the program computes what it did."""
    feeds = [RNG.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (3,), (4, 3))]
    (before,) = evaluate_module(module, feeds)
    CanonicalizeExecutablesPass(level).apply(new_context(), module)
    module.verify()
    np.testing.assert_allclose(evaluate_module(module, feeds)[0], before, rtol=1e-6, atol=1e-6)
    text = print_module(module, generic=True)
    CanonicalizeExecutablesPass(level).apply(new_context(), module)
    assert print_module(module, generic=True) == text, "a second time changes nothing"
    names: dict[str, str] = {}
    (executable,) = [op for op in module.ops if isinstance(op, ExecutableOp)]
    return re.sub(r"%\w+", lambda found: names.setdefault(found[0], f"%{len(names)}"), str(entry_of(executable)))


BODY = "%e = math.exp %u : f32\n %c = arith.constant 2.0 : f32\n %p = arith.mulf %e, %c : f32\n"
TURNED = """%c = arith.constant 2.0 : f32
  %e = math.exp %u : f32
  %p = arith.mulf %c, %e : f32
  %y = arith.addf %v, %p : f32"""
WANTED = BODY + "%y = arith.addf %p, %v : f32"


@pytest.mark.parametrize(
    ("body", "inputs", "arguments"),
    [
        (BODY + "%y = arith.addf %v, %p : f32", "x, row", "x, row, o"),
        (WANTED.replace("%e, %c", "%c, %e"), "x, row", "x, row, o"),
        (WANTED, "row, x", "x, row, o"),
        (WANTED, "x, row", "o, row, x"),
        (WANTED, "row, x", "row, o, x"),
        (TURNED, "row, x", "o, x, row"),
    ],
    ids=["sum", "product", "inputs", "arguments", "inputs and arguments", "all"],
)
def test_the_order_of_writing_is_lost(body: str, inputs: str, arguments: str):
    assert _canonical(_module(body, inputs=inputs, arguments=arguments)) == _canonical(_module(WANTED))


@pytest.mark.parametrize(
    "body",
    [
        WANTED.replace("math.exp %u", "math.exp %v").replace("%p, %v", "%p, %u"),
        WANTED.replace("2.0", "3.0"),
        WANTED.replace("arith.addf", "arith.subf"),
        WANTED.replace("arith.addf %p, %v", "arith.subf %v, %p"),
    ],
    ids=["operands", "constant", "op", "difference"],
)
def test_other_code_stays_another(body: str):
    assert _canonical(_module(body)) != _canonical(_module(WANTED))


def test_a_difference_keeps_its_sides():
    one, other = (WANTED.replace("addf %p, %v", f"subf {sides}") for sides in ("%p, %v", "%v, %p"))
    assert _canonical(_module(one)) != _canonical(_module(other))


def test_an_op_that_nothing_needs_is_kept_in_front():
    spare = "%s = math.absf %v : f32\n"
    assert _canonical(_module(WANTED.replace("%y", f"{spare}%y"))) == _canonical(_module(spare + WANTED))


def test_below_its_level_nothing_is_changed():
    module = _module(WANTED, inputs="row, x", arguments="o, row, x")
    before = print_module(module)
    CanonicalizeExecutablesPass("none").apply(new_context(), module)
    assert print_module(module) == before


def test_an_unknown_level_is_refused():
    with pytest.raises(FuselineError) as caught:
        CanonicalizeExecutablesPass("all").apply(new_context(), _module(WANTED))
    assert (caught.value.code, caught.value.node) == ("E0304", "canonicalize-executables")
