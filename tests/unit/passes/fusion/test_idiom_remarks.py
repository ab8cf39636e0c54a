"""A form that is nearly met is on record, and so is one that no kernel family takes; no pass loses one on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from xdsl.dialects import arith, linalg
from xdsl.dialects.func import FuncOp

import fuseline
from fuseline.analysis.idiom_watch import IdiomWatch
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic, yielded
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.fusion.driver import Partition, partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.idiom_remarks import IDIOM, idiom_name, near_idiom_remarks, near_stream_remarks
from fuseline.passes.fusion.rule import builtin_rules
from fuseline.phase_runner import run_phases
from fuseline.report.explain import explain_model, explain_node
from fuseline.report.op_remarks import op_remarks
from fuseline.report.remarks import RemarkFilter, jsonl_remarks, yaml_remarks
from fuseline.source_program import prepare
from fuseline.targets import create_target
from tests.graphs.onnx_text import onnx_model

from .programs import TARGET
from .test_streamed_softmax import attention

NEAR_SCAN = """
func.func @main(%x: tensor<6x32xf32>, %n: tensor<6x32xf32>) -> tensor<6x32xf32> {
  %e = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%x : tensor<6x32xf32>) outs(%n : tensor<6x32xf32>) {
  ^bb0(%a: f32, %s: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %counts = arith.cmpi sle, %j, %i : index
    %zero = arith.constant 0.0 : f32
    %v = arith.select %counts, %a, %zero : f32
    %t = arith.addf %s, %v : f32
    CHANGE
  } -> tensor<6x32xf32>
  return %e : tensor<6x32xf32>
}
"""


def _program(folder: Path, change: str) -> Path:
    path = folder / "near.mlir"
    path.write_text(NEAR_SCAN.replace("CHANGE", change), encoding="utf-8")
    return path


NEAR = "%h = arith.constant 0.5 : f32\n %u = arith.mulf %t, %h : f32\n linalg.yield %u : f32"


def test_a_form_that_is_nearly_met_is_remarked_on_everywhere(tmp_path: Path):
    program = fuseline.compile(_program(tmp_path, NEAR), target="cpu", threads=1)
    (remark,) = program.record.remarks
    assert (remark.rule, remark.code) == ("idiom", "near-scan") and "used or changed" in remark.detail
    assert program.stats["near_idioms"] == 1 and program.stats["idioms"] == {}
    for answer in (explain_model(program.record), explain_node(program.record, remark.op)):
        assert any("near-scan" in line and remark.detail in line for line in answer.lines)
        assert [told.code for told in answer.remarks] == ["near-scan"]
    (told,) = op_remarks(program.record)
    assert told.dispatch == program.record.dispatches[0].name
    text = yaml_remarks((), None, [told])
    assert (
        text.startswith("--- !Missed\n") and "'near-scan'" in text and told.dispatch in text and remark.detail in text
    )
    assert json.loads(jsonl_remarks((), None, [told]))["args"]["Detail"] == remark.detail


def test_the_form_itself_is_counted_and_not_remarked_on(tmp_path: Path):
    program = fuseline.compile(_program(tmp_path, "linalg.yield %t : f32"), target="cpu", threads=1)
    assert not program.record.remarks
    assert program.stats["near_idioms"] == 0 and program.stats["idioms"] == {"scan": 1}
    assert program.stats["fallbacks"] == 0


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (RemarkFilter(), 1),
        (RemarkFilter(code="near-"), 1),
        (RemarkFilter(code="cycle"), 0),
        (RemarkFilter(rule="idiom"), 1),
        (RemarkFilter(rule="row-chain"), 0),
        (RemarkFilter(node="nobody"), 0),
        (RemarkFilter(anything="near-scan"), 1),
        (RemarkFilter(verdicts=("fused",)), 0),
    ],
)
def test_remarks_on_ops_are_filtered_as_those_on_edges_are(tmp_path: Path, keep: RemarkFilter, kept: int):
    record = fuseline.compile(_program(tmp_path, NEAR), target="null").record
    assert yaml_remarks((), keep, op_remarks(record)).count("--- !Missed") == kept


def _running_sum() -> onnx.ModelProto:
    node = "[sum] y = CumSum<exclusive = 1, reverse = 1>(x, axis)"
    return onnx_model(f"(float[n, 4, 9] x) => (float[] y) {{ {node} }}", axis=np.int64(2))


def _scattered() -> onnx.ModelProto:
    node = '[put] y = ScatterElements<axis = 0, reduction = "add">(x, at, with)'
    ones = {"with": np.ones((3, 2), np.float32)}
    return onnx_model(f"(float[6, 2] x, int64[3, 2] at) => (float[] y) {{ {node} }}", ones)


def _largest() -> onnx.ModelProto:
    return onnx_model("(float[3, 17] x) => (float[] y, int64[] at) { [top] y, at = TopK(x, k) }", k=[4])


def _argument() -> onnx.ModelProto:
    return onnx_model("(float[n, 19] x) => (int64[] y) { [best] y = ArgMax<axis = 1, keepdims = 0>(x) }")


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "scan": _running_sum,
    "scatter": _scattered,
    "rank": _largest,
    "selection": _argument,
}


FAMILIES = {"rank": "order"}
"""The family that makes an idiom, where it has another name."""


@pytest.mark.parametrize("fusion", ["none", "default", "aggressive"])
@pytest.mark.parametrize("name", MODELS)
def test_what_a_model_asks_for_reaches_its_kernel_as_the_form_it_is(name: str, fusion: str):
    program = fuseline.compile(MODELS[name](), target="cpu", threads=1, fusion=fusion)
    assert program.stats["idioms"][name] >= 1
    assert any(FAMILIES.get(name, name) in dispatch.family.split("+") for dispatch in program.record.dispatches)
    assert program.stats["near_idioms"] == program.stats["fallbacks"] == 0


@pytest.mark.parametrize("name", MODELS)
def test_no_pass_loses_a_form(name: str):
    options = CompileOptions(threads=1, verify_each=True)
    module, ctx = prepare(MODELS[name](), options, create_target("cpu", 1))
    run_phases(module, ctx, options)


def test_a_pass_that_does_is_an_error_with_the_node():
    options = CompileOptions(threads=1)
    module, ctx = prepare(_running_sum(), options, create_target("cpu", 1))
    run_phases(module, ctx, options, until="padding")
    watch = IdiomWatch(module, ctx)
    watch.check(module)
    (op,) = [op for op in module.walk() if is_generic(op) and StructuredOp(op).reduction]
    total = yielded(op)[0]
    changed = arith.NegfOp(total)
    end = op.body.block.last_op
    assert isinstance(end, linalg.ops.YieldOp)
    op.body.block.insert_op_before(changed, end)
    end.operands[0] = changed.result
    with pytest.raises(FuselineError, match=r"E0901 \[sum\]: the scan is lost: the running result is used or changed"):
        watch.check(module)


def test_a_form_that_no_family_takes_is_a_fallback(tmp_path: Path):
    """What does not count adds one each time: the kernel, which passes over it, would not."""
    path = tmp_path / "ones.mlir"
    text = NEAR_SCAN.replace("CHANGE", "linalg.yield %t : f32").replace("constant 0.0", "constant 1.0")
    path.write_text(text, encoding="utf-8")
    program = fuseline.compile(path, target="cpu", threads=1)
    assert program.stats["idioms"] == {"scan": 1} and program.stats["fallbacks"] == 1
    (dispatch,) = program.record.dispatches
    assert dispatch.fallback["scan"].startswith("not-a-scan: ")
    codegen = [remark for remark in op_remarks(program.record) if remark.rule == "codegen"]
    assert {remark.code for remark in codegen} == {"loop-nest"} and any("scan refused: " in r.detail for r in codegen)
    assert any(
        "no kernel of its own: scan refused" in line for line in explain_node(program.record, dispatch.name).lines
    )


def _attention(keys: int | str, *also: str) -> onnx.ModelProto:
    nodes = (
        "[scores] scores = MatMul(x, k)  [softmax] weights = Softmax<axis = -1>(scores)"
        "  [product] y = MatMul(weights, v)"
    )
    results = ", ".join(f"float[] {name}" for name in ("y", *also))
    return onnx_model(f"(float[q, 32] x, float[32, {keys}] k, float[{keys}, 32] v) => ({results}) {{ {nodes} }}")


@pytest.mark.parametrize(
    ("keys", "also", "target", "remarked"),
    [
        ("n", ["weights"], "cpu", True),
        ("n", [], "cpu", False),
        (16, ["weights"], "cpu", False),
        ("n", [], "null", False),
    ],
)
def test_a_softmax_that_nearly_streams(keys: int | str, also: list[str], target: str, remarked: bool):
    """Only where the weights of any number of keys keep it from its product, on a target that could."""
    without = ["stored-rows"]  # which makes them one dispatch all the same
    record = fuseline.compile(_attention(keys, *also), target=target, threads=1, without_rules=without).record
    found = [remark for remark in record.remarks if remark.code == "near-online-softmax"]
    assert [remark.detail.startswith("something needs the weights as a whole") for remark in found] == [True] * remarked
    assert all("softmax" in remark.nodes for remark in found)


def _graph(change: str) -> FusionGraph:
    (function,) = [op for op in parse_module(NEAR_SCAN.replace("CHANGE", change), new_context()).ops]
    assert isinstance(function, FuncOp)
    return FusionGraph(function.body.block, ShapeAnalysis())


@pytest.mark.parametrize(
    ("change", "name", "codes"), [("linalg.yield %t : f32", "scan", []), (NEAR, "", ["near-scan"])]
)
def test_a_node_says_what_it_is_or_nearly_is(change: str, name: str, codes: list[str]):
    graph = _graph(change)
    (node,) = graph.nodes
    assert idiom_name(node) == name
    remarks = near_idiom_remarks([node, node])
    assert [(remark.rule, remark.code) for remark in remarks] == [(IDIOM, code) for code in codes] * 2
    for remark in remarks:
        assert (remark.op, remark.nodes) == (node.name, node.nodes) and "used or changed" in remark.detail
    assert not near_idiom_remarks([])


@pytest.mark.parametrize("also", [[], ["scores"], ["weights"]], ids=["alone", "scores too", "weights too"])
def test_a_softmax_apart_from_its_product_is_near(also: list[str]):
    """Only what needs the weights as a whole keeps a softmax from its product for good."""
    graph = FusionGraph(attention("q", "k", also=also).function.body.block, ShapeAnalysis())
    result = partition(graph, builtin_rules(), replace(TARGET, streamed_points=64))
    remarks = near_stream_remarks(graph, result)
    assert [remark.code for remark in remarks] == ["near-online-softmax"] * (also == ["weights"])
    for remark in remarks:
        (maximum,) = [node for node in graph.nodes if node.name == remark.op]
        (product,) = [node for node in graph.nodes if f"(before {node.name})" in remark.detail]
        assert maximum.iterators.count("reduction") == 1 and result.group_of[maximum] is not result.group_of[product]
        assert remark.nodes == maximum.nodes and product.heavy
    together = Partition(result.groups, dict.fromkeys(graph.nodes, result.groups[0]))
    assert not near_stream_remarks(graph, together)
