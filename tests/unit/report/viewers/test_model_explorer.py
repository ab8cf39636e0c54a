"""Graphs and node data as Model Explorer reads them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
import pytest

import fuseline
from fuseline.report.viewers.model_explorer import GRAPH, graphs, node_data
from tests.small_models import attention

NODE = {"id", "label", "namespace", "attrs", "incomingEdges"}
"""Fields of the viewer's `GraphNode` that are written (graph_builder.py of ai-edge-model-explorer 0.1.34)."""


def _record() -> Any:
    return fuseline.compile(attention(2, 5), target="null", cache=False).record


def test_ops_lie_in_layers_of_their_dispatches_and_edges_lead_to_nodes() -> None:
    record = _record()
    (graph,) = json.loads(json.dumps(graphs(record)))["graphs"]
    assert graph["id"] == GRAPH and set(graph["groupNodeAttributes"]) == {one.label for one in record.dispatches}
    ids = [node["id"] for node in graph["nodes"]]
    assert len(set(ids)) == len(ids)
    for node in graph["nodes"]:
        assert set(node) == NODE and node["namespace"] in {"", *graph["groupNodeAttributes"]}
        assert all(edge["sourceNodeId"] in ids for edge in node["incomingEdges"])
        assert all(isinstance(pair["value"], str) for pair in node["attrs"])
    edges = sum(len(node["incomingEdges"]) for node in graph["nodes"])
    assert edges == sum(not decision.arms for decision in record.decisions) > 0


def test_node_data_has_each_dispatch_measured_or_predicted() -> None:
    record = _record()
    ids = {node["id"] for node in graphs(record)["graphs"][0]["nodes"]}
    predicted = node_data(record)[GRAPH]
    assert len(predicted["results"]) == len(record.dispatches) and set(predicted["results"]) <= ids
    assert [stop["stop"] for stop in predicted["gradient"]] == [0, 1]
    times = [1e-6 * (number + 1) for number in range(len(record.dispatches))]
    measured = node_data(record, times)[GRAPH]
    assert measured["name"] == "measured us"
    assert sorted(result["value"] for result in measured["results"].values()) == [n + 1.0 for n in range(len(times))]


class _Values(ModuleType):
    """Stands in for the viewer's package, which is large: classes that keep what they are given."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, **fields: self.__dict__.update(fields)})


def test_the_adapter_shows_an_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = _Values("model_explorer")
    package.graph_builder = _Values("graph_builder")  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "model_explorer", package)
    monkeypatch.delitem(sys.modules, "fuseline.interop.model_explorer_adapter.main", raising=False)
    # the viewer imports `main` of what --extensions names
    from fuseline.interop.model_explorer_adapter.main import FuselineAdapter

    onnx.save(attention(2, 5), tmp_path / "m.onnx")
    program = fuseline.compile(tmp_path / "m.onnx", threads=1)
    program.save(tmp_path / "m.fuse")
    (graph,) = FuselineAdapter().convert(str(tmp_path / "m.fuse"), {})["graphs"]
    written = graphs(program.record)["graphs"][0]
    assert [node.id for node in graph.nodes] == [node["id"] for node in written["nodes"]]
    assert FuselineAdapter.metadata.fileExts == ["fuse"]
    monkeypatch.delitem(sys.modules, "fuseline.interop.model_explorer_adapter.main")
