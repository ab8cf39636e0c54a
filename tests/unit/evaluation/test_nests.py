"""Structured ops in parts: which ops a value needs, how a body's end separates, what a nest gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import linalg
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg.attrs import IteratorType

from fuseline.errors import FuselineError
from fuseline.evaluation.nest import Nest, needed_ops, nest_of
from fuseline.evaluation.program import Array, Program, Scope
from fuseline.evaluation.structured import COMBINERS, evaluate_nest, separated, structured
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module

TEXT = """func.func @main(%x: tensor<3x4xf32>, %y: tensor<4xf32>, %o: tensor<3xf32>, %p: tensor<3xf32>) {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (k)>,
      affine_map<(i, k) -> (i)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %y : tensor<3x4xf32>, tensor<4xf32>) outs(%o, %p : tensor<3xf32>, tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32, %u: f32, %v: f32):
    BODY
    linalg.yield %first, %second : f32, f32
  } -> (tensor<3xf32>, tensor<3xf32>) loc("pair")
  return
}"""
PAIR = """%m = arith.mulf %a, %b : f32
    %first = arith.addf %u, %m : f32
    %second = arith.maximumf %a, %v : f32"""
ARRAYS = [np.random.default_rng(5).standard_normal(shape).astype(np.float32) for shape in ((3, 4), (4,), (3,), (3,))]


def _op(body: str, text: str = TEXT) -> tuple[linalg.ops.GenericOp, Scope]:
    module = parse_module(text.replace("BODY", body), new_context())
    return _generic(module)


def _generic(module: ModuleOp, arrays: Sequence[Array] = ARRAYS) -> tuple[linalg.ops.GenericOp, Scope]:
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    scope = Scope(Program({}))
    scope.bind(function.body.block.args, arrays)
    (op,) = [op for op in module.walk() if isinstance(op, linalg.ops.GenericOp)]
    return op, scope


def _nest(body: str) -> Nest:
    op, scope = _op(body)
    maps = [map_.data for map_ in op.get_indexing_maps()]
    kinds = [IteratorType.PARALLEL, IteratorType.REDUCTION]
    return nest_of(op, op.body.block, maps, kinds, op.operands, 2, scope)


def test_a_nest_is_indexed_by_its_loops():
    nest = _nest(PAIR)
    assert (nest.sizes, nest.rank, nest.reductions) == ([3, 4], 2, [1])
    assert [value.name_hint for value in nest.accumulators] == ["u", "v"]
    assert [value.name_hint for value in nest.yielded] == ["first", "second"]
    assert nest.full_rank(np.array(3.0)).shape == (1, 1) and nest.full_rank(np.zeros((3, 1))).shape == (3, 1)
    np.testing.assert_array_equal(nest.output_view(0)[:, :1], ARRAYS[2][:, None])
    stored = nest.stored(1, np.arange(3, dtype=np.float32)[:, None])
    np.testing.assert_array_equal(stored, [0, 1, 2])


def test_both_outputs_are_reduced():
    x, y, o, p = ARRAYS
    for found in (evaluate_nest(_nest(PAIR)), structured(*_op(PAIR))):
        np.testing.assert_allclose(found[0], o + (x * y).sum(1), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found[1], np.maximum(x.max(1), p))


@pytest.mark.parametrize(
    ("wanted", "names"),
    [(["first"], ["arith.mulf", "arith.addf"]), (["second"], ["arith.maximumf"]), (["m"], ["arith.mulf"]), ([], [])],
)
def test_only_the_ops_that_a_value_needs(wanted: list[str], names: list[str]):
    block = _op(PAIR)[0].body.block
    values = [result for op in block.ops for result in op.results if result.name_hint in wanted]
    assert [op.name for op in needed_ops(block, values)] == names


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (PAIR, [("arith.addf", "m"), ("arith.maximumf", "a")]),
        (PAIR.replace("%u, %m", "%m, %u"), [("arith.addf", "m"), ("arith.maximumf", "a")]),
        # a term that an accumulator reaches, a difference, a sum that another op follows
        (PAIR.replace("%a, %b", "%a, %u"), [None, ("arith.maximumf", "a")]),
        (PAIR.replace("%a, %b", "%a, %v"), [None, ("arith.maximumf", "a")]),
        (PAIR.replace("arith.addf %u, %m", "arith.subf %u, %m"), [None, ("arith.maximumf", "a")]),
        (PAIR.replace("arith.addf %u, %m", "arith.addf %a, %m"), [None, ("arith.maximumf", "a")]),
        (PAIR.replace("%first =", "%t =").replace("%second", "%first = arith.negf %t : f32\n %second"),
         [None, ("arith.maximumf", "a")]),
        (PAIR.replace("maximumf %a, %v", "minnumf %v, %b"), [("arith.addf", "m"), ("arith.minnumf", "b")]),
    ],
)  # fmt: skip
def test_how_a_body_separates(body: str, parts: list[tuple[str, str] | None]):
    nest = _nest(body)
    found = [separated(nest, k) for k in range(2)]
    assert [None if one is None else (one.combine.name, one.term.name_hint) for one in found] == parts
    x, y, o, p = (array.astype(np.float64) for array in ARRAYS)
    state = o.copy(), p.copy()
    for k in range(4):  # by hand, step by step
        a, b, (u, v) = x[:, k], y[k], state
        m = a * (u if "%a, %u" in body else v if "%a, %v" in body.split("\n")[0] else b)
        first = a + m if "addf %a" in body else u - m if "subf" in body else u + m
        second = np.minimum(v, b) if "minnumf" in body else np.maximum(a, v)
        state = (-first if "negf" in body else first), second
    for result, expected in zip(evaluate_nest(nest), state, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", COMBINERS)
def test_combiners_are_commutative_and_associative(name: str):
    function, view = COMBINERS[name]
    rng = np.random.default_rng()
    whole = rng.integers(0, 100, (3, 20)).astype(np.float32 if name.endswith("f") else np.int8)
    if name == "arith.mulf":
        whole = np.sign(whole)
    a, b, c = (view(part) for part in whole)
    np.testing.assert_array_equal(function(a, b), function(b, a))
    np.testing.assert_array_equal(function(function(a, b), c), function(a, function(b, c)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("arith.maxsi", 1), ("arith.maxui", -1), ("arith.minsi", -1), ("arith.minui", 1), ("arith.xori", -2)],
)
def test_integers_are_seen_with_the_sign_that_their_op_means(name: str, expected: int):
    function, view = COMBINERS[name]
    found: Any = function(view(np.array([-1], np.int8)), view(np.array([1], np.int8)))
    assert found.astype(np.int8).tolist() == [expected]


def test_operands_that_disagree_are_refused_with_the_node():
    op, scope = _op(PAIR)
    scope.bind([op.operands[1]], [np.zeros(5, np.float32)])
    with pytest.raises(FuselineError) as caught:
        structured(op, scope)
    assert (caught.value.code, caught.value.node) == ("E0305", "pair")


def test_no_steps_leave_what_was_there():
    op, scope = _op(PAIR)
    scope.bind(op.operands[:2], [np.zeros((3, 0), np.float32), np.zeros(0, np.float32)])
    for found, initial in zip(structured(op, scope), ARRAYS[2:], strict=True):
        np.testing.assert_array_equal(found, initial)
