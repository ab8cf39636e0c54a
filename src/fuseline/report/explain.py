"""Answers from the decision records: where did a node go, why are two nodes fused or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from fuseline.report.advice import advice
from fuseline.report.dispatches import find_dispatch, member_nodes
from fuseline.report.records import CompileRecord, Decision, HostOpRecord
from fuseline.report.units import plural, quantity, shortened


@dataclass(frozen=True, slots=True)
class Answer:
    """Text lines for a reader, and the decisions they rest on."""

    lines: tuple[str, ...]
    decisions: tuple[Decision, ...] = ()
    found: bool = True


def decision_line(decision: Decision) -> str:
    """One decision as one line: verdict, edge, rule or reason, numbers."""
    edge = f"{_end(decision.producer_nodes, decision.producer_op)} -> {_end(decision.consumer_nodes, decision.consumer_op)}"
    why = f"[{decision.rule}]" if decision.verdict == "fused" else f"[{decision.rule}] {decision.code}"
    detail = f": {decision.detail}" if decision.detail else ""
    numbers = ", ".join(f"{key} {quantity(value)}" for key, value in decision.numbers.items())
    return f"{decision.verdict:<10} {edge}  {why}{detail}" + (f" ({numbers})" if numbers else "")


def _end(nodes: tuple[str, ...], op: str) -> str:
    return shortened(nodes, 2) or op


def why_not_fused(record: CompileRecord, limit: int = 5) -> list[str]:
    """One example for each of the commonest reasons why an edge stayed between two dispatches."""
    missed = [decision for decision in record.decisions if decision.verdict == "missed"]
    common = Counter(decision.code for decision in missed).most_common(limit)
    first = {decision.code: decision for decision in reversed(missed)}
    return [f"{code}, {plural(count, 'edge')}; for example\n  {decision_line(first[code])}" for code, count in common]


def explain_model(record: CompileRecord) -> Answer:
    """The whole model: verdicts, reasons by count, dispatches, what was eliminated, host ops."""
    verdicts = Counter(decision.verdict for decision in record.decisions)
    lines = [
        plural(len(record.dispatches), "dispatch") + (f" from {plural(len(record.source_nodes), 'source node')}" if record.source_nodes else ""),
        "decisions: " + (", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()) or "none"),
    ]
    rules = Counter(decision.rule for decision in record.decisions if decision.verdict == "fused")
    lines += [f"  fused by {rule}: {count}" for rule, count in rules.most_common()]
    codes = Counter(decision.code for decision in record.decisions if decision.verdict == "missed")
    lines += [f"  missed for {code}: {count}" for code, count in codes.most_common()]
    gone = Counter(record.eliminated.values())
    lines += [f"  eliminated by {name}: {plural(count, 'node')}" for name, count in gone.most_common()]
    lines += [_host_line(host) for host in record.host_ops]
    return Answer(tuple(lines), tuple(record.decisions))


def _host_line(host: HostOpRecord) -> str:
    return f"  host op {host.node} ({host.op_type}): {host.reason}"


def _touches(decision: Decision, node: str) -> bool:
    return node in decision.producer_nodes or node in decision.consumer_nodes or node in (decision.producer, decision.consumer)


def _place(record: CompileRecord, node: str) -> str | None:
    dispatch = find_dispatch(record, node)
    if dispatch is not None:
        others = [name for name in member_nodes(dispatch) if name != node]
        return f"{node} runs in {dispatch.name} (root {dispatch.root})" + (f" with {shortened(others, 8)}" if others else ", alone")
    if node in record.eliminated:
        return f"{node} was eliminated by {record.eliminated[node]}"
    host = next((host for host in record.host_ops if host.node == node), None)
    return f"{node} is a host op ({host.op_type}): {host.reason}" if host else None


def explain_node(record: CompileRecord, node: str) -> Answer:
    """Where one source node (or structural id) went and every decision about its edges; `found` is False for a name nobody knows."""
    decisions = tuple(decision for decision in record.decisions if _touches(decision, node))
    place = _place(record, node)
    if place is None and not decisions and node not in record.source_nodes:
        return Answer((f"no node is called {node}", *_suggestions(record, node)), (), False)
    return Answer((place or f"{node} has no dispatch of its own", *(f"  {decision_line(d)}" for d in decisions)), decisions)


def explain_edge(record: CompileRecord, producer: str, consumer: str) -> Answer:
    """Why two nodes share a dispatch or do not, in either order of naming."""
    for node in (producer, consumer):
        answer = explain_node(record, node)
        if not answer.found:
            return answer
    decisions = tuple(d for d in record.decisions if _connects(d, producer, consumer) or _connects(d, consumer, producer))
    ours, theirs = find_dispatch(record, producer), find_dispatch(record, consumer)
    together = ours is not None and ours is theirs
    verdict = f"{producer} and {consumer} share {ours.name}" if together and ours else f"{producer} and {consumer} do not share a dispatch"
    lines = [verdict, *(line for decision in decisions for line in _with_advice(decision))]
    if not decisions:
        lines += [f"  no candidate joined them directly; {_place(record, node) or node}" for node in (producer, consumer)]
    return Answer(tuple(lines), decisions)


def _with_advice(decision: Decision) -> Iterable[str]:
    yield f"  {decision_line(decision)}"
    change = advice(decision.code) if decision.verdict == "missed" else None
    if change is not None:
        yield f"    would fuse with: {change}"


def _connects(decision: Decision, producer: str, consumer: str) -> bool:
    return (producer in decision.producer_nodes or producer == decision.producer) and (
        consumer in decision.consumer_nodes or consumer == decision.consumer
    )


def _suggestions(record: CompileRecord, node: str) -> Iterable[str]:
    lowered = node.lower()
    close = [name for name in record.source_nodes if lowered in name.lower()][:5]
    return [f"did you mean {shortened(close, 5)}?"] if close else []
