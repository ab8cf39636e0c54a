"""Which package runs each host operator, as records say it."""

from __future__ import annotations

from fuseline.report.host_packages import add_packages
from fuseline.report.records import CompileRecord, HostOpRecord


def _record(*nodes: str) -> CompileRecord:
    return CompileRecord(host_ops=[HostOpRecord(node=node, op_type="NonZero", reason="none") for node in nodes])


def test_one_package_for_all_is_counted_and_not_listed() -> None:
    record = _record("a", "b")
    add_packages(record, {"a": "onnxruntime", "b": "onnxruntime"})
    assert [host.executor for host in record.host_ops] == ["onnxruntime"] * 2
    assert record.statistics == {"host_executors": {"onnxruntime": 2}}


def test_several_packages_are_listed_by_node() -> None:
    record = _record("a", "b", "c")
    add_packages(record, {"c": "fuseline", "a, b": "onnxruntime"})
    assert record.statistics == {
        "host_executors": {"fuseline": 1, "onnxruntime": 2},
        "host_op_executors": {"a": "onnxruntime", "b": "onnxruntime", "c": "fuseline"},
    }


def test_a_node_that_nothing_calls_has_no_package() -> None:
    record = _record("a", "gone")
    add_packages(record, {"a": "onnxruntime"})
    assert [host.executor for host in record.host_ops] == ["onnxruntime", ""]
    assert record.statistics == {"host_executors": {"onnxruntime": 1}}


def test_without_host_operators_nothing_is_said() -> None:
    record = _record()
    add_packages(record, {"a": "onnxruntime"})
    assert record.statistics == {}


def test_an_earlier_answer_does_not_last() -> None:
    record = _record("a")
    add_packages(record, {"a": "onnxruntime"})
    add_packages(record, {"a": "fuseline"})
    assert record.statistics == {"host_executors": {"fuseline": 1}}
