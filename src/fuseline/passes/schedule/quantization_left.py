"""Quantize and dequantize nodes that the finished program still holds by themselves: in dispatches of their own,
or on the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fuseline.report.records import CompileRecord, Decision, DispatchRecord, QuantizationRecord


def complete_quantization(record: CompileRecord) -> dict[str, int]:
    """Add what only the finished program tells (nodes in dispatches of their own, nodes on the host), and count by
    code."""
    for found in (*_hosted(record), *_alone(record)):
        if found not in record.quantization:
            record.quantization.append(found)
    return dict(Counter(one.code for one in record.quantization))


def _hosted(record: CompileRecord) -> Iterator[QuantizationRecord]:
    for host in record.host_ops:
        if host.node in record.quantize_nodes:
            yield QuantizationRecord(
                nodes=(host.node,), readers=_readers(record, host.node), code="qdq-host", detail=host.reason
            )


def _readers(record: CompileRecord, node: str) -> tuple[str, ...]:
    """The nodes behind the missed edges that begin at `node`."""
    edges = (one for one in record.decisions if one.verdict == "missed" and node in one.producer_nodes)
    return tuple(sorted({reader for one in edges for reader in one.consumer_nodes}))


def _alone(record: CompileRecord) -> Iterator[QuantizationRecord]:
    known = set(record.quantize_nodes)
    for dispatch in record.dispatches:
        nodes = {node for member in dispatch.members for node in member.nodes}
        if nodes and nodes <= known:
            readers, detail = _around(record, dispatch)
            yield QuantizationRecord(nodes=tuple(sorted(nodes)), readers=readers, code="qdq-no-consumer", detail=detail)


def _around(record: CompileRecord, dispatch: DispatchRecord) -> tuple[tuple[str, ...], str]:
    """The nodes that read the dispatch, and why its edges were missed."""
    ids = {member.id for member in dispatch.members}
    edges: list[Decision] = [
        one for one in record.decisions if one.verdict == "missed" and (one.producer in ids) != (one.consumer in ids)
    ]
    readers = sorted({node for one in edges if one.producer in ids for node in one.consumer_nodes})
    codes = ", ".join(dict.fromkeys(one.code for one in edges))
    return tuple(readers), f"fusion refused: {codes}" if codes else "nothing beside it that it could be fused with"
