"""form-dispatch-regions: partition the fusion graph and wrap each group in a `flow.dispatch.region`.

    %m = linalg.generic {matmul} ...            %r = flow.dispatch.region -> (tensor<..>) {
    %r = linalg.generic {bias + relu} %m   =>     %m = linalg.generic {matmul} ...
                                                  %y = linalg.generic {bias + relu} %m
                                                  flow.return %y
                                                }
The region says which loops its members share (`fuseline.loops`, see `dispatch/fused_loops.py`). Decisions go to
`ctx.records.decisions`. The pass may run again, with other rules and other passes between: a round starts from the
regions that it finds, and extends or merges them. One that changes nothing leaves the program as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.code_text import digest
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import captured, is_generic
from fuseline.analysis.views import is_view
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, members_of
from fuseline.dispatch.loops_attribute import to_attribute
from fuseline.dispatch.member_classes import with_classes
from fuseline.dispatch.view import MEMBERS_ATTRIBUTE, ROOT_ATTRIBUTE
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import to_text
from fuseline.ir.fast.direct import (
    append,
    detach,
    erase,
    is_unused,
    operand_of,
    operands_of,
    ops_of,
    replace_uses_if,
    result_of,
    set_operand,
    users_of_value,
)
from fuseline.ir.fast.nesting import within
from fuseline.ir.flow import DispatchRegionOp, ReturnOp
from fuseline.ir.functions import functions
from fuseline.ir.provenance import carry, provenance
from fuseline.passes.dispatch.earlier_rounds import with_earlier
from fuseline.passes.dispatch.function_round import FunctionRound
from fuseline.passes.dispatch.legality import TargetVeto
from fuseline.passes.dispatch.region_loops import loops_of_group
from fuseline.passes.dispatch.region_order import ordered_regions
from fuseline.passes.dispatch.sizes import SizeBuilder
from fuseline.passes.fusion.driver import Partition
from fuseline.passes.fusion.finished import finished
from fuseline.passes.fusion.given_units import given_units
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.idiom_remarks import idiom_name, near_idiom_remarks, near_stream_remarks
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.plan import read_plan
from fuseline.passes.fusion.plan_constraints import PlanConstraints, PlanMatcher
from fuseline.passes.fusion.planned_driver import guided_partition
from fuseline.passes.fusion.rule import FusionRule
from fuseline.passes.fusion.rule_choice import ChosenRules
from fuseline.passes.fusion.starting_groups import StartingGroup
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes
from fuseline.passes.fusion.streamed_softmax import online_reductions
from fuseline.passes.fusion.user_rules import rules_asked
from fuseline.report.records import CompileRecord, Decision, FusionNodeRecord

FUSION_LEVELS = ("none", "default", "aggressive")


@dataclass(frozen=True)
class FormDispatchRegionsPass(ModulePass):
    """`level` (or `fusion`, its former name): `default`, where neither is given, `aggressive`, or `none` for one op per
    dispatch. `rules`: the names of rules and joins, everything else is off; `without`: those that are off.
    `more_rules`: from outside.

    `plan`: the file of a fusion plan; its groups are formed under any level, and `plan_strict` refuses one with entries
    that do not match. `code_limits`: by the name of a node, how many operations a dispatch that holds it may be
    estimated to have, where that is fewer than the target takes.
    """

    name = "form-dispatch-regions"
    fusion: str | None = None
    level: str | None = None
    rules: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    more_rules: tuple[FusionRule, ...] = field(default=(), metadata={"option": False})
    plan: str = ""
    plan_strict: bool = False
    code_limits: Mapping[str, int] = field(default_factory=dict[str, int], metadata={"option": False})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Form the regions of every function. Raises FuselineError: E0304 for a level that is unknown, or two that
        differ, and what `rules_asked`, `read_plan` and `PlanMatcher.check` raise."""
        assert isinstance(ctx, CompilerContext)
        level = self._level()
        known = rules_asked(ctx.target.rules, self.more_rules, self.rules, self.without, self.name)
        matcher = PlanMatcher(read_plan(Path(self.plan))) if self.plan else None
        tuned = matcher.plan.tuned if matcher is not None else None
        ctx.records.tuned = list(tuned.change) if tuned is not None else []
        asked = level != "none" or matcher is not None
        chosen = known if asked else ChosenRules()
        _begin_records(ctx.records, level, op)
        prints, taken = list[str](), dict[str, int]()
        for function in functions(op):
            found = FunctionRound.of(function, ctx.symbols)
            graph = FusionGraph(function.body.block, ShapeAnalysis(ctx.symbols), taken, self.code_limits, ctx.fuel)
            prints.append(graph.fingerprint())
            _form(ctx, found, graph, chosen, level, matcher)
        ctx.records.fingerprint = prints[0] if len(prints) == 1 else digest("program", *prints)
        if matcher is not None:
            ctx.records.warnings += matcher.check(ctx.records, strict=self.plan_strict)

    def _level(self) -> str:
        """The fusion level; raises E0304 for one that there is not, or two that differ."""
        given = {name: asked for name in ("level", "fusion") if (asked := getattr(self, name)) is not None}
        for option, level in given.items():
            if level not in FUSION_LEVELS:
                hint = f"use one of {', '.join(FUSION_LEVELS)}"
                raise FuselineError("E0304", f"{option} is {level!r}", node=self.name, hint=hint)
        if len({*given.values()}) > 1:
            both = f"level is {self.level!r} and fusion, which is the same, {self.fusion!r}"
            raise FuselineError("E0304", both, node=self.name, hint="give one of the two")
        return self.level or self.fusion or "default"


def _begin_records(records: CompileRecord, level: str, module: ModuleOp) -> None:
    """What every round says anew; a program without regions is in its first."""
    again = any(type(inner) is DispatchRegionOp for op in module.ops for inner in op.walk())
    records.fusion, records.fusion_rounds = level, records.fusion_rounds + 1 if again else 1
    records.generic_ops_before = 0
    records.groups.clear()


def _form(
    ctx: CompilerContext,
    found: FunctionRound,
    graph: FusionGraph,
    chosen: ChosenRules,
    level: str,
    matcher: PlanMatcher | None,
) -> None:
    guide = _guide(found, graph, level, matcher)
    veto = TargetVeto(ctx.legal, graph.shapes)
    weighed = level if level != "none" else "default"
    streams = online_reductions(graph, ctx.target)
    start = found.starting_groups(graph, streams)
    result = guided_partition(graph, chosen.rules, ctx.target, weighed, guide, veto, chosen.joins, start)
    groups = sorted((group for group in result.groups if group.fusable), key=lambda group: group.members[0].position)
    veto.require(group for group in groups if not found.had(group))
    ends = {group: finished(group, graph.shapes) for group in sorted(groups, key=lambda group: group.key)}
    _record(ctx, graph, result, start, [one for _, decisions in ends.values() for one in decisions])
    if found.changes_nothing(groups):
        found.restore()
        return
    sizes = SizeBuilder(found.function, graph.shapes)
    for region_or_op in ordered_regions(graph.block, result, graph.shapes):
        if isinstance(region_or_op, Group):
            _wrap(region_or_op, ends[region_or_op][0], sizes, streams)
        else:
            _move_to_end(region_or_op)
    _put_terminator_last(graph.block)
    _erase_dead_views(ctx, graph.block, {name for node in graph.nodes for name in node.nodes})


def _guide(found: FunctionRound, graph: FusionGraph, level: str, matcher: PlanMatcher | None) -> PlanConstraints | None:
    """What the plan asks for, where there is one; else what the program says is one unit, unless nothing is fused."""
    if matcher is not None:
        return matcher.guide(graph, only=level == "none")
    return given_units(found.function, graph) if level != "none" else None


def _record(
    ctx: CompilerContext,
    graph: FusionGraph,
    result: Partition,
    start: Sequence[StartingGroup],
    finishing: Iterable[Decision],
) -> None:
    """Write down what the round decided about one function, `finishing` at the last."""
    records = ctx.records
    names = {node.name for node in graph.nodes}
    earlier = [one for one in records.decisions if start and {one.producer, one.consumer} <= names]
    decisions = [*result.decisions, *finishing]
    records.decisions[:] = [one for one in records.decisions if one not in earlier]
    records.decisions.extend(with_earlier(earlier, decisions, start, records.fusion_rounds))
    groups = sorted((group for group in result.groups if group.fusable), key=lambda group: group.members[0].position)
    records.groups.extend(tuple(node.name for node in group.members) for group in groups)
    records.generic_ops_before += sum(is_generic(node.op) for node in graph.nodes)
    streamed = near_stream_remarks(graph, result) if ctx.target.streamed_points else ()
    records.remarks[:] = dict.fromkeys([*records.remarks, *near_idiom_remarks(graph.nodes), *streamed])
    records.fusion_nodes.update({node.name: _node_record(node) for node in graph.nodes})


def _erase_dead_views(ctx: CompilerContext, block: Block, placed: set[str]) -> None:
    """Views whose copies went into dispatches: a source node that was nothing else costs nothing any more, and is
    recorded so."""
    for op in reversed(ops_of(block)):
        if is_unused(op) and is_view(op):
            for name in set(provenance(op)) - placed:
                ctx.records.eliminated.setdefault(name, FormDispatchRegionsPass.name)
            erase(op)


def _node_record(node: Node) -> FusionNodeRecord:
    return FusionNodeRecord(
        kind=node.kind.value,
        loops=tuple(to_text(extent) for extent in node.loops),
        nodes=node.nodes,
        idiom=idiom_name(node),
    )


def _move_to_end(op: Operation) -> None:
    block = op.parent
    assert block is not None
    detach(op)
    append(op, block)


def _put_terminator_last(block: Block) -> None:
    for op in block.ops:
        if not op.results and op.name.endswith(".return"):
            _move_to_end(op)
            return


def _wrap(group: Group, finished_group: Group, sizes: SizeBuilder, streams: Sequence[OnlineReductionNodes]) -> None:
    """Move the members of `group`, which has the loops of `finished_group`, into a region at the end of their block."""
    block = group.members[0].op.parent
    assert block is not None
    for arm in group.arms or (group,):
        arm.root.op.attributes[ROOT_ATTRIBUTE] = UnitAttr()
    inside = {id(node.op) for node in group.members}
    stored = {id(value) for arm in finished_group.arms or (finished_group,) for value in arm.stored_rows.added}
    results = [
        value
        for node in group.members
        for value in node.op.results
        if id(value) in stored or _read_outside(value, inside)
    ]
    dims = [size for value in results for size in sizes.dynamic(value)]
    body = Block()
    copies: dict[SSAValue, SSAValue] = {}
    for node in group.members:
        _pull_views(node, inside, body, copies)
        detach(node.op)
        append(node.op, body)
    region = DispatchRegionOp([value.type for value in results], dims, Region(body))
    region.attributes[MEMBERS_ATTRIBUTE] = ArrayAttr([StringAttr(node.name) for node in group.members])
    loops = loops_of_group(finished_group, members_of(body), sizes.shapes.unnamed, streams)
    region.attributes[LOOPS_ATTRIBUTE] = to_attribute(with_classes(loops, body, sizes.shapes))
    block.add_op(region)
    carry([node.op for node in group.members], [region])
    for value, result in zip(results, region.results, strict=True):
        replace_uses_if(value, result, lambda user: user.parent is not body and not within(user, body))
    end = ReturnOp(results)
    end.location = region.location
    body.add_op(end)


def _read_outside(value: SSAValue, inside: set[int]) -> bool:
    return any(not _in_any(user, inside) and not _only_read_inside(user, inside) for user in users_of_value(value))


def _only_read_inside(op: Operation, inside: set[int]) -> bool:
    """Whether `op` is a view that nobody outside the group reads: a copy of it goes inside."""
    return is_view(op) and not any(_read_outside(result, inside) for result in op.results)


def _in_any(op: Operation | None, ops: set[int]) -> bool:
    """Whether `op` is one of `ops` (identities) or lies inside one."""
    while op is not None:
        if id(op) in ops:
            return True
        op = op.parent_op()
    return False


def _pull_views(node: Node, inside: set[int], body: Block, copies: dict[SSAValue, SSAValue]) -> None:
    """Copy into `body` the views between a member and `node`, those that `copies` has not yet: members that read one
    value of the program read one value of the body."""
    op = node.op
    for value in dict.fromkeys((*operands_of(op), *(captured(op) if node.captured else ()))):
        copy = _copied_view(value, inside, body, copies)
        if copy is not None:
            replace_uses_if(value, copy, lambda user: _in_any(user, {id(op)}))


def _copied_view(value: SSAValue, inside: set[int], body: Block, copies: dict[SSAValue, SSAValue]) -> SSAValue | None:
    chain: list[OpResult] = []
    while type(value) is OpResult and is_view(value.op):
        chain.append(value)
        value = operand_of(value.op, 0)
    if not chain or type(value) is not OpResult or id(value.op) not in inside:
        return None
    source: SSAValue = value
    for viewed in reversed(chain):
        if viewed not in copies:
            copy = viewed.op.clone()
            set_operand(copy, 0, source)
            append(copy, body)
            copies[viewed] = result_of(copy)
        source = copies[viewed]
    return source


EXPORT = FormDispatchRegionsPass
