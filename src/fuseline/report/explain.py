"""Answers from the decision records: where did a node go, why are two nodes fused or not, what would have to change."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fuseline.report.advice import advice
from fuseline.report.dispatches import member_nodes
from fuseline.report.edge_counts import EdgeCounts, count_edges
from fuseline.report.layouts import layout_line
from fuseline.report.op_remarks import CODEGEN, op_remark_line, op_remarks
from fuseline.report.quantities import plural, quantity, shortened
from fuseline.report.quantization import quantization_lines
from fuseline.report.records import CompileRecord, Decision, DispatchRecord, HostOpRecord, OpRemark
from fuseline.report.sharing import companion_lines, sharing_lines
from fuseline.report.subjects import Subject, find_subject, suggestions

_PATH_LIMIT = 12
"""Edges of a path between two nodes that is still an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Text lines for a reader, and the decisions and dispatches they rest on."""

    lines: tuple[str, ...]
    decisions: tuple[Decision, ...] = ()
    found: bool = True
    dispatches: tuple[str, ...] = ()
    remarks: tuple[OpRemark, ...] = ()


def decision_line(decision: Decision) -> str:
    """One decision as one line: verdict, edge, rule or reason, numbers."""
    link = "beside" if decision.arms else "->"
    first, second = _end(decision.producer_nodes, decision.producer), _end(decision.consumer_nodes, decision.consumer)
    if first == second:  # several ops of one node
        first, second = f"{first} ({decision.producer_op})", f"{second} ({decision.consumer_op})"
    edge = f"{first} {link} {second}"
    rule = decision.rule if decision.round == 1 else f"{decision.rule}, round {decision.round}"
    why = f"[{rule}]" if decision.verdict == "fused" else f"[{rule}] {decision.code}"
    detail = f": {decision.detail}" if decision.detail else ""
    numbers = ", ".join(f"{key} {quantity(value)}" for key, value in decision.numbers.items())
    return f"{decision.verdict:<10} {edge}  {why}{detail}" + (f" ({numbers})" if numbers else "")


def _end(nodes: tuple[str, ...], id: str) -> str:
    """The source nodes, or the structural id of an op that none is behind."""
    return shortened(nodes, 2) or id


def why_not_fused(record: CompileRecord, limit: int = 5) -> list[str]:
    """One example for each of the commonest reasons why an edge stayed between two dispatches."""
    missed = [decision for decision in record.decisions if decision.verdict == "missed"]
    common = Counter(decision.code for decision in missed).most_common(limit)
    first = {decision.code: decision for decision in reversed(missed)}
    return [f"{code}, {plural(count, 'edge')}; for example\n  {decision_line(first[code])}" for code, count in common]


# the model ------------------------------------------------------------------------------------------------------------


def explain_model(record: CompileRecord) -> Answer:
    """The whole model: verdicts, reasons by count with what would change them, dispatches, what was eliminated, host
    ops."""
    counts = count_edges(record.decisions)
    lines = [
        plural(len(record.dispatches), "dispatch")
        + (f" from {plural(len(record.source_nodes), 'source node')}" if record.source_nodes else ""),
        "decisions: " + (", ".join(_verdicts(counts)) or "none"),
    ]
    rules = Counter(decision.rule for decision in record.decisions if decision.verdict == "fused")
    lines += [f"  fused by {rule}: {count}" for rule, count in rules.most_common()]
    for code, count in counts.missed.items():
        lines += [f"  missed for {code}: {count}", *_hint(code)]
    gone = Counter(record.eliminated.values())
    lines += [f"  eliminated by {name}: {plural(count, 'node')}" for name, count in gone.most_common()]
    lines += [layout_line(one) for one in record.layouts]
    lines += [_host_line(host) for host in record.host_ops]
    names = tuple(dispatch.name for dispatch in record.dispatches)
    remarks = op_remarks(record)
    lines += [f"  {op_remark_line(remark)}" for remark in remarks]
    lines += quantization_lines(record)
    return Answer(tuple(lines), tuple(record.decisions), dispatches=names, remarks=remarks)


def _verdicts(counts: EdgeCounts) -> Iterable[str]:
    numbers = {
        "fused": counts.fused,
        "side by side": counts.side_by_side,
        "missed": sum(counts.missed.values()),
        "superseded": counts.superseded,
    }
    return (f"{count} {verdict}" for verdict, count in numbers.items() if count)


def _hint(code: str) -> list[str]:
    change = advice(code)
    return [f"    to change it: {change}"] if change is not None else []


def _host_line(host: HostOpRecord) -> str:
    where = f" in {host.executor}" if host.executor else ""
    return f"  host op {host.node} ({host.op_type}){where}: {host.reason}"


def explain_sharing(record: CompileRecord) -> Answer:
    """Which dispatches share code, and what keeps the others apart."""
    return Answer(tuple(sharing_lines(record)), dispatches=tuple(dispatch.name for dispatch in record.dispatches))


# one node or dispatch -------------------------------------------------------------------------------------------------


def explain_node(record: CompileRecord, name: str) -> Answer:
    """Where a node (by ONNX name or structural id) or a dispatch (by name or number) went, and every decision about its
    edges.

    `found` is False for a name that nothing has.
    """
    subject = find_subject(record, name)
    if subject is None:
        near = suggestions(record, name)
        return Answer(
            (f"no node is called {name}", *([f"did you mean {shortened(near, 5)}?"] if near else [])), (), False
        )
    if subject.dispatch is not None:
        return _explain_dispatch(record, subject, subject.dispatch)
    decisions = tuple(d for d in record.decisions if d.producer in subject.ids or d.consumer in subject.ids)
    remarks = op_remarks(record, subject.ids)
    lines = [*_dispatch_lines(subject), *(f"  {op_remark_line(remark)}" for remark in remarks)]
    lines += quantization_lines(record, frozenset({subject.name}))
    lines += [line for d in decisions for line in _with_hint(d)]
    return Answer(tuple(lines), decisions, dispatches=_names(subject), remarks=remarks)


def _names(*subjects: Subject) -> tuple[str, ...]:
    return tuple(dict.fromkeys(dispatch.name for subject in subjects for dispatch in subject.dispatches))


def _dispatch_lines(subject: Subject) -> list[str]:
    if subject.host is not None:
        return [f"{subject.name} is a host op ({subject.host.op_type}): {subject.host.reason}"]
    if subject.dispatches:
        return [_dispatch_line(subject, dispatch) for dispatch in subject.dispatches]
    if subject.eliminated:
        return [f"{subject.name} was eliminated by {subject.eliminated}"]
    return [f"{subject.name} has no dispatch of its own"]


def _dispatch_line(subject: Subject, dispatch: DispatchRecord) -> str:
    others = [name for name in member_nodes(dispatch) if name != subject.name]
    return f"{subject.name} runs in {dispatch.name} (root {dispatch.root})" + (
        f" with {shortened(others, 8)}" if others else ", alone"
    )


def _explain_dispatch(record: CompileRecord, subject: Subject, dispatch: DispatchRecord) -> Answer:
    """The members of a dispatch, what joined them, and what stayed outside, and why."""
    touching = [d for d in record.decisions if d.producer in subject.ids or d.consumer in subject.ids]
    inside = [d for d in touching if d.producer in subject.ids and d.consumer in subject.ids]
    outside = [d for d in touching if d not in inside]
    arms = f", {plural(len(dispatch.arms), 'arm')}" if dispatch.arms else ""
    family = f", family {dispatch.family}" if dispatch.family else ""
    form = f", {dispatch.form} code" if dispatch.form not in ("", "full") else ""
    lines = [
        (
            f"{dispatch.label}: root {dispatch.root}{family}{form}{arms}, {quantity(dispatch.flops)} flops, executable "
            f"{dispatch.executable}"
        )
    ]
    lines += [f"  {member.role:<9} {member.id}  {shortened(member.nodes, 4)}".rstrip() for member in dispatch.members]
    remarks = op_remarks(record, subject.ids)
    lines += [f"  no kernel of its own: {family} refused: {reason}" for family, reason in dispatch.fallback.items()]
    lines += [f"  tuned: {kernel} has {choice}" for kernel, choice in dispatch.choices.items()]
    lines += [f"  {op_remark_line(remark)}" for remark in remarks if remark.rule != CODEGEN]
    lines += [
        f"  joined by {rule}: {plural(count, 'edge')}" for rule, count in Counter(d.rule for d in inside).most_common()
    ]
    lines += companion_lines(record, dispatch)
    lines += [line for d in outside for line in _with_hint(d)] or ["  no edge to another dispatch"]
    return Answer(tuple(lines), tuple(touching), dispatches=(dispatch.name,), remarks=remarks)


# two of them ----------------------------------------------------------------------------------------------------------


def explain_edge(record: CompileRecord, producer: str, consumer: str) -> Answer:
    """Why two nodes or dispatches run together or do not, in either order of naming, and what would have to change."""
    subjects: list[Subject] = []
    for name in (producer, consumer):
        subject = find_subject(record, name)
        if subject is None:
            return explain_node(record, name)
        subjects.append(subject)
    first, second = subjects
    decisions = tuple(d for d in record.decisions if _connects(d, first, second) or _connects(d, second, first))
    shared = [dispatch.name for dispatch in first.dispatches if dispatch in second.dispatches]
    verdict = (
        f"{first.name} and {second.name} share {', '.join(shared)}"
        if shared
        else f"{first.name} and {second.name} do not share a dispatch"
    )
    lines = [verdict, *(line for decision in decisions for line in _with_hint(decision))]
    if not decisions:
        path = _path(record, first.ids, second.ids) or _path(record, second.ids, first.ids)
        lines += _indirect(subjects, path)
        decisions = tuple(path)
    return Answer(tuple(lines), decisions, dispatches=_names(*subjects))


def _indirect(subjects: Sequence[Subject], path: Sequence[Decision]) -> list[str]:
    told = [f"  no candidate joined them directly; {line}" for subject in subjects for line in _dispatch_lines(subject)]
    apart = [decision for decision in path if decision.verdict != "fused"]
    if not apart:
        return told
    return [
        *told,
        f"  on the way from one to the other, {plural(len(apart), 'edge')} of {len(path)} stayed apart:",
        *_hints(apart),
    ]


def _hints(decisions: Iterable[Decision]) -> list[str]:
    return [line for decision in decisions for line in _with_hint(decision)]


def _with_hint(decision: Decision) -> Iterable[str]:
    yield f"  {decision_line(decision)}"
    if decision.verdict in ("missed", "side-by-side"):
        yield from _hint(decision.code)
    elif decision.verdict == "superseded":
        yield "    to change it: force the two together in a plan (compile --emit plan, edit force, compile --plan)"


def _connects(decision: Decision, producer: Subject, consumer: Subject) -> bool:
    return decision.producer in producer.ids and decision.consumer in consumer.ids


def _path(record: CompileRecord, start: frozenset[str], goal: frozenset[str]) -> list[Decision]:
    """The decisions along a shortest path from `start` to `goal`, none where there is none."""
    after: dict[str, list[Decision]] = defaultdict(list)
    for decision in record.decisions:
        if not decision.arms:
            after[decision.producer].append(decision)
    came: dict[str, Decision | None] = dict.fromkeys(sorted(start))
    queue = deque(came)
    while queue:
        node = queue.popleft()
        if node in goal:
            return _path_back(came, node)
        for decision in after[node]:
            if decision.consumer not in came:
                came[decision.consumer] = decision
                queue.append(decision.consumer)
    return []


def _path_back(came: dict[str, Decision | None], node: str) -> list[Decision]:
    path: list[Decision] = []
    while (decision := came[node]) is not None:
        path.insert(0, decision)
        node = decision.producer
    return path if len(path) <= _PATH_LIMIT else []
