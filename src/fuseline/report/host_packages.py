"""Which package runs each host operator in this installation: added to a record when it is read, since a compile cannot
know it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec.structs import replace

from fuseline.report.records import CompileRecord, HostOpRecord


def add_packages(record: CompileRecord, packages: Mapping[str, str]) -> None:
    """Name the executor of every host op of `record`. `packages` has them by the label of a call, which lists source
    nodes.

    The statistics get `host_executors`, how many run where, and `host_op_executors`, by node, where they differ.
    """
    by_node = {node: package for label, package in packages.items() for node in (label, *label.split(", "))}
    record.host_ops = [_named(host, by_node) for host in record.host_ops]
    named = {host.node: host.executor for host in record.host_ops if host.executor}
    if named:
        record.statistics["host_executors"] = dict(
            sorted(Counter(host.executor for host in record.host_ops if host.executor).items())
        )
    if len(set(named.values())) > 1:
        record.statistics["host_op_executors"] = named


def _named(host: HostOpRecord, by_node: Mapping[str, str]) -> HostOpRecord:
    return replace(host, executor=by_node.get(host.node, ""))
