"""What each rule answers about a pair of groups, word for word: the reason, what it tells, where, and the numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.checked_rule import structural_refusal
from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.rule import FusionRule, Merge, Shape
from fuseline.passes.fusion.rules.channel_window import ChannelWindow
from fuseline.passes.fusion.rules.elementwise_cluster import ElementwiseCluster
from fuseline.passes.fusion.rules.elementwise_epilogue import ElementwiseEpilogue
from fuseline.passes.fusion.rules.read_in_place import ReadInPlace
from fuseline.passes.fusion.rules.root_chain import RootChain
from fuseline.passes.fusion.rules.row_chain import RowChain
from fuseline.passes.fusion.rules.slice_epilogue import SliceEpilogue

from .programs import TARGET, Program
from .rule_programs import (
    collapsed_sum,
    collapsed_window,
    columns_summed_and_spread,
    exp_also_returned,
    exp_and_product,
    exp_and_slice,
    exp_and_sum,
    exp_and_window,
    exp_spread,
    exp_spread_over_both_sides,
    exp_spread_over_rows,
    exp_spread_without_bound,
    exps_collapsed,
    graph_of,
    product_and_convolution,
    product_and_exp,
    product_and_product,
    product_and_slice,
    product_and_sum,
    product_and_sum_without_bound,
    product_and_window,
    product_collapsed,
    product_regrouped_and_slice,
    product_spread,
    product_turned,
    slice_and_exp,
    sum_and_spread,
    sums_collapsed,
    two_exps,
    window_and_product,
    window_and_window,
)

TILED = replace(TARGET, tile_multiples=(("M", 8), ("N", 16)))
SMALL = replace(TARGET, scratch_bytes_limit=64)
REGROUPED = "a reshape regroups the dimensions"
NOT_MINE = NotApplicable()


@dataclass(frozen=True)
class Refused:
    """A refusal at the node of that place in the program (-1: the last)."""

    code: str
    detail: str
    at: int = -1
    numbers: dict[str, float] = field(default_factory=dict[str, float])


SCRATCH = Refused(
    "scratch", "1,600 bytes of scratch, the target allows 64", numbers={"scratch_bytes": 1600, "limit_bytes": 64}
)

CASES: list[tuple[FusionRule, Callable[[], Program], TargetDescription, Refused | Legal | NotApplicable]] = [
    (ElementwiseEpilogue(), product_and_exp, TARGET, Legal()),
    (
        ElementwiseEpilogue(),
        product_collapsed,
        TARGET,
        Refused("reshape-between", "a reshape regroups the root's dimensions"),
    ),
    (
        ElementwiseEpilogue(),
        product_turned,
        TARGET,
        Refused("indexing-map", "the reads do not map the root's parallel loops one to one"),
    ),
    (
        ElementwiseEpilogue(),
        product_spread,
        TARGET,
        Refused("broadcast", "the consumer has parallel loops that the root lacks"),
    ),
    (ElementwiseEpilogue(), two_exps, TARGET, NOT_MINE),
    (ElementwiseEpilogue(), product_and_sum, TARGET, NOT_MINE),
    (ElementwiseEpilogue(), sum_and_spread, TARGET, NOT_MINE),
    (ElementwiseCluster(), two_exps, TARGET, Legal()),
    (ElementwiseCluster(), exps_collapsed, TARGET, Refused("reshape-between", REGROUPED)),
    (ElementwiseCluster(), exp_spread, TARGET, NOT_MINE),
    (ElementwiseCluster(), exp_and_sum, TARGET, NOT_MINE),
    (ElementwiseCluster(), product_and_exp, TARGET, NOT_MINE),
    (RowChain(), exp_and_sum, TARGET, Legal({"scratch_bytes": 0.0, "grid_loops": 1.0})),
    (RowChain(), product_and_exp, TARGET, NOT_MINE),
    (RowChain(), exp_and_product, TARGET, NOT_MINE),
    (RowChain(), sums_collapsed, TARGET, Refused("reshape-between", REGROUPED)),
    (RowChain(), sum_and_spread, TARGET, Legal({"scratch_bytes": 0.0, "grid_loops": 1.0})),
    (RowChain(), columns_summed_and_spread, TARGET, Legal({"scratch_bytes": 0.0, "grid_loops": 2.0})),
    (RowChain(), exp_spread_over_rows, TARGET, Legal({"scratch_bytes": 0.0, "grid_loops": 1.0})),
    (
        RowChain(),
        exp_spread_over_both_sides,
        TARGET,
        Legal({"scratch_bytes": 0.0, "grid_loops": 1.0}),
    ),
    (
        RootChain(),
        product_and_sum_without_bound,
        TARGET,
        Refused("unbounded-size", "the scratch depends on a size without an upper bound"),
    ),
    (RootChain(), product_and_product, SMALL, SCRATCH),
    (RootChain(), product_and_sum, TARGET, Legal({"scratch_bytes": 1600.0, "grid_loops": 1.0})),
    (RootChain(), two_exps, TARGET, NOT_MINE),
    (RootChain(), exp_and_product, TARGET, NOT_MINE),
    (RootChain(), product_and_exp, TARGET, NOT_MINE),
    (
        RootChain(),
        product_and_product,
        replace(TARGET, roots_limit=1),
        Refused("roots-limit", "2 roots, the target runs 1 in a dispatch", numbers={"roots": 2.0}),
    ),
    (
        RootChain(),
        product_and_sum,
        replace(TARGET, roots_limit=1),
        Refused("roots-limit", "1 roots, the target runs 1 in a dispatch", numbers={"roots": 1.0}),
    ),
    (RootChain(), collapsed_sum, TARGET, Refused("reshape-between", REGROUPED)),
    (RootChain(), product_and_window, TARGET, NOT_MINE),
    (RootChain(), window_and_window, TARGET, NOT_MINE),
    (RootChain(), product_and_convolution, TARGET, Refused("two-roots", "{0} and {1} are roots over different loops")),
    (ChannelWindow(), product_and_window, TARGET, Legal({"scratch_bytes": 2176.0, "grid_loops": 1.0})),
    (ChannelWindow(), product_and_exp, TARGET, NOT_MINE),
    (ChannelWindow(), window_and_product, TARGET, NOT_MINE),
    (ChannelWindow(), exp_and_window, TARGET, NOT_MINE),
    (ChannelWindow(), window_and_window, TARGET, Refused("two-roots", "{0} and {1} are roots over different loops")),
    (
        ChannelWindow(),
        product_and_window,
        replace(TARGET, roots_limit=1),
        Refused("roots-limit", "2 roots, the target runs 1 in a dispatch", numbers={"roots": 2.0}),
    ),
    (
        ChannelWindow(),
        product_and_window,
        replace(TARGET, image_bytes_limit=2175),
        Refused(
            "scratch",
            "2,176 bytes of scratch, the target allows 2,175",
            numbers={"scratch_bytes": 2176, "limit_bytes": 2175},
        ),
    ),
    (ChannelWindow(), collapsed_window, TARGET, Refused("reshape-between", REGROUPED)),
    (RootChain(), window_and_product, TARGET, Legal({"scratch_bytes": 576.0, "grid_loops": 1.0})),
    (ReadInPlace(), two_exps, TARGET, Legal({"recompute": 1.0})),
    (
        ReadInPlace(),
        exp_also_returned,
        TARGET,
        Refused("multi-use", "other ops read the producer too, so it has to be stored"),
    ),
    (ReadInPlace(), exps_collapsed, TARGET, Refused("reshape-between", REGROUPED)),
    (
        ReadInPlace(),
        exp_spread,
        TARGET,
        Refused("recompute", "each element would be computed 4096 times", numbers={"recompute": 4096.0}),
    ),
    (
        ReadInPlace(),
        exp_spread_without_bound,
        TARGET,
        Refused("recompute", "each element would be computed an unknown number of times"),
    ),
    (ReadInPlace(), slice_and_exp, TARGET, Legal()),
    (ReadInPlace(), product_and_exp, TARGET, NOT_MINE),
    (SliceEpilogue(), product_and_slice, TILED, Legal()),
    (SliceEpilogue(), product_and_slice, TARGET, NOT_MINE),
    (SliceEpilogue(), product_and_exp, TILED, NOT_MINE),
    (SliceEpilogue(), exp_and_slice, TILED, NOT_MINE),
    (SliceEpilogue(), product_regrouped_and_slice, TILED, Refused("reshape-between", REGROUPED)),
]


def expected(wanted: Refused | Legal | NotApplicable, groups: list[Group]) -> Answer:
    """The answer with the names of the ops."""
    if not isinstance(wanted, Refused):
        return wanted
    names = [group.root.name for group in groups]
    return WhyNot(wanted.code, wanted.detail.format(*names), names[wanted.at], wanted.numbers)


@pytest.mark.parametrize(
    ("rule", "program", "target", "wanted"),
    CASES,
    ids=lambda value: getattr(value, "name", getattr(value, "__name__", "")),
)
def test_an_answer_word_for_word(
    rule: FusionRule, program: Callable[[], Program], target: TargetDescription, wanted: Refused | Legal | NotApplicable
):
    graph, groups = graph_of(program())
    first, *_, last = groups
    assert rule.matches(Merge(first, last, target), graph) == expected(wanted, groups)


@pytest.mark.parametrize(
    ("program", "shape", "target", "wanted"),
    [
        (
            exp_also_returned,
            Shape.INLINE_PRODUCER,
            TARGET,
            Refused("multi-use", "other ops read the producer too, so it has to be stored"),
        ),
        (
            product_and_exp,
            Shape.INLINE_PRODUCER,
            TARGET,
            Refused("recompute", "a reduction read in place would be done again for each element"),
        ),
        (two_exps, Shape.INLINE_PRODUCER, SMALL, None),
        (product_and_product, Shape.SHARED, SMALL, SCRATCH),
        (product_and_product, Shape.CUT, SMALL, SCRATCH),
        (product_and_product, Shape.SHARED, replace(TARGET, roots_limit=2), None),
        (
            product_and_product,
            Shape.SHARED,
            replace(TARGET, roots_limit=1),
            Refused("roots-limit", "2 roots, the target runs 1 in a dispatch", numbers={"roots": 2.0}),
        ),
    ],
)
def test_what_no_rule_may_overlook(
    program: Callable[[], Program], shape: Shape, target: TargetDescription, wanted: Refused | None
):
    _, groups = graph_of(program())
    refusal = structural_refusal(Merge(groups[0], groups[-1], target), shape)
    assert refusal == (expected(wanted, groups) if wanted is not None else None)
