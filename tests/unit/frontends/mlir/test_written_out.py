"""Ops of IREE's dialects written out as structured ops, one function at a time, by the evaluator against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.dialects.func import FuncOp

from fuseline.frontends.mlir.attention import expand_attention
from fuseline.frontends.mlir.flow_tensors import expand_flow_tensors
from fuseline.frontends.mlir.linalg_ext.custom import custom
from fuseline.frontends.mlir.linalg_ext.folds import arg_compare, scan
from fuseline.frontends.mlir.linalg_ext.fourier import fft
from fuseline.frontends.mlir.linalg_ext.indexed import gather, map_load, map_store, scatter
from fuseline.frontends.mlir.linalg_ext.nest import Nest
from fuseline.frontends.mlir.linalg_ext.ordering import sort, top_k
from fuseline.ir.provenance import replace
from tests.unit.frontends.mlir.steps import RNG, after, computed, function, main_of, normal, refused

WRITERS: dict[str, Callable[[Any], Any]] = {
    "sort": sort,
    "topk": top_k,
    "topk_v2": top_k,
    "scan": scan,
    "arg_compare": arg_compare,
    "scatter": scatter,
    "gather": gather,
    "map_load": map_load,
    "map_store": map_store,
    "fft": fft,
    "custom_op": custom,
}


def _write(module: ModuleOp, main: FuncOp) -> None:
    for op in list(main.walk()):
        writer = WRITERS.get(op.name.removeprefix("iree_linalg_ext."))
        if op.name.startswith("iree_linalg_ext.") and writer is not None:
            replace(op, [], writer(op))


def _body(arguments: str, line: str, result: str) -> str:
    return f"{{\n^bb0({arguments}):\n  {line}\n  iree_linalg_ext.yield %k : {result}\n}}"


BETTER = _body("%a: f32, %b: f32", "%k = arith.cmpf ogt, %a, %b : f32", "i1")


@pytest.mark.parametrize("sizes", ["3x5", "?x?"])
def test_an_order(sizes: str) -> None:
    t = f"tensor<{sizes}xf32>"
    text = function(f"%x: {t}", f"%r = iree_linalg_ext.sort dimension(1) outs(%x : {t}) {BETTER} -> {t}", [t])
    x = normal(3, 5)
    np.testing.assert_array_equal(computed(text, _write, x)[0], -np.sort(-x, axis=1))


def test_the_first_of_an_order() -> None:
    outs = "tensor<3x2xf32>, tensor<3x2xi32>"
    words = f"dimension(1) ins(%x : tensor<3x5xf32>) outs(%v, %i : {outs})"
    line = f"%r:2 = iree_linalg_ext.topk_v2 {words} {BETTER} -> {outs}"
    text = function(
        "%x: tensor<3x5xf32>, %v: tensor<3x2xf32>, %i: tensor<3x2xi32>", line, outs.split(", "), "%r#0, %r#1"
    )
    x = normal(3, 5)
    found = computed(text, _write, x, np.zeros((3, 2), np.float32), np.zeros((3, 2), np.int32))
    order = np.argsort(-x, axis=1)[:, :2]
    np.testing.assert_array_equal(found[0], np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(found[1], order)
    refused(text.replace("3x2x", "3x9x"), _write, "9 of 5 elements are asked for")


@pytest.mark.parametrize("inclusive", [True, False])
def test_running_sums(inclusive: bool) -> None:
    outs = "tensor<3x5xf32>, tensor<3xf32>"
    words = f"dimension(1) inclusive({str(inclusive).lower()}) ins(%x : tensor<3x5xf32>) outs(%o, %s : {outs})"
    added = _body("%a: f32, %b: f32", "%k = arith.addf %a, %b : f32", "f32")
    line = f"%r:2 = iree_linalg_ext.scan {words} {added} -> {outs}"
    text = function("%x: tensor<3x5xf32>, %o: tensor<3x5xf32>, %s: tensor<3xf32>", line, outs.split(", "), "%r#0, %r#1")
    x, start = normal(3, 5), normal(3)
    out, last = computed(text, _write, x, x, start)
    wanted = x.cumsum(1) if inclusive else start[:, None] + np.concatenate([np.zeros((3, 1)), x.cumsum(1)[:, :-1]], 1)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last, wanted[:, -1], rtol=1e-4, atol=1e-5)


def test_the_best_element() -> None:
    outs = "tensor<3xf32>, tensor<3xi32>"
    words = f"dimension(1) ins(%x : tensor<3x5xf32>) outs(%v, %i : {outs})"
    line = f"%r:2 = iree_linalg_ext.arg_compare {words} {BETTER} -> {outs}"
    text = function("%x: tensor<3x5xf32>, %v: tensor<3xf32>, %i: tensor<3xi32>", line, outs.split(", "), "%r#0, %r#1")
    x = normal(3, 5)
    best, at = computed(text, _write, x, np.full(3, -99, np.float32), np.zeros(3, np.int32))
    np.testing.assert_array_equal(best, x.max(1))
    np.testing.assert_array_equal(at, x.argmax(1))


def test_updates_in_order_and_slices_back() -> None:
    added = _body("%a: f32, %b: f32", "%k = arith.addf %a, %b : f32", "f32")
    ins = "ins(%u, %at : tensor<4x3xf32>, tensor<4xi32>) outs(%w : tensor<5x3xf32>)"
    line = f"%r = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) {ins} {added} -> tensor<5x3xf32>"
    text = function("%w: tensor<5x3xf32>, %u: tensor<4x3xf32>, %at: tensor<4xi32>", line, ["tensor<5x3xf32>"])
    w, u, at = normal(5, 3), normal(4, 3), np.array([1, 4, 1, 9], np.int32)
    wanted = w.copy()
    np.add.at(wanted, at[:3], u[:3])
    np.testing.assert_allclose(computed(text, _write, w, u, at)[0], wanted, rtol=1e-5, atol=1e-6)
    ins = "ins(%w, %at : tensor<5x3xf32>, tensor<4xi32>) outs(%u : tensor<4x3xf32>)"
    read = f"dimension_map = [0] {ins} -> tensor<4x3xf32>"
    back = function(
        "%w: tensor<5x3xf32>, %u: tensor<4x3xf32>, %at: tensor<4xi32>",
        f"%r = iree_linalg_ext.gather {read}",
        ["tensor<4x3xf32>"],
    )
    inside = RNG.integers(0, 5, 4).astype(np.int32)
    np.testing.assert_array_equal(computed(back, _write, w, u, inside)[0], w[inside])


@pytest.mark.parametrize("stage", [1, 2])
def test_a_stage_of_a_transform(stage: int) -> None:
    t = "tensor<8xf32>"
    number = f"%n = arith.constant {stage} : index"
    line = f"{number}\n%r:2 = iree_linalg_ext.fft ins(%n : index) outs(%x, %y : {t}, {t}) : {t}, {t}"
    text = function(f"%x: {t}, %y: {t}", line, [t, t], "%r#0, %r#1")
    x = RNG.standard_normal(8) + 1j * RNG.standard_normal(8)
    found = computed(text, _write, x.real.astype(np.float32), x.imag.astype(np.float32))
    group = 1 << stage
    pairs = x.reshape(-1, 2, group // 2)
    turned = pairs[:, 1] * np.exp(-2j * np.pi * np.arange(group // 2) / group)
    wanted = np.stack([pairs[:, 0] + turned, pairs[:, 0] - turned], 1).reshape(-1)
    np.testing.assert_allclose(found[0] + 1j * found[1], wanted, rtol=1e-4, atol=1e-4)
    refused(
        text.replace("<8x", "<6x") if stage == 2 else text.replace("constant 1", "constant 0"),
        _write,
        "no groups of 4|no number from 1 on",
    )


def test_nests_know_how_long_loops_are() -> None:
    def step(module: ModuleOp, main: FuncOp) -> None:
        end = main.body.block.last_op
        assert end is not None
        x, y = main.args
        nest = Nest(end, [(x, [0, 1])])
        nest.also(y, [1, 2])
        assert nest.sizes([0, 1, 2]) == [3, 5, -1 << 63]
        out = nest.fold([(x, [0, 1]), (y, [1, 2])], [(nest.filled([0, 2], f32, 2), [0, 2])], [0, 2], [1], _product)[0]
        end.operands[0] = out

    def _product(b: Any) -> list[Any]:
        from xdsl.dialects import arith

        return [b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, b.args[0], b.args[1]))]

    text = function(
        "%x: tensor<3x?xf32>, %y: tensor<5x?xf32>",
        "%r = tensor.cast %y : tensor<5x?xf32> to tensor<?x?xf32>",
        ["tensor<?x?xf32>"],
    )
    x, y = normal(3, 5), normal(5, 4)
    main = main_of(after(text, lambda *_: None))
    assert len(main.args) == 2
    found: list[Any] = []

    def typed(module: ModuleOp, main: FuncOp) -> None:
        step(module, main)
        end = main.body.block.last_op
        assert end is not None
        found.append(str(end.operands[0].type))
        main.update_function_type()

    np.testing.assert_allclose(computed(text, typed, x, y)[0], 2 + x @ y, rtol=1e-4, atol=1e-5)
    assert found == ["tensor<3x?xf32>"]


def _attend(module: ModuleOp, main: FuncOp) -> None:
    expand_attention(module)


def _attention(result: str = "(m, n)") -> str:
    loops = "affine_map<(m, n, k, j) -> {}>"
    maps = ", ".join(loops.format(part) for part in ("(m, k)", "(j, k)", "(j, n)", "()", result))
    q, k, v, out = "tensor<3x4xf32>", "tensor<5x4xf32>", "tensor<5x2xf32>", "tensor<3x2xf32>"
    line = f"""%r = iree_linalg_ext.attention {{indexing_maps = [{maps}]}} ins(%q, %k, %v, %s : {q}, {k}, {v}, f32)
  outs(%e : {out}) {{
^bb0(%score: f32):
  iree_linalg_ext.yield %score : f32
}} -> {out}"""
    return function(f"%q: {q}, %k: {k}, %v: {v}, %s: f32, %e: {out}", line, [out])


def test_attention() -> None:
    q, k, v = normal(3, 4), normal(5, 4), normal(5, 2)
    powers = np.exp(0.3 * q @ k.T)
    found = computed(_attention(), _attend, q, k, v, np.float32(0.3), np.zeros((3, 2), np.float32))[0]
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)
    refused(_attention("(m, m)"), _attend, "is no list of loops")


def _flow(module: ModuleOp, main: FuncOp) -> None:
    expand_flow_tensors(module)


@pytest.mark.parametrize(
    ("line", "result", "wanted"),
    [
        (
            "%r = flow.tensor.reshape %x : tensor<3x4xf32> -> tensor<2x6xf32>",
            "tensor<2x6xf32>",
            lambda x: x.reshape(2, 6),
        ),
        (
            "%r = flow.tensor.bitcast %x : tensor<3x4xf32> -> tensor<12xi32>",
            "tensor<12xi32>",
            lambda x: x.reshape(12).view(np.int32),
        ),
        ("%r = flow.tensor.load %x[%i, %i] : tensor<3x4xf32>", "f32", lambda x: x[1, 1]),
        ("%r = flow.tensor.splat %s : tensor<2xf32>", "tensor<2xf32>", lambda x: np.full(2, 2.5, np.float32)),
        ("%r = flow.tensor.clone %x : tensor<3x4xf32>", "tensor<3x4xf32>", lambda x: x),
    ],
)
def test_ops_of_flow(line: str, result: str, wanted: Callable[[Any], Any]) -> None:
    x = normal(3, 4)
    text = function("%x: tensor<3x4xf32>, %s: f32, %i: index", line, [result])
    np.testing.assert_array_equal(computed(text, _flow, x, np.float32(2.5), np.array(1))[0], wanted(x))


def test_ops_of_flow_that_are_refused() -> None:
    line = "%r = flow.tensor.bitcast %x : tensor<3x4xf32> -> tensor<24xi16>"
    refused(
        function("%x: tensor<3x4xf32>", line, ["tensor<24xi16>"]),
        _flow,
        "elements of type f32 are no elements of type i16",
    )
