"""Structured ops whose inputs, results or inits nobody needs, and bodies that say one thing: what becomes of each."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects import linalg, tensor
from xdsl.ir import BlockArgument

from fuseline.passes.cleanup.folds.generics import (
    fold_constant_body,
    fold_copy,
    fold_unread_init,
    fold_unused_inputs,
    fold_unused_results,
)
from fuseline.passes.cleanup.folds.worklist import Fold
from tests.unit.passes.cleanup.test_folds import folded
from tests.unit.passes.cleanup.test_slice_folds import same

ARGUMENTS = "%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %z: tensor<4x4xf32>, %v: f32, %r0: tensor<4xf32>"
M = "affine_map<(a, b) -> (a, b)>"
T = "affine_map<(a, b) -> (b, a)>"
ROWS = "affine_map<(a, b) -> (a)>"


def typed(names: str) -> tuple[str, str]:
    """Operands by name with their types, and the types alone."""
    types = ", ".join("tensor<4xf32>" if name == "%r0" else "tensor<4x4xf32>" for name in names.split(", "))
    return f"{names} : {types}", types


BOTH = '"parallel", "parallel"'


def generic(maps: str, ins: str, outs: str, body: str, kinds: str = BOTH, result: str = "%r") -> str:
    """A generic whose operands are named; all are 4x4, but `%r0` of 4."""
    arguments = ", ".join(f"%b{i}: f32" for i in range(len(f"{ins}, {outs}".split(", "))))
    written, types = typed(outs)
    return f"""{result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({typed(ins)[0]}) outs({written}) {{
      ^bb0({arguments}):
        {body}
      }} -> {f"({types})" if ", " in types else types}"""


def fold(rule: Fold, text: str, result: str = "tensor<4x4xf32>") -> Any:
    return same(rule, text, ARGUMENTS, result)


@pytest.mark.parametrize(
    ("maps", "body", "kept"),
    [
        (f"{M}, {M}, {M}", "linalg.yield %b0 : f32", 0),
        (f"{M}, {T}, {T}", "linalg.yield %b1 : f32", 1),
        (f"{M}, {T}, {T}", "linalg.yield %b0 : f32", None),
        (f"{M}, {M}, {M}", "%n = arith.negf %b0 : f32\n linalg.yield %n : f32", None),
        (f"{M}, {M}, {M}", "linalg.yield %v : f32", None),
    ],
    ids=["as it is", "turned twice", "turned", "negated", "a number from outside"],
)
def test_a_copy_is_what_it_copies(maps: str, body: str, kept: int | None):
    made = fold(fold_copy, generic(maps, "%x, %y", "%z", body))
    assert (made.index if isinstance(made, BlockArgument) else made) == kept


def test_a_row_that_is_spread_is_no_copy():
    text = generic(f"{ROWS}, {M}", "%r0", "%z", "linalg.yield %b0 : f32")
    assert fold(fold_copy, text) is None
    summed = generic(f"{M}, {ROWS}", "%x", "%r0", "linalg.yield %b1 : f32", '"parallel", "reduction"')
    assert fold(fold_copy, summed, "tensor<4xf32>") is None


def test_inputs_that_nobody_reads_go():
    body = "%s = arith.subf %b1, %b3 : f32\n linalg.yield %s : f32"
    made = fold(fold_unused_inputs, generic(f"{M}, {T}, {M}, {T}, {M}", "%x, %y, %z, %x", "%z", body))
    assert [value.name_hint for value in made.inputs] == ["y", "x"]
    assert [str(map_.data) for map_ in made.indexing_maps][:2] == ["(d0, d1) -> (d1, d0)"] * 2
    assert len(made.body.block.args) == 3
    again = generic(f"{M}, {M}, {M}", "%x, %y", "%z", "%s = arith.subf %b0, %b1 : f32\n linalg.yield %s : f32")
    assert fold(fold_unused_inputs, again) is None


def test_an_input_that_says_how_long_a_loop_is_stays():
    """The window of a pooling: one of two such goes, and the other is needed then."""
    body = "%s = arith.addf %b0, %b3 : f32\n linalg.yield %s : f32"
    text = f"""%w = tensor.empty() : tensor<2xf32>
      %e = tensor.empty() : tensor<3xf32>
      %f = linalg.fill ins(%v : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
      %r = linalg.generic {{indexing_maps = [affine_map<(a, b) -> (a + b)>, affine_map<(a, b) -> (b)>,
          affine_map<(a, b) -> (b)>, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]}}
          ins(%r0, %w, %w : tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) outs(%f : tensor<3xf32>) {{
      ^bb0(%b0: f32, %b1: f32, %b2: f32, %b3: f32):
        {body}
      }} -> tensor<3xf32>"""
    made = fold(fold_unused_inputs, text, "tensor<3xf32>")
    assert len(made.inputs) == 2
    one = text.replace(", affine_map<(a, b) -> (b)>,\n", ",\n").replace("%w, %w : ", "%w : ")
    one = one.replace("tensor<2xf32>, tensor<2xf32>)", "tensor<2xf32>)").replace("%b2: f32, ", "")
    assert fold(fold_unused_inputs, one, "tensor<3xf32>") is None


TWO = "%n = arith.negf %b0 : f32\n %m = math.absf %b0 : f32\n linalg.yield %n, %m : f32, f32"


def test_results_that_nobody_reads_go():
    text = generic(f"{M}, {M}, {T}", "%x", "%y, %z", TWO, result="%r, %s")
    made = fold(fold_unused_results, text)
    assert len(made.results) == 1 and made.outputs[0].name_hint == "y" and len(list(made.body.block.ops)) == 2
    other = fold(fold_unused_results, generic(f"{M}, {M}, {T}", "%x", "%y, %z", TWO, result="%s, %r"))
    assert other.outputs[0].name_hint == "z" and str(other.indexing_maps.data[-1].data) == "(d0, d1) -> (d1, d0)"
    read = text + "\n%k = tensor.cast %s : tensor<4x4xf32> to tensor<?x4xf32>"
    assert fold(fold_unused_results, read) is None
    assert fold(fold_unused_results, generic(f"{M}, {M}", "%x", "%y", "linalg.yield %b0 : f32")) is None


def test_a_result_whose_sum_another_one_reads_stays():
    body = "%s = arith.addf %b1, %b0 : f32\n %t = arith.addf %b2, %s : f32\n linalg.yield %t, %s : f32, f32"
    kinds = '"parallel", "reduction"'
    text = """%o = tensor.empty() : tensor<4xf32>
      %f = linalg.fill ins(%v : f32) outs(%o : tensor<4xf32>) -> tensor<4xf32>
      """ + generic(f"{M}, {ROWS}, {ROWS}", "%x", "%r0, %r0", body, kinds, "%r, %s").replace(
        "outs(%r0, %r0", "outs(%r0, %f"
    )
    assert fold(fold_unused_results, text, "tensor<4xf32>") is None
    alone = body.replace("arith.addf %b1, %b0", "arith.addf %b0, %b0")
    made = fold(fold_unused_results, text.replace(body, alone.replace("%b2, %s", "%b1, %s")), "tensor<4xf32>")
    assert len(made.results) == 1


@pytest.mark.parametrize(
    ("maps", "outs", "body", "kinds", "emptied"),
    [
        (f"{M}, {M}", "%y", "linalg.yield %b0 : f32", BOTH, [0]),
        (f"{M}, {T}", "%y", "linalg.yield %b0 : f32", BOTH, [0]),
        (f"{M}, {M}", "%y", "%s = arith.addf %b0, %b1 : f32\n linalg.yield %s : f32", BOTH, []),
        (f"{M}, {ROWS}", "%r0", "linalg.yield %b0 : f32", '"parallel", "reduction"', []),
    ],
    ids=["not read", "not read, turned", "read", "summed"],
)
def test_an_init_that_nobody_reads_is_empty(maps: str, outs: str, body: str, kinds: str, emptied: list[int]):
    result = "tensor<4xf32>" if outs == "%r0" else "tensor<4x4xf32>"
    made = fold(fold_unread_init, generic(maps, "%x", outs, body, kinds), result)
    found = made.outputs if made is not None else []
    assert [i for i, value in enumerate(found) if isinstance(value.owner, tensor.EmptyOp)] == emptied


def test_the_second_init_alone():
    body = "%s = arith.addf %b0, %b1 : f32\n linalg.yield %s, %b0 : f32, f32"
    made = fold(fold_unread_init, generic(f"{M}, {M}, {M}", "%x", "%y, %z", body, result="%r, %s"))
    assert made.outputs[0].name_hint == "y" and isinstance(made.outputs[1].owner, tensor.EmptyOp)


@pytest.mark.parametrize(
    ("maps", "outs", "body", "kind"),
    [
        (f"{M}, {M}", "%y", "linalg.yield %v : f32", linalg.ops.FillOp),
        (f"{M}, {T}", "%y", "%c = arith.constant 2.5 : f32\n linalg.yield %c : f32", linalg.ops.FillOp),
        (f"{M}, {M}", "%y", "%c = arith.negf %v : f32\n linalg.yield %c : f32", None),
        (f"{M}, {M}", "%y", "linalg.yield %b0 : f32", None),
        (f"{M}, {M}, {M}", "%y, %z", "linalg.yield %v, %v : f32, f32", None),
        (f"{M}, {ROWS}", "%r0", "linalg.yield %v : f32", None),
    ],
    ids=["outside", "constant", "computed", "read", "two", "summed"],
)
def test_a_body_of_one_number_is_a_fill(maps: str, outs: str, body: str, kind: type[Any] | None):
    kinds = '"parallel", "reduction"' if outs == "%r0" else BOTH
    text = generic(maps, "%x", outs, body, kinds, "%r, %s" if ", " in outs else "%r")
    made = fold(fold_constant_body, text, "tensor<4xf32>" if outs == "%r0" else "tensor<4x4xf32>")
    assert made is None if kind is None else isinstance(made, kind)


def test_a_diagonal_is_no_fill():
    text = """%r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a, a)>],
      iterator_types = ["parallel"]} ins(%r0 : tensor<4xf32>) outs(%y : tensor<4x4xf32>) {
      ^bb0(%b0: f32, %b1: f32):
        linalg.yield %v : f32
      } -> tensor<4x4xf32>"""
    assert folded(fold_constant_body, text, ARGUMENTS, "tensor<4x4xf32>") is None
    assert folded(fold_unread_init, text, ARGUMENTS, "tensor<4x4xf32>") is None
