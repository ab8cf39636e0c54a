"""A model's weights count as its files hold them: once each, whatever reads them and in whatever form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import fuseline

ROWS, COLUMNS = 96, 33


def _tied(table: TensorProto) -> onnx.ModelProto:
    """Rows of a table by index, and their products with all of its rows."""
    nodes = [
        helper.make_node("Gather", ["table", "index"], ["rows"]),
        helper.make_node("Transpose", ["table"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["rows", "turned"], ["scores"]),
    ]
    index = helper.make_tensor_value_info("index", TensorProto.INT64, [5])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [5, ROWS])
    graph = helper.make_graph(nodes, "tied", [index], [scores], [table])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _table() -> np.ndarray:
    return np.random.default_rng().standard_normal((ROWS, COLUMNS), dtype=np.float32)


def test_a_weight_that_is_read_in_two_forms_counts_once():
    program = fuseline.compile(_tied(numpy_helper.from_array(_table(), "table")))
    counted = program.stats["constant_bytes"]
    assert counted["original"] == ROWS * COLUMNS * 4 < counted["packed"]


def test_initializers_of_one_place_in_a_file_count_once(tmp_path: Path):
    table = _table()
    model = _tied(numpy_helper.from_array(table, "table"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w", size_threshold=0)
    model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    other = model.graph.initializer.add()
    other.CopyFrom(model.graph.initializer[0])
    other.name, model.graph.node[1].input[0] = "same", "same"
    onnx.save(model, tmp_path / "twice.onnx")
    program = fuseline.compile(tmp_path / "twice.onnx")
    assert program.stats["constant_bytes"]["original"] == table.nbytes
    index = np.random.default_rng().integers(0, ROWS, 5)
    np.testing.assert_allclose(program.run({"index": index})["scores"], table[index] @ table.T, rtol=1e-3, atol=1e-4)
