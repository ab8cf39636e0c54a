"""Nodes of a file as reports draw them."""

from __future__ import annotations

from pathlib import Path

import onnx

import fuseline
from fuseline.interop.source_nodes import source_nodes
from tests.graphs.onnx_text import onnx_model


def test_names_are_those_of_records_and_inputs_lead_to_makers(tmp_path: Path) -> None:
    model = onnx_model("(float[5, 4] x) => (y) { a = Exp(x)  [b] b = Tanh(a)  c = Add(a, b)  y = Mul(c, c) }")
    onnx.save(model, tmp_path / "m.onnx")
    found = source_nodes(tmp_path / "m.onnx")
    assert [node.inputs for node in found] == [(), (0,), (0, 1), (2,)]
    record = fuseline.compile(tmp_path / "m.onnx", target="null").record
    assert [node.name for node in found] == record.source_nodes
    assert [node.operator for node in found] == ["Exp", "Tanh", "Add", "Mul"]


def test_other_files_have_none(tmp_path: Path) -> None:
    assert source_nodes(tmp_path / "m.mlir") == []
