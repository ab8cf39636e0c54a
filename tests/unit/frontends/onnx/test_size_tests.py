"""Conditions over sizes, read as requirements."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from fuseline.frontends.onnx.host_values import Value, known_value
from fuseline.frontends.onnx.size_tests import SizeTest, size_test
from fuseline.frontends.onnx.tensors import Tensor, known, known_sizes
from fuseline.ir.dim import add, evaluate, symbol
from fuseline.runtime.requirements import HOLDS
from fuseline.size_requirement import SizeRequirement
from tests.graphs.onnx_text import onnx_model

N = symbol("n", 0)
SCOPE: dict[str, Value] = {
    "n": known_sizes([N]),
    "five": known(np.array(5)),
    "small": known(np.array([[3]], np.uint8)),
    "half": known(np.array(0.5, np.float32)),
    "two": known_sizes([N, N]),
    "fed": Tensor(np.dtype(np.int64), ()),
    "text": known_value(np.array("a", object)),
}


def _test(nodes: str, name: str = "c") -> SizeTest | None:
    """The test that the value `name` is."""
    inputs = ", ".join(f"int64 {value}" for value in SCOPE)
    graph = ir.from_proto(onnx_model(f"({inputs}) => (c) {{ {nodes} }}")).graph
    value = next(out for node in graph for out in node.outputs if out.name == name)
    return size_test(value, SCOPE, "if")


def _holds(requirement: SizeRequirement, n: int) -> bool:
    left, right = evaluate(requirement.left, {"n": n}), evaluate(requirement.right, {"n": n})
    return HOLDS[requirement.relation](left, right)


ANSWERS = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}


@pytest.mark.parametrize("op_type", ANSWERS)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("negated", [False, True])
def test_either_way_is_required_of_every_size(op_type: str, swapped: bool, negated: bool) -> None:
    condition = f"d = {op_type}({'five, n' if swapped else 'n, five'}) c = {'Not' if negated else 'Identity'}(d)"
    found = _test(condition)
    assert found is not None and found.holds is not None and found.fails is not None
    assert {found.holds.node, found.fails.node} == {"if"}
    for n in range(12):
        answer = bool(ANSWERS[op_type](5, n) if swapped else ANSWERS[op_type](n, 5)) != negated
        assert (_holds(found.holds, n), _holds(found.fails, n)) == (answer, not answer)


def test_two_sizes_are_equal_or_differ() -> None:
    equal, other = _test("c = Equal(n, five)"), _test("d = Equal(n, five) c = Not(d)")
    same, apart = SizeRequirement(N, 5, "if"), SizeRequirement(N, 5, "if", "differ")
    assert equal == SizeTest(same, apart)
    assert other == SizeTest(apart, same)


@pytest.mark.parametrize("between", ["Cast<to = 9>", "Identity", "Squeeze", "Reshape", "Unsqueeze", "Not"])
def test_what_hands_a_condition_on(between: str) -> None:
    more = ", fed" if between in ("Reshape", "Unsqueeze") else ""
    found = _test(f"d = LessOrEqual(n, small) c = {between}(d{more})")
    holds, fails = SizeRequirement(3, N, "if", "at_least"), SizeRequirement(N, add(3, 1), "if", "at_least")
    assert found == (SizeTest(fails, holds) if between == "Not" else SizeTest(holds, fails))


@pytest.mark.parametrize(
    "nodes",
    [
        "c = Equal(n, fed)",
        "c = Equal(fed, n)",
        "c = Equal(n, two)",
        "c = Equal(n, half)",
        "c = Equal(n, text)",
        "d = Equal(n, five) c = And(d, d)",
        "d = Equal(n, fed) c = Not(d)",
        "c = com.example.Equal(n, five)",
    ],
)
def test_what_is_no_comparison_of_two_sizes(nodes: str) -> None:
    assert _test(nodes) is None


def test_a_condition_that_no_node_makes() -> None:
    assert size_test(None, SCOPE, "if") is None
    assert size_test(ir.from_proto(onnx_model("(bool c) => (y) { y = Not(c) }")).graph.inputs[0], SCOPE, "if") is None
