"""What the CPU refuses to see in one dispatch with a root."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fuseline.analysis.structured import kind
from fuseline.dispatch.arm_entries import split_arms
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map
from fuseline.ir.context import new_context
from fuseline.ir.flow import ExecutableOp
from fuseline.phase_runner import run_phases
from fuseline.pipeline import CompileOptions
from fuseline.report.records import CompileRecord
from fuseline.targets.cpu.families import families
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.target import CpuTarget
from fuseline.targets.target import Refusal
from tests.unit.passes.fusion.programs import Program

TARGET = CpuTarget("avx2", threads=2)
ROOTS = {"contraction", "convolution", "depthwise", "pooling"}


def _compiled(p: Program, *, asks: bool = True) -> tuple[CompileRecord, list[str]]:
    """The records, and the family of each arm that has a root; `asks` False: without the veto."""
    ctx = new_context()
    ctx.target = TARGET.description
    if asks:
        ctx.legal = TARGET.legal
    run_phases(p.module, ctx, CompileOptions())
    arms = [
        DispatchView(arm.entry)
        for op in p.module.ops
        if isinstance(op, ExecutableOp)
        for arm in split_arms(entry_of(op))
    ]
    return ctx.records, [_family(view) for view in arms if view.root is not None and _has_root(view)]


def _has_root(view: DispatchView) -> bool:
    return any(kind(op).value in ROOTS for op in view.members)


def _family(view: DispatchView) -> str:
    taken = (
        family.name
        for family in families(Policy(threads=2))
        if not isinstance(family.accepts(view, TARGET.machine), Refusal)
    )
    return next(taken)


def _slice_of_rows() -> Program:
    p = Program((32, 32), (32, 32))
    rows = p.softmax(p.x[0])
    return p.done(p.matmul(p.x[1], rows), p.binary(rows, rows), p.columns(rows, 4, 24))


def _concat_of_one_twice() -> Program:
    p = Program((64, 32), (32, 48))
    product = p.matmul(p.x[0], p.x[1])
    return p.done(p.concat(product, product))


def _concat_of_its_rows() -> Program:
    """A roll: slices of whole rows are views of what the product makes."""
    p = Program((64, 32), (32, 48))
    product = p.matmul(p.x[0], p.x[1])
    return p.done(p.concat(p.slice(product, [5, 0], [59, 48]), p.slice(product, [0, 0], [5, 48]), axis=0))


def _one_number_of_all() -> Program:
    p = Program((4, 8), (8, 8))
    product = p.matmul(p.x[0], p.x[1])
    rows = p.reduce(p.binary(product, p.reduce(product), dims_map(2, [0])))
    return p.done(product, p.reduce(rows))


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (_slice_of_rows, "result-moved"),
        (_concat_of_one_twice, "result-moved"),
        (_concat_of_its_rows, "result-moved"),
        (_one_number_of_all, "scalar-result"),
    ],
)
def test_a_root_is_not_left_to_the_loop_nest_for_the_sake_of_a_result(program: Callable[[], Program], code: str):
    _, before = _compiled(program(), asks=False)
    assert before == ["loop-nest"]  # what the veto is for: once a family takes it, the refusal can go
    record, after = _compiled(program())
    assert after and "loop-nest" not in after
    refused = [decision for decision in record.decisions if decision.code == "target"]
    assert refused and all(decision.detail.startswith(f"{code}: ") for decision in refused)


def _product_of_slices() -> Program:
    """Moved values that stay inside are no results."""
    p = Program((64, 32), (32, 48), (40, 16))
    return p.done(p.matmul(p.columns(p.matmul(p.x[0], p.x[1]), 4, 40), p.x[2]))


def _concat_of_two_of_one_block() -> Program:
    """A block of several parts lays its values side by side."""
    p = Program((64, 32), (32, 48))
    product = p.matmul(p.x[0], p.x[1])
    normed = p.binary(product, p.reduce(product), dims_map(2, [0]))
    return p.done(p.concat(normed, p.unary(normed)))


def _concat_of_arms() -> Program:
    p = Program((64, 32), (32, 48), (32, 16))
    return p.done(p.concat(p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2])))


def _moves_without_a_root() -> Program:
    p = Program((64, 32))
    return p.done(p.columns(p.pad(p.unary(p.x[0]), [1, 0], [1, 0]), 4, 8), p.reduce(p.reduce(p.x[0])))


@pytest.mark.parametrize(
    "program", [_product_of_slices, _concat_of_two_of_one_block, _concat_of_arms, _moves_without_a_root]
)
def test_what_the_families_take_is_not_refused(program: Callable[[], Program]):
    (without, _), (record, families_taken) = _compiled(program(), asks=False), _compiled(program())
    assert sorted(record.groups) == sorted(without.groups)
    assert "loop-nest" not in families_taken
    assert all(decision.code != "target" for decision in record.decisions)
