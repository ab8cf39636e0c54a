from dataclasses import replace

import pytest

from fuseline.passes.fusion.group import Group

from .programs import TARGET, Program


def _groups(p: Program, **limits: int) -> list[Group]:
    return p.partition(replace(TARGET, **limits)).groups


def _projections(count: int = 3) -> Program:
    p = Program((512, 64), *[(64, 32 + 16 * i) for i in range(count)])
    return p.done(*[p.matmul(p.x[0], w) for w in p.x[1:]])


def test_contractions_of_one_operand_are_arms():
    (group,) = _groups(_projections())
    assert len(group.arms) == 3


def test_arms_are_recorded_and_are_no_edges():
    arms = [d for d in _projections().partition().decisions if d.arms]
    assert [(d.verdict, d.rule) for d in arms] == [("fused", "shared-operand")] * 2


@pytest.mark.parametrize(("limit", "expected"), [(1, 5), (2, 3), (3, 2), (16, 1)])
def test_a_dispatch_has_no_more_arms_than_the_target_takes(limit: int, expected: int):
    assert len(_groups(_projections(5), arms_limit=limit)) == expected


def test_a_dispatch_binds_no_more_buffers_than_the_target_takes():
    assert len(_groups(_projections(4), binding_limit=5)) == 2


def test_what_depends_on_another_is_no_arm():
    p = Program((512, 64), (64, 64), (64, 64))
    first = p.matmul(p.x[0], p.x[1])
    p.done(first, p.matmul(p.binary(p.x[0], first), p.x[2]))
    assert all(not group.arms for group in _groups(p, roots_limit=1))


def test_elementwise_ops_over_one_space_and_small_ops_are_arms():
    p = Program((512, 256), (512, 256))
    assert len(_groups(p.done(p.unary(p.x[0]), p.unary(p.x[1])))) == 1
    p = Program((512, 256), (256, 256))
    assert len(_groups(p.done(p.unary(p.x[0]), p.unary(p.x[1])))) == 2
    p = Program((7, 5), (3,))
    assert len(_groups(p.done(p.unary(p.x[0]), p.unary(p.x[1])))) == 1
