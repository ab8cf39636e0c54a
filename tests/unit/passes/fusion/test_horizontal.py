from dataclasses import replace

import pytest
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.group_order import GroupOrder
from fuseline.passes.fusion.horizontal import WAITING_SHARE, HorizontalMerge, Levels, concat_merge, level_merges
from tests.draws import RNG

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


def test_elementwise_ops_that_read_one_value_are_arms():
    """Whatever they run over; not what reduces."""
    p = Program((600, 256), (9, 100, 256), (256,))
    p.done(p.bias(p.x[0], p.x[2], 1), p.bias(p.x[1], p.x[2], 2))
    (group,) = _groups(p)
    assert len(group.arms) == 2
    q = Program((600, 256), (9, 100, 256), (256,))
    q.done(q.bias(q.x[0], q.x[2], 1), q.reduce(q.bias(q.x[1], q.x[2], 2)))
    assert len(_groups(q)) == 2


@pytest.mark.parametrize("large", [True, False])
@pytest.mark.parametrize("wanted", [True, False])
def test_what_computes_elements_of_what_a_root_reads_is_beside_it_if_it_is_wanted_next_or_small(
    wanted: bool, large: bool
):
    """A large copy that is read late would only lie there."""
    most = TARGET.costs.cached_bytes // WAITING_SHARE // 4
    columns, count = (int(RNG.integers(40, 200)) for _ in range(2))
    rows = most // columns + int(RNG.integers(1, 300)) if large else int(RNG.integers(40, most // columns + 1))
    p = Program((rows, columns), (columns, columns), (columns, count), (count, rows))
    side, chain = p.unary(p.x[0]), p.matmul(p.x[0], p.x[1])
    for _ in range(int(RNG.integers(2, 5))):
        chain = p.matmul(p.unary(chain), p.x[1])
    last = p.matmul(p.binary(side, chain), p.x[2])
    groups = _groups(p.done(last, p.matmul(p.x[3], side) if wanted else side), roots_limit=1)
    arms = [sorted(arm.root.kind.value for arm in group.arms) for group in groups if group.arms]
    assert arms == ([["contraction", "elementwise"]] if wanted or not large else [])


def _order(p: Program) -> tuple[dict[str, list[Group]], GroupOrder]:
    """The groups of one op each, by kind."""
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    group_of = {node: Group.of(node) for node in graph.nodes}
    by_kind: dict[str, list[Group]] = {}
    for node, group in group_of.items():
        by_kind.setdefault(node.kind.value, []).append(group)
    return by_kind, GroupOrder(group_of.values(), group_of)


@pytest.mark.parametrize("limit", range(1, 7))
def test_a_group_is_an_arm_of_one_dispatch(limit: int):
    """Small groups with a root go beside products of what one of them reads; what reads the operand of that root, and
    finds no room beside all of them, stays alone."""
    p = Program((8, 16), (16, 4096), (16, 5000), (4, 4), (4, 4), (6000, 4, 4))
    roots = [p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2]), p.matmul(p.x[3], p.x[4])]
    elementwise = [p.unary(p.x[0]), p.binary(p.x[5], p.x[3], dims_map(3, [1, 2]))]
    groups, order = _order(p.done(*map(p.unary, (*roots, *elementwise))))
    first = [group for kind in groups.values() for group in kind if not order.producers(group)]
    every = [group for kind in groups.values() for group in kind]
    merges = level_merges(every, order, TARGET, lambda merge: len(merge.groups) <= limit)
    arms = [arm for merge in merges for arm in merge.groups]
    assert len(first) == 5 and len(arms) == len(set(arms))
    assert all(len(merge.groups) <= limit for merge in merges)


@pytest.mark.parametrize(
    ("limits", "code"), [({"arms_limit": 3}, "arms-limit"), ({"binding_limit": 8}, "binding-limit")]
)
def test_an_arm_beyond_the_limits_of_the_target_is_recorded(limits: dict[str, int], code: str):
    """Products of one operand: a new dispatch begins where one is full, and the record says why."""
    count = int(RNG.integers(4, 12))
    p = Program((64, 32), *[(32, 16 * i) for i in range(1, count + 1)])
    found = p.done(*[p.matmul(p.x[0], w) for w in p.x[1:]]).partition(replace(TARGET, **limits))
    most = limits.get("arms_limit", 3)  # each arm binds its weight and its result
    assert sorted(len(group.arms or (group,)) for group in found.groups) == sorted(
        min(most, count - first) for first in range(0, count, most)
    )
    apart = [d for d in found.decisions if d.arms and d.verdict == "missed"]
    assert {d.code for d in apart} == ({code} if len(found.groups) > 1 else set())
    assert len(apart) >= len(found.groups) - 1
    assert all(d.numbers and d.at == d.consumer for d in apart)


def test_readers_that_may_not_be_joined_have_no_depth():
    """Those that a plan holds: what others make for them is joined all the same."""
    p = Program((64, 32), *[(32, 16 * i) for i in (1, 2, 3)])
    made = [p.matmul(p.x[0], w) for w in p.x[1:]]
    groups, order = _order(p.done(*map(p.unary, made)))
    (merge,) = level_merges(groups["contraction"], order, replace(TARGET, roots_limit=3), lambda merge: True)
    assert merge.rule == "shared-operand" and {*merge.groups} == {*groups["contraction"]}


def test_a_concat_of_arguments_has_nobody_to_write_it():
    p = Program((4, 8), (4, 8))
    groups, order = _order(p.done(p.concat(p.x[0], p.x[1])))
    (concat,) = groups["concat"]
    refusal = concat_merge(concat, order)
    assert isinstance(refusal, WhyNot)
    words = "no part of the concat is made by a dispatch that could write it in place"
    assert (refusal.code, refusal.detail, refusal.at) == ("no-rule", words, concat.root.name)


def test_one_writer_of_several_is_left_to_write_in_place():
    """The concat is memory then, and needs no dispatch; parts side by side are copied, which the last writer does."""
    for axis in (0, 1):
        p = Program((4, 8))
        first = p.unary(p.x[0])
        groups, order = _order(p.done(p.concat(first, p.unary(first), axis=axis)))
        (concat,), (_, last) = groups["concat"], groups["elementwise"]
        waits = WhyNot("cycle", "the parts of the concat depend on each other", concat.root.name)
        assert concat_merge(concat, order) == (HorizontalMerge("concat-slices", (last, concat)) if axis else waits)


def test_one_writer_beside_parts_of_arguments_copies_them():
    """The first part waits for nothing, the last one for it; an argument lies elsewhere, whatever the axis."""
    for axis in (0, 1):
        p = Program((4, 8), (4, 8))
        first = p.unary(p.x[0])
        groups, order = _order(p.done(p.concat(first, p.x[1], p.unary(first), axis=axis)))
        (concat,), (_, last) = groups["concat"], groups["elementwise"]
        assert concat_merge(concat, order) == HorizontalMerge("concat-slices", (last, concat))


def test_a_concat_of_more_parts_than_arms_is_told():
    p = Program((64, 32), *[(32, 16)] * 4)
    p.done(p.concat(*(p.matmul(p.x[0], w) for w in p.x[1:])))
    limited = replace(TARGET, arms_limit=3, roots_limit=1)
    refused = {(d.rule, d.code, d.detail, d.at == d.consumer) for d in p.partition(limited).decisions if not d.arms}
    assert refused == {("concat-slices", "arms-limit", "4 arms, the target takes 3", True)}
    assert all(d.numbers == {"arms": 4.0} for d in p.partition(limited).decisions if not d.arms)
    assert len(p.partition(replace(limited, arms_limit=4)).groups) == 1


def test_a_concat_is_written_by_those_that_no_path_connects():
    """`n3` waits for `n1`, which stays outside, so that the others can run side by side."""
    p = Program((4, 8), (4, 8))
    first, other = p.unary(p.x[0]), p.unary(p.x[1])
    groups, order = _order(p.done(p.concat(first, p.unary(first), other)))
    (concat,) = groups["concat"]
    join = concat_merge(concat, order)
    assert isinstance(join, HorizontalMerge)
    assert {group.root.nodes for group in join.groups[:-1]} == {("n2",), ("n3",)}
    assert join.groups[-1] is concat
    assert all(concat_merge(group, order) is None for group in groups["elementwise"])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("parts", [3, 5, 8])
def test_those_that_lead_to_no_other_part_write_a_concat(parts: int, axis: int):
    """Parts of arguments, or of earlier parts: what another one waits for runs before."""
    p = Program(*[(4, 8)] * parts)
    made, waited = list[SSAValue](), set[int]()
    for number in range(parts):
        source = int(RNG.integers(0, number + 1))
        made.append(p.unary(made[source] if source < number else p.x[number]))
        waited |= {source} - {number}
    groups, order = _order(p.done(p.concat(*(made[int(at)] for at in RNG.permutation(parts)), axis=axis)))
    (concat,) = groups["concat"]
    join, last = concat_merge(concat, order), set(range(parts)) - waited
    if len(last) == 1 and axis == 0:
        assert isinstance(join, WhyNot) and join.code == "cycle"
        return
    assert isinstance(join, HorizontalMerge) and join.groups[-1] is concat
    written = {made.index(value) for group in join.groups[:-1] for value in group.root.op.results}
    assert written == last


def test_depth_is_the_longest_way_from_the_inputs():
    p = Program((4, 8))
    first = p.unary(p.x[0])
    groups, order = _order(p.done(p.binary(p.unary(p.unary(first)), first), p.unary(p.x[0])))
    named = {group.root.nodes[0]: group for group in groups["elementwise"]}
    depth = Levels([named["n4"], named["n5"]], order).depth
    assert {name: depth[group] for name, group in named.items()} == {"n1": 0, "n2": 1, "n3": 2, "n4": 3, "n5": 0}


@pytest.mark.parametrize("sums", [False, True])
def test_sums_over_one_space_are_no_arms(sums: bool):
    """They walk rows of their own; only what is elementwise throughout is joined for its space."""
    q = Program((512, 256), (512, 256))
    q.done(*(q.reduce(x) if sums else q.unary(x) for x in q.x))
    assert len(_groups(q)) == (2 if sums else 1)


@pytest.mark.parametrize(("more", "expected"), [(0, 1), (1, 2)])
def test_small_is_what_one_thread_does_at_once(more: int, expected: int):
    limit = TARGET.costs.serial_elements
    p = Program((limit + more,), (limit // 2,))
    assert len(_groups(p.done(p.unary(p.x[0]), p.unary(p.x[1])))) == expected


@pytest.mark.parametrize(("shape", "groups"), [(("n",), 1), (("n", 1), 1), (("n", "m"), 2), (("n", 5), 2)])
def test_sizes_without_a_bound_are_small_along_one_axis_alone(shape: tuple[int | str, ...], groups: int):
    p = Program(shape, (3,))
    assert len(p.done(p.unary(p.x[0]), p.unary(p.x[1])).partition().groups) == groups
