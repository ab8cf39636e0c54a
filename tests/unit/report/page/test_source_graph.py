"""What became of each node of the model."""

from __future__ import annotations

import msgspec

from fuseline.report.page import Side, SourceNode
from fuseline.report.page.source_graph import source_graph
from fuseline.report.records import HostOpRecord
from tests.unit.report.records import RECORD


def test_where_nodes_went() -> None:
    host = HostOpRecord(node="Unique_5", op_type="Unique", reason="no lowering")
    record = msgspec.structs.replace(RECORD, host_ops=[host], eliminated={"Identity_9": "canonicalize"})
    names = ["Conv_0", "Relu_1", "Unique_5", "Identity_9"]
    nodes = [SourceNode(name, name.partition("_")[0], (0,) if name == "Relu_1" else ()) for name in names]
    found = {node["name"]: node for node in source_graph(Side("x", record, nodes))}
    assert found["Conv_0"]["at"] == found["Relu_1"]["at"] == [0] and found["Relu_1"]["inputs"] == [0]
    assert found["Unique_5"]["host"] == "no lowering" and found["Identity_9"]["gone"] == "canonicalize"


def test_without_the_model_the_names_of_the_record_are_there() -> None:
    record = msgspec.structs.replace(RECORD, source_nodes=["Conv_0", "Relu_1"])
    assert [node["name"] for node in source_graph(Side("x", record))] == ["Conv_0", "Relu_1"]
