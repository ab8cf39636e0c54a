"""Which way an `If` over sizes goes, as answers to `readable`; whole models are in test_onnx_one_way_branches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir
import pytest

from fuseline.frontends.onnx.assumptions import Assumptions
from fuseline.frontends.onnx.host_values import Value
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.tensors import known, known_sizes
from fuseline.ir.context import new_context
from fuseline.ir.dim import add, symbol
from fuseline.size_requirement import SizeRequirement
from tests.graphs.onnx_text import onnx_model

N = symbol("n", 0)
SCOPE: dict[str, Value] = {"n": known_sizes([N]), "k": known(np.array(5))}
BRANCHES = "<then_branch = t () => (a) { a = Identity(n) }, else_branch = e () => (b) { b = Identity(n) }>"


def _choice(comparison: str) -> ir.Node:
    text = f"(int64 n, int64 k) => (y) {{ c = {comparison}(n, k) y = If(c) {BRANCHES} }}"
    return list(ir.from_proto(onnx_model(text)).graph)[-1]


class _Asked:
    """Answers which ways can be read, and keeps what was asked."""

    def __init__(self, holds: bool, fails: bool) -> None:
        self.answers = {True: holds, False: fails}
        self.ways: list[Mapping[ir.Node, bool]] = []

    def __call__(self, ways: Mapping[ir.Node, bool]) -> bool:
        self.ways.append(dict(ways))
        return self.answers[list(ways.values())[-1]]


def _way(assumptions: Assumptions, node: ir.Node) -> tuple[bool | None, list[SizeRequirement]]:
    ctx = new_context()
    found = assumptions.way(node, SCOPE, Program(ctx), "if")
    return found, list(ctx.requirements.values())


MORE = SizeRequirement(N, add(5, 1), "if", relation="at_least")
OTHER = SizeRequirement(N, 5, "if", relation="differ")
NO_MORE = SizeRequirement(5, N, "if", relation="at_least")


@pytest.mark.parametrize(
    ("holds", "fails", "way", "required"),
    [
        (True, False, True, [MORE]),
        (False, True, False, [NO_MORE]),
        (True, True, None, []),
        (False, False, None, []),
    ],
)
def test_the_only_way_that_can_be_read(
    holds: bool, fails: bool, way: bool | None, required: list[SizeRequirement]
) -> None:
    asked, node, other = _Asked(holds, fails), _choice("Greater"), _choice("Less")
    assumptions = Assumptions({other: True}, asked)
    assert _way(assumptions, node) == (way, required)
    assert asked.ways == [{other: True, node: True}, {other: True, node: False}]  # together with what is taken so far
    again = _way(assumptions, node)
    assert again == (way, required)
    assert len(asked.ways) == (2 if way is not None else 4)  # what is settled is not asked again


def test_sizes_that_must_differ() -> None:
    node = _choice("Equal")
    assert _way(Assumptions({}, _Asked(False, True)), node) == (False, [OTHER])
    assert _way(Assumptions({}, _Asked(True, False)), node) == (True, [SizeRequirement(N, 5, "if")])


def test_while_a_way_is_tried_nothing_more_is_asked() -> None:
    node = _choice("Equal")
    assert _way(Assumptions({}), node) == (None, [])
    assert _way(Assumptions({node: False}), node) == (False, [OTHER])
    assert _way(Assumptions({node: True}), node) == (True, [SizeRequirement(N, 5, "if")])


def test_inside_of_what_may_never_run_nothing_is_assumed() -> None:
    node = _choice("Less")
    asked = _Asked(True, False)
    assumptions = Assumptions({}, asked)
    with assumptions.in_doubt():
        with assumptions.in_doubt():
            assert _way(assumptions, node) == (None, [])
        assert _way(assumptions, node) == (None, [])
        assert not asked.ways
    with pytest.raises(ValueError), assumptions.in_doubt():
        raise ValueError
    assert _way(assumptions, node)[0] is True


def test_a_condition_that_compares_no_sizes() -> None:
    asked = _Asked(True, False)
    assert _way(Assumptions({}, asked), _choice("Xor")) == (None, [])
    assert not asked.ways
