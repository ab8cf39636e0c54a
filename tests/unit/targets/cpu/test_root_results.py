"""Which results keep a dispatch around a root from its kernel, asked of candidates alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from xdsl.dialects import linalg
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.passes.dispatch.legality import GroupCandidate
from fuseline.passes.fusion.group import Group
from fuseline.targets.cpu.legality import refusal_of
from fuseline.targets.target import Refusal
from tests.unit.passes.fusion.programs import Program
from tests.unit.passes.fusion.test_rule_answers import graph_of

Results = Sequence[SSAValue]
CACHED_BYTES = 64 << 10


def _transposed(p: Program, value: SSAValue) -> SSAValue:
    """The transposition of a matrix."""
    init = p.empty(*p.shape(value)[::-1])
    return p.emit.add(linalg.ops.TransposeOp(value, init, DenseArrayBase.from_list(i64, [1, 0]), init.type)).results[0]


def _asked(
    p: Program, results: Results, arms: Sequence[Sequence[int]] = (), inlined: Sequence[int] = ()
) -> Refusal | None:
    """What is answered about all ops (numbered as in the program) as one dispatch, or as these arms."""
    groups = graph_of(p.done(*results))[1]
    nodes = [group.members[0] for group in groups]
    place = {node: loops for group in groups for node, loops in group.grid_loop_of.items()}

    def together(numbers: Sequence[int]) -> Group:
        members = [nodes[i] for i in numbers]
        return Group(members, (), {n: place[n] for n in members}, {nodes[i] for i in inlined if i in numbers})

    parts = tuple(together(arm) for arm in (arms or [range(len(nodes))]))
    return refusal_of(GroupCandidate(parts, ShapeAnalysis()), CACHED_BYTES)


def _code(found: Refusal | None) -> str | None:
    return None if found is None else found.code


def _with(move: Callable[[Program, SSAValue], SSAValue], *, normed: bool = False) -> str | None:
    """A product, perhaps over its rows, and what becomes of it."""
    p = Program((64, 32), (32, 48))
    made = p.matmul(p.x[0], p.x[1])
    made = p.binary(made, p.reduce(made), dims_map(2, [0])) if normed else made
    return _code(_asked(p, [move(p, made)]))


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize(
    ("move", "code"),
    [
        (lambda p, x: p.unary(x), None),
        (lambda p, x: p.columns(x, 4, 8), "result-moved"),
        (lambda p, x: p.pad(x, [0, 1], [0, 0]), "result-moved"),
        (lambda p, x: p.unary(p.columns(x, 4, 8)), None),
    ],
    ids=["computed", "sliced", "padded", "sliced inside"],
)
def test_a_result_is_computed_where_it_is_written(
    move: Callable[[Program, SSAValue], SSAValue], code: str | None, normed: bool
):
    assert _with(move, normed=normed) == code


@pytest.mark.parametrize(
    ("both", "columns", "code"),
    [(True, 128, None), (True, 129, "result-moved"), (False, 256, None), (False, 257, "result-moved")],
)
@pytest.mark.parametrize("normed", [False, True])
def test_what_is_made_may_leave_transposed_while_caches_hold_all_results(
    normed: bool, both: bool, columns: int, code: str | None
):
    p = Program((64, 32), (32, columns))
    made = p.matmul(p.x[0], p.x[1])
    made = p.binary(made, p.reduce(made), dims_map(2, [0])) if normed else made
    assert _code(_asked(p, [*([made] if both else []), _transposed(p, made)])) == code


def test_an_argument_is_transposed_apart_from_a_root():
    p = Program((64, 32), (32, 48))
    assert _code(_asked(p, [p.matmul(p.x[0], p.x[1]), _transposed(p, p.x[1])])) == "result-moved"


@pytest.mark.parametrize(("normed", "code"), [(False, "result-moved"), (True, None)])
def test_parts_of_one_block_lie_side_by_side(normed: bool, code: str | None):
    assert _with(lambda p, x: p.concat(x, p.unary(x)), normed=normed) == code


def test_a_part_from_elsewhere_is_copied():
    p = Program((64, 32), (32, 48), (64, 5))
    made = p.matmul(p.x[0], p.x[1])
    normed = p.binary(made, p.reduce(made), dims_map(2, [0]))
    assert _code(_asked(p, [p.concat(normed, p.x[2])])) == "result-moved"


@pytest.mark.parametrize(("normed", "code"), [(True, "scalar-result"), (False, "scalar-result")])
def test_one_number_of_all_blocks(normed: bool, code: str | None):
    assert _with(lambda p, x: p.reduce(p.reduce(x)), normed=normed) == code


def test_without_a_root_anything_goes():
    p = Program((64, 32))
    assert _asked(p, [p.columns(p.pad(p.unary(p.x[0]), [1, 0], [1, 0]), 4, 8), p.reduce(p.reduce(p.x[0]))]) is None


def test_the_refusal_says_what_is_left():
    p = Program((64, 32), (32, 48))
    found = _asked(p, [p.columns(p.matmul(p.x[0], p.x[1]), 0, 8)])
    assert found is not None and "tensor.extract_slice moves a result" in found.detail
    assert "left to the loop nest" in found.detail


def test_arms_are_asked_about_one_by_one():
    p = Program((64, 32), (32, 48), (32, 16))
    one, two = p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2])
    # products and a concat of both, which is an arm of its own: made by either product it would be refused
    assert _code(_asked(p, [p.concat(one, two)], arms=[[0], [1], [2]])) is None


def test_a_concat_of_one_other_arm_is_made_by_that():
    p = Program((64, 32), (32, 48))
    product = p.matmul(p.x[0], p.x[1])
    assert _code(_asked(p, [p.concat(product, product)], arms=[[0], [1]])) == "result-moved"
