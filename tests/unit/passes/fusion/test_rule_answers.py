"""What each rule answers about a pair of groups, word for word: the reason, what it tells, where, and the numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.ir.build import dims_map
from fuseline.ir.costs import MachineCosts
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.checked_rule import structural_refusal
from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import align, inline_into, merged
from fuseline.passes.fusion.rule import FusionRule, Merge, Shape, builtin_rules
from fuseline.passes.fusion.rules import row_chain
from fuseline.passes.fusion.rules.channel_window import ChannelWindow
from fuseline.passes.fusion.rules.elementwise_cluster import ElementwiseCluster
from fuseline.passes.fusion.rules.elementwise_epilogue import ElementwiseEpilogue
from fuseline.passes.fusion.rules.read_in_place import ReadInPlace, read_multiplicity, recompute_factor
from fuseline.passes.fusion.rules.root_chain import RootChain
from fuseline.passes.fusion.rules.row_chain import RowChain
from fuseline.passes.fusion.rules.slice_epilogue import SliceEpilogue

from .programs import TARGET, Program

TILED = replace(TARGET, tile_multiples=(("M", 8), ("N", 16)))
SMALL = replace(TARGET, scratch_bytes_limit=64)
REGROUPED = "a reshape regroups the dimensions"
NOT_MINE = NotApplicable()


def graph_of(p: Program) -> tuple[FusionGraph, list[Group]]:
    """The groups of one op each, in program order."""
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    return graph, [Group.of(node) for node in sorted(graph.nodes, key=lambda node: node.position)]


@dataclass(frozen=True)
class Refused:
    """A refusal at the node of that place in the program (-1: the last)."""

    code: str
    detail: str
    at: int = -1
    numbers: dict[str, float] = field(default_factory=dict[str, float])


def product_collapsed() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.unary(p.collapse(p.matmul(p.x[0], p.x[1]))))


def product_turned() -> Program:
    p = Program((64, 32), (32, 64))
    m = p.matmul(p.x[0], p.x[1])
    return p.done(p.binary(m, m, dims_map(2, [1, 0])))


def product_spread() -> Program:
    p = Program((64, 32), (32, 48), (10, 64, 48))
    return p.done(p.binary(p.x[2], p.matmul(p.x[0], p.x[1]), dims_map(3, [1, 2])))


def product_and_exp() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.unary(p.matmul(p.x[0], p.x[1])))


def product_and_sum() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.reduce(p.matmul(p.x[0], p.x[1])))


def product_and_product() -> Program:
    p = Program((64, 32), (32, 48), (48, 16))
    return p.done(p.matmul(p.matmul(p.x[0], p.x[1]), p.x[2]))


def product_and_window() -> Program:
    p = Program((66, 16), (16, 24), (3, 24))
    return p.done(p.depthwise(p.matmul(p.x[0], p.x[1]), p.x[2]))


def product_and_convolution() -> Program:
    p = Program((66, 16), (16, 24), (3, 24, 8))
    return p.done(p.convolution(p.matmul(p.x[0], p.x[1]), p.x[2]))


def window_and_window() -> Program:
    p = Program((66, 24), (3, 24), (3, 24))
    return p.done(p.depthwise(p.depthwise(p.x[0], p.x[1]), p.x[2]))


def collapsed_window() -> Program:
    p = Program((64, 16), (16, 48), (3, 24))
    return p.done(p.depthwise(p.expand(p.collapse(p.matmul(p.x[0], p.x[1])), 128, 24), p.x[2]))


def window_and_product() -> Program:
    p = Program((66, 16), (3, 16), (16, 8))
    return p.done(p.matmul(p.depthwise(p.x[0], p.x[1]), p.x[2]))


def collapsed_sum() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.reduce(p.collapse(p.matmul(p.x[0], p.x[1]))))


def two_exps() -> Program:
    p = Program((64, 32))
    return p.done(p.unary(p.unary(p.x[0])))


def exps_collapsed() -> Program:
    p = Program((64, 32))
    return p.done(p.unary(p.collapse(p.unary(p.x[0]))))


def exp_spread() -> Program:
    p = Program((4, 4096), (4,))
    return p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [0])))


def exp_spread_without_bound() -> Program:
    p = Program((4, "n"), (4,))
    return p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [0])))


def exp_spread_over_rows() -> Program:
    p = Program((640, 384), (384,))
    return p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [1])))


def exp_spread_over_both_sides() -> Program:
    p = Program((64, 38, 40), (38,))
    return p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(3, [1])))


def exp_and_sum() -> Program:
    p = Program((64, 32))
    return p.done(p.reduce(p.unary(p.x[0])))


def product_and_sum_without_bound() -> Program:
    p = Program((64, 32), (32, "n"))
    return p.done(p.reduce(p.matmul(p.x[0], p.x[1])))


def sum_and_spread() -> Program:
    p = Program((64, 32), (64, 32))
    return p.done(p.binary(p.x[1], p.reduce(p.x[0]), dims_map(2, [0])))


def columns_summed_and_spread() -> Program:
    p = Program((64, 56, 32))
    return p.done(p.binary(p.x[0], p.reduce(p.x[0], axis=1), dims_map(3, [0, 2])))


def sums_collapsed() -> Program:
    p = Program((4, 64, 32))
    return p.done(p.unary(p.collapse(p.reduce(p.x[0]))))


def exp_and_product() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.matmul(p.unary(p.x[0]), p.x[1]))


def exp_and_window(pixels: int = 32) -> Program:
    p = Program((pixels, 16), (3, 16))
    return p.done(p.depthwise(p.unary(p.x[0]), p.x[1]))


def exp_read_twice() -> Program:
    p = Program((64, 64))
    e = p.unary(p.x[0])
    return p.done(p.binary(e, e, dims_map(2, [1, 0])))


def exp_also_returned() -> Program:
    p = Program((64, 32))
    e = p.unary(p.x[0])
    return p.done(p.unary(e), e)


def slice_and_exp() -> Program:
    p = Program((64, 96))
    return p.done(p.unary(p.columns(p.x[0], 32, 32)))


def product_and_slice() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.columns(p.matmul(p.x[0], p.x[1]), 0, 45))


def product_regrouped_and_slice() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.columns(p.expand(p.collapse(p.matmul(p.x[0], p.x[1])), 32, 96), 0, 45))


def exp_and_slice() -> Program:
    p = Program((64, 32))
    return p.done(p.columns(p.unary(p.x[0]), 0, 30))


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


def test_a_root_evaluates_what_it_reads_for_each_block_of_its_result():
    """As often as there are blocks of 48 columns, and is told how long that takes beyond once."""
    graph, (exp, product) = graph_of(exp_and_product())
    answer = ReadInPlace().matches(Merge(exp, product, TARGET), graph)
    assert isinstance(answer, Legal) and list(answer.numbers) == ["evaluation_ns"]
    (view, chain) = product.root.structured, {exp.root.op}
    assert view is not None
    found = graph.prologues.through(view, 0, graph.prologues.chain(view, 0, chain))
    once = found.operations * TARGET.costs.operation_ns
    assert found.kind == "packed"
    assert answer.numbers["evaluation_ns"] == pytest.approx(
        64 * 32 * (found.recompute * (once + TARGET.costs.packing_ns) - once)
    )


def test_rows_that_lie_across_memory_cost_what_gathering_does():
    """The same product of the operand as stored and of its transpose, whose rows are too long for a box: the difference
    is one element's price."""
    answers: list[Legal] = []
    for axes in ([0, 2], [2, 0]):
        p = Program([(40, 4000), (4000, 40)][axes[0] // 2], (4000, 48))
        maps = [dims_map(3, axes), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
        p.done(p.multiply_add(p.unary(p.x[0]), p.x[1], p.zeros(40, 48), maps, "ppr"))
        graph, (exp, product) = graph_of(p)
        answer = ReadInPlace().matches(Merge(exp, product, TARGET), graph)
        assert isinstance(answer, Legal)
        answers.append(answer)
    along, across = (answer.numbers["evaluation_ns"] for answer in answers)
    assert across - along == pytest.approx(40 * 4000 * (TARGET.costs.gathering_ns - TARGET.costs.packing_ns))


def test_the_blocks_are_those_of_the_target():
    """A product of 4 blocks of 64 columns, or 2 of 128."""
    p = Program((64, 32), (32, 256))
    p.done(p.matmul(p.unary(p.x[0]), p.x[1]))
    wide = replace(TARGET, costs=MachineCosts(block_uses=128))
    graph, (exp, product) = graph_of(p)
    numbers: list[float] = []
    for target in (TARGET, wide):
        answer = ReadInPlace().matches(Merge(exp, product, target), graph)
        assert isinstance(answer, Legal)
        numbers.append(answer.numbers["evaluation_ns"])
    assert numbers[0] > numbers[1] > 0


def test_a_window_evaluates_a_line_of_what_it_reads():
    """Each element once: what is told is what putting it into scratch takes."""
    graph, (exp, window) = graph_of(exp_and_window())
    answer = ReadInPlace().matches(Merge(exp, window, TARGET), graph)
    assert isinstance(answer, Legal)
    assert answer.numbers["evaluation_ns"] == pytest.approx(32 * 16 * TARGET.costs.packing_ns)


def test_a_window_does_not_evaluate_a_line_beyond_the_scratch():
    graph, (exp, window) = graph_of(exp_and_window(1000))
    answer = ReadInPlace().matches(Merge(exp, window, TARGET), graph)
    assert isinstance(answer, WhyNot)
    assert (answer.code, answer.at, answer.numbers) == ("recompute", window.root.name, {})
    assert answer.detail


@pytest.mark.parametrize(
    ("program", "times"),
    [(two_exps, 1.0), (exp_spread, 4096.0), (exp_read_twice, 1.0), (exp_spread_without_bound, float("inf"))],
)
def test_how_often_an_element_is_read(program: Callable[[], Program], times: float):
    _, groups = graph_of(program())
    reads = list(groups[-1].reads_from(groups[0]))
    assert [read_multiplicity(read) for read in reads] == [times] * len(reads)
    assert recompute_factor(reads) == times


def test_readers_that_each_compute_it_add_up():
    p = Program((4, 16), (4,))
    e = p.unary(p.x[1])
    _, (exp, one, two) = graph_of(p.done(p.binary(p.x[0], e, dims_map(2, [0])), p.unary(e)))
    both = merged(one, two, align(one, two))
    assert recompute_factor(both.reads_from(exp)) == 16 + 1


def test_an_unknown_number_of_rows_is_no_matter_where_each_element_is_read_once():
    p = Program(("n", 16), ("n",))
    _, (exp, add) = graph_of(p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [0]))))
    assert recompute_factor(add.reads_from(exp)) == 16


def test_an_empty_space_reads_nothing_again():
    p = Program((0, 16), (0,))
    _, (exp, add) = graph_of(p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [0]))))
    assert recompute_factor(add.reads_from(exp)) == 1


def test_a_concat_selects_what_it_reads():
    p = Program((4, 8), (4, 8), (4, 16))
    _, (first, concat, add) = graph_of(p.done(p.binary(p.x[2], p.concat(p.unary(p.x[0]), p.x[1]))))
    assert recompute_factor(inline_into(concat, add).reads_from(first)) == 1


@pytest.mark.parametrize(
    ("export", "words"),
    [
        (None, "rule file row_chain has no EXPORT that is a FusionRule"),
        (RowChain(), "rule file row_chain has no EXPORT that is a FusionRule"),
        (int, "rule file row_chain has no EXPORT that is a FusionRule"),
        (RootChain, "rule root-chain lies in row_chain.py"),
    ],
)
def test_a_file_of_the_tree_has_the_rule_of_its_name(export: object, words: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_chain, "EXPORT", export)
    with pytest.raises(FuselineError) as caught:
        builtin_rules()
    assert (caught.value.code, caught.value.message) == ("E0901", words)


def test_a_value_of_another_op_is_no_result():
    _, (first, last) = graph_of(two_exps())
    assert first.root.result_index(first.root.op.results[0]) == 0
    with pytest.raises(ValueError, match="is no result of linalg.generic"):
        first.root.result_index(last.root.op.results[0])
